package main

import (
	"bytes"
	"strings"
	"testing"
)

func TestBudgetLines(t *testing.T) {
	pool := func(id string) string {
		return `{"id":"` + id + `","now":"2026-03-01T10:00:00Z","nodePools":[{"metadata":{"name":"web"},"spec":{"disruption":{"budgets":[{"nodes":"3"}]}}}],"evalNodes":[7]}`
	}
	in := strings.NewReader(pool("a") + "\n\nnot json\n" + pool("b")) // no newline at the end
	var out bytes.Buffer
	if err := budgets(in, &out); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	if len(lines) != 3 {
		t.Fatalf("%d lines: %q", len(lines), lines)
	}
	for i, want := range []string{`"id":"a"`, `"error":"input: `, `"id":"b"`} {
		if !strings.Contains(lines[i], want) {
			t.Errorf("line %d: %s, want %s", i, lines[i], want)
		}
	}
	if !strings.Contains(lines[0], `"allowed":3`) || strings.Contains(lines[0], `"error"`) {
		t.Errorf("the budget of three nodes: %s", lines[0])
	}
}
