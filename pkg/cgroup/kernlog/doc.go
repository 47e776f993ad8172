// Package kernlog reads what the kernel's out-of-memory killer wrote to the
// kernel log: whom it killed, for the limit of which cgroup, and what the
// memory consisted of at that moment.
//
// It reads the log as dmesg prints it (seconds since boot, dmesg -T, or
// --time-format iso), as journalctl -k prints it (short, short-precise,
// short-iso, short-iso-precise, short-monotonic), as rsyslog files it, and the
// records of /dev/kmsg; and the messages of kernels from 4.19 on. Paths of
// cgroups are kept as the kernel printed them. Nothing in a log is trusted:
// processes choose their own names, and anyone on the node may write to it.
package kernlog
