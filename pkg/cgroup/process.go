package cgroup

import (
	"errors"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

// Process is what /proc/PID tells of a process that bears on its threads' share
// of the CPUs and on who is killed when memory runs out. Amounts are in kB.
type Process struct {
	PID  int
	Name string // chosen by the process itself, at most 15 bytes

	Threads    uint64
	HasThreads bool

	RSSKB, SwapKB, PgtablesKB uint64
	HasMemory                 bool // false: a kernel thread, or one that is ending

	OOMScoreAdj    int
	HasOOMScoreAdj bool

	// Cgroup is the path of /proc/PID/cgroup, "" where that was not read. It may
	// begin with "/../": see ParsePath.
	Cgroup string
}

// Dir is the process's folder in the node's file system.
func (p Process) Dir() string { return "proc/" + strconv.Itoa(p.PID) }

// OOMTask is the process as the OOM killer counts it.
func (p Process) OOMTask() OOMTask {
	return OOMTask{RSS: p.RSSKB / 4, Swap: p.SwapKB / 4, PgtablesBytes: min(p.PgtablesKB, maxKB) * 1024, Adj: p.OOMScoreAdj}
}

// maxKB keeps amounts from overflowing as bytes.
const maxKB = 1 << 50

// maxProcesses bounds the processes that are read of one node.
const maxProcesses = 1 << 17

// Processes reads all of /proc, by process number. A process that vanished
// between two reads, or whose files cannot be read, is left out; the error is
// for /proc itself.
func Processes(fsys fs.FS) ([]Process, error) {
	entries, err := fs.ReadDir(fsys, "proc")
	if err != nil {
		return nil, err
	}
	var out []Process
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid <= 0 || pid > maxPID || strconv.Itoa(pid) != e.Name() || !e.IsDir() {
			continue
		}
		if len(out) == maxProcesses {
			break
		}
		if p, err := readProcess(fsys, pid); err == nil {
			out = append(out, p)
		}
	}
	slices.SortFunc(out, func(a, b Process) int { return a.PID - b.PID })
	return out, nil
}

func readProcess(fsys fs.FS, pid int) (Process, error) {
	p := Process{PID: pid}
	status, err := fs.ReadFile(fsys, path.Join(p.Dir(), "status"))
	if err != nil {
		return p, err
	}
	if err := p.parseStatus(status); err != nil {
		return p, err
	}
	if text, err := fs.ReadFile(fsys, path.Join(p.Dir(), "oom_score_adj")); err == nil {
		p.OOMScoreAdj, p.HasOOMScoreAdj = parseOOMScoreAdj(text)
	}
	if text, err := fs.ReadFile(fsys, path.Join(p.Dir(), "cgroup")); err == nil {
		p.Cgroup = parseProcCgroup(text)
	}
	return p, nil
}

var errNotStatus = errors.New("not a process's status: no Name")

// parseStatus reads the lines "Name:", "Threads:", "VmRSS:", "VmPTE:", "VmSwap:" of
// /proc/PID/status. The name cannot break the format: the kernel escapes newlines.
func (p *Process) parseStatus(data []byte) error {
	named, rss := false, false
	for line := range strings.SplitSeq(string(data), "\n") {
		key, value, ok := strings.Cut(line, ":")
		if !ok {
			continue
		}
		value = strings.Trim(value, " \t")
		switch key {
		case "Name":
			if !named {
				p.Name, named = value[:min(len(value), 64)], true
			}
		case "Threads":
			n, err := kernelUint(value)
			p.Threads, p.HasThreads = n, err == nil && n <= maxPID
		case "VmRSS":
			p.RSSKB, rss = parseKB(value)
		case "VmPTE":
			p.PgtablesKB, _ = parseKB(value)
		case "VmSwap":
			p.SwapKB, _ = parseKB(value)
		}
	}
	if !named {
		return errNotStatus
	}
	p.HasMemory = rss
	return nil
}

// parseKB reads "5876 kB".
func parseKB(text string) (uint64, bool) {
	n, err := kernelUint(strings.TrimSuffix(text, " kB"))
	return n, err == nil && n < maxKB
}

func parseOOMScoreAdj(text []byte) (int, bool) {
	n, err := strconv.Atoi(strings.TrimRight(string(text), "\n"))
	return n, err == nil && n >= -1000 && n <= 1000
}

// parseProcCgroup is the path of the v2 line, "0::/path".
func parseProcCgroup(text []byte) string {
	for line := range strings.SplitSeq(string(text), "\n") {
		if p, ok := strings.CutPrefix(line, "0::"); ok {
			return p[:min(len(p), 4096)]
		}
	}
	return ""
}

// Meminfo is the keys of /proc/meminfo, in bytes.
type Meminfo map[string]uint64

// ReadMeminfo reads /proc/meminfo.
func ReadMeminfo(fsys fs.FS) (Meminfo, error) {
	data, err := fs.ReadFile(fsys, "proc/meminfo")
	if err != nil {
		return nil, err
	}
	m := Meminfo{}
	for line := range strings.SplitSeq(string(data), "\n") {
		key, value, ok := strings.Cut(line, ":")
		if !ok || len(m) == maxMeminfoKeys {
			continue
		}
		if kb, ok := parseKB(strings.Trim(value, " \t")); ok && strings.HasSuffix(value, " kB") {
			m[key] = kb * 1024
		}
	}
	if _, ok := m["MemTotal"]; !ok {
		return nil, &ParseError{File: "proc/meminfo", Reason: "no MemTotal"}
	}
	return m, nil
}

const maxMeminfoKeys = 1000

// TotalPages is what the OOM killer sets oom_score_adj against when the node as
// a whole is out of memory: all memory and all swap.
func (m Meminfo) TotalPages() uint64 {
	return m["MemTotal"]/badnessPage + m["SwapTotal"]/badnessPage
}
