package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/noderes/kubectl-noderes/test/scenario"
)

func TestReplayLines(t *testing.T) {
	var in, out bytes.Buffer
	if err := generate(&in, "1.35", 1, 3, "mixed"); err != nil {
		t.Fatal(err)
	}
	in.WriteString("\nnot json\n")
	line, err := json.Marshal(scenario.Generate("1.34", 1, 9, "cpu"))
	if err != nil {
		t.Fatal(err)
	}
	in.Write(line) // no newline at the end
	if err := replay(&in, &out); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	if len(lines) != 5 || !strings.HasPrefix(lines[3], `{"id":"","setup":{"ok":false},"error":"input: `) || !strings.Contains(lines[4], `"id":"cpu-1-9"`) {
		t.Errorf("%d lines: %.200q", len(lines), lines)
	}
}
