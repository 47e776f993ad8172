package diagnose

import (
	"fmt"
	"slices"

	"github.com/noderes/kubectl-noderes/pkg/alloc/cpuset"
	"github.com/noderes/kubectl-noderes/pkg/report"
)

// cpuSharedPoolCrowded speaks of containers on a shared pool that exclusive CPUs
// have left too small: the requests of those who share it add up to more than
// it has, or they wait for its CPUs while others of the node are idle. Exclusive
// CPUs are taken out of the pool for as long as their container lives, used or
// not (kubelet, cpumanager/policy_static.go).
func cpuSharedPoolCrowded(c *podCase) []report.Finding {
	var out []report.Finding
	waits := map[string]bool{}
	for _, w := range c.contended() {
		waits[w.Name] = true
		if _, confidence := c.judge(w); confidence != "" {
			pool, _ := c.poolFor(w)
			out = append(out, c.crowdedFinding(w, pool, confidence))
		}
	}
	// Without PSI nothing tells whether a container waits; that the pool is too
	// small for what was promised is told by the requests alone.
	pool, ok := c.pool()
	if !ok || !pool.tooSmall() || !active(c.pod) {
		return out
	}
	judged := map[string]bool{}
	for _, k := range c.cpu() {
		judged[k.Name] = waits[k.Name] || c.waitingKnown(k) || c.heldAnywhere(k)
	}
	for _, k := range c.containers() {
		if judged[k.Name] || c.ownsCPUs(c.uid, k.Name) || k.init && !k.sidecar || !k.running() {
			continue
		}
		f := report.NewFinding(report.CPUSharedPoolCrowded, report.Likely, c.subject(k.Name),
			fmt.Sprintf("Container %s shares %s with requests of %s, more than there are; whether it waits was not read.", k.Name, pool.text(), milliText(pool.milli)))
		f.Because = c.poolEvidence(pool)
		f.Arithmetic = pool.arithmetic()
		f.Remedies = poolRemedies(pool)
		out = append(out, f)
	}
	return out
}

// nodePoolCrowded says it of the node, by the requests alone.
func nodePoolCrowded(n *nodeCase) []report.Finding {
	pool, ok := n.pool()
	if !ok || !pool.tooSmall() {
		return nil
	}
	f := report.NewFinding(report.CPUSharedPoolCrowded, report.Proven, n.subject(),
		fmt.Sprintf("The containers without CPUs of their own share %s, and request %s: exclusive CPUs have left less than was promised to them.", pool.text(), milliText(pool.milli)))
	f.Because = n.poolEvidence(pool)
	f.Arithmetic = pool.arithmetic()
	f.Remedies = poolRemedies(pool)
	return []report.Finding{f}
}

// poolFor is the pool that a waiting container runs on; false where it owns
// CPUs or runs on others.
func (c *podCase) poolFor(w contention) (poolState, bool) {
	p, ok := c.pool()
	if !ok || c.ownsCPUs(c.uid, w.Name) || !w.setKnown {
		return p, false
	}
	set, err := cpuset.Parse(w.set.String())
	return p, err == nil && set.IsSubsetOf(p.shared)
}

// waitingKnown says whether PSI was read for the container: then waits has
// judged it.
func (c *podCase) waitingKnown(k containerCPU) bool {
	p, err := k.own().group.Pressure("cpu")
	return err == nil && p.Some != nil
}

// heldAnywhere says whether a quota throttles the container.
func (c *podCase) heldAnywhere(k containerCPU) bool {
	return slices.ContainsFunc(k.levels, func(l *cpuLevel) bool {
		held, _ := l.heldByQuota()
		return held
	})
}

func (c *podCase) crowdedFinding(w contention, p poolState, confidence report.Confidence) report.Finding {
	summary := fmt.Sprintf("Container %s waits for a CPU %s of the time (%s) and no quota holds it back: it shares %s", w.Name, percent(w.waited), w.window, p.text())
	switch {
	case p.tooSmall():
		summary += fmt.Sprintf(" with requests of %s, more than there are", milliText(p.milli))
	default:
		summary += fmt.Sprintf(", %s busy, while %s of %s that others own (%s) were idle", percent(w.busy), cores(w.idleOf(p.owned())), plural(int64(p.exclusive.Size()), "CPU"), p.exclusive)
	}
	f := report.NewFinding(report.CPUSharedPoolCrowded, confidence, c.subject(w.Name), summary+".")
	f.Because = append(f.Because, w.pressure...)
	f.Because = append(f.Because, w.times...)
	f.Because = append(f.Because, c.usedEvidence(w)...)
	f.Because = append(f.Because, c.setEvidence(w)...)
	f.Because = append(f.Because, c.poolEvidence(p)...)
	f.Arithmetic = p.arithmetic()
	f.Remedies = poolRemedies(p)
	return f
}

func (n *nodeCase) poolEvidence(p poolState) []report.Evidence {
	out := []report.Evidence{n.fileEvidence(cpuStatePath, "defaultCpuSet", p.shared.String(), "the shared pool")}
	for _, o := range p.biggestOwners() {
		out = append(out, n.fileEvidence(cpuStatePath, "entries["+o.uid+"]["+o.container+"]", o.set.String(), "exclusive CPUs of "+o.name()))
	}
	for i, t := range p.terms {
		if i == shownTerms || !p.tooSmall() {
			break
		}
		out = append(out, report.Evidence{Source: "api:pods/" + t.pod.Namespace + "/" + t.pod.Name, Field: "resources.requests.cpu", Value: milliText(t.milli), Means: "shares the pool: " + t.what})
	}
	return out
}

func poolRemedies(p poolState) []report.Remedy {
	owner := "pods that do not use theirs"
	if big := p.biggestOwners(); len(big) > 0 {
		owner = fmt.Sprintf("pods that do not use theirs (most are owned by %s: %s)", big[0].name(), big[0].set)
	}
	return []report.Remedy{{
		Summary: "Give exclusive CPUs back to the pool: a fractional CPU request, or a pod that is not Guaranteed, for " + owner + ".",
		Effect:  "An exclusive CPU is out of the pool while its container lives, whether it uses it or not.",
		Caution: "That container then shares CPUs.",
	}, {
		Summary: "Or move pods that share the pool to another node, or keep fewer exclusive CPUs on this one.",
		Effect:  "The pool then has the CPUs that its users request.",
	}}
}
