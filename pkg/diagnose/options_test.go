package diagnose

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/noderes/kubectl-noderes/pkg/report"
)

var recordings = []string{"smt2-k612/bundle", "numa4-k61/bundle"}

// eachRecordedPod reports on every pod of the recordings.
func eachRecordedPod(t *testing.T, f func(t *testing.T, explain func(Options) report.Report, containers []string)) {
	t.Helper()
	for _, name := range recordings {
		s := openTestBundle(t, "testdata/cases/"+name+".tar.gz")
		pods, err := s.Pods()
		if err != nil {
			t.Fatal(err)
		}
		for i := range pods {
			p := &pods[i]
			t.Run(p.Namespace+"/"+p.Name, func(t *testing.T) {
				f(t, func(o Options) report.Report {
					r, err := Pod(s, p.Namespace, p.Name, o)
					if err != nil {
						t.Fatal(err)
					}
					return r
				}, containerNames(p))
			})
		}
	}
}

// Another moment moves what depends on the clock and no data.
func TestOptionsAt(t *testing.T) {
	eachRecordedPod(t, func(t *testing.T, explain func(Options) report.Report, _ []string) {
		now := explain(Options{})
		for _, shift := range []time.Duration{-24 * time.Hour, time.Minute, 24 * time.Hour} {
			at := now.ObservedAt.Add(shift)
			later := explain(Options{At: at})
			if !later.ObservedAt.Time.Equal(at) {
				t.Errorf("observed at %v, asked for %v", later.ObservedAt, at)
			}
			later.ObservedAt = now.ObservedAt
			if diff := cmp.Diff(withoutBackOff(now), withoutBackOff(later)); diff != "" {
				t.Errorf("%v (-now +then)\n%s", shift, diff)
			}
		}
	})
	b := podLimitPod(t) // the next start of b is due at 07:08:57
	for _, c := range []struct{ at, want string }{
		{"07:08:56", "is due at 2026-11-30T07:08:57Z"},
		{"07:08:57", "was due at 2026-11-30T07:08:57Z"},
		{"07:08:58", "was due at 2026-11-30T07:08:57Z, before the moment observed (2026-11-30T07:08:58Z)"},
	} {
		at, err := time.Parse(time.DateTime, "2026-11-30 "+c.at)
		if err != nil {
			t.Fatal(err)
		}
		if got := summaryOf(b.explain(Options{At: at}), report.CrashLoopBackOff); !strings.Contains(got, c.want) {
			t.Errorf("at %s: %q, want %q", c.at, got, c.want)
		}
	}
}

// withoutBackOff is a report as text, but for the text of crash-loop-backoff.
func withoutBackOff(r report.Report) string {
	r.Findings = slices.Clone(r.Findings)
	for i := range r.Findings {
		if r.Findings[i].Code == report.CrashLoopBackOff {
			r.Findings[i].Summary = ""
		}
	}
	data, _ := json.MarshalIndent(r, "", " ")
	return string(data)
}

func summaryOf(r report.Report, code report.Code) string {
	for _, f := range r.Findings {
		if f.Code == code {
			return f.Summary
		}
	}
	return ""
}

// A container's report has what is said of it and of its pod, in the same
// order, and never nothing.
func TestOptionsContainer(t *testing.T) {
	eachRecordedPod(t, func(t *testing.T, explain func(Options) report.Report, containers []string) {
		whole := explain(Options{})
		for _, name := range containers {
			got := explain(Options{Container: name})
			var want []report.Finding
			for _, f := range whole.Findings {
				if f.Subject.Container == name || f.Subject.Container == "" {
					want = append(want, f)
				}
			}
			if diff := cmp.Diff(want, got.Findings); diff != "" {
				t.Errorf("%s (-want +got)\n%s", name, diff)
			}
			if diff := cmp.Diff(whole.Resources, got.Resources); diff != "" {
				t.Errorf("%s: the facts change (-whole +container)\n%s", name, diff)
			}
		}
	})
}

// A container of which nothing can be said gets that said.
func TestOptionsContainerUnknown(t *testing.T) {
	b := podLimitPod(t)
	onlyAPI(b)
	b.status("a").LastTerminationState = corev1.ContainerState{}
	r := b.explain(Options{Container: "a"})
	if len(r.Findings) == 0 {
		t.Fatal("no finding")
	}
	if got := spelled(r.Findings[0]); got != "evidence-missing@a proven" && got != "evidence-missing@ proven" {
		t.Errorf("%s", got)
	}
}

func TestNames(t *testing.T) {
	b := oomPod(t)
	other := *b.pod().DeepCopy()
	other.Namespace = "bank"
	third := *b.pod().DeepCopy()
	third.Name = "third"
	b.pods = append(b.pods, other, third)
	s := b.open()

	var ambiguous *AmbiguousError
	if _, err := Pod(s, "", "oom", Options{}); !errors.As(err, &ambiguous) || !slices.Equal(ambiguous.Namespaces, []string{"shop", "bank"}) {
		t.Errorf("two pods of one name: %v", err)
	}
	for namespace, name := range map[string]string{"shop": "oom", "bank": "oom", "": "third"} {
		r, err := Pod(s, namespace, name, Options{})
		if err != nil || r.Metadata.Name != name || namespace != "" && r.Metadata.Namespace != namespace {
			t.Errorf("%s/%s: %v, %+v", namespace, name, err, r.Metadata)
		}
	}
	for _, c := range []struct{ namespace, name, container, text string }{
		{"shop", "gone", "", `pods "gone" not found in the bundle; it has shop/oom, shop/third`},
		{"", "gone", "", `pods "gone" not found in the bundle; it has shop/oom, bank/oom, shop/third`},
		{"bank", "third", "", `pods "third" not found in namespace "bank" of the bundle; it has namespace shop`},
		{"shop", "oom", "gone", `containers "gone" not found in pod shop/oom; it has app`},
	} {
		var missing *NotFoundError
		if _, err := Pod(s, c.namespace, c.name, Options{Container: c.container}); !errors.As(err, &missing) || err.Error() != c.text {
			t.Errorf("%s/%s %s: %v, want %s", c.namespace, c.name, c.container, err, c.text)
		}
	}
	var missing *NotFoundError
	if _, err := Node(s, "n9", Options{}); !errors.As(err, &missing) || err.Error() != `nodes "n9" not found in the bundle; it has smt2` {
		t.Errorf("no such node: %v", err)
	}

	b.pods = append(b.pods, other)
	if _, err := Pod(b.open(), "bank", "oom", Options{}); err == nil || errors.As(err, &ambiguous) {
		t.Errorf("one pod twice: %v", err)
	}
	b.pods = []corev1.Pod{}
	if _, err := Pod(b.open(), "shop", "oom", Options{}); err == nil || !strings.HasSuffix(err.Error(), "not found in the bundle, which has none") {
		t.Errorf("no pods: %v", err)
	}
	b.pods = nil
	if _, err := Pod(b.open(), "shop", "oom", Options{}); err == nil || errors.As(err, &missing) {
		t.Errorf("no list of pods: %v", err)
	}
}

// The same input gives the same bytes.
func TestDeterministic(t *testing.T) {
	for _, on := range []func(testing.TB) *bundle{oomPod, podLimitPod, sidecarPod, throttledPod} {
		b := on(t)
		first, _ := json.Marshal(b.explain(Options{}))
		node, _ := json.Marshal(b.explainNode(Options{}))
		for range 3 {
			if again, _ := json.Marshal(b.explain(Options{})); string(again) != string(first) {
				t.Fatalf("%s\nthen\n%s", first, again)
			}
			if again, _ := json.Marshal(b.explainNode(Options{})); string(again) != string(node) {
				t.Fatalf("%s\nthen\n%s", node, again)
			}
		}
	}
}
