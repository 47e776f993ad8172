package diagnose

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/noderes/kubectl-noderes/pkg/report"
)

// A verdict is what is found, not where or how much of it.
func TestVerdicts(t *testing.T) {
	finding := func(code report.Code, confidence report.Confidence, container, summary string) func(report.Metadata) report.Finding {
		return func(m report.Metadata) report.Finding {
			return report.NewFinding(code, confidence, report.Subject{Kind: "Pod", Namespace: m.Namespace, Name: m.Name, Container: container}, summary)
		}
	}
	oom := finding(report.ContainerMemoryLimitOOM, report.Proven, "app", "3 kills.")
	more := finding(report.ContainerMemoryLimitOOM, report.Proven, "app", "9 kills.")
	likely := finding(report.ContainerMemoryLimitOOM, report.Likely, "app", "3 kills.")
	side := finding(report.ContainerMemoryLimitOOM, report.Proven, "side", "3 kills.")
	throttled := finding(report.CPUQuotaThrottled, report.Proven, "app", "Throttled.")
	fine := finding(report.MemoryHealthy, report.Proven, "app", "Fine.")
	onNode := func(m report.Metadata) report.Finding {
		return report.NewFinding(report.ReservedSplitsCore, report.Proven, report.Subject{Kind: "Node", Name: m.Node}, "Split.")
	}
	var reports []report.Report
	for _, r := range []struct {
		name, node string
		findings   []func(report.Metadata) report.Finding
	}{
		{"fine-1", "n1", []func(report.Metadata) report.Finding{fine}},
		{"slow", "n1", []func(report.Metadata) report.Finding{throttled, fine}},
		{"nothing", "n1", nil},
		{"likely", "n1", []func(report.Metadata) report.Finding{likely}},
		{"b", "n1", []func(report.Metadata) report.Finding{oom, onNode}},
		{"a", "n2", []func(report.Metadata) report.Finding{more, onNode}},
		{"side", "n2", []func(report.Metadata) report.Finding{side}},
		{"two", "n2", []func(report.Metadata) report.Finding{oom, side}},
		{"slow-and-dead", "n2", []func(report.Metadata) report.Finding{oom, throttled}},
		{"fine-2", "n2", []func(report.Metadata) report.Finding{fine}},
	} {
		m := report.Metadata{Namespace: "shop", Name: r.name, Node: r.node, UID: "u"}
		one := report.Report{Metadata: m}
		for _, f := range r.findings {
			one.Findings = append(one.Findings, f(m))
		}
		reports = append(reports, one)
	}
	var got, order []string
	for _, v := range Verdicts(reports) {
		var names []string
		for _, p := range v.Pods {
			if p.UID != "" {
				t.Errorf("%s: more than a name", p.Name)
			}
			names = append(names, p.Name+"@"+p.Node)
		}
		got = append(got, fmt.Sprint(strings.Join(names, " "), ":", v.Codes))
	}
	for _, r := range reports {
		order = append(order, r.Metadata.Name)
	}
	want := []string{
		"two@n2:[container-memory-limit-oom]",
		"b@n1 a@n2:[container-memory-limit-oom reserved-splits-core]",
		"slow-and-dead@n2:[container-memory-limit-oom cpu-quota-throttled]",
		"side@n2:[container-memory-limit-oom]",
		"likely@n1:[container-memory-limit-oom]",
		"slow@n1:[cpu-quota-throttled memory-healthy]",
		"fine-1@n1 fine-2@n2:[memory-healthy]",
		"nothing@n1:[]",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if strings.Join(order, " ") != "two b a slow-and-dead side likely slow fine-1 fine-2 nothing" {
		t.Errorf("items %v", order)
	}
}

func TestNotExplained(t *testing.T) {
	pod := func(phase corev1.PodPhase) corev1.Pod { return corev1.Pod{Status: corev1.PodStatus{Phase: phase}} }
	got := NotExplained([]corev1.Pod{pod(corev1.PodFailed), pod(corev1.PodPending), pod(corev1.PodPending)})
	if fmt.Sprint(got) != "[{Failed 1} {Pending 2}]" || NotExplained(nil) != nil {
		t.Error(got)
	}
}
