package render

import (
	"bytes"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/noderes/kubectl-noderes/pkg/report"
)

func budgetReport() report.Report {
	at := time.Date(2026, 7, 14, 9, 5, 0, 0, time.UTC)
	hour := func(h int) metav1.Time { return metav1.NewTime(at.Add(time.Duration(h) * time.Hour)) }
	seven, on, off := 7, true, false
	limit := func(n uint64) *report.Limit { return &report.Limit{Value: n} }
	return report.Report{Kind: report.BudgetReport, Metadata: report.Metadata{Name: "service"}, ObservedAt: metav1.NewTime(at),
		Budgets: []report.NodePoolBudgets{{NodePool: "service", Nodes: &seven,
			Budgets: []report.Budget{
				{Index: 0, Nodes: "20%", Active: &on, Allowed: limit(2)},
				{Index: 1, Nodes: "0", Schedule: "0 8 * * *", Duration: "4h", Reasons: &[]string{"Underutilized"}, Active: &on, Allowed: limit(0), Closes: hour(3), Window: "08:00-12:00 UTC"},
				{Index: 2, Nodes: "1", Schedule: "\x1b[31m7", Duration: "1h", Error: "broken"},
				{Index: 3, Nodes: "1", Schedule: "@daily", Duration: "1h", Reasons: &[]string{}, Active: &off, Allowed: &report.Limit{Unlimited: true}, Opens: hour(15)},
			},
			Reasons: []report.BudgetReason{{Reason: "Empty", Allowed: limit(2), Remaining: limit(1), DecidedBy: []int{0}},
				{Reason: "Underutilized", Allowed: limit(0), Remaining: limit(0), DecidedBy: []int{1}, Until: hour(3), NextChange: &report.Limit{Unlimited: true}}, {Reason: "Drifted"}},
			Consumers: []report.BudgetConsumer{{Node: "n1", Why: []string{"NotReady", "Deleting"}}}}},
		Timeline: []report.TimelineSegment{
			{NodePool: "service", Reason: "Empty", From: hour(0), To: hour(36), Allowed: report.Limit{Value: 12}},
			{NodePool: "service", Reason: "Underutilized", From: hour(0), To: hour(3), Allowed: report.Limit{}},
			{NodePool: "service", Reason: "Underutilized", From: hour(3), To: hour(36), Allowed: report.Limit{Unlimited: true}}}}
}

func TestBudgetsText(t *testing.T) {
	for name, style := range map[string]Style{"budgets": {Width: 120, Unicode: true}, "budgets-ascii": {Width: 80}} {
		var out bytes.Buffer
		if err := Text(&out, []report.Report{budgetReport()}, style); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(out.String(), "\x1b") {
			t.Error("an escape reached the terminal")
		}
		golden(t, name+".txt", out.Bytes())
	}
}

func TestCapacityText(t *testing.T) {
	r := report.Report{Kind: report.NodePoolReport, Metadata: report.Metadata{Name: "service"}, Capacity: []report.NodePoolCapacity{
		{NodePool: "service", Nodes: 7, Leaving: 1, Starting: 2, Pods: 21, Needed: 4,
			Sizes: []report.NodeSize{{InstanceType: "r8i.4xlarge", Nodes: 4}, {InstanceType: "r8i.2xl\x1b[31m", Nodes: 2}, {Nodes: 1}, {InstanceType: "c", Nodes: 1}, {InstanceType: "d", Nodes: 1}},
			Floors: []report.NodeFloor{
				{Nodes: 4, By: "requests", Of: "memory", Arithmetic: "433Gi requested by 21 pods; the 3 largest nodes leave 371.65Gi, the 4 largest 495.53Gi"},
				{Nodes: 3, By: "anti-affinity", Of: "Deployment shop/web", Arithmetic: "3 pods, of which a node takes at most 1; the 2 largest nodes hold 2, the 3 largest 3"}}},
		{NodePool: "one", Nodes: 1, Pods: 1, Needed: 1, Floors: []report.NodeFloor{{Nodes: 1, By: "requests", Arithmetic: "1"}}},
		{NodePool: "empty", Nodes: 2},
	}}
	var out bytes.Buffer
	if err := Text(&out, []report.Report{r}, Style{Width: 100}); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(out.String(), "\x1b") {
		t.Error("an escape reached the terminal")
	}
	golden(t, "capacity.txt", out.Bytes())
}

// A cell shows the least that holds in any part of it.
func TestStripShowsTheLeast(t *testing.T) {
	from := time.Date(2026, 7, 14, 9, 0, 0, 0, time.UTC)
	at := func(m int) metav1.Time { return metav1.NewTime(from.Add(time.Duration(m) * time.Minute)) }
	segments := []report.TimelineSegment{{Reason: "Empty", From: at(0), To: at(59), Allowed: report.Limit{Value: 3}}, {Reason: "Empty", From: at(59), To: at(60), Allowed: report.Limit{}},
		{Reason: "Empty", From: at(60), To: at(120), Allowed: report.Limit{Unlimited: true}}}
	if got, want := strip(segments, "Empty", from, from.Add(2*time.Hour), Style{}.stripMarks()), "3#~~"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
