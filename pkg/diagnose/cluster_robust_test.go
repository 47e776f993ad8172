package diagnose

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/noderes/kubectl-noderes/pkg/report"
	"github.com/noderes/kubectl-noderes/pkg/snapshot"
)

// recordedClusters are bundles of clusters with Karpenter.
var recordedClusters = []string{"karpenter-16-healthy/bundle-candidates", "karpenter-20-no-room-or-two/bundle", "karpenter-04-do-not-disrupt/bundle", "karpenter-12-expire-ignores-budget/bundle",
	"karpenter-22-late-consolidatable/bundle-waiting", "71-kst-three-windows/bundle", "56-percent-ceil-notready/bundle-c", "63-two-pdbs-on-one-pod/bundle", "69-cluster-autoscaler-system-and-local-storage/bundle"}

// clusterReports answers every question about the nodes and pools of a cluster.
// The names are those of the whole bundle: what has lost a list is asked the same.
func clusterReports(t testing.TB, files map[string]string, nodes, pools []string) map[string]report.Report {
	t.Helper()
	fsys := fstest.MapFS{}
	for name, text := range files {
		fsys[name] = &fstest.MapFile{Data: []byte(text)}
	}
	s, err := snapshot.FromFS(fsys)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]report.Report{}
	for _, name := range nodes {
		if r, err := Node(s, name, Options{}); err == nil {
			out["node "+name] = r
		}
	}
	for _, name := range pools {
		if r, err := NodePool(s, name, Options{}); err == nil {
			out["pool "+name] = r
		}
		if r, err := Budgets(s, name, Options{}); err == nil {
			out["budgets "+name] = r
		}
	}
	return out
}

// named are the names in a list of the bundle.
func named(t testing.TB, files map[string]string, resource string) []string {
	t.Helper()
	list, ok := files["cluster/"+resource+".json"]
	if !ok {
		return nil
	}
	objects, err := itemsOf[struct{ Metadata struct{ Name string } }](list)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, o := range objects {
		names = append(names, o.Metadata.Name)
	}
	return names
}

func encoded(t testing.TB, reports map[string]report.Report) string {
	t.Helper()
	var out strings.Builder
	for _, question := range slices.Sorted(maps.Keys(reports)) {
		data, err := json.MarshalIndent(reports[question], "", " ")
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&out, "%s\n%s\n", question, data)
	}
	return out.String()
}

// The same bundle gives the same bytes, whatever order its lists are in.
func TestClusterReportsAreDeterministic(t *testing.T) {
	for _, archive := range recordedClusters {
		t.Run(archive, func(t *testing.T) {
			t.Parallel()
			files, err := archiveFiles(archive)
			if err != nil {
				t.Fatal(err)
			}
			nodes, pools := named(t, files, "nodes"), named(t, files, "nodepools.karpenter.sh")
			nodes = nodes[:min(len(nodes), 3)]
			first := encoded(t, clusterReports(t, files, nodes, pools))
			if len(first) < 500 {
				t.Fatalf("reports of %d bytes", len(first))
			}
			for seed := range uint64(3) {
				again := maps.Clone(files)
				if seed > 0 {
					for name, text := range files {
						again[name] = shuffled(t, name, text, rand.New(rand.NewPCG(seed, 1)))
					}
				}
				if got := encoded(t, clusterReports(t, again, nodes, pools)); got != first {
					t.Errorf("order %d: %s", seed, firstDifference(first, got))
				}
			}
		})
	}
}

func shuffled(t testing.TB, name, text string, r *rand.Rand) string {
	if !strings.HasPrefix(name, "cluster/") || !strings.HasSuffix(name, ".json") {
		return text
	}
	var list map[string]json.RawMessage
	var items []json.RawMessage
	if json.Unmarshal([]byte(text), &list) != nil || json.Unmarshal(list["items"], &items) != nil {
		return text
	}
	r.Shuffle(len(items), func(i, j int) { items[i], items[j] = items[j], items[i] })
	var err error
	if list["items"], err = json.Marshal(items); err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(list)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func firstDifference(a, b string) string {
	x, y := strings.Split(a, "\n"), strings.Split(b, "\n")
	for i := range min(len(x), len(y)) {
		if x[i] != y[i] {
			return fmt.Sprintf("line %d: %s\nnot %s", i, y[i], x[i])
		}
	}
	return fmt.Sprintf("%d lines, not %d", len(y), len(x))
}

var number = regexp.MustCompile(`(: ?)-?[0-9]+([,\n}])`)

// spoilt are ways in which a list of a bundle may be no list, or one that
// somebody made to do harm. ok is false where the text is not changed.
var spoilt = map[string]func(text string) (string, bool){
	"lost":      nil,
	"empty":     func(string) (string, bool) { return "", true },
	"truncated": func(text string) (string, bool) { return text[:len(text)*2/3], true },
	"another kind": func(string) (string, bool) {
		return `{"apiVersion":"v1","kind":"Status","status":"Failure","message":"no"}`, true
	},
	"a list of numbers": func(string) (string, bool) { return `{"items":[1,"a",{"metadata":7,"spec":[],"status":""}]}`, true },
	"null items": func(text string) (string, bool) {
		changed := strings.Replace(text, `"items":[`, `"items":[null,{},{"metadata":null,"spec":null,"status":null},`, 1)
		if changed == text {
			changed = strings.Replace(text, `"items": [`, `"items": [null,{},{"metadata":null,"spec":null,"status":null},`, 1)
		}
		return strings.Replace(changed, ",]", "]", 1), changed != text
	},
	"deep": func(string) (string, bool) {
		return `{"items":[{"metadata":` + strings.Repeat(`{"a":[`, 20_000), true
	},
	"huge": func(text string) (string, bool) {
		changed := number.ReplaceAllString(text, "${1}9223372036854775807$2")
		return changed, changed != text
	},
	"negative": func(text string) (string, bool) {
		changed := number.ReplaceAllString(text, "${1}-9223372036854775808$2")
		return changed, changed != text
	},
	"beyond": func(text string) (string, bool) {
		changed := number.ReplaceAllString(text, "${1}1e400$2")
		return changed, changed != text
	},
	"old": func(text string) (string, bool) {
		changed := strings.ReplaceAll(strings.ReplaceAll(text, `"2026-`, `"0001-`), `"720h"`, `"2562047h"`)
		return changed, changed != text
	},
	"to come": func(text string) (string, bool) {
		changed := strings.ReplaceAll(text, `"2026-`, `"9999-`)
		return changed, changed != text
	},
}

// Findings that speak of what is not known.
var ofTheUnknown = []report.Code{report.EvidenceMissing, report.ShrinkBlockerUnknown}

// A file of a cluster is lost or holds something else: there is a report or an
// error, what could not be read is a gap, and with less known nothing new is
// proven.
func TestDamagedCluster(t *testing.T) {
	for b, archive := range []string{"karpenter-20-no-room-or-two/bundle", "karpenter-04-do-not-disrupt/bundle", "71-kst-three-windows/bundle", "63-two-pdbs-on-one-pod/bundle"} {
		t.Run(archive, func(t *testing.T) {
			t.Parallel()
			files, err := archiveFiles(archive)
			if err != nil {
				t.Fatal(err)
			}
			nodes, pools := named(t, files, "nodes"), named(t, files, "nodepools.karpenter.sh")
			nodes = nodes[:min(len(nodes), 2)]
			whole := clusterReports(t, files, nodes, pools)
			proven := map[string]bool{}
			for _, r := range whole {
				for _, f := range r.Findings {
					proven[spelled(f)] = true
				}
			}
			for i, file := range slices.Sorted(maps.Keys(files)) {
				if !strings.HasPrefix(file, "cluster/") {
					continue
				}
				for k, kind := range slices.Sorted(maps.Keys(spoilt)) {
					if !*exhaustive && (i+k+b)%3 != 0 {
						continue
					}
					damaged := maps.Clone(files)
					delete(damaged, file)
					if change := spoilt[kind]; change != nil {
						text, ok := change(files[file])
						if !ok {
							continue
						}
						damaged[file] = text
					}
					name := kind + " " + file
					func() {
						defer func() {
							if p := recover(); p != nil {
								t.Errorf("%s: panic: %v\n%s", name, p, debug.Stack())
							}
						}()
						judgeDamage(t, name, kind, file, clusterReports(t, damaged, nodes, pools), proven)
					}()
				}
			}
		})
	}
}

func judgeDamage(t *testing.T, name, kind, file string, reports map[string]report.Report, proven map[string]bool) {
	t.Helper()
	// Other values are other data, and prove what they say.
	unreadable := slices.Contains([]string{"lost", "empty", "truncated", "deep", "another kind", "a list of numbers"}, kind)
	gaps := false
	for question, r := range reports {
		for _, w := range malformed(r) {
			t.Errorf("%s, %s: %s", name, question, w)
		}
		if len(r.Findings) == 0 {
			t.Errorf("%s, %s: no finding", name, question)
		}
		if data, _ := json.Marshal(r); len(data) > 200_000 {
			t.Errorf("%s, %s: a report of %d bytes", name, question, len(data))
		}
		gaps = gaps || slices.ContainsFunc(r.Gaps, func(g report.Gap) bool { return strings.Contains(g.Wanted, file) })
		if !unreadable {
			continue
		}
		for _, f := range r.Findings {
			if f.Confidence == report.Proven && !slices.Contains(ofTheUnknown, f.Code) && !proven[spelled(f)] {
				t.Errorf("%s, and less is known: %s now has %s: %s", name, question, spelled(f), f.Summary)
			}
		}
	}
	// Without its pools a bundle has nothing to ask about, which is an error.
	needed := []string{"cluster/nodes.json", "cluster/pods.json", "cluster/events.json", "cluster/poddisruptionbudgets.json", "cluster/nodeclaims.karpenter.sh.json"}
	if unreadable && slices.Contains(needed, file) && !gaps {
		t.Errorf("%s: no gap in %d reports", name, len(reports))
	}
}
