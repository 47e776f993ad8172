package kernlog

import (
	"bytes"
	"strings"
)

// UserKill is a cgroup that systemd-oomd, which watches pressure and swap from
// outside the kernel, killed as a whole. The kernel's oom_kill does not count it.
type UserKill struct {
	Time Stamp
	Line int // number of the line, from 1
	// Cgroup is the path that was killed, or from a line of systemd's own its last
	// element only.
	Cgroup string
	// Cause is systemd-oomd's reason, "memory pressure for /kubepods.slice being
	// 61.56% > 60.00% for > 20s with reclaim activity"; "" where only systemd's
	// line is there.
	Cause string
	Text  string // the message, cut to 300 bytes
}

// maxUserKills bounds what is kept of one log.
const maxUserKills = 10000

// UserKills finds what systemd-oomd killed in a log that has more than the
// kernel's lines, as journalctl prints it. Only lines under the identifier
// systemd-oomd, or systemd for its units, are believed (systemd 247 to 257:
// oomd-manager.c, unit.c).
func UserKills(log []byte, boot Boot) []UserKill {
	var out []UserKill
	for number := 1; len(log) > 0 && len(out) < maxUserKills; number++ {
		line, rest, _ := bytes.Cut(log, []byte("\n"))
		log = rest
		if !bytes.Contains(line, []byte("systemd-oomd")) {
			continue
		}
		line = bytes.TrimRight(line[:min(len(line), maxMessage)], "\r")
		h, _ := splitHead(line)
		message, fromOOMD, ok := cutIdentifier(line)
		if !ok {
			continue
		}
		k := UserKill{Time: boot.stamp(h), Line: number, Text: string(message[:min(len(message), 300)])}
		if fromOOMD {
			k.Cgroup, k.Cause, ok = parseOOMD(string(message))
		} else {
			k.Cgroup, ok = parseUnitKill(string(message))
		}
		if ok {
			out = append(out, k)
		}
	}
	return out
}

// cutIdentifier returns the message behind "systemd-oomd[612]: " or
// "systemd[1]: ", which has to be the first word that ends in a colon.
func cutIdentifier(line []byte) (message []byte, fromOOMD, ok bool) {
	for rest := line; ; {
		word, after, found := bytes.Cut(rest, []byte(" "))
		if !found {
			return nil, false, false
		}
		if name, isLast := bytes.CutSuffix(word, []byte(":")); isLast {
			name, _, _ = bytes.Cut(name, []byte("["))
			switch string(name) {
			case "systemd-oomd":
				return after, true, true
			case "systemd":
				return after, false, true
			}
			return nil, false, false
		}
		rest = after
	}
}

// parseOOMD reads "Killed PATH due to CAUSE", which newer versions precede by
// "Marked PATH for killing due to CAUSE".
func parseOOMD(text string) (path, cause string, ok bool) {
	rest, ok := strings.CutPrefix(text, "Killed ")
	middle := " due to "
	if !ok {
		if rest, ok = strings.CutPrefix(text, "Marked "); !ok {
			return "", "", false
		}
		middle = " for killing due to "
	}
	path, cause, ok = strings.Cut(rest, middle)
	return path, cause, ok && strings.HasPrefix(path, "/")
}

// parseUnitKill reads "UNIT: systemd-oomd killed 5 process(es) in this unit.".
func parseUnitKill(text string) (unit string, ok bool) {
	unit, rest, ok := strings.Cut(text, ": systemd-oomd killed ")
	return unit, ok && unit != "" && !strings.Contains(unit, " ") && strings.Contains(rest, "process(es) in this unit")
}
