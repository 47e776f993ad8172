package karpenter

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

func TestRulesFor(t *testing.T) {
	tests := []struct {
		version string
		minor   int
		exact   bool
		ok      bool
	}{
		{"1.14.3", 14, true, true},
		{"v1.0.8", 0, true, true},
		{"1.5", 0, false, true},
		{"1.6.4@sha256:abc", 6, true, true},
		{"1.12.0", 11, false, true},
		{"1.13.0-eks", 13, true, true},
		{"1.15.0", 15, true, true},
		{"1.16.0", 15, false, true},
		{"0.37.0", 0, false, false},
		{"latest", 0, false, false},
		{"1.x", 0, false, false},
		{"", 0, false, false},
	}
	for _, tt := range tests {
		rules, exact, err := RulesFor(tt.version)
		if (err == nil) != tt.ok || rules.Minor != tt.minor || exact != tt.exact {
			t.Errorf("%q: rules of 1.%d, exact %v, %v; want 1.%d, %v", tt.version, rules.Minor, exact, err, tt.minor, tt.exact)
		}
	}
}

func TestRulesDiffer(t *testing.T) {
	of := func(version string) Rules {
		rules, _, err := RulesFor(version)
		if err != nil {
			t.Fatal(err)
		}
		return rules
	}
	tests := []struct {
		name        string
		rule        func(Rules) bool
		last, first string // last version without it, first with it
	}{
		{"several PDBs block", func(r Rules) bool { return r.SeveralPDBsBlock }, "1.6", "1.11"},
		{"static pools", func(r Rules) bool { return r.StaticPools }, "1.6", "1.11"},
		{"timed do-not-disrupt", func(r Rules) bool { return r.TimedDoNotDisrupt }, "1.12", "1.13"},
		{"balanced", func(r Rules) bool { return r.KnowsPolicy(Balanced) }, "1.13", "1.14"},
		{"empty by cost", func(r Rules) bool { return r.EmptyByCost }, "1.13", "1.14"},
		{"unhealthy", func(r Rules) bool { return len(r.Reasons()) == 4 }, "1.14", "1.15"},
	}
	for _, tt := range tests {
		if tt.rule(of(tt.last)) || !tt.rule(of(tt.first)) {
			t.Errorf("%s: in %s %v, in %s %v", tt.name, tt.last, tt.rule(of(tt.last)), tt.first, tt.rule(of(tt.first)))
		}
	}
	if DefaultRules().KnowsPolicy("WhenCostly") {
		t.Error("a policy of the future is known")
	}
}

func TestWithDefaults(t *testing.T) {
	tests := []struct{ name, spec, want string }{
		{"nothing", `{}`, `{"disruption":{"budgets":[{"nodes":"10%"}],"consolidateAfter":"0s","consolidationPolicy":"WhenEmptyOrUnderutilized"}}`},
		{"present block needs consolidateAfter", `{"disruption":{}}`, `{"disruption":{"budgets":[{"nodes":"10%"}],"consolidationPolicy":"WhenEmptyOrUnderutilized"}}`},
		{"empty list stays", `{"disruption":{"consolidateAfter":"1m","budgets":[]}}`, `{"disruption":{"budgets":[],"consolidateAfter":"1m","consolidationPolicy":"WhenEmptyOrUnderutilized"}}`},
		{"null is absent", `{"disruption":null}`, `{"disruption":{"budgets":[{"nodes":"10%"}],"consolidateAfter":"0s","consolidationPolicy":"WhenEmptyOrUnderutilized"}}`},
		{"value of a budget", `{"disruption":{"consolidateAfter":"1m","budgets":[{"reasons":[]}],"consolidationPolicy":"Balanced"}}`, `{"disruption":{"budgets":[{"nodes":"10%","reasons":[]}],"consolidateAfter":"1m","consolidationPolicy":"Balanced"}}`},
		{"unknown fields survive", `{"disruption":{"consolidateAfter":"1m","budgets":[],"consolidationPolicy":"Balanced","new":{"a":1}},"replicas":3}`, `{"disruption":{"budgets":[],"consolidateAfter":"1m","consolidationPolicy":"Balanced","new":{"a":1}},"replicas":3}`},
		{"expiry", `{"disruption":{"consolidateAfter":"1m","budgets":[],"consolidationPolicy":"Balanced"},"template":{"spec":{}}}`, `{"disruption":{"budgets":[],"consolidateAfter":"1m","consolidationPolicy":"Balanced"},"template":{"spec":{"expireAfter":"720h"}}}`},
		{"not an object", `[1]`, `[1]`},
	}
	for _, tt := range tests {
		got, err := WithDefaults([]byte(`{"spec":`+tt.spec+`}`), DefaultRules())
		if err != nil || string(got) != `{"spec":`+tt.want+`}` {
			t.Errorf("%s: %s, %v\nwant %s", tt.name, got, err, tt.want)
		}
	}
	rules, _, _ := RulesFor("1.15.0")
	got, err := WithDefaults([]byte(`{"spec":{"disruption":{}}}`), rules)
	if err != nil || !strings.Contains(string(got), `"consolidateAfter":"0s"`) {
		t.Errorf("1.15: %s, %v", got, err)
	}
	if _, err := WithDefaults([]byte(`{`), rules); err == nil {
		t.Error("broken JSON gives no error")
	}
}

func TestDecodeNodePools(t *testing.T) {
	pools, err := DecodeNodePools([]byte(`{"kind":"List","items":[
		{"metadata":{"name":"a"},"spec":{"disruption":{"consolidateAfter":"Never","budgets":[{"nodes":"1","reasons":[]},{"nodes":"2","schedule":"@daily","duration":"8h"}]},"future":1}},
		{"metadata":{"name":"b"},"spec":{"disruption":{"consolidateAfter":"1d"}}},
		{"metadata":{"name":"c"},"spec":{"replicas":0}}]}`))
	if err == nil || !strings.Contains(err.Error(), `NodePool "b": `) || !strings.Contains(err.Error(), "1d") {
		t.Errorf("error %v does not name the pool and the value", err)
	}
	if len(pools) != 2 {
		t.Fatalf("%d pools", len(pools))
	}
	a, c := pools[0], pools[1]
	d := a.Disruption()
	if d.ConsolidateAfter.Set || !d.ConsolidateAfter.IsNever() || d.Budgets[0].Reasons == nil || d.Budgets[1].Reasons != nil || d.Budgets[1].Duration.Duration != 8*time.Hour {
		t.Errorf("a: %+v", d)
	}
	if !strings.Contains(string(a.Raw), `"future":1`) {
		t.Errorf("raw text lost: %s", a.Raw)
	}
	if !c.IsStatic() || c.Spec.Disruption != nil || c.Disruption().ConsolidateAfter.IsNever() || c.Disruption().ConsolidateAfter.Set {
		t.Errorf("c: %+v", c.Spec)
	}
	if _, err := DecodeNodePools([]byte(`{"items":3}`)); err == nil {
		t.Error("a list of no items gives no error")
	}
}

// What is no list of the kind is not taken for an empty one.
func TestDecodeListOfSomethingElse(t *testing.T) {
	for name, c := range map[string]struct {
		text  string
		names string
		err   string
	}{
		"none":              {`{"kind":"NodeClaimList","items":[]}`, "", ""},
		"null":              {`{"items":null}`, "", ""},
		"an answer":         {`{"kind":"Status","status":"Failure","items":[]}`, "", `"Status"`},
		"no items":          {`{"kind":"List"}`, "", "without items"},
		"of several kinds":  {`{"kind":"List","items":[{"kind":"NodePool","metadata":{"name":"p"}},{"kind":"NodeClaim","metadata":{"name":"a"}},{"metadata":{"name":"b"}}]}`, "a b", ""},
		"one without name":  {`{"items":[{"metadata":{"name":"a"}},{"metadata":{}},null]}`, "a", "NodeClaim without a name: items[1]"},
		"many without name": {`{"items":[` + strings.Repeat("{},", 99) + `{}]}`, "", "and 90 others"},
		"numbers":           {`{"items":[1,"a"]}`, "", "NodeClaim ?"},
	} {
		claims, err := DecodeNodeClaims([]byte(c.text))
		var names []string
		for _, claim := range claims {
			names = append(names, claim.Name)
		}
		if got := strings.Join(names, " "); got != c.names || (err != nil) != (c.err != "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

func TestNodeClaimConditions(t *testing.T) {
	claim, err := DecodeNodeClaim([]byte(`{"metadata":{"name":"x"},"spec":{"expireAfter":"720h"},"status":{"lastPodEventTime":"2026-03-04T09:30:00Z",
		"conditions":[{"type":"Drifted","status":"True","reason":"NodePoolDrifted"},{"type":"Initialized","status":"Unknown"}]}}`))
	if err != nil {
		t.Fatal(err)
	}
	if !claim.IsTrue(ConditionDrifted) || claim.IsTrue(ConditionInitialized) || claim.IsTrue(ConditionConsolidatable) || claim.Condition(ConditionInitialized) == nil {
		t.Errorf("%+v", claim.Status.Conditions)
	}
	if claim.Spec.ExpireAfter.Duration != 720*time.Hour || claim.Status.LastPodEventTime.UTC().Hour() != 9 {
		t.Errorf("%+v", claim)
	}
}

func TestNillableDuration(t *testing.T) {
	for _, text := range []string{`"Never"`, `"1h30m"`, `"0s"`} {
		var d NillableDuration
		if err := json.Unmarshal([]byte(text), &d); err != nil {
			t.Fatal(err)
		}
		if out, err := json.Marshal(d); err != nil || string(out) != text {
			t.Errorf("%s comes back as %s, %v", text, out, err)
		}
	}
	for _, text := range []string{`"1d"`, `""`, `5`, `null`} {
		var d NillableDuration
		if err := json.Unmarshal([]byte(text), &d); err == nil {
			t.Errorf("%s is read as %+v", text, d)
		}
	}
}
