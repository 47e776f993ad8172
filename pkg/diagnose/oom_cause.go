package diagnose

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/noderes/kubectl-noderes/pkg/cgroup"
	"github.com/noderes/kubectl-noderes/pkg/cgroup/eviction"
	"github.com/noderes/kubectl-noderes/pkg/report"
)

// metGroup is the cgroup above the pod whose limit was met: the one that the
// kernel log names, else the one that counts an oom.
func (c *podCase) metGroup(v oomVerdict) (string, bool) {
	for _, kill := range slices.Backward(v.kills) {
		if info := cgroup.ParsePath(kill.OOMMemcg); info.Level == cgroup.Kubepods || info.Level == cgroup.QOS {
			return kill.OOMMemcg, true
		}
	}
	for _, g := range c.oom().above {
		if oom, ok := g.inLocal("oom"); ok && oom > 0 {
			return g.group.Path, true
		}
	}
	return "", false
}

// remaining says which causes are left of an OOM kill whose evidence is gone.
func (c *podCase) remaining(v oomVerdict) string {
	var left, out []string
	k := v.container
	if q, ok := k.Resources.Limits[corev1.ResourceMemory]; ok && !q.IsZero() {
		left = append(left, "its own limit of "+q.String())
	} else {
		out = append(out, "it has no memory limit of its own")
	}
	if limit, ok := c.podMemoryLimit(); ok && !c.sliceRepeatsLimit(k) {
		left = append(left, "the pod's limit of "+bytes(limit))
	}
	left = append(left, "the limit of all pods", "the node's memory")
	if n, known := c.systemOOMs(); known && n == 0 {
		out = append(out, "no SystemOOM event of the node is recorded, as the kubelet sends one for an OOM that no cgroup's limit explains (events are kept for an hour by default)")
	}
	text := "What is left: " + strings.Join(left, ", ")
	if len(out) > 0 {
		text += "; " + strings.Join(out, "; ")
	}
	return text + "."
}

// systemOOMs counts the kubelet's events of OOMs of no cgroup; known is false
// where events were not collected.
func (c *podCase) systemOOMs() (int, bool) {
	_, err := c.snap.Events()
	return len(c.systemOOM()), err == nil
}

func (c *podCase) remainingEvidence(v oomVerdict) []report.Evidence {
	var out []report.Evidence
	if q, ok := v.container.Resources.Limits[corev1.ResourceMemory]; ok {
		out = append(out, c.podField(v.container.field("spec")+".resources.limits.memory", q.String(), "one of the limits that it may have met"))
	}
	for _, e := range c.systemOOM() {
		out = append(out, eventEvidence(e, "the kubelet saw an OOM of no cgroup: the node, or the NUMA nodes of a process"))
	}
	return out
}

// catchNextOOM is what to leave running so that the next kill leaves evidence.
func catchNextOOM() []report.Remedy {
	return []report.Remedy{{
		Summary: "Read the node's kernel log and the pod's memory.events before they are gone: collect while the pod still restarts and its cgroup stands.",
		Effect:  "The kernel log names the cgroup whose limit was met; memory.events.local of each level tells it too.",
	}, {
		Summary: "Leave running what keeps the next one: a persistent journal on the nodes (Storage=persistent) or a log shipper for it, node-problem-detector's kernel monitor (event OOMKilling), and the kubelet's metrics container_oom_events_total and container_memory_working_set_bytes in a time series.",
		Effect:  "The kernel's ring buffer holds the last few hundred kilobytes, events an hour, and the counters of a container end with it.",
	}}
}

// apartFromEviction sets an OOM kill apart from an eviction of the same pod, or
// from the node's pressure at the same time, where a reader could take one for
// the other.
func (c *podCase) apartFromEviction(v oomVerdict) []report.Evidence {
	var out []report.Evidence
	end := v.container.end()
	if t, ok := c.evicted(); ok && t.Kind != eviction.NodeCondition && t.event != nil && end != nil && !end.FinishedAt.IsZero() {
		order := "before"
		if end.FinishedAt.After(t.at) {
			order = "after"
		}
		out = append(out, eventEvidence(*t.event, fmt.Sprintf("another matter: the kernel's kill at %s came %s it, and an eviction sets no reason OOMKilled", utc(end.FinishedAt.Time), order)))
	}
	if e, ok := c.pressureCondition(signalMemory); ok && (v.limit == limitContainer || v.limit == limitPod) {
		e.Means = "the kubelet's view of the node; a limit of the pod was met all the same, which no free memory of the node prevents"
		out = append(out, e)
	}
	return out
}
