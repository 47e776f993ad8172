package scenario

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"os"
	"strings"
	"testing"
)

// TestRecorded holds the replay against what the real code of Karpenter 1.14.1 said of random scenarios. The file is made by
// `go run . -record -n 250 -seed 14 | gzip -9n` in test/karpenter.
func TestRecorded(t *testing.T) {
	file, err := os.Open("testdata/karpenter-1.14.1.jsonl.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	unpacked, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(unpacked)
	lines.Buffer(nil, 1<<24)
	seen := map[string]int{}
	for lines.Scan() {
		var pair struct {
			Scenario Scenario
			Result   json.RawMessage
		}
		if err := json.Unmarshal(lines.Bytes(), &pair); err != nil {
			t.Fatal(err)
		}
		own := Run(&pair.Scenario)
		differences, err := Differences(own, pair.Result)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range differences {
			t.Errorf("%s%s", pair.Scenario.ID, d)
		}
		count(own, seen)
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	// The record is worth something only while it holds one of each.
	for _, kind := range []string{
		"candidate is already being disrupted", "node isn't managed by karpenter", "nodeclaim does not have an associated node",
		"node isn't initialized", "node is deleting or marked for deletion", "node is nominated for a pending pod",
		"disruption is blocked through the", "node doesn't have required label", "nodepool not found", "pod has", "pdb prevents",
		"eviction does not support", "candidate", "eventual only", "unlimited", "zero by error", "consuming", "approved", "rejected",
		"RequirementsDrifted", "InstanceTypeNotFound",
	} {
		if seen[kind] == 0 {
			t.Errorf("nothing of %q in the record", kind)
		}
	}
}

func count(out *Output, seen map[string]int) {
	for _, pool := range out.NodePools {
		if pool.Consuming > 0 {
			seen["consuming"]++
		}
		for _, reason := range pool.Reasons {
			if reason.Remaining >= 2147483647-pool.Consuming {
				seen["unlimited"]++
			}
			if reason.Error != "" && reason.ByReason != 0 && reason.Must == 0 {
				seen["zero by error"]++
			}
		}
	}
	for _, node := range out.Nodes {
		for _, prefix := range []string{
			"candidate is already being disrupted", "node isn't managed by karpenter", "nodeclaim does not have an associated node",
			"node isn't initialized", "node is deleting or marked for deletion", "node is nominated for a pending pod",
			"disruption is blocked through the", "node doesn't have required label", "nodepool not found", "pod has", "pdb prevents",
			"eviction does not support",
		} {
			if strings.HasPrefix(node.CandidateError, prefix) {
				seen[prefix]++
			}
		}
		if node.Candidate {
			seen["candidate"]++
		}
		if !node.Candidate && node.Eventual {
			seen["eventual only"]++
		}
		_, reason, _ := strings.Cut(node.Drifted, "/")
		seen[reason]++
	}
	if out.Balanced != nil {
		for _, score := range out.Balanced.Deletes {
			if score.Approved {
				seen["approved"]++
			} else {
				seen["rejected"]++
			}
		}
	}
}

func TestDifferencesSeesThem(t *testing.T) {
	other := func() *Output {
		return &Output{
			NodePools: map[string]*Pool{"a": {Total: 3, Budgets: []Budget{{Active: true, Allowed: 1}}, Reasons: map[string]*Reason{"Empty": {Must: 1}}}},
			Nodes:     map[string]*Result{"n": {Candidate: true, Price: 0.2}},
			Balanced:  &Balanced{Totals: map[string]Totals{"a": {Cost: 1}}, Deletes: map[string]*Score{}},
		}
	}
	tests := []struct {
		path   string
		change func(*Output)
	}{
		{".nodePools.a.total", func(o *Output) { o.NodePools["a"].Total = 4 }},
		{".nodePools.a.budgets[0].active", func(o *Output) { o.NodePools["a"].Budgets[0].Active = false }},
		{".nodePools.a.budgets", func(o *Output) { o.NodePools["a"].Budgets = nil }},
		{".nodePools.a.reasons.Drifted", func(o *Output) { o.NodePools["a"].Reasons["Drifted"] = &Reason{} }},
		{".nodePools.a.reasons.Empty", func(o *Output) { delete(o.NodePools["a"].Reasons, "Empty") }},
		{".nodes.n.price", func(o *Output) { o.Nodes["n"].Price = 0.20001 }},
		{".nodes.n.candidateError", func(o *Output) { o.Nodes["n"].CandidateError = "x" }},
		{".nodes.m", func(o *Output) { o.Nodes["m"] = &Result{} }},
		{".balanced.totals.a.cost", func(o *Output) { o.Balanced.Totals["a"] = Totals{Cost: 2} }},
		{"error", func(o *Output) { o.Error = "x" }},
	}
	encoded, err := json.Marshal(other())
	if err != nil {
		t.Fatal(err)
	}
	if differences, err := Differences(other(), encoded); err != nil || len(differences) > 0 {
		t.Fatalf("the same differ: %v, %v", differences, err)
	}
	for _, tt := range tests {
		own := other()
		tt.change(own)
		differences, err := Differences(own, encoded)
		if err != nil || len(differences) != 1 || !strings.HasPrefix(differences[0], tt.path+":") {
			t.Errorf("%s: %v, %v", tt.path, differences, err)
		}
	}
}

func TestBadInput(t *testing.T) {
	pool := func(spec string) []json.RawMessage {
		return []json.RawMessage{json.RawMessage(`{"metadata":{"name":"p"},"spec":` + spec + `}`)}
	}
	const now = "2026-03-04T09:30:00Z"
	tests := []struct {
		name     string
		scenario Scenario
		want     string
	}{
		{"no time", Scenario{}, `parsing time ""`},
		{"no JSON", Scenario{Now: now, NodePools: []json.RawMessage{json.RawMessage(`[`)}}, "NodePool: "},
		{"another type", Scenario{Now: now, NodePools: []json.RawMessage{json.RawMessage(`[]`)}}, "decoding NodePool: "},
		{"a day", Scenario{Now: now, NodePools: pool(`{"disruption":{"consolidateAfter":"1d"}}`)}, `NodePool "p": time: unknown unit "d"`},
		{"a number of nodes", Scenario{Now: now, NodePools: pool(`{"disruption":{"budgets":[{"nodes":1}]}}`)}, `NodePool "p": `},
		{"expiry", Scenario{Now: now, Nodes: []Node{{Name: "n", ExpireAfter: "soon"}}}, `node "n": expireAfter: `},
	}
	for _, tt := range tests {
		if out := Run(&tt.scenario); !strings.Contains(out.Error, tt.want) {
			t.Errorf("%s: %q, want %q", tt.name, out.Error, tt.want)
		}
	}
	out := Run(&Scenario{Now: now, NodePools: pool(`{"disruption":{"consolidateAfter":"0s","consolidationPolicy":"WhenCostly","budgets":[` +
		strings.Repeat(`{"nodes":"1"},`, 50) + `{"nodes":"0","reasons":[]}]}}`)})
	if out.Error != "" || len(out.NodePools["p"].Budgets) != 51 || out.NodePools["p"].Reasons["Empty"].Must != 1 {
		t.Errorf("51 budgets: %+v", out)
	}
}
