package diagnose

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	helper "k8s.io/component-helpers/resource"
	scheduling "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/klog/v2"

	"github.com/noderes/kubectl-noderes/pkg/report"
)

// misfit is one thing for which the kubelet's own fit check refuses a pod: an
// insufficient resource, or a predicate.
type misfit struct {
	// reason and message are what the kubelet writes into the status.
	reason, message string

	resource corev1.ResourceName // "" for a predicate
	// requested of the pod, used by the active pods and allocatable, in the unit
	// that the kubelet counts in: thousandths for cpu.
	requested, used, allocatable int64

	evidence []report.Evidence // of a predicate
}

// fitCheck are the kubelet's reasons in its order (lifecycle/predicate.go,
// which comes after the managers): the first is the one it gives. The node's
// active pods count against the new one, but for those that are gone. known is
// false without the node object, whose allocatable and taints it goes by, and
// where nothing but the sums could tell and they do not hold an amount.
func (n *nodeCase) fitCheck(pod *corev1.Pod, source string, gone ...types.UID) (misfits []misfit, known bool) {
	if n.object == nil {
		n.gaps.Lack("cluster/nodes.json", "the node's object is not there", "whether the kubelet's own fit check, which comes after the managers, admits the pod", "get nodes")
		return nil, false
	}
	if os := pod.Spec.OS; os != nil && os.Name != corev1.Linux {
		return []misfit{{reason: "PodOSNotSupported", message: "Failed to admit pod as the OS field doesn't match node OS",
			evidence: []report.Evidence{{Source: source, Field: "spec.os.name", Value: string(os.Name)}}}}, true
	}
	var others []*corev1.Pod
	for i := range n.pods {
		p := &n.pods[i]
		if !active(p) || p.UID == pod.UID {
			continue
		}
		if seen := kubeletPod(p).Pod; !slices.Contains(gone, seen.UID) {
			others = append(others, seen)
		}
	}
	misfits, summed := n.insufficient(pod, others)
	if match, err := nodeaffinity.GetRequiredNodeAffinity(pod).Match(n.object); err != nil || !match {
		misfits = append(misfits, misfit{reason: "NodeAffinity", message: "Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector",
			evidence: n.affinityEvidence(pod, source)})
	}
	if name := pod.Spec.NodeName; name != "" && name != n.name {
		misfits = append(misfits, misfit{reason: "NodeName", message: "Predicate NodeName failed: node(s) didn't match the requested node name",
			evidence: []report.Evidence{{Source: source, Field: "spec.nodeName", Value: name}}})
	}
	if port, holder := portConflict(pod, others); holder != nil {
		misfits = append(misfits, misfit{reason: "NodePorts", message: "Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports",
			evidence: []report.Evidence{{Source: source, Field: "hostPort", Value: port},
				{Source: "api:pods/" + holder.Namespace + "/" + holder.Name, Field: "hostPort", Value: port, Means: "in use"}}})
	}
	noExecute := func(t *corev1.Taint) bool { return t.Effect == corev1.TaintEffectNoExecute }
	if taint, untolerated := scheduling.FindMatchingUntoleratedTaint(klog.Background(), n.object.Spec.Taints, pod.Spec.Tolerations, noExecute, false); untolerated {
		misfits = append(misfits, misfit{reason: "TaintToleration", message: "Predicate TaintToleration failed: node(s) had taints that the pod didn't tolerate",
			evidence: []report.Evidence{n.apiEvidence("spec.taints", taint.ToString(), "the pod does not tolerate it; of taints the kubelet looks at NoExecute only")}})
	}
	return misfits, summed || len(misfits) > 0
}

// pressure: while the node is short of something the kubelet admits only
// critical pods, and if it is memory alone those that are not BestEffort or
// tolerate it. It looks at that before its managers (eviction_manager.go, Admit).
func (n *nodeCase) pressure(pod *corev1.Pod) (misfit, bool) {
	if n.object == nil || isCritical(pod) {
		return misfit{}, false
	}
	var conditions []string
	for _, c := range n.object.Status.Conditions {
		switch c.Type {
		case corev1.NodeMemoryPressure, corev1.NodeDiskPressure, corev1.NodePIDPressure:
			if c.Status == corev1.ConditionTrue {
				conditions = append(conditions, string(c.Type))
			}
		}
	}
	if len(conditions) == 0 {
		return misfit{}, false
	}
	if len(conditions) == 1 && conditions[0] == string(corev1.NodeMemoryPressure) {
		taint := corev1.Taint{Key: corev1.TaintNodeMemoryPressure, Effect: corev1.TaintEffectNoSchedule}
		if pod.Status.QOSClass != corev1.PodQOSBestEffort || scheduling.TolerationsTolerateTaint(klog.Background(), pod.Spec.Tolerations, &taint, false) {
			return misfit{}, false
		}
	}
	m := misfit{reason: reasonEvicted, message: fmt.Sprintf("The node had condition: %v. ", conditions)}
	for _, c := range conditions {
		m.evidence = append(m.evidence, n.apiEvidence("status.conditions["+c+"]", string(corev1.ConditionTrue), ""))
	}
	return m, true
}

// insufficient are the resources of which allocatable has too little left:
// pods, cpu, memory, ephemeral-storage, then the others by name. known is false
// where the kubelet's sums do not hold what the pods request.
func (n *nodeCase) insufficient(pod *corev1.Pod, others []*corev1.Pod) (out []misfit, known bool) {
	if amount := n.uncountable(append(slices.Clone(others), pod)...); amount != "" {
		n.gaps.Lack("cluster/pods.json", amount+", which the API server refuses or the kubelet's sums do not hold",
			"whether the kubelet's own fit check, which comes after the managers, admits a pod", "")
		return nil, false
	}
	add := func(name corev1.ResourceName, requested, used, allocatable int64) {
		out = append(out, misfit{
			reason:   "OutOf" + string(name),
			message:  fmt.Sprintf("Node didn't have enough resource: %s, requested: %d, used: %d, capacity: %d", name, requested, used, allocatable),
			resource: name, requested: requested, used: used, allocatable: allocatable,
		})
	}
	allocatable := n.object.Status.Allocatable
	if most, ok := allocatable[corev1.ResourcePods]; ok && int64(len(others))+1 > most.Value() {
		add(corev1.ResourcePods, 1, int64(len(others)), most.Value())
	}
	wanted := n.countedRequests(pod)
	used := map[corev1.ResourceName]int64{}
	for _, p := range others {
		for name, q := range n.countedRequests(p) {
			used[name] = addClipped(used[name], countedAmount(name, q))
		}
	}
	first := []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage}
	names := slices.Clone(first)
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		if !slices.Contains(first, name) {
			names = append(names, name)
		}
	}
	for _, name := range names {
		room, has := allocatable[name]
		if !has && isDevice(name) {
			continue // a resource of the cluster, not of the node
		}
		need := countedAmount(name, wanted[name])
		if have := countedAmount(name, room); need > 0 && need > have-used[name] {
			add(name, need, used[name], have)
		}
	}
	return out, true
}

// countedRequests are what the fit check counts of a pod: of a resized one the
// largest of desired, allocated and actual.
func (n *nodeCase) countedRequests(pod *corev1.Pod) corev1.ResourceList {
	return helper.PodRequests(pod, helper.PodResourcesOptions{
		UseStatusResources: n.rules.InPlacePodVerticalScaling,
		InPlacePodLevelResourcesVerticalScalingEnabled: n.gate("InPlacePodLevelResourcesVerticalScaling"),
		SkipPodLevelResources:                          !n.rules.PodLevelResources,
	})
}

func countedAmount(name corev1.ResourceName, q resource.Quantity) int64 {
	if name == corev1.ResourceCPU {
		return q.MilliValue()
	}
	return q.Value()
}

func addClipped(a, b int64) int64 {
	if sum := a + b; sum >= a {
		return sum
	}
	return a
}

// amount shows a counted amount as a quantity.
func (m misfit) amount(v int64) string {
	switch {
	case m.resource == corev1.ResourceCPU:
		return resource.NewMilliQuantity(v, resource.DecimalSI).String()
	case m.resource == corev1.ResourceMemory, m.resource == corev1.ResourceEphemeralStorage, strings.HasPrefix(string(m.resource), corev1.ResourceHugePagesPrefix):
		return resource.NewQuantity(v, resource.BinarySI).String()
	}
	return fmt.Sprint(v)
}

// sum shows used and requested together, which int64 need not hold.
func (m misfit) sum() string {
	if sum := m.used + m.requested; sum >= m.used {
		return m.amount(sum)
	}
	q := resource.MustParse(m.amount(m.used))
	q.Add(resource.MustParse(m.amount(m.requested)))
	return q.String()
}

// portConflict is the first host port of the pod that another pod has.
func portConflict(pod *corev1.Pod, others []*corev1.Pod) (string, *corev1.Pod) {
	for _, want := range hostPorts(pod) {
		for _, p := range others {
			for _, has := range hostPorts(p) {
				if want.port == has.port && want.protocol == has.protocol && (want.ip == has.ip || want.ip == anyIP || has.ip == anyIP) {
					return fmt.Sprintf("%s %s:%d", want.protocol, want.ip, want.port), p
				}
			}
		}
	}
	return "", nil
}

type hostPort struct {
	ip, protocol string
	port         int32
}

const anyIP = "0.0.0.0"

func hostPorts(pod *corev1.Pod) []hostPort {
	var out []hostPort
	containers := slices.Clone(pod.Spec.Containers)
	for i := range pod.Spec.InitContainers {
		if p := pod.Spec.InitContainers[i].RestartPolicy; p != nil && *p == corev1.ContainerRestartPolicyAlways {
			containers = append(containers, pod.Spec.InitContainers[i])
		}
	}
	for i := range containers {
		for _, p := range containers[i].Ports {
			port := p.HostPort
			if pod.Spec.HostNetwork && port == 0 {
				port = p.ContainerPort
			}
			if port <= 0 {
				continue
			}
			h := hostPort{p.HostIP, string(p.Protocol), port}
			if h.ip == "" {
				h.ip = anyIP
			}
			if h.protocol == "" {
				h.protocol = string(corev1.ProtocolTCP)
			}
			out = append(out, h)
		}
	}
	return out
}

func (n *nodeCase) affinityEvidence(pod *corev1.Pod, source string) []report.Evidence {
	var out []report.Evidence
	for _, key := range slices.Sorted(maps.Keys(pod.Spec.NodeSelector)) {
		want := pod.Spec.NodeSelector[key]
		has, ok := n.object.Labels[key]
		if ok && has == want {
			continue
		}
		if !ok {
			has = "no such label"
		}
		out = append(out, report.Evidence{Source: source, Field: "spec.nodeSelector[" + key + "]", Value: clip(want)},
			n.apiEvidence("metadata.labels["+key+"]", clip(has), ""))
	}
	if a := pod.Spec.Affinity; a != nil && a.NodeAffinity != nil && a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution != nil {
		var terms []string
		for _, t := range a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
			var parts []string
			for _, e := range append(slices.Clone(t.MatchExpressions), t.MatchFields...) {
				parts = append(parts, fmt.Sprintf("%s %s %s", e.Key, e.Operator, strings.Join(e.Values, ",")))
			}
			terms = append(terms, strings.Join(parts, " and "))
		}
		out = append(out, report.Evidence{Source: source, Field: "spec.affinity.nodeAffinity.required", Value: clip(strings.Join(terms, "; or ")), Means: "no term matches the node's labels"})
	}
	return out
}

// fitRefusal explains why the kubelet's fit check refuses a pod that its
// managers admit: the first of the misfits, the others named.
func (n *nodeCase) fitRefusal(misfits []misfit, pod *corev1.Pod, subject report.Subject, source string) report.Finding {
	m := misfits[0]
	subject.Container = ""
	var f report.Finding
	if m.reason == reasonEvicted {
		f = report.NewFinding(report.FitCheckRefused, report.Likely, subject,
			"While the node is short, the kubelet admits no such pod: "+strings.TrimSpace(m.message), m.evidence...)
		f.Remedies = []report.Remedy{{Summary: "Wait until the condition is gone; of BestEffort pods memory pressure alone keeps only those that do not tolerate it."}}
	} else if m.resource == "" {
		f = report.NewFinding(report.FitCheckRefused, report.Proven, subject,
			fmt.Sprintf("The kubelet's own fit check, which comes after its managers, refuses the pod: %s.", m.message), m.evidence...)
		f.Remedies = []report.Remedy{{Summary: "Change the pod's selector, affinity, ports or tolerations, or the node's labels or taints."}}
	} else {
		left := m.allocatable - m.used
		f = report.NewFinding(report.FitCheckRefused, report.Proven, subject,
			fmt.Sprintf("The kubelet's own fit check, which comes after its managers, refuses the pod (%s): the active pods request %s of %s, with the new pod's %s that is %s, more than the allocatable %s.",
				m.reason, m.amount(m.used), m.resource, m.amount(m.requested), m.sum(), m.amount(m.allocatable)),
			report.Evidence{Source: source, Field: "requests." + string(m.resource), Value: m.amount(m.requested), Means: "as the kubelet counts the pod"},
			report.Evidence{Source: "api:pods", Field: "requests." + string(m.resource), Value: m.amount(m.used), Means: "the sum of the node's active pods"},
			n.apiEvidence("status.allocatable."+string(m.resource), m.amount(m.allocatable), ""))
		f.Arithmetic = fmt.Sprintf("%s + %s = %s > %s; %s left", m.amount(m.used), m.amount(m.requested), m.sum(), m.amount(m.allocatable), m.amount(max(left, 0)))
		f.Remedies = []report.Remedy{{Summary: fmt.Sprintf("Ask for at most %s of %s, or let other pods of the node ask for less.", m.amount(max(left, 0)), m.resource)}}
	}
	f.Because = append(f.Because, report.Evidence{Source: "api:nodes/" + n.name, Field: "replayed answer", Value: m.reason, Means: m.message})
	for _, more := range misfits[1:] {
		f.Because = append(f.Because, report.Evidence{Source: "api:nodes/" + n.name, Field: "also", Value: more.reason, Means: more.message})
	}
	if isCritical(pod) && m.resource != "" {
		f.Confidence = report.Likely
		f.Because = append(f.Because, report.Evidence{Source: source, Field: "spec.priorityClassName", Value: pod.Spec.PriorityClassName, Means: "for a critical pod the kubelet evicts pods of lower priority if that makes room"})
	}
	return f
}

// isCritical: the kubelet makes room for such a pod (kubelettypes.IsCriticalPod).
func isCritical(pod *corev1.Pod) bool {
	const systemCritical = 2_000_000_000
	_, mirror := pod.Annotations[corev1.MirrorPodAnnotationKey]
	class := pod.Spec.PriorityClassName
	return mirror || class == "system-node-critical" || class == "system-cluster-critical" || pod.Spec.Priority != nil && *pod.Spec.Priority >= systemCritical
}

// usedOf is what the node's active pods but for one request of a resource.
func (n *nodeCase) usedOf(name corev1.ResourceName, but *corev1.Pod) int64 {
	var sum int64
	for i := range n.pods {
		if p := &n.pods[i]; active(p) && p.UID != but.UID {
			sum = addClipped(sum, countedAmount(name, n.countedRequests(kubeletPod(p).Pod)[name]))
		}
	}
	return sum
}
