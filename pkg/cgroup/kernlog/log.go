package kernlog

import (
	"strings"
	"time"
)

// Boot is one instant known by both clocks of a node, from which times since
// boot become absolute. Its location is taken for that of times without a zone.
// With a zero Boot times since boot stay relative, and times without a year
// unknown; times without a zone are UTC then.
//
// The log's clock is not disciplined and stops in suspend, so that absolute
// times may be off by some 2·10⁻⁵ of the uptime.
type Boot struct {
	Wall   time.Time
	Uptime time.Duration
}

// Stamp is when a line was logged, by either clock or both.
type Stamp struct {
	Uptime    time.Duration // since boot
	HasUptime bool
	Wall      time.Time
	HasWall   bool
}

// Log is what a kernel log says about memory.
type Log struct {
	// First and Last are the stamps of the first and the last line that has
	// one. What happened before First is lost.
	First, Last Stamp
	Lines       int

	// Kills are the OOM kills in the order of the log.
	Kills []Kill
	// NoKillable are the OOMs that found nothing to kill: all processes in
	// reach have oom_score_adj -1000. They have no victims.
	NoKillable []Kill
	// Skipped counts the reports beyond the first 50000, which are not kept.
	Skipped int
	// Notes are other lines that bear on a diagnosis, at most MaxNotes.
	Notes []Note
}

// Kill is one decision of the OOM killer and all processes that died of it.
// What the log does not say is empty.
type Kill struct {
	Time Stamp // of the line that reports the first victim's end, else of the nearest one known
	Line int   // number of that line, from 1

	// Bare means that only the victims are known: the kernel prints its report
	// at most 10 times in 5 s, but the "Killed process" line always.
	Bare bool
	// Truncated means that the log lacks the beginning or the end of the report.
	Truncated bool

	// InvokedBy is the name of the task whose allocation failed, not the victim.
	InvokedBy string

	Constraint  Constraint
	Nodemask    string // of a memory policy, as a list: "1", "0-3,5"; "" for none
	MemsAllowed string // the memory nodes that the task may use, as a list

	// Global means that not the limit of a memory cgroup was hit, but the
	// memory of the node, or of the nodes in Nodemask or MemsAllowed.
	Global bool
	// OOMMemcg is the cgroup whose limit was hit, "" if Global. On a nested node it
	// begins with the path of the node's own container.
	OOMMemcg string
	// TaskMemcg is the cgroup of the victim.
	TaskMemcg string

	Task string // name of the process chosen, at most 15 bytes, chosen by itself
	PID  int64  // its ID outside of all PID namespaces; 0 if not known
	UID  int64  // its user
	// HasUID tells user 0 from one that is not known.
	HasUID bool

	// Victims are the distinct processes killed, the chosen one first if it is
	// among them. There are none where the log breaks off before (Truncated)
	// and where the chosen one was AlreadyExiting.
	Victims        []Victim
	AlreadyExiting bool

	// GroupKill is the cgroup that was killed as a whole because of its
	// memory.oom.group; "" if single processes die.
	GroupKill string

	// UsageKB and LimitKB are those of OOMMemcg in KiB if HasLimit.
	UsageKB, LimitKB uint64
	HasLimit         bool
	// SwapUsageKB and SwapLimitKB are those of its swap in KiB if HasSwap; a
	// limit of UnlimitedKB is none.
	SwapUsageKB, SwapLimitKB uint64
	HasSwap                  bool

	// RAMPages and ReservedPages are all page frames of the node and those that the
	// kernel does not hand out, TotalSwapKB is all swap in KiB, if HasRAM. Only the
	// report of a Global OOM has them.
	RAMPages, ReservedPages, TotalSwapKB uint64
	HasRAM                               bool

	// Stats is the memory.stat of OOMMemcg. Kernels that print it as one
	// message cut its end off.
	Stats Stats

	// Tasks are the processes in reach: those of OOMMemcg, or all of the node.
	Tasks []Task
}

// UnlimitedKB is how the kernel prints "no limit" with pages of 4 KiB.
const UnlimitedKB = 9007199254740988

// Victim is a killed process. Amounts are in KiB.
type Victim struct {
	PID  int64
	Comm string
	// TID is the ID in the kernel's line if that was another thread's than the
	// first one's, which happens when the first has ended already; else 0.
	TID int64

	TotalVMKB, AnonRSSKB, FileRSSKB uint64
	HasSizes                        bool

	ShmemRSSKB uint64
	HasShmem   bool

	PgtablesKB  uint64
	HasPgtables bool

	UID    int64
	HasUID bool

	OOMScoreAdj    int
	HasOOMScoreAdj bool

	Reaped   bool // its memory was freed by the OOM reaper
	Unreaped bool // the OOM reaper gave up: the process hangs
}

// Task is a row of the task table. RSS and its parts, TotalVM and SwapEnts are
// in pages.
type Task struct {
	PID, TGID, UID int64
	Name           string

	TotalVM, RSS uint64

	RSSAnon, RSSFile, RSSShmem uint64
	HasRSSParts                bool // kernel 6.12 prints them, 6.1 does not

	PgtablesBytes uint64
	HasPgtables   bool

	SwapEnts    uint64
	OOMScoreAdj int
}

// Stat is one line of memory.stat: bytes, or a count of events (pgfault…).
type Stat struct {
	Key   string
	Value uint64
}

// Stats is a memory.stat in the kernel's order.
type Stats []Stat

// Get returns the value of a key; false means that the log does not have it.
func (s Stats) Get(key string) (uint64, bool) {
	for i := range s {
		if s[i].Key == key {
			return s[i].Value, true
		}
	}
	return 0, false
}

// Constraint is what kept the allocation from other memory.
type Constraint int

// The kernel's constraints. ConstraintUnknown is that of a kill whose report
// is not in the log.
const (
	ConstraintUnknown Constraint = iota
	ConstraintNone
	ConstraintCpuset
	ConstraintMemoryPolicy
	ConstraintMemcg
)

// String returns the kernel's name of the constraint.
func (c Constraint) String() string {
	switch c {
	case ConstraintNone:
		return "CONSTRAINT_NONE"
	case ConstraintCpuset:
		return "CONSTRAINT_CPUSET"
	case ConstraintMemoryPolicy:
		return "CONSTRAINT_MEMORY_POLICY"
	case ConstraintMemcg:
		return "CONSTRAINT_MEMCG"
	}
	return "unknown"
}

func parseConstraint(text string) Constraint {
	for c := ConstraintNone; c <= ConstraintMemcg; c++ {
		if text == c.String() {
			return c
		}
	}
	return ConstraintUnknown
}

// Note is a line that is no part of an OOM report.
type Note struct {
	Kind NoteKind
	Time Stamp
	Line int
	Text string // cut to maxNote bytes
}

// NoteKind says what a note is about.
type NoteKind int

// The lines that are noted.
const (
	// PanicOnOOM: the node panicked for vm.panic_on_oom.
	PanicOnOOM NoteKind = iota
	// PeriodScaled: the kernel has doubled the CFS period and quota of a cgroup
	// because the period was too short to keep up with.
	PeriodScaled
	// MemoryFailure: a page was lost to a hardware error.
	MemoryFailure
	// ForkRejected: a fork met a pids.max, the first time in the cgroup that the
	// text names. It is that of the forking process, not that of the limit.
	ForkRejected
)

// maxNote holds a line with the cgroup path of a container.
const maxNote = 400

// ForkRejectedIn is the cgroup path that a note of kind ForkRejected names; ""
// if it is none or was cut.
func (n Note) ForkRejectedIn() string {
	memcg, ok := strings.CutPrefix(n.Text, string(forkPrefix))
	if n.Kind != ForkRejected || !ok || len(n.Text) == maxNote {
		return ""
	}
	return memcg
}

// MaxNotes bounds the notes of a log.
const MaxNotes = 1000
