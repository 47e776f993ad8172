package diagnose

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/noderes/kubectl-noderes/pkg/diagnose/shrink"
	"github.com/noderes/kubectl-noderes/pkg/report"
)

// A family is a group of codes that compete for the same data, with data sets
// that tell them apart: what is right for one code is the neighbour where all
// others must stay silent.
type family struct {
	name  string
	codes []report.Code
	cases []ruleCase
}

// A ruleCase is a data set, most often a recording changed in one datum.
type ruleCase struct {
	name string
	on   func(testing.TB) *bundle
	edit func(*bundle)
	// node: the question is about the bundle's node, not about its pod.
	node bool
	// want are all findings of the family, "code@container confidence".
	want []string
	// loose: want need not be all of them.
	loose bool
	// not are findings that must not be there.
	not []string
	// text must occur in the findings of the family, lacks must not.
	text, lacks []string
	// bug says what a rule does wrong here. The case is skipped until it does
	// it right.
	bug string
}

func families() []family {
	return []family{throttlingFamily(), countersFamily(), cpuFilesFamily(), contentionFamily(), cpuFloorFamily(), initFamily(), kernelFamily(), adviceFamily(), memoryFilesFamily(), oomLimitsFamily(), oomStatusFamily(), exitsFamily(), fillsFamily(), healthFamily(), poolsFamily(), driftFamily(), checkpointsFamily(), nodesFamily(), evidenceFamily(), memoryPressureFamily(), swapFamily(), pidsFamily(), unitsFamily(), resizesFamily(),
		evictionsFamily(), oomQueueFamily(), oomScoreFamily(), oomdFamily(), nodeOOMFamily(), reservedFamily(), backOffFamily(), setsFamily(), machinesFamily(), replaysFamily(), remoteFamily(), startsFamily(), refusedFamily(), readmissionFamily(), loopsFamily(), restartsFamily(), startCheckedFamily()}
}

func TestRules(t *testing.T) {
	for _, f := range families() {
		t.Run(f.name, func(t *testing.T) {
			seen := map[string]bool{}
			for _, c := range f.cases {
				if seen[c.name] {
					t.Errorf("two cases %q", c.name)
				}
				seen[c.name] = true
				t.Run(c.name, func(t *testing.T) { c.run(t, f.codes) })
			}
		})
	}
}

func (c ruleCase) run(t *testing.T, codes []report.Code) {
	b := c.on(t)
	if c.edit != nil {
		c.edit(b)
	}
	var r report.Report
	if c.node {
		r = b.explainNode(Options{})
	} else {
		r = b.explain(Options{})
	}
	wrong := c.check(r, codes)
	switch {
	case c.bug == "":
		for _, w := range wrong {
			t.Error(w)
		}
	case len(wrong) == 0:
		t.Errorf("right now, so no longer a bug: %s", c.bug)
	default:
		t.Skipf("%s\n%s", c.bug, strings.Join(wrong, "\n"))
	}
}

func (c ruleCase) check(r report.Report, codes []report.Code) []string {
	var wrong, got []string
	var text strings.Builder
	if len(r.Findings) == 0 {
		wrong = append(wrong, "no finding at all")
	}
	for _, f := range r.Findings {
		if !slices.Contains(codes, f.Code) {
			continue
		}
		got = append(got, spelled(f))
		data, err := json.Marshal(f)
		if err != nil {
			wrong = append(wrong, err.Error())
		}
		text.Write(data)
	}
	wrong = append(wrong, malformed(r)...)
	want := slices.Clone(c.want)
	slices.Sort(want)
	slices.Sort(got)
	for _, w := range want {
		if c.loose && !slices.Contains(got, w) {
			wrong = append(wrong, fmt.Sprintf("no %s; got %q", w, got))
		}
	}
	if diff := cmp.Diff(want, got); !c.loose && diff != "" {
		wrong = append(wrong, "(-want +got)\n"+diff)
	}
	for _, n := range c.not {
		if slices.Contains(got, n) {
			wrong = append(wrong, "unwanted "+n)
		}
	}
	for _, s := range c.text {
		if !strings.Contains(text.String(), s) {
			wrong = append(wrong, fmt.Sprintf("lacks %q: %s", s, text.String()))
		}
	}
	for _, s := range c.lacks {
		if strings.Contains(text.String(), s) {
			wrong = append(wrong, fmt.Sprintf("has %q: %s", s, text.String()))
		}
	}
	return wrong
}

// malformed lists what no report may have, whatever it is about.
func malformed(r report.Report) []string {
	var wrong []string
	sorted := slices.Clone(r.Findings)
	order(sorted)
	for i := range sorted {
		if got := r.Findings[i]; sorted[i].Code != got.Code || sorted[i].Subject != got.Subject {
			wrong = append(wrong, fmt.Sprintf("%s stands where %s should", spelled(got), spelled(sorted[i])))
		}
	}
	for _, f := range r.Findings {
		entry, ok := report.Lookup(f.Code)
		if !ok || entry.Severity != f.Severity {
			wrong = append(wrong, fmt.Sprintf("%s [%s] is not in the catalogue", f.Code, f.Severity))
		}
		if f.Confidence.Rank() > report.Possible.Rank() || f.Subject.Kind == "" || f.Subject.Name == "" || !strings.HasSuffix(f.Summary, ".") {
			wrong = append(wrong, fmt.Sprintf("%s is incomplete: %+v", f.Code, f))
		}
		if len(f.Because) == 0 && f.Code != report.EvidenceMissing && f.Code != report.ShrinkBlockerUnknown {
			wrong = append(wrong, fmt.Sprintf("%s has no evidence", f.Code))
		}
		for _, e := range f.Because {
			if kind, _, ok := strings.Cut(e.Source, ":"); !ok || !slices.Contains([]string{"node", "kubelet", "api", "kernel", "karpenter", "flag"}, kind) {
				wrong = append(wrong, fmt.Sprintf("%s: source %q", f.Code, e.Source))
			}
		}
		data, err := json.Marshal(f)
		if err != nil {
			wrong = append(wrong, err.Error())
		}
		for _, s := range []string{"%!", "NaN", "Inf ", "+Inf", "<nil>"} {
			if strings.Contains(string(data), s) {
				wrong = append(wrong, fmt.Sprintf("%s has %q: %s", f.Code, s, data))
			}
		}
	}
	return wrong
}

// spelled is a finding as a ruleCase writes it.
func spelled(f report.Finding) string {
	return fmt.Sprintf("%s@%s %s", f.Code, f.Subject.Container, f.Confidence)
}

// Every code has data of its own, here or below testdata/cases, and a
// neighbour by name where it stays silent.
func TestEveryCodeHasItsData(t *testing.T) {
	produced, silent := map[report.Code][]string{}, map[report.Code][]string{}
	for _, f := range families() {
		for _, c := range f.cases {
			if c.bug != "" {
				continue
			}
			for _, code := range f.codes {
				has := slices.ContainsFunc(c.want, func(w string) bool { return strings.HasPrefix(w, string(code)+"@") })
				switch {
				case has:
					produced[code] = append(produced[code], f.name+": "+c.name)
				case !c.loose:
					silent[code] = append(silent[code], f.name+": "+c.name)
				}
			}
		}
	}
	files, err := filepath.Glob("testdata/cases/*/expect*.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var expect struct{ Runs []caseRun }
		if err := json.Unmarshal(data, &expect); err != nil {
			t.Fatal(err)
		}
		for _, run := range expect.Runs {
			name := filepath.Base(filepath.Dir(file)) + ": " + run.Args[min(2, len(run.Args)-1)]
			for _, codes := range run.Codes {
				if len(codes) == 1 { // one of several proves none of them
					code, _, _ := strings.Cut(codes[0], "@")
					produced[report.Code(code)] = append(produced[report.Code(code)], name)
				}
			}
			for _, code := range run.NotCodes {
				if !strings.Contains(code, "@") {
					silent[report.Code(code)] = append(silent[report.Code(code)], name)
				}
			}
		}
	}
	for _, e := range report.Catalogue() {
		if e.Group == report.GroupShrinking {
			continue // package shrink's own
		}
		if len(produced[e.Code]) == 0 {
			t.Errorf("%s: no data set gives it", e.Code)
		}
		if len(silent[e.Code]) == 0 {
			t.Errorf("%s: no neighbour where it is silent", e.Code)
		}
		t.Logf("%s: given by %d data sets, silent in %d", e.Code, len(produced[e.Code]), len(silent[e.Code]))
	}
}

// The rules that are registered can give the codes of the catalogue, and no
// others.
func TestRegisteredCodes(t *testing.T) {
	registered := map[report.Code]bool{report.EvidenceMissing: true, report.NodeHealthy: true} // given where no rule speaks
	for _, r := range podRules {
		for _, code := range r.codes {
			registered[code] = true
		}
	}
	for _, r := range nodeRules {
		for _, code := range r.codes {
			registered[code] = true
		}
	}
	for _, code := range shrink.Codes() {
		registered[code] = true
	}
	for _, code := range whatIfCodes {
		registered[code] = true
	}
	for _, e := range report.Catalogue() {
		if !registered[e.Code] {
			t.Errorf("%s is in the catalogue and of no rule", e.Code)
		}
		delete(registered, e.Code)
	}
	for code := range registered {
		t.Errorf("%s is of a rule and not in the catalogue", code)
	}
}
