package collect

import (
	"maps"
	"os"
	"slices"
	"testing"

	"sigs.k8s.io/yaml"
)

// The ClusterRole grants what a run uses, and nothing else.
func TestClusterRole(t *testing.T) {
	data, err := os.ReadFile("../../docs/rbac/api-only.yaml")
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
	granted := map[string]bool{}
	for _, rule := range role.Rules {
		for _, resource := range rule.Resources {
			for _, verb := range rule.Verbs {
				granted[verb+" "+resource] = true
			}
		}
	}
	s, k := workloadServer(t), karpenterServer(t)
	s.collect(t, Request{Pods: web.Pods, Nodes: []string{"n1"}, Select: selection("deploy/web", "sts/db", "ds/agent", "job/import", "rs/web-1")})
	k.collect(t, Request{Nodes: []string{"n1"}, Removal: WholeCluster})
	maps.Copy(s.used, k.used)
	delete(s.used, "")
	if !maps.Equal(granted, s.used) {
		t.Errorf("granted %v, used %v", slices.Sorted(maps.Keys(granted)), slices.Sorted(maps.Keys(s.used)))
	}
}
