# Reads files of a node and writes them to standard output, each as a frame of
# its own. Needs a POSIX shell with printf built in, cat, date and sleep; the
# kernel log needs dmesg, and tail where it is long. It changes nothing.
#
# $1 where the node's / is mounted, "" for /
# $2 seconds between two samples, 0 for a single one
# $3 UID of the pod whose cgroup is left out, "" for none
# $4 folder to write one byte to, "" for none: then each file costs a process
# $5 node, or container for nothing but the cgroup that it runs in
#
# A frame is a line and what it announces:
#   noderes 1           the first line
#   S once, S 0, S 1    what follows is read once, or belongs to that sample
#   T EPOCH UPTIME      the clock, and the seconds since boot
#   F LENGTH PATH       a file: LENGTH bytes and a newline
#   E LENGTH PATH       the message of a file that could not be read, likewise
#   Z                   the last line
#
# A pseudo-file is made anew by each read, so each is read once and to its end:
# by cat, a few hundred at a time. Between two files cat reads one of a single
# byte that none of them holds; by it the shell takes them apart.

set -u
LC_ALL=C
export LC_ALL
root=$1 pause=$2 skip=${3:-//} scratch=$4 mode=$5
nl='
'
rs=$(printf '\036')
most=200 # files for one cat: their paths fit what a kernel takes as arguments

# The UID as it is in the names of systemd's slices.
slice= rest=$skip-
while [ -n "$rest" ]; do
	slice=${slice:+${slice}_}${rest%%-*} rest=${rest#*-}
done

IFS=$nl
separator=
if [ -n "$scratch" ] && (printf %s "$rs" >"$scratch/separator") 2>/dev/null; then
	separator=$scratch/separator
fi

frame() { # PATH CONTENT
	case $2 in
	*'cat: '*) kind=E ;;
	*) kind=F ;;
	esac
	printf '%s %s %s\n%s\n' "$kind" "${#2}" "${1#"$root"}" "$2"
}

files= arguments= count=0

add() { # PATH
	case $1 in
	*"$nl"* | *"$rs"*) return ;;
	esac
	files=$files$1$nl count=$((count + 1))
	[ -z "$separator" ] || arguments=$arguments$1$nl$separator$nl
	[ "$count" -lt "$most" ] || flush
}

flush() {
	set -f
	content=
	[ -z "$arguments" ] || content=$(cat $arguments 2>&1)
	IFS=$rs
	set -- $content
	IFS=$nl
	if [ "$#" -eq "$count" ]; then
		for path in $files; do
			frame "$path" "$1"
			shift
		done
	else # without a separator, or with a file that holds it
		for path in $files; do
			content=$(cat "$path" 2>&1; printf x)
			frame "$path" "${content%x}"
		done
	fi
	set +f
	files= arguments= count=0
}

have() { # PATH...: those of them that exist
	for path in "$@"; do
		[ ! -e "$path" ] || add "$path"
	done
}

clock() {
	now=$(date +%s.%N 2>/dev/null)
	case $now in
	'' | *[!0-9.]* | *.) now=$(date +%s) ;;
	esac
	uptime=-
	{ IFS=' ' read -r uptime rest <"$root/proc/uptime"; } 2>/dev/null
	printf 'T %s %s\n' "$now" "$uptime"
}

# tree reads a cgroup, its counters or its states as $which says. Of the groups
# below it takes all; in "top" and "way", where kubepods is searched, those around
# it, without what is below them.
tree() { # FOLDER all|top|way
	for file in "$1"/*; do
		case ${file##*/} in
		cpu.max | cpu.pressure | cpu.stat | cpu.stat.local | \
			memory.current | memory.events | memory.events.local | memory.pressure | memory.stat | \
			memory.swap.current | memory.swap.events | pids.current | pids.events | pids.events.local)
			[ "$which" = states ] || add "$file"
			;;
		hugetlb.*.rsvd.*) ;;
		cgroup.controllers | cgroup.events | cgroup.stat | cgroup.subtree_control | cgroup.type | \
			cpu.idle | cpu.max.burst | cpu.weight | \
			cpuset.cpus | cpuset.cpus.effective | cpuset.cpus.partition | cpuset.mems | cpuset.mems.effective | \
			hugetlb.*.current | hugetlb.*.events | hugetlb.*.max | io.max | io.pressure | io.stat | io.weight | \
			memory.high | memory.low | memory.max | memory.min | memory.numa_stat | memory.oom.group | memory.peak | \
			memory.swap.high | memory.swap.max | memory.swap.peak | pids.max | pids.peak)
			[ "$which" = counters ] || add "$file"
			;;
		cgroup.* | cpu.* | cpuset.* | hugetlb.* | io.* | irq.* | memory.* | misc.* | pids.* | rdma.*) ;;
		*"$skip"* | *"$slice"*) ;;
		*)
			[ ! -d "$file" ] || case $2-${file##*/} in
			all-* | *-kubepods | *-kubepods.slice) tree "$file" all ;;
			top-*) tree "$file" way ;;
			way-*kubelet* | way-*docker* | way-*containerd* | way-*crio* | way-k3s* | way-rke2* | way-k0s* | \
				way-kind* | way-libpod* | way-podman* | way-*machine* | way-????????????????????????????????????????????????????????????????)
				tree "$file" way
				;;
			esac
			;;
		esac
	done
}

groups() { # counters|states
	which=$1
	# On cgroup v1 the names mean something else.
	[ ! -e "$group/cgroup.controllers" ] || tree "$group" "$depth"
}

# A sample is what changes, between two clocks: read in the same way each time, so
# that between the samples the same time passes for every file. The last also has
# what hardly changes, after its second clock.
sample() { # NUMBER
	printf 'S %s\n' "$1"
	clock
	groups counters
	if [ "$mode" = node ]; then
		have "$root"/proc/stat "$root"/proc/meminfo "$root"/proc/loadavg "$root"/proc/uptime "$root"/proc/vmstat "$root"/proc/pressure/*
	fi
	flush
	clock
	if [ -n "$last" ]; then
		groups states
		flush
	fi
}

# processes reads the numbers of those in a pod. Paths in /proc/PID/cgroup may
# begin at this pod's own group, with /../ for each level above.
processes() {
	for folder in "$root"/proc/[0-9]*; do
		own=
		{ read -r own <"$folder/cgroup"; } 2>/dev/null
		case $own in
		*kubepods* | */pod[0-9a-f]*)
			case $own in
			*"$skip"* | *"$slice"*) ;;
			*) have "$folder/cgroup" "$folder/oom_score" "$folder/oom_score_adj" "$folder/schedstat" "$folder/status" ;;
			esac
			;;
		esac
	done
	flush
}

kernel_log() {
	if content=$(dmesg 2>&1); then
		kind=F
		[ "${#content}" -le 4194304 ] || content=$(printf '%s\n' "$content" | tail -c 4194304)
	else
		kind=E
	fi
	content=$content$nl
	printf '%s %s kernel.log\n%s\n' "$kind" "${#content}" "$content"
}

once() {
	printf 'S once\n'
	cpu=$root/sys/devices/system/cpu node=$root/sys/devices/system/node mm=$root/sys/kernel/mm
	for name in enabled isolated kernel_max nohz_full offline online possible present; do
		have "$cpu/$name"
	done
	have "$cpu"/cpu[0-9]*/online "$cpu"/cpu[0-9]*/topology/*_id "$cpu"/cpu[0-9]*/topology/*_list
	for name in id level shared_cpu_list shared_cpu_map size type; do
		have "$cpu"/cpu[0-9]*/cache/index[0-9]*/"$name"
	done
	have "$node"/has_* "$node"/online "$node"/possible "$node"/node[0-9]*/cpulist "$node"/node[0-9]*/distance "$node"/node[0-9]*/meminfo \
		"$node"/node[0-9]*/hugepages/*/*_hugepages "$mm"/hugepages/*/*_hugepages
	for name in defrag enabled hpage_pmd_size shmem_enabled shrink_underused use_zero_page; do
		have "$mm/transparent_hugepage/$name"
	done
	for name in cgroups cmdline cpuinfo meminfo swaps version; do
		have "$root/proc/$name"
	done
	for name in kernel/pid_max kernel/threads-max vm/min_free_kbytes vm/oom_kill_allocating_task vm/overcommit_memory vm/panic_on_oom vm/swappiness; do
		have "$root/proc/sys/$name"
	done
	have "$root"/var/lib/kubelet/cpu_manager_state "$root"/var/lib/kubelet/memory_manager_state
	# A node on cgroup v1 is known by these.
	have "$root"/sys/fs/cgroup/unified/cgroup.controllers "$root"/sys/fs/cgroup/*/notify_on_release
	flush
	processes
	kernel_log
}

main() {
	printf 'noderes 1\n'
	group=$root/sys/fs/cgroup depth=top last=
	if [ "$mode" != node ]; then
		# With a cgroup namespace the cgroup that is mounted is its own.
		depth=all own=
		{ IFS=: read -r rest rest own <"$root/proc/self/cgroup"; } 2>/dev/null
		case $own in
		/..* | /) ;;
		*) group=$group$own ;;
		esac
	fi
	[ "$pause" -gt 0 ] || last=1
	sample 0
	start=${uptime%%.*}
	if [ "$mode" = node ]; then
		once
	else
		printf 'S once\n'
		have "$root/proc/self/cgroup"
		flush
	fi
	if [ -z "$last" ]; then
		case $start in
		'' | *[!0-9]*) ;;
		*)
			clock >/dev/null
			pause=$((pause - ${uptime%%.*} + start))
			;;
		esac
		[ "$pause" -le 0 ] || sleep "$pause"
		last=1
		sample 1
	fi
	printf 'Z\n'
}

main </dev/null # the rest of the input is this script
exit 0
