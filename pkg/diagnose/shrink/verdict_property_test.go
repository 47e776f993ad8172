package shrink

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/noderes/kubectl-noderes/pkg/diagnose/gap"
	"github.com/noderes/kubectl-noderes/pkg/disruption/karpenter"
	"github.com/noderes/kubectl-noderes/pkg/report"
)

// keeping are codes that say what keeps a node, or that it is going.
var keeping = []report.Code{report.AlreadyDisrupting, report.StaticNodePool, report.ConsolidationNever, report.PolicyWhenEmpty, report.NodeClaimNotInitialized, report.NodeNominated,
	report.NodePoolNotFound, report.MissingPriceLabels, report.NodeDoNotDisrupt, report.PodDoNotDisrupt, report.PDBBlocks, report.SeveralPDBs, report.ConsolidateAfterRunning,
	report.DestinationConsolidateAfter, report.BudgetZeroNow, report.BudgetUsedUp, report.BudgetZeroAlways, report.BudgetInvalid, report.BalancedScoreBelow, report.NoCheaperReplacement,
	report.SpotToSpotBarred, report.PodsFitNowhere, report.TopologySpreadFloor, report.AntiAffinityFloor, report.NeedsSeveralReplacements, report.KarpenterUnsynced}

// Of every node of Karpenter's something is said: what keeps it, or one verdict
// and not both. Where anything that decides is not known, it is not the verdict
// that the node can go.
func TestEveryNodeHasItsWord(t *testing.T) {
	const seed, worlds = 7, 300
	r := rand.New(rand.NewPCG(seed, 0))
	counts := map[report.Code]int{}
	for range worlds {
		w, blind := randomWorld(r)
		version := []string{"", "1.0.8", "1.6.4", "1.13.0", "1.14.3", "1.15.0"}[r.IntN(6)]
		c := Read(w.open(t), now.Add(time.Duration(r.IntN(3)-1)*time.Minute), &gap.Log{}, Options{KarpenterVersion: version})
		for _, n := range c.karpenter.Nodes {
			if !n.Managed() || n.Node == nil {
				continue
			}
			var kept, verdicts []report.Code
			for _, f := range c.Node(n.Name()) {
				if slices.Contains(keeping, f.Code) {
					kept = append(kept, f.Code)
				}
				if slices.Contains(verdictCodes, f.Code) {
					verdicts = append(verdicts, f.Code)
					counts[f.Code]++
				}
			}
			k := c.nodeOf(n)
			budgetsOfOther := k.pool != nil && slices.ContainsFunc(kept, func(code report.Code) bool {
				return code == report.BudgetZeroNow || code == report.BudgetZeroAlways || code == report.BudgetInvalid || code == report.BudgetUsedUp
			})
			switch {
			case len(verdicts) > 1:
				t.Errorf("seed %d: node %s: several verdicts %v", seed, n.Name(), verdicts)
			case len(verdicts)+len(kept) == 0:
				t.Errorf("seed %d: node %s: not a word: %v; blockers %+v, timer %v, left %+v, empty %v, version %q, budgets %v", seed, n.Name(), spelled(c.Node(n.Name())), k.blockers, k.timer().State, k.left(), k.empty(), version, k.pool.closed(k.wayOut()))
			case len(verdicts) == 1 && len(kept) > 0 && !budgetsOfOther && !k.empty():
				t.Errorf("seed %d: node %s: %v beside %v", seed, n.Name(), verdicts, kept)
			case blind && len(verdicts) == 1 && verdicts[0] != report.ShrinkBlockerUnknown:
				t.Errorf("seed %d: node %s: %v without all of the objects", seed, n.Name(), verdicts)
			}
			if t.Failed() {
				return
			}
		}
		for name := range c.karpenter.Pools {
			c.NodePool(name)
		}
	}
	t.Logf("seed %d: %v", seed, counts)
	if counts[report.ProbablyRemovable] == 0 || counts[report.ShrinkBlockerUnknown] == 0 {
		t.Errorf("seed %d shows too little: %v", seed, counts)
	}
}

// randomWorld has some pools, nodes and pods in odd states. blind: a list that
// decides is missing.
func randomWorld(r *rand.Rand) (w *world, blind bool) {
	one := func(in int) bool { return r.IntN(in) == 0 }
	w = newWorld()
	for _, name := range []string{"a", "b"} {
		w.pool(name, func(p *karpenter.NodePool) {
			d := p.Spec.Disruption
			d.ConsolidationPolicy = []karpenter.ConsolidationPolicy{karpenter.WhenEmptyOrUnderutilized, karpenter.WhenEmptyOrUnderutilized, karpenter.WhenEmpty, karpenter.Balanced, "", "WhenIdle"}[r.IntN(6)]
			if one(2) {
				consolidateAfter(2 * time.Minute)(p)
			}
			if one(8) {
				d.ConsolidateAfter = karpenter.NillableDuration{Text: "Never"}
			}
			if one(10) {
				p.Spec.Replicas = ptr(int64(r.IntN(3)))
			}
			if one(8) {
				p.Spec.Disruption = nil
			}
			for range r.IntN(3) {
				b := karpenter.Budget{Nodes: []string{"0", "1", "50%", "0%", "100%", "x", "4294967296"}[r.IntN(7)]}
				if one(3) {
					b.Schedule, b.Duration = ptr([]string{"0 8 * * *", "0 9 * * *", "60 * * * *", "0 0 30 2 *"}[r.IntN(4)]), &metav1.Duration{Duration: time.Duration(r.IntN(4)) * time.Hour}
				}
				if one(3) {
					b.Reasons = [][]karpenter.Reason{{}, {karpenter.Empty}, {karpenter.Underutilized}, {karpenter.Drifted}}[r.IntN(4)]
				}
				d.Budgets = append(d.Budgets, b)
			}
		})
	}
	for i := range 2 + r.IntN(4) {
		name := fmt.Sprintf("n%d", i)
		w.node([]string{"a", "a", "b", "gone"}[r.IntN(4)], name, quietFor(time.Duration(10+r.IntN(400))*time.Second), func(n *corev1.Node, c *karpenter.NodeClaim) {
			if one(4) {
				n.Labels[ownPriceLabel] = fmt.Sprint(r.IntN(3))
			}
			if one(10) {
				delete(n.Labels, []string{corev1.LabelTopologyZone, karpenter.CapacityTypeLabel, corev1.LabelInstanceTypeStable, karpenter.NodePoolLabel, karpenter.InitializedLabel, karpenter.RegisteredLabel}[r.IntN(6)])
			}
			if one(10) {
				n.Annotations = map[string]string{karpenter.DoNotDisruptAnnotation: "true"}
			}
			if one(10) {
				n.Status.Conditions[0].Status = corev1.ConditionUnknown
			}
			if one(10) {
				c.Status.Conditions = slices.Delete(c.Status.Conditions, r.IntN(5), 5)
			}
			if one(12) {
				c.DeletionTimestamp = ptr(metav1.NewTime(now.Add(-time.Minute)))
			}
			if one(12) {
				c.Status.ProviderID = ""
			}
			if one(6) {
				c.Status.Conditions = append(c.Status.Conditions, metav1.Condition{Type: karpenter.ConditionDrifted, Status: metav1.ConditionTrue, Reason: "AMIDrift"})
			}
		})
		for j := range r.IntN(4) {
			w.pod(name, fmt.Sprintf("p%d-%d", i, j), cpus([]string{"100m", "1", "3", "9E"}[r.IntN(4)]), func(p *corev1.Pod) {
				p.Labels["n"] = name
				switch r.IntN(12) {
				case 0:
					p.Annotations = map[string]string{karpenter.DoNotDisruptAnnotation: []string{"true", "2h", "no"}[r.IntN(3)]}
				case 1:
					p.Annotations = map[string]string{corev1.PodDeletionCost: "-2147483648"}
				case 2:
					p.OwnerReferences[0].Kind = "DaemonSet"
				case 3:
					p.Spec.NodeSelector = map[string]string{"no": "where"}
				case 4:
					p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: corev1.LabelHostname, WhenUnsatisfiable: corev1.DoNotSchedule}}
				}
			})
		}
		if one(8) {
			w.PDBs = append(w.PDBs, policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}, Spec: policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"n": name}}},
				Status: policyv1.PodDisruptionBudgetStatus{DisruptionsAllowed: int32(r.IntN(2))}})
		}
		if one(4) {
			w.event("Node", name, []string{unconsolidatable, disruptionBlocked, "ConsolidationRejected", "ConsolidationCandidate"}[r.IntN(4)],
				[]string{noCheaper, spotDisabled, "Can't remove without creating 2 candidates", "Node is nominated for a pending pod", "Not all pods would schedule, shop/p0-0 => no"}[r.IntN(5)], time.Duration(r.IntN(600))*time.Second)
		}
	}
	switch r.IntN(12) {
	case 0:
		w.Pods, blind = nil, true
	case 1:
		w.PDBs, blind = nil, true
	case 2:
		w.Pools, blind = nil, true
	case 3:
		w.Events = nil
	case 4:
		w.files["gaps.json"] = `[{"path":"cluster/pods.json","reason":"Refused"}]`
		blind = true
	}
	return w, blind
}
