package karpenter

import (
	"slices"
	"strings"
	"testing"
)

func TestDisruptionViolations(t *testing.T) {
	budget := func(fields string) string {
		return `{"consolidateAfter":"0s","budgets":[{` + fields + `}]}`
	}
	tests := []struct {
		name, version, disruption string
		want                      []string // fields
	}{
		{"sound", "1.14", budget(`"nodes":"10%","schedule":"0 1 * * *","duration":"4h","reasons":["Empty"]`), nil},
		{"no consolidateAfter", "1.14", `{}`, []string{"spec.disruption.consolidateAfter"}},
		{"no consolidateAfter in 1.15", "1.15", `{}`, nil},
		{"a day", "1.14", `{"consolidateAfter":"1d"}`, []string{"spec.disruption.consolidateAfter"}},
		{"policy of the future", "1.14", `{"consolidateAfter":"0s","consolidationPolicy":"WhenCostly"}`, []string{"spec.disruption.consolidationPolicy"}},
		{"policy of 1.14", "1.13.0", `{"consolidateAfter":"0s","consolidationPolicy":"Balanced"}`, []string{"spec.disruption.consolidationPolicy"}},
		{"reason of 1.15", "1.14", budget(`"reasons":["Unhealthy"]`), []string{"spec.disruption.budgets[0].reasons[0]"}},
		{"reason of 1.15 there", "1.15", budget(`"reasons":["Unhealthy"]`), nil},
		{"a reason twice", "1.14", budget(`"reasons":["Empty","Empty"]`), []string{"spec.disruption.budgets[0].reasons[1]"}},
		{"no reasons at all", "1.14", budget(`"reasons":[]`), nil},
		{"schedule alone", "1.14", budget(`"schedule":"@daily"`), []string{"spec.disruption.budgets[0]"}},
		{"seconds", "1.14", budget(`"schedule":"@daily","duration":"30s"`), []string{"spec.disruption.budgets[0].duration"}},
		{"as Go prints it", "1.14", budget(`"schedule":"@daily","duration":"1h0m0s"`), nil},
		{"value over 100 %", "1.14", budget(`"nodes":"101%"`), []string{"spec.disruption.budgets[0].nodes"}},
		{"value no text", "1.14", budget(`"nodes":1`), []string{"spec.disruption.budgets[0].nodes"}},
		{"admitted, though no schedule", "1.14", budget(`"schedule":"TZ=Asia/Seoul 0 10 * * 7","duration":"1h"`), nil},
		{"fifty-one", "1.14", `{"consolidateAfter":"0s","budgets":[` + strings.Repeat(`{"nodes":"1"},`, 50) + `{"nodes":"1"}]}`, []string{"spec.disruption.budgets"}},
		{"no list", "1.14", `{"consolidateAfter":"0s","budgets":{}}`, []string{"spec.disruption.budgets"}},
		{"no object", "1.14", `"x"`, []string{"spec.disruption"}},
		{"no budget", "1.14", `{"consolidateAfter":"0s","budgets":[1]}`, []string{"spec.disruption.budgets[0]"}},
	}
	for _, tt := range tests {
		rules, _, err := RulesFor(tt.version)
		if err != nil {
			t.Fatal(err)
		}
		data, err := WithDefaults([]byte(`{"spec":{"disruption":`+tt.disruption+`}}`), rules)
		if err != nil {
			t.Fatal(err)
		}
		violations, err := DisruptionViolations(data, rules)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, v := range violations {
			got = append(got, v.Field)
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s: %v, want %v", tt.name, violations, tt.want)
		}
	}
	if _, err := DisruptionViolations([]byte(`{`), DefaultRules()); err == nil {
		t.Error("broken JSON gives no error")
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"metadata":{"name":"p"},"spec":{"replicas":1,"disruption":{"consolidateAfter":"1h","budgets":[{"nodes":"10%","schedule":"@daily","duration":"1h"}]}}}`))
	f.Add([]byte(`{"spec":[]}`))
	f.Add([]byte(`null`))
	f.Fuzz(func(_ *testing.T, data []byte) {
		defaulted, err := WithDefaults(data, DefaultRules())
		if err != nil {
			return
		}
		_, _ = DecodeNodePool(defaulted)
		_, _ = DecodeNodeClaim(defaulted)
		_, _ = DecodeNodePools(defaulted)
		_, _ = DisruptionViolations(defaulted, DefaultRules())
	})
}
