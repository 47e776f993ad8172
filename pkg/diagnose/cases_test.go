package diagnose

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/noderes/kubectl-noderes/pkg/report"
	"github.com/noderes/kubectl-noderes/pkg/snapshot"
)

// A caseRun is one question to one bundle and what a right answer must hold.
// Codes are written CODE or CODE@SUBJECT (a container or an object's name); a
// list inside a list means any one of its members.
type caseRun struct {
	Args     []string `json:"args"`
	Bundle   string   `json:"bundle"`
	At       string   `json:"at"`
	Codes    []anyOf  `json:"codes"`
	NotCodes []string `json:"notCodes"`
	First    anyOf    `json:"first"`
	Text     []anyOf  `json:"text"`
	NotText  []string `json:"notText"`
}

type anyOf []string

func (a *anyOf) UnmarshalJSON(data []byte) error {
	var one string
	if json.Unmarshal(data, &one) == nil {
		*a = anyOf{one}
		return nil
	}
	return json.Unmarshal(data, (*[]string)(a))
}

// TestCases answers the questions of testdata/cases: bundles of real reports, of
// recorded nodes and of recorded clusters with Karpenter.
func TestCases(t *testing.T) {
	files, err := filepath.Glob("testdata/cases/*/expect*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	for _, file := range files {
		dir := filepath.Dir(file)
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var expect struct{ Runs []caseRun }
		if err := json.Unmarshal(data, &expect); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		bundles := map[string]*snapshot.Snapshot{}
		for i, run := range expect.Runs {
			t.Run(fmt.Sprintf("%s/%d-%s-%s", filepath.Base(dir), i+1, strings.Join(run.Args[1:min(3, len(run.Args))], "-"), run.Bundle), func(t *testing.T) {
				s := bundles[run.Bundle]
				if s == nil {
					s = openTestBundle(t, filepath.Join(dir, run.Bundle+".tar.gz"))
					bundles[run.Bundle] = s
				}
				for _, wrong := range run.check(run.report(t, dir, s)) {
					t.Error(wrong)
				}
			})
		}
	}
}

func openTestBundle(t testing.TB, path string) *snapshot.Snapshot {
	t.Helper()
	s, err := snapshot.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (run caseRun) report(t *testing.T, dir string, s *snapshot.Snapshot) report.Report {
	t.Helper()
	var o Options
	if run.At != "" {
		at, err := time.Parse(time.RFC3339, run.At)
		if err != nil {
			t.Fatal(err)
		}
		o.At = at
	}
	var r report.Report
	var err error
	switch {
	case len(run.Args) == 2 && run.Args[0] == "placement":
		r, err = Placement(s, run.Args[1], o)
	case run.Args[0] == "whatif":
		return run.whatIf(t, dir, s, o)
	case len(run.Args) == 5 && run.Args[1] == "pod" && run.Args[3] == "-n":
		r, err = Pod(s, run.Args[4], run.Args[2], o)
	case len(run.Args) == 3 && run.Args[1] == "node":
		r, err = Node(s, run.Args[2], o)
	case len(run.Args) == 3 && run.Args[1] == "nodepool":
		r, err = NodePool(s, run.Args[2], o)
	case len(run.Args) == 2 && run.Args[0] == "budgets":
		r, err = Budgets(s, run.Args[1], o)
	default:
		t.Fatalf("arguments %q", run.Args)
	}
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// check lists what is wrong with a report.
func (run caseRun) check(r report.Report) []string {
	var wrong []string
	has := func(want string) bool {
		code, subject, _ := strings.Cut(want, "@")
		for _, f := range r.Findings {
			if string(f.Code) == code && (subject == "" || f.Subject.Container == subject || f.Subject.Name == subject) {
				return true
			}
		}
		return false
	}
	any := func(want anyOf, ok func(string) bool) bool {
		for _, w := range want {
			if ok(w) {
				return true
			}
		}
		return false
	}
	for _, want := range run.Codes {
		if !any(want, has) {
			wrong = append(wrong, fmt.Sprintf("no finding %s", strings.Join(want, " or ")))
		}
	}
	for _, code := range run.NotCodes {
		if has(code) {
			wrong = append(wrong, "unwanted finding "+code)
		}
	}
	if len(r.Findings) == 0 {
		return append(wrong, "no finding at all")
	}
	if first := string(r.Findings[0].Code); len(run.First) > 0 && !any(run.First, func(w string) bool { return w == first }) {
		wrong = append(wrong, fmt.Sprintf("first finding is %s, not %s", first, strings.Join(run.First, " or ")))
	}
	data, _ := json.Marshal(r)
	var tree any_
	_ = json.Unmarshal(data, &tree)
	values := leaves(tree, nil)
	occurs := func(want string) bool {
		pattern := wholeWord(want)
		for _, v := range values {
			if pattern.MatchString(v) {
				return true
			}
		}
		return false
	}
	for _, want := range run.Text {
		if !any(want, occurs) {
			wrong = append(wrong, fmt.Sprintf("text lacks %q", []string(want)))
		}
	}
	for _, text := range run.NotText {
		if occurs(text) {
			wrong = append(wrong, fmt.Sprintf("text has %q", text))
		}
	}
	return wrong
}

type any_ = interface{}

// leaves are all keys and scalars of a JSON value, figures in one spelling.
func leaves(v any_, out []string) []string {
	switch v := v.(type) {
	case map[string]any_:
		for k, item := range v {
			out = leaves(item, append(out, oneSpelling(k)))
		}
	case []any_:
		for _, item := range v {
			out = leaves(item, out)
		}
	case string:
		out = append(out, oneSpelling(v))
	case float64:
		out = append(out, oneSpelling(strconv.FormatFloat(v, 'f', -1, 64)))
	}
	return out
}

var (
	spaceBeforeUnit = regexp.MustCompile(`([0-9]) ?(%|[KMGT]iB?|kB|m?s|µs)\b`)
	percentSpace    = regexp.MustCompile(`([0-9]) %`)
	trailingZeros   = regexp.MustCompile(`\b([0-9]+\.[0-9]*[1-9])0+\b`)
)

func oneSpelling(s string) string {
	s = percentSpace.ReplaceAllString(s, "$1%")
	s = spaceBeforeUnit.ReplaceAllStringFunc(s, func(m string) string { return strings.ReplaceAll(strings.Replace(m, " ", "", 1), "iB", "i") })
	return trailingZeros.ReplaceAllString(s, "$1")
}

// wholeWord matches a text that is no part of a longer word or figure: 14 is
// neither in 140 nor in 13-14.
func wholeWord(text string) *regexp.Regexp {
	text = oneSpelling(text)
	before, after := "", ""
	if isWord(text[0]) {
		before = `(?:^|[^0-9A-Za-z_.,-]|[^0-9A-Za-z_][.,-]|^[.,-])`
	}
	if isWord(text[len(text)-1]) {
		after = `(?:$|[^0-9A-Za-z_%.,-]|[.,-](?:[^0-9]|$))`
	}
	return regexp.MustCompile(before + regexp.QuoteMeta(text) + after)
}

func isWord(b byte) bool {
	return b >= '0' && b <= '9' || b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z'
}
