package kernlog

import (
	"math"
	"time"
)

// stamp decodes the head's times.
func (b Boot) stamp(h head) Stamp {
	var s Stamp
	switch {
	case h.uptime != nil:
		s.Uptime, s.HasUptime = parseSeconds(h.uptime)
	case h.usec != nil:
		if usec, ok := parseUint(h.usec); ok && usec <= math.MaxInt64/1000 {
			s.Uptime, s.HasUptime = time.Duration(usec)*time.Microsecond, true
		}
	}
	if h.wall != nil {
		s.Wall, s.HasWall = b.parseWall(string(h.wall), h.layout)
	}
	if !s.HasWall && s.HasUptime && !b.Wall.IsZero() {
		s.Wall, s.HasWall = b.Wall.Round(0).Add(s.Uptime-b.Uptime), true
	}
	return s
}

// parseSeconds reads "68.908424".
func parseSeconds(text []byte) (time.Duration, bool) {
	var whole, point = 0, len(text)
	for i, c := range text {
		if c == '.' {
			whole, point = i, i+1
		}
	}
	seconds, ok := parseUint(text[:whole])
	if !ok || seconds >= math.MaxInt64/uint64(time.Second) {
		return 0, false
	}
	d := time.Duration(seconds) * time.Second
	unit := time.Second
	for _, c := range text[point:] {
		unit /= 10
		d += time.Duration(c-'0') * unit
	}
	return d, true
}

func (b Boot) parseWall(text string, form layout) (time.Time, bool) {
	zone := time.UTC
	if !b.Wall.IsZero() {
		zone = b.Wall.Location()
	}
	switch form {
	case layoutISO:
		for _, l := range []string{"2006-01-02T15:04:05Z07:00", "2006-01-02T15:04:05-0700", "2006-01-02T15:04:05-07"} {
			if t, err := time.Parse(l, text); err == nil {
				return t, true
			}
		}
		t, err := time.ParseInLocation("2006-01-02T15:04:05", text, zone)
		return t, err == nil
	case layoutHuman:
		t, err := time.ParseInLocation(time.ANSIC, text, zone)
		return t, err == nil
	case layoutSyslog:
		t, err := time.ParseInLocation(time.Stamp, text, zone)
		if err != nil {
			return time.Time{}, false
		}
		return b.withYear(t)
	}
	return time.Time{}, false
}

// withYear gives a date without a year the latest one that is not after the
// instant known, with a day of tolerance for a clock that was set.
func (b Boot) withYear(t time.Time) (time.Time, bool) {
	if b.Wall.IsZero() {
		return time.Time{}, false
	}
	latest := b.Wall.Add(24 * time.Hour)
	for year := latest.Year(); year > latest.Year()-9; year-- {
		dated := time.Date(year, t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), t.Nanosecond(), t.Location())
		// 29 February does not exist in every year.
		if dated.Day() == t.Day() && !dated.After(latest) {
			return dated, true
		}
	}
	return time.Time{}, false
}

// within says whether b lies at most d after a. It is true where that is not
// known.
func within(a, b Stamp, d time.Duration) bool {
	switch {
	case a.HasUptime && b.HasUptime:
		return b.Uptime-a.Uptime <= d
	case a.HasWall && b.HasWall:
		return b.Wall.Sub(a.Wall) <= d
	}
	return true
}
