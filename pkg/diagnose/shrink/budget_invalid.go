package shrink

import (
	"fmt"
	"strings"

	"github.com/noderes/kubectl-noderes/pkg/report"
)

// budgetInvalid: one budget that cannot be evaluated closes every reason of the
// pool, those that it does not name too.
func budgetInvalid(p *poolCase) []report.Finding {
	var out []report.Finding
	for i := range p.budgets.Budgets {
		b := &p.budgets.Budgets[i]
		var f report.Finding
		switch {
		case b.ScheduleError() != nil:
			schedule := ""
			if b.Schedule != nil {
				schedule = *b.Schedule
			}
			f = report.NewFinding(report.BudgetInvalid, report.Proven, p.subject(),
				fmt.Sprintf("NodePool %s may disrupt 0 nodes for every reason at all times: the schedule %q of budgets[%d] cannot be read, and one such budget closes all.", p.pool.Name, schedule, i),
				p.field(budgetPath(i, "schedule"), schedule, b.ScheduleError().Error()))
			f.Remedies = []report.Remedy{{Summary: scheduleAdvice(schedule), Command: p.editCommand(),
				Caution: "The API server admits the schedule, and no condition of the NodePool tells of it."}}
		case b.NodesError() != nil:
			f = report.NewFinding(report.BudgetInvalid, report.Proven, p.subject(),
				fmt.Sprintf("NodePool %s may disrupt 0 nodes for every reason while budgets[%d] is active: its value %q cannot be read.", p.pool.Name, i, b.Nodes),
				p.field(budgetPath(i, "nodes"), b.Nodes, b.NodesError().Error()))
			f.Remedies = []report.Remedy{{Summary: "Write a number of nodes below 2147483648 or a percentage.", Command: p.editCommand()}}
		default:
			continue
		}
		out = append(out, f)
	}
	return out
}

// scheduleAdvice says what is wrong with a schedule in the terms of its dialect.
func scheduleAdvice(schedule string) string {
	fields := strings.Fields(schedule)
	switch {
	case strings.HasPrefix(schedule, "TZ=") || strings.HasPrefix(schedule, "CRON_TZ="):
		return "Leave the time zone out and write the hours in UTC: schedules have no zone of their own."
	case len(fields) == 5 && strings.Contains(fields[4], "7"):
		return "Write the weekday as 0 to 6 (Sunday is 0, there is no 7) or as SUN to SAT; for every day write *."
	case len(fields) == 6:
		return "Write five fields: minute, hour, day, month, weekday; there are no seconds."
	}
	return "Write five fields, minute 0-59, hour 0-23, day 1-31, month 1-12, weekday 0-6, or one of @yearly, @monthly, @weekly, @daily, @hourly."
}
