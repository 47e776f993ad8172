package diagnose

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/noderes/kubectl-noderes/pkg/cgroup"
	"github.com/noderes/kubectl-noderes/pkg/report"
)

// codeOf names the cause of a verdict.
func (v oomVerdict) code() report.Code {
	switch {
	case v.limit == limitUnknown && v.container.init && !v.container.sidecar:
		return report.InitContainerOOM // failed by the kill, whatever its exit code
	case v.limit == limitUnknown:
		return report.OOMCauseUnproven
	case v.limit == limitNested:
		return report.NestedCgroupOOM
	case v.container.init && !v.container.sidecar && (v.limit == limitContainer || v.limit == limitPod):
		return report.InitContainerOOM
	}
	return map[oomLimit]report.Code{
		limitContainer:   report.ContainerMemoryLimitOOM,
		limitPod:         report.PodMemoryLimitOOM,
		limitAllocatable: report.NodeAllocatableOOM,
		limitNode:        report.NodeOOM,
		limitNUMA:        report.NUMAConstrainedOOM,
		limitAbovePods:   report.NodeOOM,
	}[v.limit]
}

// oomFinding writes a verdict down. A verdict on a nested group is left to the
// rule that knows the group.
func (c *podCase) oomFinding(v oomVerdict) (report.Finding, bool) {
	code := v.code()
	if code == report.NestedCgroupOOM {
		return report.Finding{}, false
	}
	e, k := c.oom(), v.container
	f := report.NewFinding(code, v.confidence, c.subject(k.Name), "")
	what := "Container " + k.Name
	if k.Name == "" {
		what = "A container of the pod"
	}
	if k.init {
		what = "Init container " + k.Name
	}
	limit, source := c.limitText(v)
	counts := c.killCounts(e, k)
	when := c.lastKill(v)
	switch v.limit {
	case limitUnknown:
		if code == report.InitContainerOOM {
			f.Confidence = report.Likely
		}
		f.Summary = fmt.Sprintf("%s ended as OOMKilled%s, but nothing that was read shows which limit it met: %s. %s", what, when, v.why, c.remaining(v))
		f.Because = append(f.Because, c.remainingEvidence(v)...)
		f.Remedies = catchNextOOM()
	case limitContainer:
		f.Summary = fmt.Sprintf("%s was OOM-killed at its own memory limit of %s%s%s.", what, limit, counts, when)
	case limitPod:
		f.Summary = fmt.Sprintf("%s was OOM-killed at the pod's memory limit of %s, which its containers share%s%s.", what, limit, counts, when)
	case limitAllocatable:
		f.Summary = fmt.Sprintf("%s was OOM-killed at the limit of all pods of the node (%s)%s%s; its own limit was not met.", what, limit, counts, when)
	case limitNode, limitAbovePods:
		f.Summary = fmt.Sprintf("%s was OOM-killed because the node ran out of memory%s%s; no limit of the pod was met.", what, counts, when)
	case limitNUMA:
		f.Summary = fmt.Sprintf("%s was OOM-killed because the NUMA nodes it may use ran out of memory%s%s: %s.", what, counts, when, v.why)
	}
	f.Because = append(f.Because, v.because...)
	f.Because = append(f.Because, source...)
	f.Because = append(f.Because, c.countEvidence(e, k)...)
	if end := k.end(); end != nil && !slices.ContainsFunc(f.Because, func(x report.Evidence) bool { return x.Field == k.endField() }) {
		f.Because = append(f.Because, c.endEvidence(k, c.endMeans(k, e)))
	}
	f.Arithmetic = c.killArithmetic(e)
	c.explainVictim(&f, v)
	f.Because = append(f.Because, c.apartFromEviction(v)...)
	if len(f.Remedies) == 0 {
		f.Remedies = c.oomRemedies(v)
	}
	return f, true
}

// endMeans explains a status that does not say OOMKilled.
func (c *podCase) endMeans(k container, e oomEvidence) string {
	if end := k.end(); end.Reason == reasonOOMKilled {
		return "the runtime saw the kill"
	}
	if _, stale := e.before(k.end()); stale {
		return "the last exit, long after the kill"
	}
	if e.ofID(cgroup.ContainerID(k.end().ContainerID)) {
		return "the runtime missed the kill: the kernel log has this container's"
	}
	return "the last exit"
}

// limitText is the limit that was met and where it was read.
func (c *podCase) limitText(v oomVerdict) (string, []report.Evidence) {
	k := v.container
	switch v.limit {
	case limitContainer, limitPod:
		var evidence []report.Evidence
		value, known := uint64(0), false
		if n := len(v.kills); n > 0 {
			// The limit of then: it may have been resized since.
			if value = v.kills[n-1].limitBytes(); value > 0 {
				known = true
				evidence = append(evidence, killLimitEvidence(v.kills[n-1]))
			}
		}
		if g, ok := c.containerGroup(k.Name); ok && v.limit == limitContainer {
			if l, err := g.MemoryMax(); err == nil && !l.Max {
				if !known {
					value, known = l.Bytes, true
				}
				evidence = append(evidence, c.fileEvidence(g.File("memory.max"), "", l.String(), "container "+k.Name))
			}
		}
		if c.groupsErr == nil {
			if l, err := c.groups.Pod.MemoryMax(); err == nil {
				evidence = append(evidence, c.fileEvidence(c.groups.Pod.File("memory.max"), "", l.String(), "the pod's cgroup"))
				if !known && !l.Max && (v.limit == limitPod || c.sliceRepeatsLimit(k)) {
					value, known = l.Bytes, true
				}
			}
		}
		if q, ok := k.Resources.Limits[corev1.ResourceMemory]; ok {
			evidence = append(evidence, c.podField(k.field("spec")+".resources.limits.memory", q.String(), ""))
			if !known && v.limit == limitContainer {
				value, known = uint64(q.Value()), true
			}
		}
		if c.pod.Spec.Resources != nil && v.limit == limitPod {
			if q, ok := c.pod.Spec.Resources.Limits[corev1.ResourceMemory]; ok {
				evidence = append(evidence, c.podField("spec.resources.limits.memory", q.String(), "the pod-level limit"))
				if !known {
					value, known = uint64(q.Value()), true
				}
			}
		}
		if !known {
			return "unknown size", evidence
		}
		return bothBytes(value), evidence
	case limitAllocatable:
		for _, e := range c.oom().above {
			if met, known := c.metGroup(v); known && !sameGroup(met, e.group.Path) {
				continue
			}
			if l, err := e.group.MemoryMax(); err == nil && !l.Max {
				return fmt.Sprintf("%s of %s", bothBytes(l.Bytes), e.group.Path),
					[]report.Evidence{c.fileEvidence(e.group.File("memory.max"), "", l.String(), "capacity less kube- and system-reserved")}
			}
		}
		return "of unknown size", nil
	}
	return "", nil
}

// killLimitEvidence quotes the limit that the kernel printed with a kill.
func killLimitEvidence(k podKill) report.Evidence {
	e := killEvidence(k, "usage and limit of the cgroup at the kill")
	e.Field, e.Value = "memory: usage, limit", fmt.Sprintf("%dkB, %dkB", k.UsageKB, k.LimitKB)
	return e
}

// bothBytes shows a size with its exact value.
func bothBytes(b uint64) string { return fmt.Sprintf("%s (%d bytes)", bytes(b), b) }

// killCounts are the pod's totals, which outlive its containers.
func (c *podCase) killCounts(e oomEvidence, k container) string {
	var parts []string
	ooms, okO := e.slice.inTree("oom")
	kills, okK := e.slice.inTree("oom_kill")
	switch {
	case okO && okK && (kills > 0 || len(e.of(k.Name)) == 0):
		parts = append(parts, fmt.Sprintf("%s and %s are counted in the pod's cgroup", plural(ooms, "OOM"), plural(kills, "kill")))
	case len(e.of(k.Name)) > 0:
		parts = append(parts, fmt.Sprintf("the kernel log has %s", plural(len(e.of(k.Name)), "kill")))
	default:
		if o, ok := e.scopes[k.Name].inTree("oom"); ok {
			n, _ := e.scopes[k.Name].inTree("oom_kill")
			parts = append(parts, fmt.Sprintf("%s and %s are counted in the container's cgroup", plural(o, "OOM"), plural(n, "kill")))
		}
	}
	if k.status != nil && k.status.RestartCount > 0 {
		parts = append(parts, plural(int64(k.status.RestartCount), "restart"))
	}
	if len(parts) == 0 {
		return ""
	}
	return "; " + strings.Join(parts, ", ")
}

// lastKill is when it last happened, by the status and by the kernel log.
func (c *podCase) lastKill(v oomVerdict) string {
	end := v.container.end()
	var parts []string
	if _, stale := c.oom().before(orNoEnd(end)); stale {
		end = nil // that end is not the kill's
	}
	if end != nil && !end.FinishedAt.IsZero() && (end.Reason == reasonOOMKilled || c.oom().ofID(cgroup.ContainerID(end.ContainerID))) {
		parts = append(parts, "the last exit was at "+utc(end.FinishedAt.Time))
	}
	if n := len(v.kills); n > 0 && v.kills[n-1].Time.HasWall {
		parts = append(parts, "the kernel log's last kill at "+utc(v.kills[n-1].Time.Wall))
	}
	if len(parts) == 0 {
		return ""
	}
	return "; " + strings.Join(parts, ", ")
}

// countEvidence are the counters that the summary sums up.
func (c *podCase) countEvidence(e oomEvidence, k container) []report.Evidence {
	out := c.eventsEvidence(e.slice, false, "the pod's cgroup", "oom", "oom_kill", "oom_group_kill")
	if e.slice.localErr == nil {
		out = append(out, c.eventsEvidence(e.slice, true, "the pod's cgroup", "oom")...)
	}
	if scope, ok := e.scopes[k.Name]; ok {
		out = append(out, c.eventsEvidence(scope, true, "container "+k.Name, "oom", "oom_kill")...)
	}
	return dedupe(out)
}

// dedupe keeps the first of equal source and field.
func dedupe(in []report.Evidence) []report.Evidence {
	var out []report.Evidence
	for _, e := range in {
		if !slices.ContainsFunc(out, func(o report.Evidence) bool { return o.Source == e.Source && o.Field == e.Field }) {
			out = append(out, e)
		}
	}
	return out
}

// killArithmetic takes the double count of group kills apart: with
// memory.oom.group the kernel counts the first victim twice.
func (c *podCase) killArithmetic(e oomEvidence) string {
	kills, ok := e.slice.inTree("oom_kill")
	groups, okG := e.slice.inTree("oom_group_kill")
	if !ok || !okG || groups == 0 || groups > kills {
		return ""
	}
	return fmt.Sprintf("oom_kill %d − oom_group_kill %d = %s (the kernel counts the first victim of a group kill twice)", kills, groups, processes(kills-groups))
}

func processes(n uint64) string {
	if n == 1 {
		return "1 process"
	}
	return fmt.Sprintf("%d processes", n)
}

func (c *podCase) oomRemedies(v oomVerdict) []report.Remedy {
	k := v.container
	switch v.limit {
	case limitContainer:
		return []report.Remedy{{
			Summary: fmt.Sprintf("Raise limits.memory of container %s, or lower what it holds; the findings on what filled it say what that is.", k.Name),
			Caution: "After an OOM memory.peak only proves use up to the limit: how much it would need is not known. Raise it and measure again.",
		}}
	case limitPod:
		return []report.Remedy{{
			Summary: "Raise the pod's memory limit, or give the containers limits of their own whose sum fits it.",
			Effect:  "The kernel picks the victim by size and oom_score_adj among all containers of the pod: the one that dies need not be the one that grew.",
		}}
	case limitAllocatable:
		return []report.Remedy{{
			Summary: "Lower the memory that pods of this node may use above their requests, or move some away.",
			Effect:  "kubepods' limit is capacity less kube- and system-reserved; eviction did not come in time.",
		}}
	case limitNUMA:
		return []report.Remedy{{
			Summary: "Give the pod memory on more NUMA nodes, or less to hold there.",
			Effect:  "The other nodes' free memory is of no use to it while it is pinned.",
		}}
	default:
		return []report.Remedy{{
			Summary: "Reserve more for the system (systemReserved, kubeReserved) or evict earlier (evictionHard memory.available), and set requests near to use.",
			Effect:  "The kernel picks the victim by use above request: a request near to use protects the pod.",
		}}
	}
}

func orNoEnd(end *corev1.ContainerStateTerminated) *corev1.ContainerStateTerminated {
	if end == nil {
		return &corev1.ContainerStateTerminated{}
	}
	return end
}
