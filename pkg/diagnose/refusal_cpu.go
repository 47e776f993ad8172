package diagnose

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/noderes/kubectl-noderes/pkg/alloc/cpumanager"
	"github.com/noderes/kubectl-noderes/pkg/alloc/cpuset"
	"github.com/noderes/kubectl-noderes/pkg/report"
)

// smtRefused: full-pcpus-only hands out whole cores, and the request is no
// multiple of a core's CPUs or more than what is free outside the cores with
// reserved CPUs (policy_static.go, enforceSMTAlignment).
func (n *nodeCase) smtRefused(a *attempt, smt cpumanager.SMTAlignmentError, container string, subject report.Subject) report.Finding {
	topo := a.from.config.Topology
	because := []report.Evidence{
		a.requestEvidence(container, corev1.ResourceCPU, fmt.Sprint(smt.Requested)),
		n.configEvidence("cpuManagerPolicyOptions[full-pcpus-only]", a.from.config.Kubelet.CPUManagerPolicyOptions[cpumanager.FullPCPUsOnly], "exclusive CPUs are handed out core by core"),
		n.machineEvidence("CPUs per core", fmt.Sprint(smt.CPUsPerCore), fmt.Sprintf("the kubelet's average: %d CPUs on %d cores", topo.NumCPUs, topo.NumCores)),
	}
	per := smt.CPUsPerCore
	if smt.Requested%per != 0 {
		less, more := smt.Requested/per*per, (smt.Requested/per+1)*per
		f := n.refusal(a, report.SMTAlignmentRefused, subject,
			fmt.Sprintf("%s asks for %s, and with full-pcpus-only the kubelet hands out whole cores of %d CPUs: %d is no multiple of %d.", who(container), plural(smt.Requested, "CPU"), per, smt.Requested, per), because...)
		f.Arithmetic = fmt.Sprintf("%d mod %d = %d, not 0", smt.Requested, per, smt.Requested%per)
		for _, size := range []int{less, more} {
			f.Remedies = append(f.Remedies, a.requestRemedy(container, corev1.ResourceCPU, cpuQuantity(size))...)
		}
		if fraction := (smt.Requested-1)*1000 + 999; len(f.Remedies) == 0 {
			f.Remedies = a.requestRemedy(container, corev1.ResourceCPU, milliQuantity(int64(fraction)))
		}
		if len(f.Remedies) == 0 {
			f.Remedies = a.roomRemedies(n)
		}
		return f
	}
	reserved := topo.WholeCores(a.node.CPU.Reserved)
	pool := a.node.CPU.State.Default
	free := pool.Difference(reserved)
	summary := fmt.Sprintf("%s asks for %s, and with full-pcpus-only only those on cores without a reserved CPU count, of which %d %s free", who(container), plural(smt.Requested, "CPU"), free.Size(), are(free.Size()))
	if !free.IsEmpty() {
		summary += " (" + free.String() + ")"
	}
	because = append(because,
		n.defaultSetEvidence(a, pool, "the shared pool"),
		n.setAsideEvidence(a, fmt.Sprintf("with their siblings the cores %s: never given to a container", reserved)))
	if _, reusable := a.freeCPUs(); !reusable.IsEmpty() {
		summary += fmt.Sprintf("; that its init containers leave it %s is not counted", reusable)
	}
	f := n.refusal(a, report.SMTAlignmentRefused, subject, summary+".", because...)
	f.Arithmetic = fmt.Sprintf("shared pool %s without cores %s = %s: %d < %d", pool, reserved, setOrNone(free), free.Size(), smt.Requested)
	f.Remedies = append(a.cpuRemedies(container, min(free.Size(), smt.Requested-1)/per*per, -per), a.roomRemedies(n)...)
	return f
}

// cpusExhausted: not so many CPUs are free on the whole node.
func (n *nodeCase) cpusExhausted(a *attempt, container string, subject report.Subject) report.Finding {
	need := a.container(container).CPUs
	free, reusable := a.freeCPUs()
	all := free.Union(reusable)
	f := n.refusal(a, report.CPUsExhausted, subject,
		fmt.Sprintf("%s asks for %s of its own, and on the whole node %d %s free%s.", who(container), plural(need, "CPU"), all.Size(), are(all.Size()), inBrackets(all)),
		a.requestEvidence(container, corev1.ResourceCPU, fmt.Sprint(need)),
		n.defaultSetEvidence(a, a.node.CPU.State.Default, "the shared pool"),
		n.setAsideEvidence(a, "never given to a container"))
	f.Arithmetic = fmt.Sprintf("shared pool %s without the reserved %s = %s: %d < %d", a.node.CPU.State.Default, a.node.CPU.Reserved, setOrNone(free), all.Size(), need)
	f.Remedies = append(a.cpuRemedies(container, min(all.Size(), need-1), -1), a.roomRemedies(n)...)
	return f
}

// podPoolEmpty: the exclusive containers of a pod with pod-level resources take
// all of it and leave nothing to the others (validatePodScopeResources).
func (n *nodeCase) podPoolEmpty(a *attempt, subject report.Subject) report.Finding {
	var terms, shared []string
	sum := 0
	for _, c := range a.requests.Containers {
		if c.CPUs == 0 {
			shared = append(shared, c.Name)
			continue
		}
		sum += c.CPUs
		terms = append(terms, fmt.Sprintf("%s %d", c.Name, c.CPUs))
	}
	f := n.refusal(a, report.PodPoolEmpty, subject,
		fmt.Sprintf("The containers with exclusive resources take the whole of the pod's, and nothing is left for %s: %s.", join(shared), clip(a.result.Message)),
		report.Evidence{Source: a.source, Field: "spec.resources.requests", Value: listText(podResources(a.pod.Pod).Requests), Means: "the pod-level resources"},
		report.Evidence{Source: a.source, Field: "spec.containers[].resources.requests", Value: requestsText(a.pod.Pod), Means: "of the containers"},
		n.configEvidence("topologyManagerScope", a.from.config.Kubelet.TopologyManagerScope, "pod scope: one amount for the pod, shared out to its containers"))
	if len(terms) > 0 {
		f.Arithmetic = fmt.Sprintf("pod-level cpu %d − (%s) = %d", a.requests.CPUs, strings.Join(terms, " + "), a.requests.CPUs-sum)
	}
	f.Remedies = []report.Remedy{{Summary: "Raise the pod-level requests and limits above the sum of the exclusive containers, or give every container exclusive CPUs."}}
	return f
}

func (n *nodeCase) defaultSetEvidence(a *attempt, pool cpuset.Set, means string) report.Evidence {
	return n.sharedPoolEvidence(pool, means+a.collectedText())
}

// collectedText says why the replayed pool is not the file's.
func (a *attempt) collectedText() string {
	if s := a.from.recorded.CPU; s != nil && s.Default != a.node.CPU.State.Default {
		return "; at the moment of the refusal what pods held that had ended, or had not come yet, is free, and earlier containers of the pod have theirs"
	}
	return ""
}

func (n *nodeCase) setAsideEvidence(a *attempt, means string) report.Evidence {
	k := a.from.config.Kubelet
	if !k.ReservedSystemCPUs.IsEmpty() {
		return n.configEvidence("reservedSystemCPUs", k.ReservedSystemCPUs.String(), means)
	}
	return n.configEvidence("systemReserved[cpu] + kubeReserved[cpu]", a.node.CPU.Reserved.String(), "the CPUs that the kubelet takes for the reservation; "+means)
}

// machineEvidence is a figure of the machine's topology.
func (n *nodeCase) machineEvidence(field, value, means string) report.Evidence {
	source := n.source("sys/devices/system/cpu")
	if topo, err := n.topo(); err == nil && topo.Source == "lscpu" {
		source = "node:lscpu -p"
	}
	return report.Evidence{Source: source, Field: field, Value: value, Means: means}
}

func inBrackets(s cpuset.Set) string {
	if s.IsEmpty() {
		return ""
	}
	return " (" + s.String() + ")"
}

func setOrNone(s cpuset.Set) string {
	if s.IsEmpty() {
		return "none"
	}
	return s.String()
}

func podResources(pod *corev1.Pod) corev1.ResourceRequirements {
	if pod.Spec.Resources == nil {
		return corev1.ResourceRequirements{}
	}
	return *pod.Spec.Resources
}

// listText spells a resource list in a fixed order.
func listText(list corev1.ResourceList) string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(list)) {
		q := list[name]
		out = append(out, string(name)+" "+q.String())
	}
	return clip(strings.Join(out, ", "))
}

// requestsText spells what each container of a pod asks for.
func requestsText(pod *corev1.Pod) string {
	var out []string
	for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			out = append(out, list[i].Name+": "+cmp.Or(listText(list[i].Resources.Requests), "none"))
		}
	}
	return clip(strings.Join(out, "; "))
}

func optionsText(options map[string]string) string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(options)) {
		out = append(out, name+"="+options[name])
	}
	if len(out) == 0 {
		return "none"
	}
	return clip(strings.Join(out, ","))
}

func are(n int) string {
	if n == 1 {
		return "is"
	}
	return "are"
}

// numaText names NUMA nodes.
func numaText(nodes []int) string {
	if len(nodes) == 1 {
		return "NUMA node " + ids(nodes)
	}
	return "NUMA nodes " + ids(nodes)
}
