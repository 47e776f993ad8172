package render

import (
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/noderes/kubectl-noderes/pkg/report"
)

// mostConsumers is how many nodes that consume budgets are named.
const mostConsumers = 20

// budgets writes what each NodePool's budgets are, what they come to, and who
// consumes them.
func (p *page) budgets(pools []report.NodePoolBudgets) {
	for _, pool := range pools {
		remark := ""
		if pool.Nodes != nil {
			remark = strconv.Itoa(*pool.Nodes) + " counted nodes"
		}
		t := table{keys: 1, columns: []column{{head: "#", figure: true}, {head: "NODES", figure: true}, {head: "SCHEDULE (UTC)"}, {head: "FOR"}, {head: "REASONS"}, {head: "NOW"},
			{head: "CHANGES"}, {head: "WINDOW"}}}
		for _, b := range pool.Budgets {
			t.add(strconv.Itoa(b.Index), Escape(b.Nodes), orNone(Escape(b.Schedule)), orNone(Escape(b.Duration)), reasonList(b.Reasons), budgetNow(b), budgetChange(b), orNone(Escape(b.Window)))
		}
		p.facts("BUDGETS OF "+Escape(pool.NodePool), remark, t)
		r := table{keys: 1, columns: []column{{head: "REASON"}, {head: "ALLOWED", figure: true}, {head: "LEFT", figure: true}, {head: "DECIDED BY"}, {head: "UNTIL"}, {head: "THEN", figure: true}}}
		for _, s := range pool.Reasons {
			r.add(Escape(s.Reason), limitText(s.Allowed), limitText(s.Remaining), indexes(s.DecidedBy), instant(s.Until), thenText(s.NextChange))
		}
		p.facts("", "", r)
		c := table{keys: 1, columns: []column{{head: "CONSUMED BY"}, {head: "WHY"}}}
		for _, node := range pool.Consumers[:min(len(pool.Consumers), mostConsumers)] {
			c.add(Escape(node.Node), Escape(strings.Join(node.Why, ", ")))
		}
		if more := len(pool.Consumers) - mostConsumers; more > 0 {
			c.add("and "+strconv.Itoa(more)+" more", "-o json names them")
		}
		p.facts("", "", c)
	}
}

func reasonList(reasons *[]string) string {
	switch {
	case reasons == nil:
		return "all"
	case len(*reasons) == 0:
		return "no reason"
	}
	return Escape(strings.Join(*reasons, ", "))
}

func budgetNow(b report.Budget) string {
	switch {
	case b.Error != "":
		return "cannot be read"
	case b.Active == nil:
		return absent
	case !*b.Active:
		return "closed"
	case b.Allowed == nil:
		return absent
	}
	return limitText(b.Allowed)
}

func budgetChange(b report.Budget) string {
	switch {
	case !b.Opens.IsZero():
		return "opens " + rfc3339(b.Opens)
	case !b.Closes.IsZero():
		return "closes " + rfc3339(b.Closes)
	}
	return none
}

func limitText(l *report.Limit) string {
	switch {
	case l == nil:
		return absent
	case l.Unlimited:
		return "unlimited"
	}
	return strconv.FormatUint(l.Value, 10)
}

func thenText(l *report.Limit) string {
	if l == nil {
		return none
	}
	return limitText(l)
}

func instant(t metav1.Time) string {
	if t.IsZero() {
		return none
	}
	return rfc3339(t)
}

func indexes(list []int) string {
	parts := make([]string, 0, len(list))
	for _, i := range list {
		parts = append(parts, "#"+strconv.Itoa(i))
	}
	return orNone(strings.Join(parts, ", "))
}

const (
	stripCell = 30 * time.Minute
	stripDay  = 24 * time.Hour
)

// timeline writes a strip for each pool and reason: a cell for each half hour,
// a line for each day. A cell shows the least that is allowed in it.
func (p *page) timeline(segments []report.TimelineSegment) {
	for start := 0; start < len(segments); {
		end := start
		for end < len(segments) && segments[end].NodePool == segments[start].NodePool {
			end++
		}
		p.strips(segments[start:end])
		start = end
	}
}

func (p *page) strips(pool []report.TimelineSegment) {
	marks := p.style.stripMarks()
	p.section("TIMELINE OF "+Escape(pool[0].NodePool), "allowed at once, half an hour a cell, UTC; "+marks.closed+" none, + ten and more, "+marks.unlimited+" no limit")
	from := pool[0].From.Truncate(stripCell)
	to := pool[len(pool)-1].To.Time
	var reasons []string
	widest := len(dayLabel)
	for _, s := range pool {
		if !slices.Contains(reasons, s.Reason) {
			reasons = append(reasons, s.Reason)
			widest = max(widest, len(Escape(s.Reason)))
		}
	}
	for day := from; day.Before(to); day = day.Add(stripDay) {
		last := day.Add(stripDay)
		if last.After(to) {
			last = to
		}
		p.line(2, p.palette.faint, pad(day.UTC().Format(dayLabel), widest, false)+"  "+hourRuler(day, last))
		for _, reason := range reasons {
			p.line(2, p.palette.plain, pad(Escape(reason), widest, false)+"  "+strip(pool, reason, day, last, marks))
		}
	}
}

const dayLabel = "2006-01-02"

// hourRuler names the time of every sixth hour of a line.
func hourRuler(from, to time.Time) string {
	var b strings.Builder
	for at := from; at.Before(to); at = at.Add(6 * time.Hour) {
		b.WriteString(pad(at.UTC().Format("15:04"), int(6*time.Hour/stripCell), false))
	}
	return b.String()
}

func strip(pool []report.TimelineSegment, reason string, from, to time.Time, marks stripMarks) string {
	var b strings.Builder
	for at := from; at.Before(to); at = at.Add(stripCell) {
		var least *report.Limit
		for i := range pool {
			s := &pool[i]
			if s.Reason != reason || !s.From.Time.Before(at.Add(stripCell)) || !s.To.After(at) {
				continue
			}
			if least == nil || least.Unlimited || !s.Allowed.Unlimited && s.Allowed.Value < least.Value {
				least = &s.Allowed
			}
		}
		switch {
		case least == nil:
			b.WriteString(absent)
		case least.Unlimited:
			b.WriteString(marks.unlimited)
		case least.Value == 0:
			b.WriteString(marks.closed)
		case least.Value > 9:
			b.WriteString("+")
		default:
			b.WriteString(strconv.FormatUint(least.Value, 10))
		}
	}
	return b.String()
}

type stripMarks struct{ closed, unlimited string }

func (s Style) stripMarks() stripMarks {
	if s.Unicode {
		return stripMarks{"█", "∞"}
	}
	return stripMarks{"#", "~"}
}
