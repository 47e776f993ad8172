package placement

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"github.com/noderes/kubectl-noderes/pkg/disruption"
)

// target is a node that stays, as a place for pods.
type target struct {
	node  *disruption.Node
	place int // in Planner.targets
	// labels hold each label of the node by its old and its new name, as Karpenter takes them for one. Their node also has the
	// name, for field selectors.
	labels *corev1.Node
	// ambiguous: an old and a new name of a label differ.
	ambiguous   bool
	initialized bool
	// protected: under consolidateAfter, which keeps pods of consolidation off.
	protected bool

	// allocatable is rounded up; endless is what cannot be computed with.
	allocatable vector
	endless     map[int]bool
	// used is what the pods that stay request at least; usedMost what all that have not ended request at most, and what DaemonSets
	// request whose pods are not there yet. odd: that is not known.
	used, usedMost vector
	odd            bool

	ports, portsMost []hostPort
}

func (p *Planner) newTarget(n *disruption.Node) *target {
	t := &target{node: n, initialized: n.Initialized() && n.Node != nil, protected: p.isProtected(n)}
	if n.Node == nil {
		return t
	}
	t.readLabels()
	t.readAllocatable(p)
	for _, pod := range n.Pods {
		if isTerminal(pod) {
			continue
		}
		need := p.needOf(pod)
		t.odd = t.odd || need.odd
		t.usedMost.addAll(need.most)
		ports := hostPorts(pod)
		t.portsMost = append(t.portsMost, ports...)
		if pod.DeletionTimestamp == nil {
			t.used.addAll(need.least)
			t.ports = append(t.ports, ports...)
		}
	}
	return t
}

// readAllocatable: what every node has is not known where it is absent, other resources the node has none of.
func (t *target) readAllocatable(p *Planner) {
	t.endless = map[int]bool{}
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourcePods, corev1.ResourceEphemeralStorage} {
		if _, ok := t.node.Node.Status.Allocatable[name]; !ok {
			t.endless[p.resource(name)] = true
		}
	}
	for name, q := range t.node.Node.Status.Allocatable {
		i := p.resource(name)
		up, _, ok := thousandths(q)
		if !ok {
			t.odd, t.endless[i] = true, true
			continue
		}
		t.allocatable.add(i, up)
	}
}

// stableLabels are old names of labels and those that took their place (pkg/apis/v1/labels.go:NormalizedLabels).
var stableLabels = map[string]string{
	corev1.LabelFailureDomainBetaZone:   corev1.LabelTopologyZone,
	corev1.LabelFailureDomainBetaRegion: corev1.LabelTopologyRegion,
	"beta.kubernetes.io/arch":           corev1.LabelArchStable,
	"beta.kubernetes.io/os":             corev1.LabelOSStable,
	corev1.LabelInstanceType:            corev1.LabelInstanceTypeStable,
}

func (t *target) readLabels() {
	labels := maps.Clone(t.node.Labels())
	if labels == nil {
		labels = map[string]string{}
	}
	for old, stable := range stableLabels {
		oldValue, hasOld := labels[old]
		value, has := labels[stable]
		switch {
		case has && hasOld:
			t.ambiguous = t.ambiguous || oldValue != value
		case has:
			labels[old] = value
		case hasOld:
			labels[stable] = oldValue
		}
	}
	if _, ok := labels[corev1.LabelHostname]; !ok {
		labels[corev1.LabelHostname] = t.node.Node.Name
	}
	t.labels = &corev1.Node{}
	t.labels.Name, t.labels.Labels = t.node.Node.Name, labels
}

// isProtected: since 1.14 consolidation puts no pods on a node on which consolidateAfter has not passed
// (pkg/controllers/provisioning/scheduling/scheduler.go:addToExistingNode).
func (p *Planner) isProtected(n *disruption.Node) bool {
	if !p.cluster.Rules.DestinationsProtected || n.NodeClaim == nil {
		return false
	}
	name, _ := n.NodePool()
	pool := p.cluster.Pools[name]
	return pool != nil && disruption.TimerOf(pool, n.NodeClaim, p.known.Now).State == disruption.TimerRunning
}

// daemon is a DaemonSet as far as it takes room.
type daemon struct {
	tolerations []corev1.Toleration
	selector    nodeaffinity.RequiredNodeAffinity
	anywhere    bool // its selector is not known
	most        vector
}

// reserveDaemonSets keeps room on each target for the DaemonSets that would run there, less what pods of DaemonSets use there already:
// for each the most that its template or a pod of it requests. One that is not in the list, or where the list is not known, counts for
// every node.
func (p *Planner) reserveDaemonSets() {
	daemons := p.daemons()
	for _, t := range p.targets {
		if t.node.Node == nil {
			continue
		}
		var want, have vector
		for _, d := range daemons {
			if !d.anywhere {
				if untolerated(t.node.Node.Spec.Taints, d.tolerations, false) != nil {
					continue
				}
				match, err := d.selector.Match(t.node.Node)
				alias, aliasErr := d.selector.Match(t.labels)
				if !match && !alias && err == nil && aliasErr == nil {
					continue
				}
			}
			want.addAll(d.most)
		}
		for _, pod := range t.node.Pods {
			if disruption.IsDaemonSetPod(pod) && !isTerminal(pod) {
				have.addAll(p.needOf(pod).least)
			}
		}
		for i, amount := range want {
			t.usedMost.add(i, max(0, amount-have.at(i)))
		}
	}
}

func (p *Planner) daemons() []daemon {
	var out []daemon
	of := map[string]int{}
	if p.known.DaemonSets != nil {
		for i := range *p.known.DaemonSets {
			d := &(*p.known.DaemonSets)[i]
			pod := &corev1.Pod{Spec: d.Spec.Template.Spec}
			of[d.Namespace+"/"+d.Name] = len(out)
			out = append(out, daemon{tolerations: pod.Spec.Tolerations, selector: nodeaffinity.GetRequiredNodeAffinity(pod), most: p.needOf(pod).most})
		}
	}
	for pod := range p.eachPod {
		if !disruption.IsDaemonSetPod(pod) || isTerminal(pod) {
			continue
		}
		for _, owner := range pod.OwnerReferences {
			if owner.Kind != "DaemonSet" {
				continue
			}
			i, known := of[pod.Namespace+"/"+owner.Name]
			if !known {
				i = len(out)
				of[pod.Namespace+"/"+owner.Name] = i
				out = append(out, daemon{anywhere: true})
			}
			for r, amount := range p.needOf(pod).most {
				out[i].most.add(r, max(0, amount-out[i].most.at(r)))
			}
		}
	}
	return out
}

func isTerminal(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// untolerated is the first taint that keeps a pod off, nil where none does. Those that are only preferred count if strict.
func untolerated(taints []corev1.Taint, tolerations []corev1.Toleration, strict bool) *corev1.Taint {
	for i := range taints {
		if taints[i].Effect == corev1.TaintEffectPreferNoSchedule && !strict {
			continue
		}
		if !slices.ContainsFunc(tolerations, func(t corev1.Toleration) bool { return tolerates(t, taints[i], strict) }) {
			return &taints[i]
		}
	}
	return nil
}

// tolerates: operators other than the two old ones are in favour of the pod, unless strict.
func tolerates(t corev1.Toleration, taint corev1.Taint, strict bool) bool {
	if t.Effect != "" && t.Effect != taint.Effect || t.Key != "" && t.Key != taint.Key {
		return false
	}
	switch t.Operator {
	case corev1.TolerationOpExists:
		return true
	case "", corev1.TolerationOpEqual:
		return t.Value == taint.Value
	}
	return !strict
}

// hostPort is a port of the node that a pod takes.
type hostPort struct {
	ip       string
	port     int32
	protocol corev1.Protocol
}

func hostPorts(pod *corev1.Pod) []hostPort {
	var out []hostPort
	for _, c := range pod.Spec.Containers {
		for _, port := range c.Ports {
			if port.HostPort == 0 {
				continue
			}
			h := hostPort{port.HostIP, port.HostPort, port.Protocol}
			if h.protocol == "" {
				h.protocol = corev1.ProtocolTCP
			}
			out = append(out, h)
		}
	}
	return out
}

// conflict is the first port that two sets have in common, nil where there is none. Addresses conflict where they are equal or
// either is every address of IPv4; if strict, whatever they are.
func conflict(a, b []hostPort, strict bool) *hostPort {
	for i, x := range a {
		for _, y := range b {
			if x.port == y.port && x.protocol == y.protocol && (strict || x.ip == y.ip || everyAddress(x.ip) || everyAddress(y.ip)) {
				return &a[i]
			}
		}
	}
	return nil
}

func everyAddress(ip string) bool { return ip == "" || ip == "0.0.0.0" }
