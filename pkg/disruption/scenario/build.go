package scenario

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/noderes/kubectl-noderes/pkg/disruption"
	"github.com/noderes/kubectl-noderes/pkg/disruption/karpenter"
)

// Objects are what the API server holds of a scenario, besides its pools. Conditions that the scenario leaves open are not set.
type Objects struct {
	Nodes      []corev1.Node
	NodeClaims []karpenter.NodeClaim
	Pods       []corev1.Pod
	PDBs       []policyv1.PodDisruptionBudget
}

// Objects makes the objects of the scenario.
func (s *Scenario) Objects(now time.Time) (Objects, error) {
	var out Objects
	for i := range s.Nodes {
		n := &s.Nodes[i]
		if !n.Unmanaged {
			claim, err := n.nodeClaim(now)
			if err != nil {
				return out, err
			}
			out.NodeClaims = append(out.NodeClaims, claim)
		}
		if !n.NoNode {
			out.Nodes = append(out.Nodes, n.node(now))
		}
	}
	for i := range s.Pods {
		out.Pods = append(out.Pods, s.Pods[i].pod(now))
	}
	out.PDBs = s.pdbs()
	return out, nil
}

// cluster is the scenario as the replay sees it, with the conditions and marks that Karpenter would find out or keep in memory.
func (s *Scenario) cluster(pools map[string]*karpenter.NodePool, rules karpenter.Rules, now time.Time) (*disruption.Cluster, error) {
	objects, err := s.Objects(now)
	if err != nil {
		return nil, err
	}
	pdbs, err := disruption.NewPDBs(objects.PDBs)
	if err != nil {
		return nil, err
	}
	c := &disruption.Cluster{Rules: rules, Pools: pools, PDBs: pdbs, Types: s.types(), Unlisted: map[string]bool{}}
	if len(c.Types) == 0 {
		for name := range pools {
			c.Unlisted[name] = true
		}
	}
	flags := map[string]*Node{}
	for i := range s.Nodes {
		flags[ProviderID(s.Nodes[i].Name)] = &s.Nodes[i]
	}
	for i := range objects.NodeClaims {
		claim := &objects.NodeClaims[i]
		flags[claim.Status.ProviderID].findConditions(c, claim, now)
	}
	c.Nodes, _ = disruption.Join(objects.Nodes, objects.NodeClaims, objects.Pods)
	for _, joined := range c.Nodes {
		var id string
		if joined.NodeClaim != nil {
			id = joined.NodeClaim.Status.ProviderID
		} else {
			id = joined.Node.Spec.ProviderID
		}
		n := flags[id]
		joined.Marked, joined.Nominated, joined.Queued = n.MarkedForDeletion, n.Nominated, n.InQueue
	}
	return c, nil
}

func (s *Scenario) types() disruption.InstanceTypes {
	types := disruption.InstanceTypes{}
	for _, t := range s.InstanceTypes {
		offerings := disruption.Offerings{}
		for key, price := range t.Prices {
			o := disruption.Offering{Zone: key, CapacityType: "on-demand"}
			if i := strings.LastIndexByte(key, '/'); i >= 0 {
				o = disruption.Offering{Zone: key[:i], CapacityType: key[i+1:]}
			}
			offerings[o] = price
		}
		types[t.Name] = offerings
	}
	return types
}

// ProviderID is the providerID of a scenario's node.
func ProviderID(name string) string { return "fake:///" + name }

// ago is so many seconds before now, in whole seconds as the API server stores times.
func ago(now time.Time, seconds int64) metav1.Time {
	return metav1.NewTime(now.Add(-time.Duration(seconds) * time.Second).Truncate(time.Second))
}

func (n *Node) labels() map[string]string {
	labels := maps.Clone(n.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	for key, value := range map[string]string{
		karpenter.NodePoolLabel:        n.NodePool,
		corev1.LabelInstanceTypeStable: n.InstanceType,
		corev1.LabelTopologyZone:       n.Zone,
		karpenter.CapacityTypeLabel:    n.CapacityType,
	} {
		if value != "" {
			labels[key] = value
		}
	}
	for key, value := range map[string]string{corev1.LabelArchStable: "amd64", corev1.LabelOSStable: "linux"} {
		if _, ok := labels[key]; !ok {
			labels[key] = value
		}
	}
	return labels
}

func (n *Node) nodeClaim(now time.Time) (karpenter.NodeClaim, error) {
	created := ago(now, n.AgeSeconds)
	claim := karpenter.NodeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: "nc-" + n.Name, Labels: n.labels(), CreationTimestamp: created},
		Status:     karpenter.NodeClaimStatus{ProviderID: ProviderID(n.Name), NodeName: n.Name},
	}
	if n.DoNotDisrupt != "" {
		claim.Annotations = map[string]string{karpenter.DoNotDisruptAnnotation: n.DoNotDisrupt}
	}
	if n.ExpireAfter != "" {
		text, err := json.Marshal(n.ExpireAfter)
		if err == nil {
			err = claim.Spec.ExpireAfter.UnmarshalJSON(text)
		}
		if err != nil {
			return claim, fmt.Errorf("node %q: expireAfter: %w", n.Name, err)
		}
	}
	if n.TGPSeconds > 0 {
		claim.Spec.TerminationGracePeriod = &metav1.Duration{Duration: time.Duration(n.TGPSeconds) * time.Second}
	}
	if n.LastPodEventAgo != nil {
		claim.Status.LastPodEventTime = ago(now, *n.LastPodEventAgo)
	}
	if n.NodeClaimDeleting {
		deleted := ago(now, 0)
		claim.DeletionTimestamp = &deleted
	}
	set := func(when bool, condition, reason string) {
		if when {
			claim.Status.Conditions = append(claim.Status.Conditions, metav1.Condition{
				Type: condition, Status: metav1.ConditionTrue, Reason: reason, LastTransitionTime: created,
			})
		}
	}
	set(true, karpenter.ConditionLaunched, karpenter.ConditionLaunched)
	set(!n.Unregistered, karpenter.ConditionRegistered, karpenter.ConditionRegistered)
	set(!n.Unregistered && !n.Uninitialized, karpenter.ConditionInitialized, karpenter.ConditionInitialized)
	set(n.Consolidatable == "true", karpenter.ConditionConsolidatable, karpenter.ConditionConsolidatable)
	set(n.Consolidatable != "" && n.Drifted, karpenter.ConditionDrifted, string(disruption.NodePoolDrifted))
	set(n.InstanceTerminating, karpenter.ConditionInstanceTerminating, karpenter.ConditionInstanceTerminating)
	return claim, nil
}

// findConditions sets Consolidatable and Drifted where the scenario leaves them open.
func (n *Node) findConditions(c *disruption.Cluster, claim *karpenter.NodeClaim, now time.Time) {
	if n.Consolidatable != "" || n.NodeClaimDeleting {
		return
	}
	set := func(condition, reason string) {
		claim.Status.Conditions = append(claim.Status.Conditions, metav1.Condition{Type: condition, Status: metav1.ConditionTrue, Reason: reason})
	}
	var drifted disruption.DriftReason
	if pool := c.Pools[claim.Labels[karpenter.NodePoolLabel]]; pool != nil {
		drifted = c.DriftOf(pool, claim, now)
		if disruption.TimerOf(pool, claim, now).State == disruption.TimerElapsed {
			set(karpenter.ConditionConsolidatable, karpenter.ConditionConsolidatable)
		}
	}
	if drifted == "" && n.Drifted {
		drifted = disruption.NodePoolDrifted
	}
	if drifted != "" {
		set(karpenter.ConditionDrifted, string(drifted))
	}
}

func (n *Node) node(now time.Time) corev1.Node {
	labels := n.labels()
	if !n.Unmanaged && !n.Unregistered {
		labels[karpenter.RegisteredLabel] = "true"
		if !n.Uninitialized {
			labels[karpenter.InitializedLabel] = "true"
		}
	}
	node := corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: n.Name, Labels: labels, CreationTimestamp: ago(now, n.AgeSeconds)},
		Spec:       corev1.NodeSpec{ProviderID: ProviderID(n.Name)},
	}
	if n.DoNotDisrupt != "" {
		node.Annotations = map[string]string{karpenter.DoNotDisruptAnnotation: n.DoNotDisrupt}
	}
	if n.Ready != "Absent" {
		status := corev1.ConditionTrue
		if n.Ready != "" {
			status = corev1.ConditionStatus(n.Ready)
		}
		node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: status}}
	}
	return node
}

func namespace(name string) string {
	if name == "" {
		return "default"
	}
	return name
}

func (p *Pod) pod(now time.Time) corev1.Pod {
	pod := corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: p.Name, Namespace: namespace(p.Namespace), Labels: p.Labels, Annotations: map[string]string{}},
		Spec:       corev1.PodSpec{NodeName: p.Node, Priority: p.Priority},
		Status:     corev1.PodStatus{Phase: corev1.PodRunning},
	}
	if p.Phase != "" {
		pod.Status.Phase = corev1.PodPhase(p.Phase)
	}
	owner := metav1.OwnerReference{APIVersion: "apps/v1", Kind: p.Owner, Name: "o"}
	switch p.Owner {
	case "":
		owner.Kind = "ReplicaSet"
	case "Node":
		owner.APIVersion = "v1"
	case "DaemonSet", "StatefulSet", "ReplicaSet":
	default:
		owner.APIVersion = "batch/v1"
	}
	if p.Owner != "none" {
		pod.OwnerReferences = []metav1.OwnerReference{owner}
	}
	if p.DeletionCost != "" {
		pod.Annotations[corev1.PodDeletionCost] = p.DeletionCost
	}
	if p.DoNotDisrupt != "" {
		pod.Annotations[karpenter.DoNotDisruptAnnotation] = p.DoNotDisrupt
	}
	if p.StartedAgo != nil {
		started := ago(now, *p.StartedAgo)
		pod.Status.StartTime = &started
	}
	if p.Terminating {
		deleted := ago(now, 0)
		pod.DeletionTimestamp = &deleted
	}
	if p.ReadyFalse {
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse}}
	}
	if p.TolerateDisruption {
		pod.Spec.Tolerations = []corev1.Toleration{{Key: karpenter.DisruptedTaint, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule}}
	}
	return pod
}

func (s *Scenario) pdbs() []policyv1.PodDisruptionBudget {
	var out []policyv1.PodDisruptionBudget
	for _, p := range s.PDBs {
		object := policyv1.PodDisruptionBudget{
			ObjectMeta: metav1.ObjectMeta{Name: p.Name, Namespace: namespace(p.Namespace)},
			Spec:       policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: p.Selector}},
			Status:     policyv1.PodDisruptionBudgetStatus{DisruptionsAllowed: p.DisruptionsAllowed},
		}
		if p.MaxUnavailable != "" {
			value := intstr.Parse(p.MaxUnavailable)
			object.Spec.MaxUnavailable = &value
		}
		if p.MinAvailable != "" {
			value := intstr.Parse(p.MinAvailable)
			object.Spec.MinAvailable = &value
		}
		if p.AlwaysAllow {
			policy := policyv1.AlwaysAllow
			object.Spec.UnhealthyPodEvictionPolicy = &policy
		}
		out = append(out, object)
	}
	return out
}
