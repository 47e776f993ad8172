package cgroup

import (
	"fmt"
	"strings"
)

// Text reads a file of one line, whatever it means, without the newline: to
// hold it against the texts that [FileValues] accepts for the file of that name.
func (g Group) Text(file string) (string, error) {
	if strings.Contains(file, "/") {
		return "", fmt.Errorf("cgroup: %q is not the name of a file", cut(file))
	}
	return readFile(g, file, parseWord)
}

// Type reads cgroup.type: "domain", "domain threaded", "domain invalid" or
// "threaded". In the latter two the memory files are absent. The root group
// has no such file.
func (g Group) Type() (string, error) { return readFile(g, "cgroup.type", parseWord) }

// Controllers reads cgroup.controllers: what the parent offers to this group.
func (g Group) Controllers() ([]string, error) {
	return readFile(g, "cgroup.controllers", parseWords)
}

// SubtreeControl reads cgroup.subtree_control: what the children may use.
func (g Group) SubtreeControl() ([]string, error) {
	return readFile(g, "cgroup.subtree_control", parseWords)
}

// Procs reads cgroup.procs: the processes of this group, descendants not
// included, in the file's order. A process outside of the reader's PID
// namespace shows as 0, and one that moves while reading may show twice.
func (g Group) Procs() ([]int, error) { return readFile(g, "cgroup.procs", parseProcs) }

// Threads reads cgroup.threads, which is as cgroup.procs.
func (g Group) Threads() ([]int, error) { return readFile(g, "cgroup.threads", parseProcs) }

// Events is cgroup.events.
type Events struct{ flatKeyed }

// EventsFile reads cgroup.events. The root group has no such file.
func (g Group) EventsFile() (Events, error) { return readFile(g, "cgroup.events", parseEvents) }

// Populated says whether the group or one below has a process. The first
// result is false when the second is.
func (e Events) Populated() (populated, ok bool) { return e.flag("populated") }

// Frozen says whether the group is frozen.
func (e Events) Frozen() (frozen, ok bool) { return e.flag("frozen") }

func (e Events) flag(key string) (value, ok bool) {
	number, ok := e.Get(key)
	return number != 0, ok
}

// Stat is cgroup.stat.
type Stat struct{ flatKeyed }

// Stat reads cgroup.stat.
func (g Group) Stat() (Stat, error) { return readFile(g, "cgroup.stat", parseStat) }

// NrDescendants is the number of living groups below.
func (s Stat) NrDescendants() (uint64, bool) { return s.Get("nr_descendants") }

// NrDyingDescendants is the number of removed groups below that still hold
// memory.
func (s Stat) NrDyingDescendants() (uint64, bool) { return s.Get("nr_dying_descendants") }

func parseEvents(data []byte) (Events, error) {
	f, err := parseFilledFlatKeyed(data)
	return Events{f}, err
}

func parseStat(data []byte) (Stat, error) {
	f, err := parseFilledFlatKeyed(data)
	return Stat{f}, err
}

// parseWords parses names parted by single spaces; an empty file has none.
func parseWords(data []byte) ([]string, error) {
	words := []string{}
	for number, line := range numberedLines(data) {
		if number > 1 {
			return nil, badText(number, line, "unexpected line")
		}
		for word := range strings.SplitSeq(line, " ") {
			if !isKey(word) {
				return nil, badText(number, line, "not a list of names")
			}
			if words = append(words, word); len(words) > maxKeys {
				return nil, badText(number, line, fmt.Sprintf("more than %d names", maxKeys))
			}
		}
	}
	return words, nil
}

// maxPID is the kernel's PID_MAX_LIMIT on 64-bit machines.
const maxPID = 4 << 20

// parseProcs parses one number a line; an empty file has none.
func parseProcs(data []byte) ([]int, error) {
	pids := []int{}
	for number, line := range numberedLines(data) {
		pid, err := kernelUint(line)
		if err != nil {
			return nil, badText(number, line, err.Error())
		}
		if pid > maxPID {
			return nil, badText(number, line, fmt.Sprintf("process number above %d", maxPID))
		}
		pids = append(pids, int(pid))
	}
	return pids, nil
}
