package render

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/noderes/kubectl-noderes/pkg/report"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", file, diff)
	}
}

func TestText(t *testing.T) {
	oom, bare, unanswered, wide := oomReport(), bareReport(), unansweredReport(), wideReport()
	for _, test := range []struct {
		name    string
		reports []report.Report
		style   Style
	}{
		{"oom-80", []report.Report{oom}, Style{Width: 80, Unicode: true}},
		{"oom-100", []report.Report{oom}, Style{Width: 100, Unicode: true}},
		{"oom-200", []report.Report{oom}, Style{Width: 200, Unicode: true}},
		{"oom-unlimited", []report.Report{oom}, Style{Unicode: true}},
		{"oom-100-color", []report.Report{oom}, Style{Width: 100, Unicode: true, Color: true}},
		{"oom-80-ascii", []report.Report{oom}, Style{Width: 80}},
		{"bare", []report.Report{bare}, Style{Width: 80, Unicode: true}},
		{"unanswered", []report.Report{unanswered}, Style{Width: 80, Unicode: true}},
		{"wide-80", []report.Report{wide}, Style{Width: 80, Unicode: true}},
		{"several", []report.Report{bare, unanswered}, Style{Width: 80, Unicode: true}},
		{"hostile-80", []report.Report{hostileReport()}, Style{Width: 80, Unicode: true}},
		{"hostile-unlimited-color", []report.Report{hostileReport()}, Style{Unicode: true, Color: true}},
	} {
		t.Run(test.name, func(t *testing.T) {
			var out bytes.Buffer
			if err := Text(&out, test.reports, test.style); err != nil {
				t.Fatal(err)
			}
			golden(t, test.name+".txt", out.Bytes())
		})
	}
}
