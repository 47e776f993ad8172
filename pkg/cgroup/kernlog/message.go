package kernlog

import (
	"bytes"
	"math"
)

// maxComm is the longest name of a task: TASK_COMM_LEN without the final NUL.
const maxComm = 15

// parseHeader reads "eat invoked oom-killer: gfp_mask=…" and returns the name.
// Names may hold anything, so that the phrase is looked for where it can be.
func parseHeader(text []byte) (comm string, ok bool) {
	const phrase = " invoked oom-killer: "
	window := text[:min(len(text), maxComm+1+len(phrase))]
	if !bytes.Contains(window, []byte(phrase)) { // much faster than from the end
		return "", false
	}
	return string(text[:bytes.LastIndex(window, []byte(phrase))]), true
}

// oomKill is the line "oom-kill:constraint=…" that ends a report.
type oomKill struct {
	constraint            Constraint
	nodemask, memsAllowed string
	global                bool
	oomMemcg, taskMemcg   string
	task                  string
	pid, uid              int64
	complete              bool // all fields were there
}

var oomKillPrefix = []byte("oom-kill:constraint=")

// parseOOMKill reads the text behind oomKillPrefix. The names of cgroups and of
// the task are not the kernel's, and the fields are separated by commas that
// may be part of them: each is bounded by what else is known of it. A line
// that breaks off gives the fields up to there.
func parseOOMKill(text []byte) oomKill {
	var k oomKill
	constraint, rest, ok := bytes.Cut(text, []byte(",nodemask="))
	k.constraint = parseConstraint(string(constraint))
	if !ok {
		return k
	}
	nodemask, rest, ok := bytes.Cut(rest, []byte(",cpuset="))
	if k.nodemask = string(nodemask); k.nodemask == "(null)" {
		k.nodemask = ""
	}
	if !ok {
		return k
	}
	if rest, ok = k.cutMems(rest); !ok {
		return k
	}
	if rest, ok = k.cutMemcgs(rest); !ok {
		return k
	}
	k.complete = k.cutTask(rest)
	return k
}

// cutMems skips the name of the cpuset, reads mems_allowed, and returns what
// follows the comma behind it.
func (k *oomKill) cutMems(text []byte) ([]byte, bool) {
	phrase := []byte(",mems_allowed=")
	for {
		_, rest, ok := bytes.Cut(text, phrase)
		if !ok {
			return nil, false
		}
		i := 0
		for i < len(rest) && (isDigit(rest[i]) || rest[i] == '-' || rest[i] == ',') {
			i++
		}
		after := rest[i:]
		if i > 0 && rest[i-1] == ',' && (bytes.HasPrefix(after, []byte("oom_memcg=")) || bytes.HasPrefix(after, []byte("global_oom"))) {
			k.memsAllowed = string(rest[:i-1])
			return after, true
		}
		text = rest
	}
}

// cutMemcgs reads oom_memcg or global_oom and returns what follows
// "task_memcg=". The victim lives in the subtree of oom_memcg.
func (k *oomKill) cutMemcgs(text []byte) ([]byte, bool) {
	phrase := []byte(",task_memcg=")
	if rest, ok := bytes.CutPrefix(text, []byte("global_oom")); ok {
		k.global = true
		return bytes.CutPrefix(rest, phrase)
	}
	text = text[len("oom_memcg="):]
	first := bytes.Index(text, phrase)
	if first < 0 {
		k.oomMemcg = string(text)
		return nil, false
	}
	for i := first; ; {
		memcg, rest := text[:i], text[i+len(phrase):]
		if bytes.HasPrefix(rest, memcg) {
			k.oomMemcg = string(memcg)
			return rest, true
		}
		next := bytes.Index(rest, phrase)
		if next < 0 {
			break
		}
		i += len(phrase) + next
	}
	k.oomMemcg = string(text[:first])
	return text[first+len(phrase):], true
}

// cutTask reads "PATH,task=COMM,pid=N,uid=N" from the right.
func (k *oomKill) cutTask(text []byte) bool {
	phrase := []byte(",task=")
	k.taskMemcg = string(text)
	uidAt := bytes.LastIndex(text, []byte(",uid="))
	if uidAt < 0 {
		return false
	}
	pidAt := bytes.LastIndex(text[:uidAt], []byte(",pid="))
	if pidAt < 0 {
		return false
	}
	pid, okPID := parseID(text[pidAt+len(",pid=") : uidAt])
	uid, okUID := parseID(text[uidAt+len(",uid="):])
	// A process names itself more easily than it makes a cgroup, so of several
	// phrases the first that leaves a possible name is the kernel's.
	window := max(pidAt-maxComm-len(phrase), 0)
	i := bytes.Index(text[window:pidAt], phrase)
	if !okPID || !okUID || i < 0 {
		return false
	}
	k.taskMemcg = string(text[:window+i])
	k.task = string(text[window+i+len(phrase) : pidAt])
	k.pid, k.uid = pid, uid
	return true
}

// parseKilled reads the text behind "Killed process ":
// "288 (eat) total-vm:…kB, anon-rss:…kB, file-rss:…kB, shmem-rss:…kB, UID:0
// pgtables:216kB oom_score_adj:985", of which older kernels have the beginning
// only. A line that breaks off gives what is there.
func parseKilled(text []byte) (Victim, bool) {
	var v Victim
	pid, rest, ok := cutProcess(text)
	if !ok {
		return v, false
	}
	v.PID = pid
	comm, tail, ok := cutComm(rest, ") total-vm:", "), UID ")
	v.Comm = comm
	if !ok {
		return v, true
	}
	var hasVM, hasAnon, hasFile bool
	previous := ""
	for field := range bytes.FieldsFuncSeq(tail, func(r rune) bool { return r == ' ' || r == ',' }) {
		key, value, found := bytes.Cut(field, []byte(":"))
		if !found { // "UID 0" of some distributions
			key, value = []byte(previous), field
		}
		previous = string(field)
		kb, valid := parseUint(bytes.TrimSuffix(value, []byte("kB")))
		switch string(key) {
		case "total-vm":
			v.TotalVMKB, hasVM = kb, valid
		case "anon-rss":
			v.AnonRSSKB, hasAnon = kb, valid
		case "file-rss":
			v.FileRSSKB, hasFile = kb, valid
		case "shmem-rss":
			v.ShmemRSSKB, v.HasShmem = kb, valid
		case "pgtables":
			v.PgtablesKB, v.HasPgtables = kb, valid
		case "UID":
			v.UID, v.HasUID = parseID(value)
		case "oom_score_adj":
			v.OOMScoreAdj, v.HasOOMScoreAdj = parseAdj(value)
		}
	}
	v.HasSizes = hasVM && hasAnon && hasFile
	return v, true
}

// cutProcess reads "288 (" and returns what follows.
func cutProcess(text []byte) (pid int64, rest []byte, ok bool) {
	digits, rest, ok := bytes.Cut(text[:min(len(text), maxMessage)], []byte(" ("))
	if !ok {
		return 0, nil, false
	}
	pid, ok = parseID(digits)
	return pid, rest, ok
}

// cutComm reads the name of a task up to the parenthesis behind it, which one
// of the ends begins with, and returns what follows that. A name may hold
// parentheses, and an end too.
func cutComm(text []byte, ends ...string) (comm string, rest []byte, ok bool) {
	for _, end := range ends {
		window := text[:min(len(text), maxComm+len(end))]
		if i := bytes.LastIndex(window, []byte(end)); i >= 0 {
			return string(text[:i]), text[i+1:], true
		}
	}
	window := text[:min(len(text), maxComm+1)]
	if i := bytes.LastIndexByte(window, ')'); i >= 0 {
		window = window[:i]
	}
	return string(window[:min(len(window), maxComm)]), nil, false
}

// parseUsage reads "usage 65540kB, limit 65536kB, failcnt 51".
func parseUsage(text []byte) (usage, limit uint64, ok bool) {
	rest, ok := bytes.CutPrefix(text, []byte("usage "))
	if !ok {
		return 0, 0, false
	}
	used, rest, ok1 := bytes.Cut(rest, []byte("kB, limit "))
	most, _, ok2 := bytes.Cut(rest, []byte("kB"))
	usage, ok3 := parseUint(used)
	limit, ok4 := parseUint(most)
	return usage, limit, ok1 && ok2 && ok3 && ok4
}

// parseStat reads "anon 66916352".
func parseStat(text []byte) (key []byte, value uint64, ok bool) {
	key, digits, ok := bytes.Cut(text, []byte(" "))
	if !ok || len(key) == 0 || len(key) > 64 {
		return nil, 0, false
	}
	for _, c := range key {
		if (c < 'a' || c > 'z') && !isDigit(c) && c != '_' {
			return nil, 0, false
		}
	}
	value, ok = parseUint(digits)
	return key, value, ok
}

// addOldStats adds " cache:0KB rss:66916KB …", how kernels before 5.2 print a
// memory.stat: in KiB, and without the descendants, each of which gets a
// line of its own.
func (s *Stats) addOldStats(text []byte) {
	fields := 0
	for field := range bytes.FieldsSeq(text) {
		if fields++; fields > maxOldStats {
			return
		}
		key, amount, ok := bytes.Cut(field, []byte(":"))
		kb, valid := parseUint(bytes.TrimSuffix(amount, []byte("KB")))
		if !ok || !valid || len(key) > 64 || kb > math.MaxUint64/1024 {
			continue
		}
		s.add(string(key), kb*1024)
	}
}

func (s *Stats) add(key string, bytes uint64) {
	for i := range *s {
		if (*s)[i].Key == key {
			if sum := (*s)[i].Value + bytes; sum >= bytes {
				(*s)[i].Value = sum
			}
			return
		}
	}
	if len(*s) < maxStats {
		*s = append(*s, Stat{Key: key, Value: bytes})
	}
}

const (
	maxStats    = 256 // keys of a memory.stat; kernels have under 100
	maxOldStats = 64  // the same on one line; kernels had about ten
)

func parseUint(text []byte) (uint64, bool) {
	if len(text) == 0 || len(text) > 20 {
		return 0, false
	}
	var n uint64
	for _, c := range text {
		if !isDigit(c) {
			return 0, false
		}
		d := uint64(c - '0')
		if n > (math.MaxUint64-d)/10 {
			return 0, false
		}
		n = n*10 + d
	}
	return n, true
}

// parseID reads a process or user ID.
func parseID(text []byte) (int64, bool) {
	n, ok := parseUint(text)
	if !ok || n > math.MaxUint32 {
		return 0, false
	}
	return int64(n), true
}

func parseAdj(text []byte) (int, bool) {
	digits, negative := bytes.CutPrefix(text, []byte("-"))
	n, ok := parseUint(digits)
	if !ok || n > 1000 {
		return 0, false
	}
	if negative {
		return -int(n), true
	}
	return int(n), true
}
