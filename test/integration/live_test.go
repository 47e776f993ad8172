package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"

	"github.com/noderes/kubectl-noderes/pkg/snapshot"
	"github.com/noderes/kubectl-noderes/test/integration/standin"
)

// A right is one verb on one resource of a group. Where name is not empty it is for that object alone.
type right struct{ verb, resource, group, name string }

func (r right) rule() rbacv1.PolicyRule {
	rule := rbacv1.PolicyRule{APIGroups: []string{r.group}, Resources: []string{r.resource}, Verbs: []string{r.verb}}
	if r.name != "" {
		rule.ResourceNames = []string{r.name}
	}
	return rule
}

// plain is the right as the documentation names it.
func (r right) plain() right { return right{verb: r.verb, resource: r.resource} }

// documented is what docs/rbac.md says that each right is for: the gaps of a bundle that is collected without it, none if there is no
// report then. Those of why a node stays have a table of their own.
func documented(t *testing.T) (pods, removal map[right][]string) {
	t.Helper()
	text, err := os.ReadFile("../../docs/rbac.md")
	if err != nil {
		t.Fatal(err)
	}
	first, second, ok := bytes.Cut(text, []byte("\nWhy a node stays, "))
	if !ok {
		t.Fatal("docs/rbac.md has one table")
	}
	return rows(first), rows(second)
}

// rows are those of a table of rights.
func rows(table []byte) map[right][]string {
	rights := map[right][]string{}
	for _, row := range regexp.MustCompile("(?m)^\\| `(\\w+) ([\\w/.]+)` \\|[^|\n]*\\|[^|\n]*\\| (.*) \\|$").FindAllSubmatch(table, -1) {
		var paths []string
		for _, path := range regexp.MustCompile("`([^` ]+\\.(?:json|yaml|txt))`").FindAllSubmatch(row[3], -1) {
			name := string(path[1])
			if !strings.Contains(name, "/") && len(paths) > 0 {
				name = filepath.Dir(paths[len(paths)-1]) + "/" + name
			}
			paths = append(paths, strings.ReplaceAll(name, "NODE", recording))
		}
		resource, _, _ := strings.Cut(string(row[2]), ".")
		rights[right{verb: string(row[1]), resource: resource}] = paths
	}
	return rights
}

// apiOnly is the role that the documentation ships.
func apiOnly(t *testing.T) []rbacv1.PolicyRule {
	t.Helper()
	data, err := os.ReadFile("../../docs/rbac/api-only.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var role rbacv1.ClusterRole
	if err := yaml.UnmarshalStrict(data, &role); err != nil {
		t.Fatal(err)
	}
	return role.Rules
}

// rightsOf takes rules apart.
func rightsOf(rules []rbacv1.PolicyRule) []right {
	var all []right
	for _, rule := range rules {
		for _, resource := range rule.Resources {
			for _, verb := range rule.Verbs {
				r := right{verb: verb, resource: resource, group: rule.APIGroups[0]}
				if len(rule.ResourceNames) > 0 {
					r.name = rule.ResourceNames[0]
				}
				all = append(all, r)
			}
		}
	}
	return all
}

// question is one that only a right makes answerable: of workloads those about them, else about a pod.
func question(r right) []string {
	switch r.resource {
	case "replicasets":
		if r.verb == "get" {
			return []string{"explain", "rs/stray", "-n", "default"}
		}
		return []string{"explain", "deploy/live", "-n", "default"}
	case "deployments", "statefulsets", "daemonsets", "jobs":
		return []string{"explain", r.resource + "/live", "-n", "default"}
	}
	return []string{"explain", "pod", "throttled", "-n", live.pods[0].Namespace}
}

// userName is that of the user of a test.
func userName(t *testing.T) string {
	return strings.ToLower(regexp.MustCompile(`[^A-Za-z0-9]+`).ReplaceAllString(t.Name(), "-"))
}

// userWith is the kubeconfig of a new user with just these rights.
func (c *cluster) userWith(t *testing.T, rights []right) string {
	t.Helper()
	user := userName(t)
	if len(rights) > 0 {
		var rules []rbacv1.PolicyRule
		for _, r := range rights {
			rules = append(rules, r.rule())
		}
		c.grant(t, user, rules...)
	}
	file, err := c.Kubeconfig(user)
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// missing are the paths that a bundle lacks although they were wanted, with reason and detail.
func missing(t *testing.T, bundle string) map[string]snapshot.Gap {
	t.Helper()
	s, err := snapshot.Open(bundle)
	if err != nil {
		t.Fatal(err)
	}
	gaps, _ := s.Gaps()
	wanted := map[string]snapshot.Gap{}
	for _, gap := range gaps {
		if gap.Reason != snapshot.ReasonRefused && gap.Reason != snapshot.ReasonNotFound {
			wanted[gap.Path] = gap
		}
	}
	return wanted
}

// collect writes the bundle of one recorded pod.
func (c *cluster) collect(t *testing.T, kubeconfig string, args ...string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "bundle.tar.gz")
	args = append([]string{"collect", "pod/throttled", "-n", c.pods[0].Namespace, "-o", file}, args...)
	if _, errs, err := c.noderes(t, kubeconfig, args...); err != nil {
		t.Fatalf("%v\n%s", err, errs)
	}
	return file
}

// TestRoleIsEnough: with the role of the documentation nothing is missing, and the live report is that of the bundle.
func TestRoleIsEnough(t *testing.T) {
	user := live.userWith(t, rightsOf(apiOnly(t)))
	bundle := filepath.Join(t.TempDir(), "bundle.tar.gz")
	subjects := []string{"collect", "-n", live.pods[0].Namespace, "-o", bundle, recording}
	explain := []string{"explain", "pod", "-n", live.pods[0].Namespace}
	for i := range live.pods {
		subjects = append(subjects, "pod/"+live.pods[i].Name)
		explain = append(explain, live.pods[i].Name)
	}
	if _, errs, err := live.noderes(t, user, subjects...); err != nil {
		t.Fatalf("%v\n%s", err, errs)
	}
	if gaps := missing(t, bundle); len(gaps) > 0 {
		t.Errorf("the role is not enough: %v", gaps)
	}
	for _, command := range [][]string{explain, {"explain", "node", recording}, {"placement", recording}} {
		for _, format := range []string{"text", "json"} {
			// The two were not taken in the same second.
			args := append(slices.Clone(command), "-o", format, "--at", live.recorded.Manifest().CapturedAt.Format(time.RFC3339))
			got, errs, err := live.noderes(t, user, args...)
			if err != nil || len(errs) > 0 {
				t.Fatalf("%v: %v\n%s", args, err, errs)
			}
			want, errs, err := live.noderes(t, "", append(args, "--from", bundle)...)
			if err != nil {
				t.Fatalf("%v: %v\n%s", args, err, errs)
			}
			if !bytes.Equal(got, want) {
				t.Errorf("%v: live\n%s\nfrom the bundle\n%s", args, got, want)
			}
		}
	}
	out, _, err := live.noderes(t, user, append(explain, "-o", "json")...)
	if err != nil {
		t.Fatal(err)
	}
	codes := map[string][]string{}
	for _, r := range mustJSON[struct{ Items []report }](t, out).Items {
		for _, f := range r.Findings {
			codes[r.Metadata.Name] = append(codes[r.Metadata.Name], f.Code)
		}
	}
	for pod, code := range map[string]string{
		"throttled": "cpu-quota-throttled", "oom": "oom-cause-unproven", "reject-smt": "smt-alignment-refused", "sigkill": "exit-137-not-oom", "oom-init": "crash-loop-backoff",
	} {
		if !slices.Contains(codes[pod], code) {
			t.Errorf("%s: %v without %s", pod, codes[pod], code)
		}
	}
}

// TestRightsAreNeeded: each right of the role is documented, and to leave it out costs what the documentation says and nothing else.
func TestRightsAreNeeded(t *testing.T) {
	live.withWorkloads(t)
	all := rightsOf(apiOnly(t))
	costs, removal := documented(t)
	if len(all) < 2 || len(costs)+len(removal) != len(all) {
		t.Fatalf("the role grants %v, documented are %v and %v", all, costs, removal)
	}
	for _, without := range all {
		paths, known := costs[without.plain()]
		if !known {
			continue // TestKarpenterRightsAreNeeded
		}
		t.Run(without.verb+"-"+without.resource, func(t *testing.T) {
			user := live.userWith(t, slices.DeleteFunc(slices.Clone(all), func(r right) bool { return r == without }))
			if len(paths) == 0 {
				out, errs, err := live.noderes(t, user, question(without)...)
				if err == nil || len(out) > 0 || !oneError(errs, without) {
					t.Errorf("%v\n%s%s", err, out, errs)
				}
				return
			}
			// What is listed of the whole cluster is not read for a pod.
			paths = slices.DeleteFunc(slices.Clone(paths), func(path string) bool { return path == "cluster/pods.json" || path == "cluster/karpenter-metrics.txt" })
			costsJust(t, without, paths, missing(t, live.collect(t, user)))
		})
	}
}

// costsJust: what is missing without a right is what is documented, and the gaps name the right.
func costsJust(t *testing.T, without right, paths []string, gaps map[string]snapshot.Gap) {
	t.Helper()
	for _, path := range paths {
		gap, ok := gaps[path]
		if !ok || gap.Reason != snapshot.ReasonForbidden || !strings.Contains(gap.Detail, without.verb+" "+without.resource) {
			t.Errorf("%s: %+v, of gaps %v", path, gap, gaps)
		}
		delete(gaps, path)
	}
	if len(gaps) > 0 {
		t.Errorf("not documented: %v", gaps)
	}
}

// oneError says whether a run ended in one line that names the right.
func oneError(stderr []byte, want right) bool {
	line, more, _ := bytes.Cut(stderr, []byte("\n"))
	return len(more) == 0 && bytes.HasPrefix(line, []byte("error: ")) && bytes.Contains(line, []byte(want.verb+" "+want.resource))
}

// TestNoRights: a user whom nothing is granted learns what is needed, in one line.
func TestNoRights(t *testing.T) {
	user := live.userWith(t, nil)
	for _, c := range []struct {
		need right
		args []string
	}{
		{right{verb: "get", resource: "pods"}, []string{"explain", "pod", "throttled", "-n", live.pods[0].Namespace}},
		{right{verb: "get", resource: "nodes"}, []string{"explain", "node", recording}},
		{right{verb: "get", resource: "pods"}, []string{"collect", "pod/throttled", "-n", live.pods[0].Namespace, "-o", filepath.Join(t.TempDir(), "x.tar.gz")}},
	} {
		out, errs, err := live.noderes(t, user, c.args...)
		if err == nil || len(out) > 0 || !oneError(errs, c.need) {
			t.Errorf("%v: %v\n%s%s", c.args, err, out, errs)
		}
	}
}

// within runs the plugin and fails if that takes longer than its --timeout and some more.
func (c *cluster) within(t *testing.T, timeout time.Duration, kubeconfig string, args ...string) (stdout, stderr []byte, err error) {
	t.Helper()
	begin := time.Now()
	stdout, stderr, err = c.noderes(t, kubeconfig, append(args, fmt.Sprintf("--timeout=%s", timeout))...)
	if took := time.Since(begin); took > timeout+3*time.Second {
		t.Errorf("%v took %s with --timeout=%s", args, took, timeout)
	}
	return stdout, stderr, err
}

// TestSlowKubelet: a kubelet that takes 30 s costs its part of the report.
func TestSlowKubelet(t *testing.T) {
	user := live.userWith(t, rightsOf(apiOnly(t)))
	live.kubelet.Delay(30 * time.Second)
	defer live.kubelet.Delay(0)
	begin := time.Now()
	gaps := missing(t, live.collect(t, user, "--timeout=3s"))
	if took := time.Since(begin); took > 6*time.Second {
		t.Errorf("took %s with --timeout=3s", took)
	}
	for _, file := range []string{"configz.json", "stats-summary.json", "metrics-cadvisor.txt"} {
		path := "nodes/" + recording + "/" + file
		if gap := gaps[path]; gap.Reason != snapshot.ReasonTimeout {
			t.Errorf("%s: %+v", path, gap)
		}
	}
	if out, errs, err := live.within(t, 3*time.Second, user, "explain", "pod", "throttled", "-n", live.pods[0].Namespace); err != nil || len(out) == 0 {
		t.Errorf("%v\n%s", err, errs)
	}
}

// TestKubeletRefuses: a kubelet that answers with an error costs its part of the report.
func TestKubeletRefuses(t *testing.T) {
	user := live.userWith(t, rightsOf(apiOnly(t)))
	live.kubelet.Fail(standin.Configz, 500)
	defer live.kubelet.Fail(standin.Configz, 0)
	path := "nodes/" + recording + "/configz.json"
	if gaps := missing(t, live.collect(t, user)); len(gaps) != 1 || gaps[path].Reason == "" {
		t.Errorf("%v", gaps)
	}
}

// TestAPIServerKilledMidRun: no hang, and a report with gaps or one clear error.
func TestAPIServerKilledMidRun(t *testing.T) {
	user := live.userWith(t, rightsOf(apiOnly(t)))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	live.kubelet.Delay(5 * time.Second) // so that the run is in its midst
	before := live.kubelet.Asked(standin.Configz)
	killed := make(chan struct{})
	go func() {
		defer close(killed)
		for live.kubelet.Asked(standin.Configz) == before && ctx.Err() == nil {
			time.Sleep(20 * time.Millisecond)
		}
		live.KillAPI()
	}()
	out, errs, err := live.within(t, 10*time.Second, user, "explain", "pod", "throttled", "-n", live.pods[0].Namespace)
	<-killed
	live.kubelet.Delay(0)
	if err := live.StartAPI(ctx); err != nil {
		t.Fatal(err)
	}
	if err == nil && !bytes.Contains(out, []byte("configz")) {
		t.Errorf("a report that does not say what is missing:\n%s", out)
	}
	if err != nil && (bytes.Count(errs, []byte("\n")) != 1 || !bytes.HasPrefix(errs, []byte("error: "))) {
		t.Errorf("%v\n%s", err, errs)
	}
}
