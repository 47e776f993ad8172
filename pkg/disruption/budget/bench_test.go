package budget

import (
	"testing"
	"time"

	"github.com/noderes/kubectl-noderes/pkg/disruption/karpenter"
)

func BenchmarkTimelineWeek(b *testing.B) {
	specs := map[string][]karpenter.Budget{
		"default":      {spec("10%", "", "")},
		"office hours": {spec("10%", "", ""), spec("0", "0 1 * * MON-FRI", "4h"), spec("0", "0 8 * * MON-FRI", "4h")},
		"half hours":   {spec("50%", "", ""), spec("1", "*/30 9-17 * * *", "20m", karpenter.Empty)},
		"each minute":  {spec("50%", "", ""), spec("1", "* * * * *", "1h")},
	}
	from := time.Date(2026, 3, 4, 9, 30, 0, 0, time.UTC)
	for name, budgets := range specs {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				pool(budgets...).Timeline(karpenter.Empty, 20, from, from.Add(7*day))
			}
		})
	}
}
