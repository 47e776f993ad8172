package budget

import (
	"time"

	"github.com/robfig/cron/v3"
)

// days is a cron schedule seen from the day: which days have hits, and at which minutes. In UTC all days that have hits are alike,
// so windows are found by walking over days instead of over hits.
type days struct {
	dom, month, dow uint64
	either          bool // one of day and weekday is enough
	hour, minute    uint64
}

// starBit marks a field that was written as a star (robfig/cron's spec.go).
const starBit = 1 << 63

func daysOf(s *cron.SpecSchedule) days {
	return days{
		dom: s.Dom &^ starBit, month: s.Month &^ starBit, dow: s.Dow &^ starBit, either: (s.Dom|s.Dow)&starBit == 0,
		hour: s.Hour, minute: s.Minute,
	}
}

// has reports whether the day of t has hits.
func (d days) has(t time.Time) bool {
	_, month, day := t.Date()
	return d.hasDate(month, day, t.Weekday())
}

func (d days) hasDate(month time.Month, day int, weekday time.Weekday) bool {
	if d.month>>month&1 == 0 {
		return false
	}
	byDay, byWeekday := d.dom>>day&1 == 1, d.dow>>weekday&1 == 1
	if d.either {
		return byDay || byWeekday
	}
	return byDay && byWeekday
}

// longest is the number of days of each month in a leap year.
var longest = [13]int{0, 31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31}

// possible reports whether any day of any year has a hit. Every date of a leap year falls on every weekday in some year.
func (d days) possible() bool {
	for month := time.January; month <= time.December; month++ {
		for day := 1; day <= longest[month]; day++ {
			for weekday := time.Sunday; weekday <= time.Saturday; weekday++ {
				if d.hasDate(month, day, weekday) {
					return true
				}
			}
		}
	}
	return false
}

// pattern returns what the hits of one day keep open for that length, as spans from the day's beginning, in order and merged. The
// last may reach into later days.
func (d days) pattern(length time.Duration) []offsets {
	var spans []offsets
	for hour := range 24 {
		if d.hour>>hour&1 == 0 {
			continue
		}
		for minute := range 60 {
			if d.minute>>minute&1 == 0 {
				continue
			}
			from := time.Duration(hour*60+minute) * time.Minute
			if n := len(spans); n > 0 && from <= spans[n-1].to {
				spans[n-1].to = from + length
				continue
			}
			spans = append(spans, offsets{from, from + length})
		}
	}
	return spans
}

// offsets is a span of time from a day's beginning.
type offsets struct{ from, to time.Duration }
