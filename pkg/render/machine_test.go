package render

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/printers"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"github.com/noderes/kubectl-noderes/pkg/report"
)

var sameReport = cmp.Options{
	cmpopts.EquateEmpty(),
	cmp.Comparer(func(a, b metav1.Time) bool { return a.Equal(&b) }),
}

func written(t rapid.TB, write func(*bytes.Buffer) error) string {
	t.Helper()
	var out bytes.Buffer
	if err := write(&out); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func noControls(t rapid.TB, out, allowed string) {
	t.Helper()
	for _, r := range out {
		if dangerous(r) && !strings.ContainsRune(allowed, r) {
			t.Fatalf("%U left raw in %q", r, out)
		}
	}
}

func TestJSONRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := draw{t, anyText()}.report()
		out := written(t, func(w *bytes.Buffer) error { return JSON(w, want) })
		noControls(t, out, "\n")
		var got report.Report
		if err := json.Unmarshal([]byte(out), &got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got, sameReport); diff != "" {
			t.Fatal(diff)
		}
	})
}

func TestYAMLRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := draw{t, anyText()}.report()
		out := written(t, func(w *bytes.Buffer) error { return YAML(w, want) })
		noControls(t, out, "\n")
		var got report.Report
		if err := yaml.UnmarshalStrict([]byte(out), &got); err != nil {
			t.Fatalf("%v:\n%s", err, out)
		}
		if diff := cmp.Diff(want, got, sameReport); diff != "" {
			t.Fatalf("%s\n%s", diff, out)
		}
	})
}

func TestMachineGolden(t *testing.T) {
	list := report.NewList(report.PodReport, []report.Report{oomReport(), unansweredReport()})
	golden(t, "list.json", []byte(written(t, func(w *bytes.Buffer) error { return JSON(w, list) })))
	golden(t, "list.yaml", []byte(written(t, func(w *bytes.Buffer) error { return YAML(w, list) })))
	golden(t, "hostile.json", []byte(written(t, func(w *bytes.Buffer) error { return JSON(w, hostileReport()) })))
	golden(t, "hostile.yaml", []byte(written(t, func(w *bytes.Buffer) error { return YAML(w, hostileReport()) })))
}

// TestYAMLAsKubectl holds the YAML against cli-runtime's, which differs in the
// order of keys only.
func TestYAMLAsKubectl(t *testing.T) {
	r := oomReport()
	out := written(t, func(w *bytes.Buffer) error { return YAML(w, r) })
	var object map[string]any
	if err := yaml.Unmarshal([]byte(out), &object); err != nil {
		t.Fatal(err)
	}
	got, err := yaml.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	want, err := yaml.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestYAMLLongHostileKey(t *testing.T) {
	r := bareReport()
	r.Placement = &report.Placement{Options: map[string]string{strings.Repeat("\u202e", 2000): "\x1b"}}
	out := written(t, func(w *bytes.Buffer) error { return YAML(w, r) })
	var got report.Report
	if err := yaml.Unmarshal([]byte(out), &got); err != nil {
		t.Fatalf("%v:\n%s", err, out)
	}
	if diff := cmp.Diff(r, got, sameReport); diff != "" {
		t.Error(diff)
	}
}

func TestNotEncodable(t *testing.T) {
	r := bareReport()
	r.Resources = &report.Resources{SampleSeconds: ptr(math.NaN())}
	var out bytes.Buffer
	for name, err := range map[string]error{"JSON": JSON(&out, r), "YAML": YAML(&out, r), "JSONPath": JSONPath(&out, r, "{.kind}")} {
		if err == nil {
			t.Errorf("%s of NaN: no error", name)
		}
	}
	if out.Len() > 0 {
		t.Errorf("written before the error: %q", out.String())
	}
}

func TestJSONPath(t *testing.T) {
	r := oomReport()
	r.Resources.Containers[2].Memory.Current = ptr[uint64](math.MaxUint64)
	list := report.NewList(report.PodReport, []report.Report{r, unansweredReport()})
	for _, test := range []struct {
		v              any
		template, want string
	}{
		{r, "{.kind}", "PodReport"},
		{r, "{.metadata.name}{\"\\n\"}", "oom\n"},
		{r, ".metadata.name", "oom"},
		{r, "metadata.name", "oom"},
		{r, "findings[0].code", "container-memory-limit-oom"},
		{r, "{.findings[*].code}", "container-memory-limit-oom memory-filled-by-anon cpu-not-throttled"},
		{r, `{range .findings[?(@.severity=="info")]}{.code}{"\t"}{.confidence}{"\n"}{end}`, "memory-filled-by-anon\tlikely\ncpu-not-throttled\tproven\n"},
		{r, "{.resources.containers[0].memory.max}", "134217728"},
		{r, "{.resources.containers[0].memory.high}", "unlimited"},
		{r, "{.resources.containers[2].memory.current}", "18446744073709551615"},
		{r, "{.resources.sampleSeconds}", "30.9"},
		{r, "{.resources.containers[?(@.memory.oom>15)].name}", "oom"},
		{r, "{.resources.containers[0].cpu.quota}/{.nothing}/", "20000//"},
		{r, "{.metadata}", `{"name":"oom","namespace":"shop","node":"smt2","uid":"c7fbac37-0a8c-4fd4-9c1a-0d1f2a5e6b77"}`},
		{list, "{.items[*].metadata.name}", "oom web-7d4b9c-x2x4z"},
		{list, "{.kind}", "PodReportList"},
	} {
		if got := written(t, func(w *bytes.Buffer) error { return JSONPath(w, test.v, test.template) }); got != test.want {
			t.Errorf("%s: %q, want %q", test.template, got, test.want)
		}
	}
}

func TestJSONPathEscapes(t *testing.T) {
	h := hostileReport()
	for _, template := range []string{"{.metadata.name}", "{.metadata}", "{}", "{..value}", "\x1b{.kind}\u202e", `{"\u001b\u009b"}`} {
		noControls(t, written(t, func(w *bytes.Buffer) error { return JSONPath(w, h, template) }), "\n\t")
	}
	// A piece of JSON is still JSON.
	var metadata report.Metadata
	if err := json.Unmarshal([]byte(written(t, func(w *bytes.Buffer) error { return JSONPath(w, h, "{.metadata}") })), &metadata); err != nil {
		t.Fatal(err)
	}
	if want := strings.ToValidUTF8(hostile, "\ufffd\ufffd"); metadata.Name != want {
		t.Errorf("name %q, want %q", metadata.Name, want)
	}
}

func TestJSONPathErrors(t *testing.T) {
	for _, template := range []string{"{.kind", "{.findings[0:a]}", "{.kind[?(@.a==1)]}", "{kind}", "{.findings[9]}", "}{"} {
		var out bytes.Buffer
		err := JSONPath(&out, oomReport(), template)
		if err == nil {
			t.Errorf("%s: no error, wrote %q", template, out.String())
			continue
		}
		if len(err.Error()) > 400 || strings.ContainsFunc(err.Error(), dangerous) {
			t.Errorf("%s: %v", template, err)
		}
	}
}

// TestJSONPathAsKubectl holds templates against cli-runtime's own printer,
// where that one does not turn integers into floats.
func TestJSONPathAsKubectl(t *testing.T) {
	r := oomReport()
	object := metav1Object{r}
	for _, template := range []string{"{.kind}", "{.metadata}", "{..code}", "{.findings[-1:].code}", "{.findings[*]['code','severity']}", "a{.kind}b", "{.findings[0].because[*].value}"} {
		printer, err := printers.NewJSONPathPrinter(template)
		if err != nil {
			t.Fatal(err)
		}
		want := written(t, func(w *bytes.Buffer) error { return printer.PrintObj(object, w) })
		if got := written(t, func(w *bytes.Buffer) error { return JSONPath(w, r, template) }); got != want {
			t.Errorf("%s: %q, want %q", template, got, want)
		}
	}
}

func FuzzJSONPath(f *testing.F) {
	for _, s := range []string{"{.kind}", "{range .findings[*]}{.code}{end}", "{.findings[?(@.severity==\"info\")].code}", "{..x}", "{.findings[0:2:1]}", "{'a'}", "{.a", "{end}", "{.findings[*]['a','b']}", "\x1b"} {
		f.Add(s)
	}
	r := oomReport()
	f.Fuzz(func(t *testing.T, template string) {
		var out bytes.Buffer
		if JSONPath(&out, r, template) == nil {
			noControls(t, out.String(), "\n\t")
		}
	})
}
