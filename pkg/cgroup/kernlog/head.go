package kernlog

import "bytes"

// head is what stands before the message of a line.
type head struct {
	uptime []byte // "68.908424", seconds since boot
	usec   []byte // "68908424", microseconds since boot
	wall   []byte // a date in the form of layout
	layout layout

	// foreign: the message is not the kernel's, whatever it says.
	foreign bool
	// journal: continuation lines are indented.
	journal bool
	// kmsg: a record of /dev/kmsg, with escapes; lines that begin with a space
	// are its dictionary.
	kmsg bool
}

type layout int

const (
	layoutISO    layout = iota + 1 // 2026-11-30T02:46:02.123456+0000
	layoutHuman                    // Mon Nov 30 02:46:02 2026
	layoutSyslog                   // Nov 30 02:46:02, perhaps with a fraction
)

func (h head) stamped() bool { return h.uptime != nil || h.usec != nil || h.wall != nil }

// splitHead takes the line apart. A line without a head known is all message.
func splitHead(line []byte) (head, []byte) {
	var h head
	rest := line
	if priority, after, ok := cutPriority(rest); ok {
		h.foreign = priority>>3 != 0
		rest = after
	}
	if len(rest) == 0 {
		return h, rest
	}
	switch c := rest[0]; {
	case c == '[':
		if uptime, after, ok := cutUptime(rest); ok {
			h.uptime = uptime
			if text, ok := cutMonotonicHost(after); ok {
				return h, text
			}
			return h, after
		}
		if date, after, ok := cutHuman(rest); ok {
			h.wall, h.layout = date, layoutHuman
			return h, after
		}
	case c >= '0' && c <= '9':
		if date, after, ok := cutISO(rest); ok {
			h.wall, h.layout = date, layoutISO
			if bytes.IndexByte(date, ',') >= 0 { // dmesg, without a host
				return h, after
			}
			return cutHost(h, after)
		}
		if record, text, ok := cutKmsg(rest); ok {
			return record, text
		}
	case c >= 'A' && c <= 'Z':
		if date, after, ok := cutSyslog(rest); ok {
			h.wall, h.layout = date, layoutSyslog
			return cutHost(h, after)
		}
	}
	return h, rest
}

// cutPriority takes "<6>" off, the priority of a raw record.
func cutPriority(b []byte) (priority int, rest []byte, ok bool) {
	if len(b) < 3 || b[0] != '<' {
		return 0, b, false
	}
	i := 1
	for ; i < len(b) && i < 5 && isDigit(b[i]); i++ {
		priority = priority*10 + int(b[i]-'0')
	}
	if i == 1 || i == len(b) || b[i] != '>' {
		return 0, b, false
	}
	return priority, b[i+1:], true
}

// cutUptime takes "[   68.908424] " off, and the printing task or CPU that
// kernels with CONFIG_PRINTK_CALLER add: "[   68.908424][  T290] ".
func cutUptime(b []byte) (uptime, rest []byte, ok bool) {
	i := 1
	for i < len(b) && b[i] == ' ' {
		i++
	}
	start := i
	for i < len(b) && isDigit(b[i]) {
		i++
	}
	if i == start || i == len(b) || b[i] != '.' {
		return nil, b, false
	}
	point := i
	for i++; i < len(b) && isDigit(b[i]); i++ {
	}
	if i == point+1 || i == len(b) || b[i] != ']' {
		return nil, b, false
	}
	uptime, rest = b[start:i], b[i+1:]
	if after, ok := cutCaller(rest); ok {
		rest = after
	}
	return uptime, bytes.TrimPrefix(rest, []byte(" ")), true
}

func cutCaller(b []byte) ([]byte, bool) {
	b = bytes.TrimPrefix(b, []byte(" "))
	if len(b) < 4 || b[0] != '[' {
		return nil, false
	}
	i := 1
	for i < len(b) && i < 16 && b[i] == ' ' {
		i++
	}
	if i == len(b) || b[i] != 'T' && b[i] != 'C' {
		return nil, false
	}
	start := i + 1
	for i = start; i < len(b) && isDigit(b[i]); i++ {
	}
	if i == start || i == len(b) || b[i] != ']' {
		return nil, false
	}
	return b[i+1:], true
}

var kernelIdentifier = []byte("kernel:")

// cutMonotonicHost takes "host kernel: " off, which journalctl -o
// short-monotonic has behind a stamp that looks like dmesg's.
func cutMonotonicHost(b []byte) ([]byte, bool) {
	host, after, ok := cutWord(b)
	if !ok || len(host) == 0 || host[0] == '[' || !bytes.HasPrefix(after, kernelIdentifier) {
		return nil, false
	}
	return bytes.TrimPrefix(after[len(kernelIdentifier):], []byte(" ")), true
}

// cutHuman takes "[Mon Nov 30 02:46:02 2026] " off.
func cutHuman(b []byte) (date, rest []byte, ok bool) {
	const length = len("Mon Nov 30 02:46:02 2026")
	if len(b) < length+2 || b[length+1] != ']' || b[4] != ' ' || b[8] != ' ' || b[14] != ':' || b[17] != ':' {
		return nil, b, false
	}
	return b[1 : length+1], bytes.TrimPrefix(b[length+2:], []byte(" ")), true
}

// cutISO takes "2026-11-30T02:46:02.123456+0000 " off.
func cutISO(b []byte) (date, rest []byte, ok bool) {
	if len(b) < 20 || b[4] != '-' || b[7] != '-' || b[10] != 'T' || b[13] != ':' || b[16] != ':' {
		return nil, b, false
	}
	date, rest, ok = cutWord(b)
	return date, rest, ok && len(date) <= 40
}

// cutSyslog takes "Nov 30 02:46:02 " off.
func cutSyslog(b []byte) (date, rest []byte, ok bool) {
	if len(b) < 16 || b[3] != ' ' || b[6] != ' ' || b[9] != ':' || b[12] != ':' || !isDigit(b[14]) {
		return nil, b, false
	}
	i := bytes.IndexByte(b[15:min(len(b), 32)], ' ')
	if i < 0 {
		return nil, b, false
	}
	return b[:15+i], b[15+i+1:], true
}

// cutHost takes "host kernel: " off, and the kernel's own stamp behind it that
// rsyslog keeps. Under any other identifier the message is foreign.
func cutHost(h head, b []byte) (head, []byte) {
	h.journal = true
	_, after, ok := cutWord(b)
	if !ok || !bytes.HasPrefix(after, kernelIdentifier) {
		h.foreign = true
		return h, nil
	}
	text := bytes.TrimPrefix(after[len(kernelIdentifier):], []byte(" "))
	if len(text) > 0 && text[0] == '[' {
		if uptime, rest, ok := cutUptime(text); ok {
			h.uptime = uptime
			return h, rest
		}
	}
	return h, text
}

// cutKmsg takes "6,1234,68908424,-,caller=T290;" off.
func cutKmsg(b []byte) (head, []byte, bool) {
	end := bytes.IndexByte(b[:min(len(b), 128)], ';')
	if end < 0 {
		return head{}, nil, false
	}
	fields := bytes.SplitN(b[:end], []byte(","), 5)
	if len(fields) < 4 {
		return head{}, nil, false
	}
	for _, f := range fields[:3] {
		if len(f) == 0 || bytes.ContainsFunc(f, func(r rune) bool { return r < '0' || r > '9' }) {
			return head{}, nil, false
		}
	}
	priority, ok := parseUint(fields[0])
	return head{usec: fields[2], foreign: !ok || priority>>3 != 0, kmsg: true}, b[end+1:], true
}

// cutWord cuts at the first space, which has to be near.
func cutWord(b []byte) (word, rest []byte, ok bool) {
	i := bytes.IndexByte(b[:min(len(b), 256)], ' ')
	if i < 0 {
		return nil, b, false
	}
	return b[:i], b[i+1:], true
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// unescape resolves the \xNN of a record of /dev/kmsg.
func unescape(b []byte) []byte {
	if bytes.IndexByte(b, '\\') < 0 {
		return b
	}
	out := make([]byte, 0, len(b))
	for i := 0; i < len(b); i++ {
		if b[i] == '\\' && i+3 < len(b) && b[i+1] == 'x' {
			high, ok1 := hexDigit(b[i+2])
			low, ok2 := hexDigit(b[i+3])
			if ok1 && ok2 {
				out = append(out, high<<4|low)
				i += 3
				continue
			}
		}
		out = append(out, b[i])
	}
	return out
}

func hexDigit(c byte) (byte, bool) {
	switch {
	case isDigit(c):
		return c - '0', true
	case c >= 'a' && c <= 'f':
		return c - 'a' + 10, true
	case c >= 'A' && c <= 'F':
		return c - 'A' + 10, true
	}
	return 0, false
}
