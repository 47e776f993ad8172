package shrink

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/noderes/kubectl-noderes/pkg/diagnose/gap"
	"github.com/noderes/kubectl-noderes/pkg/report"
)

// alike are findings of one code about nodes n00, n01 and so on.
func alike(code report.Code, count int, summary func(i int, name string) string) []report.Finding {
	var out []report.Finding
	for i := range count {
		name := fmt.Sprintf("n%02d", i)
		out = append(out, report.NewFinding(code, report.Proven, report.Subject{Kind: "Node", Name: name}, summary(i, name),
			report.Evidence{Source: "api:nodes/" + name, Field: "spec.taints", Value: "v"}))
	}
	return out
}

func TestFold(t *testing.T) {
	same := func(_ int, name string) string { return "Node " + name + " stays." }
	other := func(i int, name string) string { return fmt.Sprintf("Node %s stays for %d.", name, i) }
	names := func(found []report.Finding) string {
		var out []string
		for _, f := range found {
			out = append(out, f.Subject.Name)
		}
		return strings.Join(out, " ")
	}
	p := newWorld().pool("a").read(t).poolCase(newWorld().pool("a").read(t).karpenter.Pools["a"])

	few := alike(report.PDBBlocks, mostOfNodes, other)
	if got := p.fold(few); len(got) != mostOfNodes {
		t.Errorf("%d of %d are few, and folded to %d", len(few), mostOfNodes, len(got))
	}
	if got := p.fold(alike(report.PDBBlocks, mostAlike+1, same)); len(got) != mostAlike+1 {
		t.Errorf("three of the same are folded to %s", names(got))
	}
	if got := p.fold(alike(report.PDBBlocks, mostAlike+2, same)); names(got) != "n00 n01 a" {
		t.Errorf("four of the same are folded to %s", names(got))
	}
	got := p.fold(alike(report.PDBBlocks, mostOfNodes+1, same))
	if names(got) != "n00 n01 a" {
		t.Fatalf("one more: %s", names(got))
	}
	checkText(t, got[2:], []string{"The same is found of 23 other subjects of NodePool a beside the 2 told of one by one", "n02, n03, n04, n05, n06, n07 and 17 others", "kubectl noderes explain node n02", "api:nodes/n02", "Node n06 stays."}, []string{"Node n07 stays"})

	// What differs is told, as far as there is room for it.
	if got := p.fold(alike(report.PDBBlocks, mostOfNodes+2, other)); len(got) != mostOfNodes+1 || got[mostOfNodes].Subject.Name != "a" {
		t.Errorf("of those that differ: %s", names(got))
	}
	mixed := alike(report.PDBBlocks, 30, func(i int, name string) string {
		if i == 20 {
			return "Node " + name + " is special."
		}
		return same(i, name)
	})
	if got := p.fold(mixed); names(got) != "n00 n20 a" {
		t.Errorf("the one that differs comes early: %s", names(got))
	}

	// The room is shared out over the codes, and the least sure says how sure the rest is.
	two := slices.Concat(alike(report.SeveralPDBs, 1, same), alike(report.PDBBlocks, 40, other))
	two[30].Confidence = report.Likely
	got = p.fold(two)
	if want := mostOfNodes/2 + 1 + 1; len(got) != want {
		t.Errorf("%d of two codes, want %d: %s", len(got), want, names(got))
	}
	for _, f := range got {
		if f.Subject.Name == "a" && (f.Confidence != report.Likely || f.Code != report.PDBBlocks) {
			t.Errorf("folded to %s %s", f.Code, f.Confidence)
		}
	}
}

// Whatever number of nodes: a pool's report has one finding of those that say
// the same, names each node's rules once and leaves the pool's own to itself.
func TestPoolOfManyNodes(t *testing.T) {
	w := newWorld().pool("a", never)
	for i := range 200 {
		name := fmt.Sprintf("n%03d", i)
		w.node("a", name).pod(name, "p-"+name, protected("true"))
	}
	answer, _ := w.read(t).NodePool("a")
	if len(answer.Findings) > 2*mostOfNodes {
		t.Errorf("%d findings", len(answer.Findings))
	}
	count := map[report.Code]int{}
	for _, f := range answer.Findings {
		count[f.Code]++
	}
	if count[report.ConsolidationNever] != 1 || count[report.PodDoNotDisrupt] < 2 {
		t.Errorf("%v", count)
	}
	checkText(t, answer.Findings, []string{"other subjects of NodePool a"}, nil)
}

// Of Karpenter's words the last up to the moment counts.
func TestSaid(t *testing.T) {
	w := edited().event("Node", "x", "DisruptionBlocked", "first", 10*time.Minute).event("NodeClaim", "x-claim", "DisruptionBlocked", "second", 5*time.Minute).
		event("Node", "x", "Other", "third", time.Minute).event("Node", "y", "DisruptionBlocked", "of another", time.Second).event("Node", "x-claim", "DisruptionBlocked", "of another kind", time.Second)
	w.Events[0].Count = 7
	for at, want := range map[time.Time]string{now: "second", now.Add(-5*time.Minute - time.Second): "first", now.Add(-time.Hour): ""} {
		k := Read(w.open(t), at, &gap.Log{}, Options{})
		e, ok := k.nodeOf(k.karpenter.Nodes[0]).said(func(e corev1.Event) bool { return e.Reason == disruptionBlocked })
		if e.Message != want || ok != (want != "") {
			t.Errorf("at %s: %q, %v, want %q", at, e.Message, ok, want)
		}
	}
	k := w.read(t)
	e := k.eventEvidence(k.events[0], "so what")
	if e.Means != "last seen 10m before (count 7, which is no rate); so what" || e.Value != "first" || e.Source != "api:events/default/x.0" {
		t.Errorf("%+v", e)
	}
	if got := k.eventEvidence(k.events[1], "x").Means; got != "last seen 5m before; x" {
		t.Errorf("%q", got)
	}
}

// No finding is surer than the version of Karpenter is known.
func TestSettled(t *testing.T) {
	two := func() *world { return one(protected("true")).pdb("b").pdb("c").pod("x", "q") }
	for _, c := range []struct {
		version string
		want    []string
		gap     string
	}{
		{"1.14.3", []string{"pod-do-not-disrupt@x proven", "several-pdbs@x proven"}, ""},
		{"1.11.0", []string{"pod-do-not-disrupt@x proven", "several-pdbs@x proven"}, ""},
		{"unknown", []string{"pod-do-not-disrupt@x proven", "several-pdbs@x likely"}, "Karpenter's version"},
		{"1.12.0", []string{"pod-do-not-disrupt@x likely", "several-pdbs@x likely"}, "rules of Karpenter 1.12.0"},
		{"1.16.0", []string{"pod-do-not-disrupt@x likely", "several-pdbs@x likely"}, "rules of Karpenter 1.16.0"},
	} {
		t.Run(c.version, func(t *testing.T) {
			found, gaps := ruleCase{world: two(), version: c.version}.answer(t, report.PodDoNotDisrupt, report.SeveralPDBs)
			if got := spelled(found); !slices.Equal(got, c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
			var wanted []string
			for _, g := range gaps.List() {
				if strings.Contains(g.Wanted, "Karpenter's version") || strings.HasPrefix(g.Wanted, "rules of ") {
					wanted = append(wanted, g.Wanted)
				}
			}
			if got := strings.Join(wanted, ", "); got != c.gap {
				t.Errorf("gaps %q, want %q", got, c.gap)
			}
		})
	}
	// What budgets come to is the same in every version, and no gap is left where nothing is Karpenter's.
	for name, w := range map[string]*world{"budgets": budgeted(20, window("10%", "", 0)), "nobody's node": newWorld().node("", "x").pod("x", "p")} {
		gaps := &gap.Log{}
		k := Read(w.open(t), now, gaps, Options{})
		k.Budgets("a")
		k.Node("x")
		for _, g := range gaps.List() {
			if g.Wanted != autoscalerStatusFile { // what settles whether it is nobody's
				t.Errorf("%s: %+v", name, g)
			}
		}
	}
}
