package diagnose

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	k8scpuset "k8s.io/utils/cpuset"

	"github.com/noderes/kubectl-noderes/pkg/alloc/cpuset"
	"github.com/noderes/kubectl-noderes/pkg/cgroup"
)

// poolState is the shared pool of a node and who uses it.
type poolState struct {
	shared, exclusive cpuset.Set
	owners            []cpuOwner
	milli             int64 // requests of those who share, in millicores
	terms             []poolTerm
}

// cpuOwner is a container with CPUs of its own; pod is "" where the API has it
// no more.
type cpuOwner struct {
	uid, pod, container string
	set                 cpuset.Set
}

// poolTerm is the requests of one pod's sharing containers.
type poolTerm struct {
	pod   *corev1.Pod
	milli int64
	what  string
}

// sharedPoolState reads the pool from the CPU Manager's checkpoint; false where
// there is none, or no container has CPUs of its own.
func (n *nodeCase) sharedPoolState() (poolState, bool) {
	state, ok := n.cpuCheckpoint()
	if !ok || state.PolicyName != "static" || state.Default.IsEmpty() {
		return poolState{}, false
	}
	p := poolState{shared: state.Default}
	owns := map[string]bool{}
	names := map[string]string{}
	for i := range n.pods {
		pod := &n.pods[i]
		names[cgroup.PodUID(pod)] = pod.Namespace + "/" + pod.Name
	}
	for _, uid := range slices.Sorted(maps.Keys(state.Entries)) {
		for _, name := range slices.Sorted(maps.Keys(state.Entries[uid])) {
			set := state.Entries[uid][name]
			owns[uid+"/"+name] = true
			p.exclusive = p.exclusive.Union(set)
			p.owners = append(p.owners, cpuOwner{uid: uid, pod: names[uid], container: name, set: set})
		}
	}
	for i := range n.pods {
		if pod := &n.pods[i]; active(pod) {
			p.add(pod, func(container string) bool { return owns[cgroup.PodUID(pod)+"/"+container] })
		}
	}
	slices.SortStableFunc(p.terms, func(a, b poolTerm) int { return compareDesc(float64(a.milli), float64(b.milli)) })
	return p, !p.exclusive.IsEmpty()
}

// mostMilli keeps sums of hostile requests from overflowing.
const mostMilli = 1 << 40

// add counts what a pod's app containers and sidecars without CPUs of their own
// request. A pod-level request is the whole pod's.
func (p *poolState) add(pod *corev1.Pod, owns func(string) bool) {
	var shared, own int64
	var parts []string
	for _, k := range (&podCase{pod: pod}).containers() {
		if k.init && !k.sidecar {
			continue
		}
		request, ok := k.Resources.Requests[corev1.ResourceCPU]
		if k.status != nil {
			if q, allocated := k.status.AllocatedResources[corev1.ResourceCPU]; allocated {
				request, ok = q, true
			}
		}
		milli := milliOf(request)
		switch {
		case !ok || milli == 0:
		case owns(k.Name):
			own += milli
		default:
			shared += milli
			parts = append(parts, fmt.Sprintf("%s %s", k.Name, milliText(milli)))
		}
	}
	if r := pod.Spec.Resources; r != nil {
		if q, ok := r.Requests[corev1.ResourceCPU]; ok {
			if left := milliOf(q) - own; left > shared {
				shared = left
				parts = []string{fmt.Sprintf("pod-level request %s", q.String())}
			}
		}
	}
	if shared > 0 {
		p.milli = min(p.milli+shared, mostMilli)
		p.terms = append(p.terms, poolTerm{pod: pod, milli: shared, what: strings.Join(parts, ", ")})
	}
}

// milliOf is a request in millicores, 0 to mostMilli.
func milliOf(q resource.Quantity) int64 {
	if q.Cmp(*resource.NewMilliQuantity(mostMilli, resource.DecimalSI)) > 0 {
		return mostMilli
	}
	return max(q.MilliValue(), 0)
}

// tooSmall says whether the pool has fewer CPUs than its users request.
func (p poolState) tooSmall() bool { return p.milli > int64(p.shared.Size())*1000 }

func (p poolState) text() string {
	return fmt.Sprintf("a pool of %s (%s)", plural(int64(p.shared.Size()), "CPU"), p.shared)
}

func (p poolState) arithmetic() string {
	var terms []string
	var rest int64
	for i, t := range p.terms {
		if i < shownTerms {
			terms = append(terms, milliText(t.milli))
		} else {
			rest += t.milli
		}
	}
	if rest > 0 {
		terms = append(terms, fmt.Sprintf("%s of %s more", milliText(rest), plural(int64(len(p.terms)-shownTerms), "pod")))
	}
	left := fmt.Sprintf("%d CPUs − %d exclusive = %d shared", p.shared.Size()+p.exclusive.Size(), p.exclusive.Size(), p.shared.Size())
	if !p.tooSmall() {
		return fmt.Sprintf("%s; requests of those who share them: %s", left, milliText(p.milli))
	}
	sum := strings.Join(terms, " + ")
	if len(terms) > 1 {
		sum += " = " + milliText(p.milli)
	}
	return fmt.Sprintf("%s; requests %s, more than %s", left, sum, milliText(int64(p.shared.Size())*1000))
}

// owned is the exclusive CPUs in the form of the cgroup's sets.
func (p poolState) owned() k8scpuset.CPUSet { return k8scpuset.New(p.exclusive.List()...) }

// shownTerms bounds the pods that a report shows of the pool.
const shownTerms = 5

func milliText(m int64) string {
	if m%1000 == 0 {
		return plural(m/1000, "CPU")
	}
	return fmt.Sprintf("%dm", m)
}

func (o cpuOwner) name() string {
	if o.pod == "" {
		return "container " + o.container + " of a pod that the API does not have on this node"
	}
	return "container " + o.container + " of pod " + o.pod
}

func (p poolState) biggestOwners() []cpuOwner {
	owners := slices.Clone(p.owners)
	slices.SortStableFunc(owners, func(a, b cpuOwner) int { return b.set.Size() - a.set.Size() })
	return owners[:min(len(owners), shownTerms)]
}
