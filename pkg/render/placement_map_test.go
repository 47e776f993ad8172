package render

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/noderes/kubectl-noderes/pkg/report"
)

// placementReport is a node of so many CPUs, two threads a core, 64 CPUs a NUMA
// node and 16 a cache, that has a pod for each pair of cores but the first of
// every fourth.
func placementReport(cpus, perNode, perCache int) report.Report {
	l := report.Placement{Policy: "static", TopologyPolicy: "restricted", Scope: "container", MemoryPolicy: "Static",
		CPUs: &report.PlacementCPUs{All: ptr(fmt.Sprintf("0-%d", cpus-1)), Reserved: ptr("0-1")}}
	for node := range cpus / perNode {
		first := node * perNode
		l.NUMANodes = append(l.NUMANodes, report.NUMANode{ID: node, CPUs: fmt.Sprintf("%d-%d", first, first+perNode-1),
			Memory: []report.NUMAMemory{{Type: "memory", Total: 64 << 30, Reserved: 1 << 30, Free: 40 << 30}}})
	}
	for from := 0; from < cpus; from += perCache {
		set := fmt.Sprintf("%d-%d", from, from+perCache-1)
		g := report.PlacementGroup{Socket: from / (2 * perNode), NUMANode: from / perNode, Cache: set, CPUs: set}
		for core := from; core < from+perCache; core += 2 {
			pod := core / 4
			use, owner := report.CPUExclusive, fmt.Sprintf("shop/p%d/app", pod)
			switch {
			case core == 0:
				use, owner = report.CPUReserved, ""
			case pod%4 == 0:
				use, owner = report.CPUFree, ""
			case core%4 == 0:
				l.Containers = append(l.Containers, report.PlacementContainer{Namespace: "shop", Pod: fmt.Sprintf("p%d", pod), Container: "app",
					CPUs: ptr(fmt.Sprintf("%d-%d", core, core+3)), Exclusive: true, NUMANodes: []int{g.NUMANode}, Source: "node:/var/lib/kubelet/cpu_manager_state"})
			}
			g.Cores = append(g.Cores, report.PlacementCore{{ID: core, Use: use, Owner: owner}, {ID: core + 1, Use: use, Owner: owner}})
		}
		l.Layout = append(l.Layout, g)
	}
	return report.Report{APIVersion: report.APIVersion, Kind: report.PlacementReport, Metadata: report.Metadata{Name: "n1"}, ObservedAt: at("07:07:47"),
		Findings: []report.Finding{{Code: report.PlacementReplayed, Severity: report.Info, Confidence: report.Proven, Subject: report.Subject{Kind: "Node", Name: "n1"},
			Summary: "Replaying the pods gives exactly what is recorded."}}, Placement: &l}
}

func TestPlacementMap(t *testing.T) {
	for name, r := range map[string]report.Report{
		"placement-8-80":   placementReport(8, 4, 4),
		"placement-512-80": placementReport(512, 64, 16),
	} {
		var out bytes.Buffer
		if err := Text(&out, []report.Report{r}, Style{Width: 80, Unicode: true}); err != nil {
			t.Fatal(err)
		}
		golden(t, name+".txt", out.Bytes())
		for line := range strings.Lines(out.String()) {
			if n := len([]rune(strings.TrimRight(line, "\n"))); n > 80 {
				t.Errorf("%s: %d cells: %s", name, n, line)
			}
		}
	}
}

// A CPU that the checkpoint does not tell is not drawn as free.
func TestPlacementMapUnknown(t *testing.T) {
	r := placementReport(8, 4, 4)
	r.Placement.Layout[1].Cores[0][1] = report.PlacementCPU{ID: 5, Use: report.CPUUnknown}
	var out bytes.Buffer
	if err := Text(&out, []report.Report{r}, Style{Width: 80}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "a? aa") {
		t.Error(out.String())
	}
}
