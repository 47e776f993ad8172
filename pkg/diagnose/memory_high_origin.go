package diagnose

import (
	"fmt"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/noderes/kubectl-noderes/pkg/cgroup"
	"github.com/noderes/kubectl-noderes/pkg/report"
)

// highOrigin is where a value of memory.high comes from, and what to do about it.
type highOrigin struct {
	because    []report.Evidence
	arithmetic string
	remedies   []report.Remedy
}

// highOrigin looks for the value among those that the kubelet writes now, by
// its configuration and version, then among those that it wrote by an earlier
// one: a running container keeps its file.
func (c *podCase) highOrigin(m memoryGroup, high cgroup.Limit, highErr error) highOrigin {
	var o highOrigin
	amounts, field := c.amounts(m)
	for _, list := range []struct {
		name   string
		values corev1.ResourceList
	}{{"requests", amounts.Requests}, {"limits", amounts.Limits}} {
		if q, ok := list.values[corev1.ResourceMemory]; ok {
			o.because = append(o.because, c.podField(field+".resources."+list.name+".memory", q.String(), ""))
		}
	}
	factor, hasFactor := c.config.ThrottlingFactor(c.rules.Minor)
	if hasFactor && c.configErr == nil {
		means := "memory.high = request + (limit − request) × factor, down to a page"
		if !c.config.IsSet("memoryThrottlingFactor") {
			means += "; the default of this version"
		}
		o.because = append(o.because, c.configEvidence("memoryThrottlingFactor", fmt.Sprint(factor), means))
	}
	raise := report.Remedy{
		Summary: "Set a higher limits.memory, or a request equal to the limit: then the kubelet writes no memory.high.",
		Effect:  "memory.high rises with the limit.",
		Caution: "How much it would need is not known: what it holds now was cut at memory.high. Measure again.",
	}
	if text := c.leastLimit(m, factor); hasFactor && text != "" {
		raise.Effect = text
	}
	unset := report.Remedy{
		Summary: "Take memoryThrottlingFactor out of the kubelet's configuration (1.37: unset means no memory.high) or raise it, then recreate the pods.",
		Effect:  "The container may use all of its limit; beyond that comes the OOM kill.",
	}
	switch want, stale, ok := c.highValue(m, high); {
	case highErr != nil || c.configErr != nil || !c.rulesExact:
		o.remedies = []report.Remedy{raise, unset}
	case !ok:
		o.because = append(o.because, c.fileEvidence(m.group.File("memory.high"), "", high.String(), "not a value of the kubelet's: a systemd drop-in (MemoryHigh), an NRI plugin or a hand wrote it"))
		o.remedies = []report.Remedy{{Summary: "Find who wrote memory.high and take it back; restarting the container makes the kubelet write its own value."}}
	case stale != "":
		o.arithmetic = want.Arithmetic
		o.because = append(o.because, c.fileEvidence(m.group.File("memory.high"), "", high.String(), "the value of "+stale+": the container is older than the kubelet's present configuration"))
		o.remedies = []report.Remedy{{Summary: "Recreate the pod: a running container keeps the memory.high that it was started with, the kubelet would now write another one or none."}}
	default:
		o.arithmetic = want.Arithmetic
		o.remedies = []report.Remedy{raise, unset}
	}
	return o
}

// amounts are the requests and limits that the group's memory.high follows
// from, and where they stand: the container's, or the pod's own.
func (c *podCase) amounts(m memoryGroup) (corev1.ResourceRequirements, string) {
	if m.isPod(c) {
		if c.pod.Spec.Resources == nil {
			return corev1.ResourceRequirements{}, "spec"
		}
		return *c.pod.Spec.Resources, "spec"
	}
	for _, k := range c.containers() {
		if k.Name == m.container {
			return k.Resources, k.field("spec")
		}
	}
	return corev1.ResourceRequirements{}, ""
}

// highValue is the kubelet's value that memory.high has. stale names the
// configuration of another time that gives it.
func (c *podCase) highValue(m memoryGroup, high cgroup.Limit) (want cgroup.Value, stale string, ok bool) {
	now := c.settings(c.uid)
	if v, ok := c.highOf(m, high, now); ok {
		return v, "", true
	}
	earlier := now
	factor := 0.9
	earlier.MemoryQoS, earlier.MemoryThrottlingFactor = true, &factor
	if v, ok := c.highOf(m, high, earlier); ok {
		return v, "memoryThrottlingFactor 0.9, the default up to 1.36", true
	}
	return cgroup.Value{}, "", false
}

func (c *podCase) highOf(m memoryGroup, high cgroup.Limit, s cgroup.Settings) (cgroup.Value, bool) {
	for _, view := range resourceViews {
		files := cgroup.PodValues(c.pod, view, s)
		if !m.isPod(c) {
			files, _ = cgroup.ContainerValues(c.pod, m.container, view, s)
		}
		for _, f := range files {
			if f.File != "memory.high" {
				continue
			}
			if v, ok := f.Accepts(high.String()); ok {
				return v, true
			}
		}
	}
	return cgroup.Value{}, false
}

// leastLimit says from which limit on memory.high would lie above what is in
// use now: the formula the other way round. It is empty where the container has
// no limit, or does not use more than its request.
func (c *podCase) leastLimit(m memoryGroup, factor float64) string {
	amounts, _ := c.amounts(m)
	request := float64(amounts.Requests.Memory().Value())
	used := float64(m.current)
	if amounts.Limits.Memory().IsZero() || m.currentErr != nil || factor <= 0 || used <= request {
		return ""
	}
	least := request + (used-request)/factor
	if least > math.MaxInt64 {
		return ""
	}
	return fmt.Sprintf("memory.high lies above what is in use now from a limit of %s on: %.0f + (%.0f − %.0f) / %v = %.0f bytes.",
		bytes(uint64(least)), request, used, request, factor, least)
}

// memoryHighDiffers compares memory.high with what the kubelet writes, or where
// it writes none with what a new cgroup has. A value that another configuration
// gives is stale and not another's: a running container keeps its file.
func (c *podCase) memoryHighDiffers() []report.Finding {
	var out []report.Finding
	for _, m := range c.memoryGroups() {
		wants, subject := c.podWants(), c.subject("")
		if !m.isPod(c) {
			wants, subject = c.containerWants(m.container), c.subject(m.container)
		}
		text, _ := cgroup.DefaultText("memory.high")
		want := cgroup.FileValues{File: "memory.high", Accept: []cgroup.Value{{Text: text, Rule: "by its configuration it writes none"}}}
		if i := slices.IndexFunc(wants, func(f cgroup.FileValues) bool { return f.File == want.File }); i >= 0 {
			want = wants[i]
		}
		high, err := m.group.MemoryHigh()
		if err != nil {
			continue
		}
		for _, f := range c.compare(report.MemoryFilesDifferFromSpec, subject, m.who, m.group, want) {
			_, stale, known := c.highValue(m, high)
			if high.Max {
				stale, known = "a configuration without memory.high", true
			}
			if known && stale != "" {
				f.Confidence = report.Likely
				f.Summary = fmt.Sprintf("memory.high of %s is %q, that of %s, where the kubelet would now write %s: the container is older than the kubelet's present configuration.", m.who, high, stale, alternatives(want.Accept))
				f.Remedies = []report.Remedy{{Summary: "Recreate the pod: a running container keeps the memory.high that it was started with."}}
			}
			out = append(out, f)
		}
	}
	return out
}
