package collect

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/noderes/kubectl-noderes/pkg/collect/nodepod"
)

// granted is what a ClusterRole of the documentation grants, "verb resource".
func granted(t *testing.T, file string) map[string]bool {
	t.Helper()
	data, err := os.ReadFile("../../docs/rbac/" + file)
	if err != nil {
		t.Fatal(err)
	}
	var role struct {
		Rules []struct {
			APIGroups, Resources, Verbs []string
		}
	}
	if err := yaml.Unmarshal(data, &role); err != nil {
		t.Fatal(err)
	}
	rights := map[string]bool{}
	for _, rule := range role.Rules {
		for _, resource := range rule.Resources {
			for _, verb := range rule.Verbs {
				rights[verb+" "+resource] = true
			}
		}
	}
	return rights
}

// The ClusterRole grants what a run uses, and nothing else.
func TestClusterRole(t *testing.T) {
	granted := granted(t, "api-only.yaml")
	s, k := workloadServer(t), karpenterServer(t)
	s.collect(t, Request{Pods: web.Pods, Nodes: []string{"n1"}, Select: selection("deploy/web", "sts/db", "ds/agent", "job/import", "rs/web-1")})
	k.collect(t, Request{Nodes: []string{"n1"}, Removal: WholeCluster})
	maps.Copy(s.used, k.used)
	delete(s.used, "")
	if !maps.Equal(granted, s.used) {
		t.Errorf("granted %v, used %v", slices.Sorted(maps.Keys(granted)), slices.Sorted(maps.Keys(s.used)))
	}
}

// Those of node pods and commands grant what is asked for before, and what the
// documentation says.
func TestNodeClusterRoles(t *testing.T) {
	text, err := os.ReadFile("../../docs/rbac.md")
	if err != nil {
		t.Fatal(err)
	}
	for file, rights := range map[string][]nodepod.Right{"node.yaml": nodepod.Rights, "exec.yaml": nodepod.ExecRights} {
		used := map[string]bool{}
		for _, right := range rights {
			used[right.String()] = true
			if !strings.Contains(string(text), "`"+right.String()+"`") {
				t.Errorf("docs/rbac.md does not have %s", right)
			}
		}
		if granted := granted(t, file); !maps.Equal(granted, used) {
			t.Errorf("%s grants %v, used are %v", file, slices.Sorted(maps.Keys(granted)), slices.Sorted(maps.Keys(used)))
		}
	}
}
