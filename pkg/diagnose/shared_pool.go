package diagnose

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/noderes/kubectl-noderes/pkg/alloc"
	"github.com/noderes/kubectl-noderes/pkg/report"
)

// sharedPool says why a container has no CPUs of its own: the first condition
// of the CPU Manager's static policy that fails (kubelet, guaranteedCPUs).
func sharedPool(c *podCase) []report.Finding {
	static, known := c.staticCPU()
	if !active(c.pod) || !known || c.name == "" {
		return nil
	}
	var out []report.Finding
	for _, k := range c.containers() {
		if _, owns := c.ownedCPUs(c.uid, k.Name); owns || k.finished() {
			continue
		}
		n, why := alloc.GuaranteedCPUs(c.pod, k.Name, c.rules)
		if static && n > 0 {
			continue // eligible: that it has none is for the replay to explain
		}
		code, text, evidence := c.sharedReason(k, static, why)
		if code == "" {
			continue
		}
		pool, poolEvidence := c.poolOf(k)
		summary := fmt.Sprintf("Container %s shares its CPUs: %s", k.Name, text)
		if pool != "" {
			summary += "; it runs on CPUs " + pool
		}
		out = append(out, report.NewFinding(code, report.Proven, c.subject(k.Name), summary+".", append(evidence, poolEvidence...)...))
	}
	return out
}

func (c *podCase) sharedReason(k container, static bool, why alloc.NoExclusive) (report.Code, string, []report.Evidence) {
	requests := c.podField(k.field("spec")+".resources.requests.cpu", quantityOrNone(k.Resources.Requests, corev1.ResourceCPU), "")
	if !static {
		evidence := c.configEvidence("cpuManagerPolicy", c.config.CPUManagerPolicy, "no container of the node owns CPUs")
		if c.configErr != nil {
			state, _ := c.cpuState()
			evidence = c.fileEvidence(cpuStatePath, "policyName", state.PolicyName, "no container of the node owns CPUs")
		}
		return report.SharedPolicyNone, "the kubelet's CPU Manager policy is none", []report.Evidence{evidence}
	}
	switch why {
	case alloc.NotGuaranteed:
		text := "the pod is " + string(alloc.QOSClass(c.pod, c.rules)) + ", not Guaranteed"
		evidence := []report.Evidence{c.podField("status.qosClass", string(alloc.QOSClass(c.pod, c.rules)), "")}
		offenders, offences := c.offenders()
		if offenders != "" {
			text += " (" + offenders + ")"
		}
		evidence = append(evidence, offences...)
		return report.SharedNotGuaranteed, text, evidence
	case alloc.Fractional:
		return report.SharedFractionalCPU, fmt.Sprintf("it asks for %s, which is not a whole number of CPUs", k.Resources.Requests.Cpu()), []report.Evidence{requests}
	case alloc.Uncountable:
		return report.SharedFractionalCPU, fmt.Sprintf("it asks for %s CPUs, which in thousandths is beyond int64, and the kubelet's check for a whole number of CPUs then gives none", k.Resources.Requests.Cpu()), []report.Evidence{requests}
	case alloc.NoRequest:
		if q, ok := k.Resources.Requests[corev1.ResourceCPU]; ok {
			return report.SharedNoLimit, fmt.Sprintf("its CPU request is %s, not above zero", q.String()), []report.Evidence{requests}
		}
		return report.SharedNoLimit, "it names no CPU request", []report.Evidence{requests}
	case alloc.PodLevelResources:
		return report.SharedPodLevel, "the pod has pod-level resources, and the gate PodLevelResourceManagers is off",
			[]report.Evidence{c.podField("spec.resources", podLevelText(c.pod), "")}
	case alloc.ContainerNotGuaranteed:
		return report.SharedPodLevel, "the pod has pod-level resources, and the container does not name requests equal to its limits for CPU and memory",
			[]report.Evidence{c.podField("spec.resources", podLevelText(c.pod), ""), requests}
	default:
		return "", "", nil
	}
}

// poolOf is the CPU set that a sharing container runs on: the cgroup's, else
// the checkpoint's default set.
func (c *podCase) poolOf(k container) (string, []report.Evidence) {
	if live, file, ok := c.liveCPUs(k.Name); ok {
		return live, []report.Evidence{c.fileEvidence(file, "", live, "the cgroup's cpuset")}
	}
	if state, ok := c.cpuCheckpoint(); ok && state.PolicyName == "static" {
		return state.Default.String(), []report.Evidence{c.fileEvidence(cpuStatePath, "defaultCpuSet", state.Default.String(), "the shared pool")}
	}
	return "", nil
}

// sidecarBreaksGuaranteed speaks of a container that would own CPUs if another
// one of its pod did not keep the pod from being Guaranteed. Init containers
// count for the QoS class.
func sidecarBreaksGuaranteed(c *podCase) []report.Finding {
	static, known := c.staticCPU()
	if !active(c.pod) || !static || !known || alloc.QOSClass(c.pod, c.rules) == corev1.PodQOSGuaranteed || c.pod.Spec.Resources != nil {
		return nil
	}
	offenders := alloc.QOSOffenders(c.pod, c.rules)
	broken := func(name string) bool {
		return slices.ContainsFunc(offenders, func(o alloc.Offender) bool { return o.Container == name })
	}
	var losers []string
	for _, k := range c.containers() {
		cpu := k.Resources.Requests.Cpu()
		if !k.init && !broken(k.Name) && cpu.Sign() > 0 && alloc.IsWhole(*cpu) {
			losers = append(losers, k.Name)
		}
	}
	if len(losers) == 0 {
		return nil
	}
	var out []report.Finding
	for _, name := range losers {
		f := report.NewFinding(report.SidecarBreaksGuaranteed, report.Proven, c.subject(name), "")
		parts, because := c.offenders()
		f.Because = append(f.Because, because...)
		f.Summary = fmt.Sprintf("Container %s asks for whole CPUs with equal requests and limits and would own them, but the pod is %s because of %s.",
			name, alloc.QOSClass(c.pod, c.rules), parts)
		f.Remedies = []report.Remedy{{
			Summary: "Give every container of the pod, init containers too, CPU and memory requests equal to its limits.",
			Effect:  "The pod becomes Guaranteed; a container with a fractional CPU then still shares, the others own theirs.",
		}}
		out = append(out, f)
	}
	return out
}

// offenders names what keeps the pod from being Guaranteed: the first few, for
// a pod may have hundreds of containers.
func (c *podCase) offenders() (string, []report.Evidence) {
	const most = 6
	all := alloc.QOSOffenders(c.pod, c.rules)
	var parts []string
	var because []report.Evidence
	for _, o := range all[:min(most, len(all))] {
		parts = append(parts, offenderText(o))
		because = append(because, c.offenderEvidence(o))
	}
	if more := len(all) - most; more > 0 {
		parts = append(parts, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(parts, "; "), because
}

func offenderText(o alloc.Offender) string {
	kind := "container"
	if o.Init {
		kind = "init container"
	}
	if o.Container == "" {
		return fmt.Sprintf("the pod-level resources (%s: request %s, limit %s)", o.Resource, orNone(o.Request), orNone(o.Limit))
	}
	return fmt.Sprintf("%s %s (%s: request %s, limit %s)", kind, o.Container, o.Resource, orNone(o.Request), orNone(o.Limit))
}

func orNone(q *resource.Quantity) string {
	if q == nil {
		return "none"
	}
	return q.String()
}

func (c *podCase) offenderEvidence(o alloc.Offender) report.Evidence {
	field := fmt.Sprintf("spec.containers[%s].resources %s", o.Container, o.Resource)
	switch {
	case o.Container == "":
		field = fmt.Sprintf("spec.resources %s", o.Resource)
	case o.Init:
		field = fmt.Sprintf("spec.initContainers[%s].resources %s", o.Container, o.Resource)
	}
	return c.podField(field, fmt.Sprintf("request %s, limit %s", orNone(o.Request), orNone(o.Limit)), "Guaranteed needs both, equal and not zero")
}

func quantityOrNone(list corev1.ResourceList, name corev1.ResourceName) string {
	if q, ok := list[name]; ok {
		return q.String()
	}
	return "none"
}

func podLevelText(pod *corev1.Pod) string {
	if pod.Spec.Resources == nil {
		return "none"
	}
	r := pod.Spec.Resources
	return fmt.Sprintf("requests cpu %s memory %s, limits cpu %s memory %s",
		quantityOrNone(r.Requests, corev1.ResourceCPU), quantityOrNone(r.Requests, corev1.ResourceMemory),
		quantityOrNone(r.Limits, corev1.ResourceCPU), quantityOrNone(r.Limits, corev1.ResourceMemory))
}
