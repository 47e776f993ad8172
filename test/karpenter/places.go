package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/cloudprovider/fake"
	realdisruption "sigs.k8s.io/karpenter/pkg/controllers/disruption"
	"sigs.k8s.io/karpenter/pkg/controllers/provisioning"
	realscheduling "sigs.k8s.io/karpenter/pkg/controllers/provisioning/scheduling"
	"sigs.k8s.io/karpenter/pkg/scheduling"
	"sigs.k8s.io/karpenter/pkg/utils/pdb"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/noderes/kubectl-noderes/pkg/disruption"
	"github.com/noderes/kubectl-noderes/pkg/disruption/floor"
	"github.com/noderes/kubectl-noderes/pkg/disruption/karpenter"
	"github.com/noderes/kubectl-noderes/pkg/disruption/placement"
)

// simulated is what the real simulation of a node's removal came to.
type simulated struct {
	newNodes int
	failed   bool // a pod that is not pending found no place
	text     string
}

func (s simulated) String() string {
	return fmt.Sprintf("%d new nodes, failed %v %s", s.newNodes, s.failed, s.text)
}

// comparePlaces holds every answer on random clusters against the real simulation. What is proven must be so. A plan is only
// probable, and how often it does not come true is counted.
func comparePlaces(seed int64, n int, out io.Writer) (failed bool, err error) {
	r := newRandom(seed)
	counts := map[string]int{}
	for i := range n {
		p := r.places()
		answers, apart, err := p.planned()
		if err != nil {
			return true, err
		}
		results, err := p.simulate()
		if err != nil {
			return true, fmt.Errorf("cluster %d: %w", i, err)
		}
		for name, got := range results {
			a := answers[name]
			deleted := got.newNodes == 0 && !got.failed
			counts[fmt.Sprintf("%s, and Karpenter %s", a.Outcome, verdict(got))]++
			wrong := ""
			switch {
			case a.Outcome == placement.CannotDelete && deleted:
				wrong = "proven that it cannot be deleted, and it is"
			case apart[name] != "" && deleted:
				wrong = "proven that others keep pod " + apart[name] + " off every other node, and it is deleted"
			case len(a.Nowhere()) > 0 && !got.failed:
				wrong = "proven that a pod fits nowhere, and it does"
			case a.Outcome == placement.ProbablyRemovable && !deleted:
				wrong = "probably removable, and it is not"
			}
			if len(a.Nowhere()) > 0 {
				counts["fits nowhere"]++
			}
			if apart[name] != "" {
				counts["kept off by others"]++
			}
			if a.Outcome == placement.Unknown && deleted {
				for _, doubt := range a.Doubts {
					counts["doubted in vain because "+string(doubt.Why)]++
				}
			}
			if wrong == "" {
				continue
			}
			failed = true
			text, _ := json.Marshal(map[string]any{"pools": p.pools, "nodes": p.objects.Nodes, "claims": p.objects.NodeClaims, "pods": p.objects.Pods, "daemonSets": p.daemonSets})
			fmt.Fprintf(out, "cluster %d, node %s: %s: %s\n  %s\n", i, name, wrong, got, text)
		}
	}
	text, _ := json.MarshalIndent(counts, "", "  ")
	fmt.Fprintf(out, "%d clusters: %s\n", n, text)
	return failed, nil
}

func verdict(s simulated) string {
	switch {
	case s.failed:
		return "finds no place for all pods"
	case s.newNodes == 0:
		return "deletes it"
	}
	return "needs new nodes"
}

// planned are the answers of what is tested, by node, and a pod that others keep off all of the nodes that would take it.
func (p *places) planned() (answers map[string]*placement.Answer, apart map[string]string, err error) {
	rules, _, err := karpenter.RulesFor("1.14.1")
	if err != nil {
		return nil, nil, err
	}
	c := &disruption.Cluster{Rules: rules, Pools: map[string]*karpenter.NodePool{}}
	for _, raw := range p.pools {
		pool, err := karpenter.DecodeNodePool(raw)
		if err != nil {
			return nil, nil, err
		}
		c.Pools[pool.Name] = &pool
	}
	if c.PDBs, err = disruption.NewPDBs(p.objects.PDBs); err != nil {
		return nil, nil, err
	}
	c.Nodes, _ = disruption.Join(p.objects.Nodes, p.objects.NodeClaims, p.objects.Pods)
	known := placement.Known{Now: p.now, DaemonSets: &p.daemonSets, Volumes: &p.volumes, Claims: &p.claims}
	for i := range p.objects.Pods {
		if p.objects.Pods[i].Spec.NodeName == "" {
			known.Pending = append(known.Pending, &p.objects.Pods[i])
		}
	}
	planner, topology := placement.New(c, known), floor.NewTopology(c.Nodes, known.Pending)
	answers, apart = map[string]*placement.Answer{}, map[string]string{}
	for _, n := range c.Nodes {
		answers[n.Name()] = planner.Of(n)
		for _, pod := range answers[n.Name()].Pods {
			kept, bars, all := topology.Of(pod.Pod, n), 0, true
			planner.Places(pod.Pod, n, func(target *disruption.Node) bool {
				bar := kept.Bar(target)
				all = all && bar != nil && !bar.Assumed
				bars++
				return all
			})
			if all && bars > 0 {
				apart[n.Name()] = pod.Pod.Name
			}
		}
	}
	return answers, apart, nil
}

// simulate asks the real code what would become of each node that is a candidate if it went.
func (p *places) simulate() (map[string]simulated, error) {
	pools := map[string]*v1.NodePool{}
	for _, raw := range p.pools {
		pool, err := realPool(raw)
		if err != nil {
			return nil, err
		}
		pools[pool.Name] = pool
	}
	more := []client.Object{&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "default"}}}
	for i := range p.daemonSets {
		more = append(more, p.daemonSets[i].DeepCopy())
	}
	for i := range p.volumes {
		more = append(more, p.volumes[i].DeepCopy())
	}
	for i := range p.claims {
		more = append(more, p.claims[i].DeepCopy())
	}
	objects := p.objects
	objects.Pods = nil
	for i := range p.objects.Pods {
		objects.Pods = append(objects.Pods, *p.objects.Pods[i].DeepCopy())
	}
	c, err := startCluster(&p.scenario, objects, p.now, pools, placesTypes(), more...)
	if err != nil {
		return nil, err
	}
	for i := range objects.Pods {
		if err := c.state.UpdatePod(c.ctx, &objects.Pods[i]); err != nil {
			return nil, err
		}
	}
	for i := range p.daemonSets {
		if err := c.state.UpdateDaemonSet(c.ctx, &p.daemonSets[i]); err != nil {
			return nil, err
		}
	}
	limits, err := pdb.NewLimits(c.ctx, c.kube)
	if err != nil {
		return nil, err
	}
	byName, types, err := realdisruption.BuildNodePoolMap(c.ctx, c.kube, c.provider)
	if err != nil {
		return nil, err
	}
	out := map[string]simulated{}
	for _, n := range c.state.DeepCopyNodes() {
		candidate, err := realdisruption.NewCandidate(c.ctx, c.kube, silent{}, c.clock, n, limits, byName, types, c.queue, realdisruption.GracefulDisruptionClass)
		if err != nil || candidate.IsEmpty() { // an empty node goes without a simulation
			continue
		}
		results, err := realdisruption.SimulateScheduling(c.ctx, c.kube, c.state, c.prov, c.clock, silent{}, []realscheduling.Options{realscheduling.IsConsolidationSimulation}, candidate)
		if errors.Is(err, provisioning.ErrNodePoolsNotFound) {
			out[n.Name()] = simulated{0, true, err.Error()}
			continue
		}
		if err != nil {
			return nil, err
		}
		out[n.Name()] = simulated{len(results.NewNodeClaims), !results.AllNonPendingPodsScheduled(), results.NonPendingPodSchedulingErrors()}
	}
	return out, nil
}

func placesTypes() []*cloudprovider.InstanceType {
	var out []*cloudprovider.InstanceType
	for name, size := range map[string][2]string{"small": {"2", "4Gi"}, "large": {"4", "8Gi"}} {
		var offerings []cloudprovider.Offering
		for _, zone := range []string{"zone-a", "zone-b"} {
			offerings = append(offerings, cloudprovider.Offering{Available: true, Price: 1,
				Requirements: scheduling.NewLabelRequirements(map[string]string{v1.CapacityTypeLabelKey: "on-demand", corev1.LabelTopologyZone: zone})})
		}
		out = append(out, fake.NewInstanceType(name, fake.WithOfferings(offerings...), fake.WithResources(corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse(size[0]), corev1.ResourceMemory: resource.MustParse(size[1]), corev1.ResourcePods: resource.MustParse("110")})))
	}
	return out
}
