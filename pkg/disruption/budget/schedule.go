package budget

import (
	"time"

	"github.com/robfig/cron/v3"

	"github.com/noderes/kubectl-noderes/pkg/disruption/karpenter"
)

// Schedule is a cron schedule in UTC, in Karpenter's parser's own dialect.
type Schedule struct {
	next cron.Schedule
	spec *cron.SpecSchedule // nil for "@every <duration>", which the CRD refuses but the parser takes
	// every is that duration.
	every time.Duration
}

// ParseSchedule reads a schedule as Karpenter does, which forces the time zone to UTC.
func ParseSchedule(text string) (*Schedule, error) {
	parsed, err := cron.ParseStandard("TZ=UTC " + text)
	if err != nil {
		return nil, karpenter.InvalidCron(err)
	}
	schedule := &Schedule{next: parsed}
	switch p := parsed.(type) {
	case *cron.SpecSchedule:
		schedule.spec = p
	case cron.ConstantDelaySchedule:
		schedule.every = p.Delay
	}
	return schedule, nil
}

// Next returns the first hit after t. It is zero where there is none up to the end of the fifth year after t's.
func (s *Schedule) Next(t time.Time) time.Time { return s.next.Next(t.UTC()) }

// NeverFires reports that no day of the calendar has a hit, as for the 30th of February.
func (s *Schedule) NeverFires() bool { return s.spec != nil && !daysOf(s.spec).possible() }

// covers reports whether a window of this length is open at now. A hit at H opens [H, H+length). A schedule without any hit within
// five years counts as open: Karpenter takes the zero time that stands for "none" for a hit in the past.
func (s *Schedule) covers(now time.Time, length time.Duration) bool {
	now = now.UTC()
	return !s.Next(now.Add(-length)).After(now)
}
