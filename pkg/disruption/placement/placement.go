package placement

import (
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/noderes/kubectl-noderes/pkg/disruption"
)

// Known is what is known beside the cluster's nodes, and what of it is not known whole. A nil list is not known.
type Known struct {
	Now     time.Time
	Pending []*corev1.Pod // without a node

	DaemonSets *[]appsv1.DaemonSet
	Volumes    *[]corev1.PersistentVolume
	Claims     *[]corev1.PersistentVolumeClaim

	// Not known, or not all of them.
	NodesUnknown, NodeClaimsUnknown, PodsUnknown, PoolsUnknown bool
}

// Check is a test that a pod fails on a node.
type Check int

// The checks that can prove that a pod does not fit, in Karpenter's order. It plans pods onto nodes that are not initialized, and
// then gives the whole command up.
const (
	Fits Check = iota
	Uninitialized
	Taints
	HostPorts
	Resources
	NodeAffinity
	VolumeZone
	Checks // how many there are
)

func (c Check) String() string {
	return [...]string{"fits", "not initialized", "taints", "host ports", "resources", "node selector or affinity", "volume zone"}[c]
}

// Outcome is what is said of a node's deletion without a replacement.
type Outcome int

// Outcomes.
const (
	Unknown Outcome = iota
	// CannotDelete is proven: a pod fits on none of the nodes that stay, or all pods together do not. A new node may still take them,
	// see [Pod.NewNode].
	CannotDelete
	// ProbablyRemovable: a plan was found for all pods.
	ProbablyRemovable
)

func (o Outcome) String() string {
	return [...]string{"unknown", "cannot be deleted", "probably removable"}[o]
}

// Answer is what is said of one node. Karpenter asks none of this of a node that it takes for empty, see [disruption.IsEmpty].
type Answer struct {
	Outcome Outcome
	// Targets are the nodes that stay, by name: those that pods could go to, Karpenter's or not.
	Targets []*disruption.Node
	// Pods are those that have to go elsewhere, by namespace and name; LeftOut those of them that Karpenter leaves out of its plans
	// because nothing may evict them.
	Pods    []Pod
	LeftOut []*corev1.Pod
	// Together is why all pods do not fit where each alone may; nil unless that is what CannotDelete is proven by.
	Together *Together
	// Moves are the plan; nil unless ProbablyRemovable.
	Moves []Move
	// Protected are the nodes inside their consolidateAfter without which no plan was found and with which there is one.
	Protected []*disruption.Node
	// Doubts are why the outcome is Unknown, each once.
	Doubts []Doubt
}

// Pod is one pod that has to go elsewhere.
type Pod struct {
	Pod *corev1.Pod
	// Failed counts the targets by the first check that they fail for certain; those at [Fits] may take the pod.
	Failed [Checks]int
	// Stuck: every target fails. Reasons then says how, and NewNode whether a new node can be made for it. NewNode says it too of each
	// pod of an answer with Together.
	Stuck   bool
	Reasons []Reason
	NewNode NewNode
}

// Move is where a plan puts a pod.
type Move struct {
	Pod *corev1.Pod
	To  *disruption.Node
}

// Doubt is why nothing can be told. Pod is nil where it concerns all of them.
type Doubt struct {
	Pod *corev1.Pod
	Why DoubtReason
}

// DoubtReason is a kind of doubt.
type DoubtReason string

// Kinds of doubt.
const (
	DoubtNodes      DoubtReason = "not all nodes are known"
	DoubtNodeClaims DoubtReason = "not all NodeClaims are known"
	DoubtPods       DoubtReason = "not all pods are known"
	DoubtPools      DoubtReason = "no NodePool is ready to make nodes, and without one Karpenter plans nothing"
	DoubtVolume     DoubtReason = "it uses a volume that is tied to its place"
	DoubtSpread     DoubtReason = "it has topology spread constraints"
	DoubtAffinity   DoubtReason = "it has pod affinity or anti-affinity"
	DoubtKeptOff    DoubtReason = "another pod's anti-affinity selects it"
	DoubtPreference DoubtReason = "it prefers some nodes"
	DoubtDevices    DoubtReason = "it claims devices"
	DoubtOdd        DoubtReason = "it holds values that cannot be computed with"
	DoubtPacking    DoubtReason = "a first-fit plan finds no place for it beside the others"
	DoubtOthers     DoubtReason = "it has no node yet or is leaving one, and a first-fit plan finds no place for it either"
	DoubtEffort     DoubtReason = "there are too many pods and nodes to try"
)

// Planner answers for the nodes of one cluster. It is not for use by several goroutines.
type Planner struct {
	cluster *disruption.Cluster
	known   Known

	names []corev1.ResourceName
	index map[corev1.ResourceName]int

	targets []*target // in the order in which Karpenter tries them: initialized ones first, by name
	kept    kept
	vague   map[string]bool
	volumes volumes
	pools   []*pool

	shapes     map[*corev1.Pod]*shape
	shapeByKey map[string]*shape
	classes    map[string]*class

	others  []other
	answers map[*disruption.Node]*Answer
	effort  int
}

// New prepares a cluster.
func New(cluster *disruption.Cluster, known Known) *Planner {
	p := &Planner{cluster: cluster, known: known, index: map[corev1.ResourceName]int{}, shapes: map[*corev1.Pod]*shape{}, shapeByKey: map[string]*shape{},
		classes: map[string]*class{}, answers: map[*disruption.Node]*Answer{}, effort: maxEffort}
	p.volumes = newVolumes(&p.known)
	for _, n := range cluster.Nodes {
		if !n.MarkedForDeletion() {
			p.targets = append(p.targets, p.newTarget(n))
		}
	}
	slices.SortStableFunc(p.targets, func(a, b *target) int {
		switch {
		case a.node.Initialized() == b.node.Initialized():
			return 0
		case a.node.Initialized():
			return -1
		}
		return 1
	})
	for i, t := range p.targets {
		t.place = i
	}
	p.reserveDaemonSets()
	p.kept = newKept(p.eachPod)
	p.vague = vagueLabels(p.eachPod)
	p.others = p.needingPlaces()
	p.readPools()
	return p
}

// eachPod is every pod, with a node or without.
func (p *Planner) eachPod(yield func(*corev1.Pod) bool) {
	for _, pod := range p.known.Pending {
		if !yield(pod) {
			return
		}
	}
	for _, n := range p.cluster.Nodes {
		for _, pod := range n.Pods {
			if !yield(pod) {
				return
			}
		}
	}
}

// other is a pod that needs a place whatever goes; from is nil for a pending one.
type other struct {
	pod  *corev1.Pod
	from *disruption.Node
}

// needingPlaces are the pods that Karpenter plans for beside those of a candidate: pending ones, and those of nodes that go anyway.
func (p *Planner) needingPlaces() []other {
	var out []other
	for _, pod := range p.known.Pending {
		if disruption.IsReschedulable(pod) && len(pod.Spec.SchedulingGates) == 0 {
			out = append(out, other{pod, nil})
		}
	}
	for _, n := range p.cluster.Nodes {
		if n.MarkedForDeletion() {
			move, _ := p.moving(n)
			for _, pod := range move {
				out = append(out, other{pod, n})
			}
		}
	}
	return out
}

// moving are the pods of a node that have to go elsewhere, without those that Karpenter leaves out of its simulations.
func (p *Planner) moving(n *disruption.Node) (move, leftOut []*corev1.Pod) {
	for _, pod := range n.Pods {
		switch {
		case !disruption.IsReschedulable(pod):
		case p.cluster.PDBs.LeavesOut(pod, p.known.Now, p.cluster.Rules):
			leftOut = append(leftOut, pod)
		default:
			move = append(move, pod)
		}
	}
	return move, leftOut
}

// Of answers for a node of the cluster, each once.
func (p *Planner) Of(n *disruption.Node) *Answer {
	if a := p.answers[n]; a != nil {
		return a
	}
	a := &Answer{}
	p.answers[n] = a
	own := -1
	for _, t := range p.targets {
		if t.node == n {
			own = t.place
			continue
		}
		a.Targets = append(a.Targets, t.node)
	}
	slices.SortStableFunc(a.Targets, byName)
	var move []*corev1.Pod
	move, a.LeftOut = p.moving(n)
	p.prove(a, n, move, own)
	if a.Outcome == Unknown && !p.known.NodesUnknown && len(a.Doubts) == 0 {
		if a.Together = p.together(move, own); a.Together != nil {
			a.Outcome = CannotDelete
			p.newNodes(a, n)
		}
	}
	if a.Outcome == Unknown {
		p.plan(a, n, move, own)
	}
	return a
}

// prove looks at each pod alone. Nodes that are not known may take any.
func (p *Planner) prove(a *Answer, n *disruption.Node, move []*corev1.Pod, own int) {
	told := map[*shape]*Pod{}
	for _, pod := range move {
		s := p.shapeOf(pod)
		if same := told[s]; same != nil {
			again := *same
			again.Pod = pod
			a.Pods = append(a.Pods, again)
			continue
		}
		if s.failed == nil && !p.spend(len(p.targets)) {
			a.Doubts = append(a.Doubts, Doubt{nil, DoubtEffort})
			return
		}
		checks := p.checks(s)
		entry := Pod{Pod: pod, Failed: s.counts}
		if own >= 0 {
			entry.Failed[checks[own]]--
		}
		if entry.Stuck = entry.Failed[Fits] == 0 && !p.known.NodesUnknown; entry.Stuck {
			entry.Reasons = p.reasons(s, own)
			if p.spend(len(p.pools)) {
				entry.NewNode = p.newNode(s, n)
			}
			a.Outcome = CannotDelete
		}
		told[s] = &entry
		a.Pods = append(a.Pods, entry)
	}
}

// Stuck are the pods that fit on none of the nodes that stay.
func (a *Answer) Stuck() []Pod {
	var out []Pod
	for _, pod := range a.Pods {
		if pod.Stuck {
			out = append(out, pod)
		}
	}
	return out
}

// Nowhere are the pods of Stuck for which no new node can be made either, proven too.
func (a *Answer) Nowhere() []Pod {
	var out []Pod
	for _, pod := range a.Pods {
		if pod.Stuck && pod.NewNode.Barred {
			out = append(out, pod)
		}
	}
	return out
}

// maxEffort bounds how many pairs of a pod and a node one planner looks at.
const maxEffort = 100_000_000

func (p *Planner) spend(pairs int) bool {
	p.effort -= pairs
	return p.effort > 0
}

func byName(a, b *disruption.Node) int {
	switch x, y := a.Name(), b.Name(); {
	case x < y:
		return -1
	case x > y:
		return 1
	}
	return 0
}
