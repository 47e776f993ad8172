package diagnose

import (
	"fmt"
	"slices"
	"strings"

	"github.com/noderes/kubectl-noderes/pkg/report"
)

// cpuStarvedByWeight speaks of containers that wait for CPUs while no quota
// holds them back: the CPUs are busy with siblings, and cpu.weight decides who
// gets them. The part a container is sure of is the product of its shares at
// every level, among the siblings that ran in the sample (cgroup-v2, cpu.weight).
//
// Where the pod shares a pool too small for it, that is cpu-shared-pool-crowded.
func cpuStarvedByWeight(c *podCase) []report.Finding {
	var out []report.Finding
	for _, w := range c.contended() {
		if confidence, _ := c.judge(w); confidence != "" {
			out = append(out, c.starvedFinding(w, confidence))
		}
	}
	return out
}

// judge tells the two causes of waiting without throttling apart: the weight of
// the container, and a shared pool that exclusive CPUs have left too small. An
// empty confidence is no finding.
func (c *podCase) judge(w contention) (byWeight, crowded report.Confidence) {
	if w.busyKnown && w.busy < busyShare {
		return "", "" // CPUs were free: it waits for something else
	}
	known := w.sure && w.sampled && w.busyKnown && w.setKnown && w.complete()
	pool, inPool := c.poolFor(w)
	if inPool && pool.tooSmall() {
		if w.sampled && w.busyKnown {
			return "", report.Proven
		}
		return "", report.Likely
	}
	part, weightsKnown := w.due()
	rivals := slices.ContainsFunc(w.rungs, func(r rung) bool { return len(r.rivals) > 0 })
	fits := !w.fills() && (rivals || !w.complete())
	if fits && weightsKnown && w.usedKnown && w.setKnown && w.complete() {
		// What it is sure of would have been enough.
		fits = part*float64(w.set.Size()) < w.wants()
	}
	idleElsewhere := w.nodeIdleKnown && w.nodeIdle > idleShare && !w.others.IsEmpty()
	switch {
	case !idleElsewhere || !inPool || w.idleOf(pool.owned()) < 1:
		if fits && known && weightsKnown && !idleElsewhere {
			return report.Proven, ""
		} else if fits {
			return report.Likely, ""
		}
		return "", ""
	case fits && (w.outweighed() || !w.complete()):
		return report.Likely, report.Likely
	case known && fits:
		return "", report.Proven
	case rivals || w.fills():
		return "", report.Likely
	}
	return "", ""
}

// wants is how many CPUs the container would have used at least: what it used,
// and one more for the time in which a thread waited.
func (w *contention) wants() float64 { return w.used + w.waited }

func (c *podCase) starvedFinding(w contention, confidence report.Confidence) report.Finding {
	summary := fmt.Sprintf("Container %s waits for a CPU %s of the time (%s), and no quota holds it back", w.Name, percent(w.waited), w.window)
	part, known := w.due()
	if known && w.setKnown && part < 1 {
		summary += fmt.Sprintf(": by its weights it is sure of %s of CPUs %s, that is %s, while ", percent(part), w.set, cores(part*float64(w.set.Size())))
		if slices.ContainsFunc(w.rungs, rung.unread) {
			summary += "all its siblings run"
		} else {
			summary += "its siblings want more"
		}
	} else {
		summary += ": others use the CPUs it may run on"
	}
	if w.usedKnown {
		summary += fmt.Sprintf("; it got %s", cores(w.used))
	}
	if names := w.biggest(); len(names) > 0 {
		summary += "; most went to " + join(names)
	}
	f := report.NewFinding(report.CPUStarvedByWeight, confidence, c.subject(w.Name), summary+".")
	f.Because = append(f.Because, w.pressure...)
	f.Because = append(f.Because, w.times...)
	f.Because = append(f.Because, c.usedEvidence(w)...)
	f.Because = append(f.Because, c.setEvidence(w)...)
	for _, r := range w.rungs {
		f.Because = append(f.Because, c.rungEvidence(r)...)
	}
	f.Arithmetic = w.shareText()
	f.Remedies = c.starvedRemedies(w)
	if !w.sampled || !w.complete() {
		c.gaps.Lack("nodes/"+c.name+"/samples", "the use or weight of some siblings was not read twice", "which siblings of "+w.own().label()+" use the CPUs, and how much", "two samples")
	}
	return f
}

// biggest names the siblings that used most.
func (w *contention) biggest() []string {
	type seen struct {
		rival
		against uint64
	}
	var all []seen
	for _, r := range w.rungs {
		for _, o := range r.rivals {
			if !o.unread {
				all = append(all, seen{o, r.weight})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b seen) int { return compareDesc(a.cpus, b.cpus) })
	var out []string
	for _, o := range all[:min(len(all), 3)] {
		out = append(out, fmt.Sprintf("%s with %s (weight %d against %d)", o.name, cores(o.cpus), o.weight, o.against))
	}
	return out
}

func (c *podCase) usedEvidence(w contention) []report.Evidence {
	total, ok := w.own().stat.UsageUsec()
	if !w.usedKnown || !ok {
		return nil
	}
	return []report.Evidence{c.fileEvidence(w.own().group.File("cpu.stat"), "usage_usec", fmt.Sprint(total),
		fmt.Sprintf("+%d µs in the sample: %s used", w.own().rate.UsageUsec, cores(w.used)))}
}

func (c *podCase) setEvidence(w contention) []report.Evidence {
	if !w.setKnown {
		return nil
	}
	return []report.Evidence{c.fileEvidence(w.own().group.File("cpuset.cpus.effective"), "", w.set.String(), "the CPUs it may run on")}
}

// shownRivals bounds the siblings that a report shows of one level.
const shownRivals = 3

func (c *podCase) rungEvidence(r rung) []report.Evidence {
	if len(r.rivals) == 0 && !r.idle {
		return nil
	}
	var out []report.Evidence
	if r.weightErr == nil {
		out = append(out, c.fileEvidence(r.level.group.File("cpu.weight"), "", fmt.Sprint(r.weight), "weight of "+r.level.label()))
	}
	if r.idle {
		out = append(out, c.fileEvidence(r.level.group.File("cpu.idle"), "", "1", r.level.label()+" runs only where nothing else wants to; the kubelet never sets it"))
	}
	for _, o := range r.rivals[:min(len(r.rivals), shownRivals)] {
		out = append(out, c.fileEvidence(o.group.File("cpu.weight"), "", fmt.Sprint(o.weight), "weight of its sibling, "+o.name))
		if stat, err := o.group.CPUStat(); err == nil && !o.unread {
			if total, ok := stat.UsageUsec(); ok {
				out = append(out, c.fileEvidence(o.group.File("cpu.stat"), "usage_usec", fmt.Sprint(total),
					fmt.Sprintf("+%d µs in the sample by what may run on the container's CPUs: %s", o.usec, cores(o.cpus))))
			}
		}
	}
	return out
}

func (r rung) unread() bool {
	return slices.ContainsFunc(r.rivals, func(o rival) bool { return o.unread })
}

// shareText writes out the product of the shares.
func (w *contention) shareText() string {
	var parts, factors []string
	for _, r := range w.rungs {
		if len(r.rivals) == 0 || r.weightErr != nil {
			continue
		}
		terms := []string{fmt.Sprint(r.weight)}
		rest, more := uint64(0), 0
		for i, o := range r.rivals {
			if i < shownRivals {
				terms = append(terms, fmt.Sprint(o.weight))
			} else {
				rest += o.weight
				more++
			}
		}
		if more > 0 {
			terms = append(terms, fmt.Sprintf("%d of %d others", rest, more))
		}
		text := fmt.Sprintf("%s: %d / (%s) = %s", r.level.label(), r.weight, strings.Join(terms, " + "), percent(r.share))
		if r.unread() {
			text += ", if all siblings run: how much they use was not read"
		}
		parts = append(parts, text)
		factors = append(factors, percent(r.share))
	}
	part, known := w.due()
	if len(parts) == 0 || !known {
		return strings.Join(parts, "; ")
	}
	if len(factors) > 1 {
		parts = append(parts, fmt.Sprintf("%s = %s", strings.Join(factors, " × "), percent(part)))
	}
	if w.setKnown {
		parts = append(parts, fmt.Sprintf("%s × %s = %s", percent(part), plural(int64(w.set.Size()), "CPU"), cores(part*float64(w.set.Size()))))
	}
	if w.usedKnown {
		parts = append(parts, fmt.Sprintf("%s used + %s waited ≥ %s wanted", cores(w.used), percent(w.waited), cores(w.wants())))
	}
	return strings.Join(parts, "; ")
}

func (c *podCase) starvedRemedies(w contention) []report.Remedy {
	var out []report.Remedy
	for _, r := range w.rungs {
		if r.idle {
			out = append(out, report.Remedy{
				Summary: "Find who set cpu.idle on " + r.level.label() + ": an NRI plugin, a systemd drop-in or a hand edit.",
				Effect:  "With cpu.idle 0 it has a weight again.",
			})
		}
	}
	request := w.Resources.Requests.Cpu()
	ask := "Raise requests.cpu of container " + w.Name + " (now " + request.String() + ")"
	if request.IsZero() {
		ask = "Give container " + w.Name + " a CPU request: without one its weight is the least"
	}
	if w.usedKnown {
		ask += fmt.Sprintf("; it wanted at least %s", cores(w.wants()))
	}
	out = append(out, report.Remedy{
		Summary: ask + ".",
		Effect:  "cpu.weight follows from the request, and the scheduler puts no more requests on the node than it has CPUs: what is requested is there when all want it.",
		Caution: "Its neighbours get less by as much; the pod may have to move to a node with room.",
	})
	return append(out, report.Remedy{
		Summary: "Or limit, slow down or move the neighbour that uses most.",
		Effect:  "CPU that it leaves goes to those who wait.",
	})
}
