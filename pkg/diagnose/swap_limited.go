package diagnose

import (
	"fmt"
	"math"

	"github.com/noderes/kubectl-noderes/pkg/cgroup"
	"github.com/noderes/kubectl-noderes/pkg/report"
)

// swapLimited says how much swap a container may use on a node whose kubelet
// gives some out (memorySwap.swapBehavior LimitedSwap): as large a part of the
// node's swap as its memory request is of the node's memory (kubelet,
// calcSwapForBurstablePods). A limit of 0, which every container has with
// NoSwap, is normal and not worth a word.
func swapLimited(c *podCase) []report.Finding {
	if c.groupsErr != nil || c.ended() {
		return nil
	}
	var out []report.Finding
	for _, k := range c.containers() {
		if g, ok := c.containerGroup(k.Name); ok {
			if f, ok := c.swapLimit(k, g); ok {
				out = append(out, f)
			}
		}
	}
	return out
}

func (c *podCase) swapLimit(k container, g cgroup.Group) (report.Finding, bool) {
	limit, err := g.MemorySwapMax()
	if err != nil {
		return report.Finding{}, false
	}
	given := c.configErr == nil && c.config.MemorySwapBehavior == string(cgroup.LimitedSwap)
	want, computed := c.swapValue(k, limit)
	computed = computed && c.swapCapacity() > 0
	switch {
	case limit.Max:
		return report.Finding{}, false // no limit at all
	case limit.Bytes == 0 && !(given && computed && want.Text != "0"):
		return report.Finding{}, false
	}
	f := report.NewFinding(report.SwapLimited, report.Proven, c.subject(k.Name), "")
	f.Because = append(f.Because, c.fileEvidence(g.File("memory.swap.max"), "", limit.String(), "the most that it may have in swap"))
	used, usedErr := g.MemorySwapCurrent()
	if usedErr == nil {
		f.Because = append(f.Because, c.fileEvidence(g.File("memory.swap.current"), "", fmt.Sprint(used), "in swap now"))
	}
	f.Summary = fmt.Sprintf("Container %s may have %s in swap", k.Name, bothBytes(limit.Bytes))
	if usedErr == nil {
		f.Summary += fmt.Sprintf(" and has %s there", bytes(used))
	}
	if events, err := g.MemorySwapEvents(); err == nil {
		hits, okHits := events.Max()
		fails, okFails := events.Fail()
		if okHits {
			f.Because = append(f.Because, c.fileEvidence(g.File("memory.swap.events"), "max", fmt.Sprint(hits), "times that this limit kept a page from being swapped out"))
		}
		if okFails {
			f.Because = append(f.Because, c.fileEvidence(g.File("memory.swap.events"), "fail", fmt.Sprint(fails), "pages that found no swap: by a limit, or because the node has none free"))
		}
		switch {
		case hits > 0:
			f.Summary += fmt.Sprintf("; %s the limit kept a page in memory", plural(hits, "time"))
		case fails > 0:
			f.Summary += fmt.Sprintf("; %s found no swap", plural(fails, "page"))
		}
	}
	switch {
	case !given:
		if c.configErr == nil {
			f.Because = append(f.Because, c.configEvidence("memorySwap.swapBehavior", or(c.config.MemorySwapBehavior, "NoSwap"), "gives no swap: the container is older than this setting, or something else wrote the limit"))
			f.Confidence = report.Likely
		}
	case !computed:
		f.Because = append(f.Because, c.configEvidence("memorySwap.swapBehavior", c.config.MemorySwapBehavior, "swap in proportion to the memory request"))
		f.Confidence = report.Likely
	default:
		f.Because = append(f.Because, c.configEvidence("memorySwap.swapBehavior", c.config.MemorySwapBehavior, want.Rule))
		f.Arithmetic = want.Arithmetic
		if want.Text != limit.String() {
			f.Confidence = report.Likely
			f.Summary += fmt.Sprintf(", where the kubelet's rule now gives %s: the container is older than the setting or than the node's swap", want.Text)
		} else {
			f.Summary += ": the node's swap in proportion to its memory request"
		}
	}
	f.Because = append(f.Because, c.swapOfNode()...)
	f.Summary += "."
	f.Remedies = []report.Remedy{{
		Summary: "Raise the memory request: the share of swap follows it, and only Burstable containers whose request is not their limit get any.",
		Effect:  "Memory beyond the limit of swap stays in memory and counts against memory.max.",
	}}
	return f, true
}

// swapValue is what the kubelet writes, the value that the file has if it is
// one of several. ok is false where the node's swap is not known.
func (c *podCase) swapValue(k container, limit cgroup.Limit) (cgroup.Value, bool) {
	for _, f := range c.containerWants(k.Name) {
		if f.File != "memory.swap.max" || len(f.Accept) == 0 {
			continue
		}
		if v, ok := f.Accepts(limit.String()); ok {
			return v, true
		}
		return f.Accept[0], true
	}
	return cgroup.Value{}, false
}

// swapCapacity is the node's swap in bytes, 0 where there is none or it is not
// known: as the kernel has it, else as the kubelet reported it.
func (n *nodeCase) swapCapacity() int64 {
	if info, err := cgroup.ReadMeminfo(n.fsys); err == nil {
		if total, ok := info["SwapTotal"]; ok {
			return int64(min(total, math.MaxInt64))
		}
	}
	if n.object != nil && n.object.Status.NodeInfo.Swap != nil && n.object.Status.NodeInfo.Swap.Capacity != nil {
		return *n.object.Status.NodeInfo.Swap.Capacity
	}
	return 0
}

// swapOfNode quotes the node's memory and swap.
func (n *nodeCase) swapOfNode() []report.Evidence {
	info, err := cgroup.ReadMeminfo(n.fsys)
	if err != nil {
		return nil
	}
	var out []report.Evidence
	for _, key := range []string{"SwapTotal", "SwapFree"} {
		if v, ok := info[key]; ok {
			out = append(out, n.fileEvidence("proc/meminfo", key, fmt.Sprintf("%d kB", v/1024), "of the node"))
		}
	}
	return out
}

func or(value, other string) string {
	if value == "" {
		return other
	}
	return value
}
