package diagnose

import (
	"fmt"

	"github.com/noderes/kubectl-noderes/pkg/alloc/cpuset"
	"github.com/noderes/kubectl-noderes/pkg/report"
)

// smtSiblingShared says that a core of which a container owns a thread has
// another thread on which others may run: they share its execution units.
func smtSiblingShared(c *podCase) []report.Finding {
	topo, err := c.topo()
	state, ok := c.cpuCheckpoint()
	if err != nil || !ok {
		return nil
	}
	var pod cpuset.Set
	for _, set := range state.Entries[c.uid] {
		pod = pod.Union(set)
	}
	var out []report.Finding
	for _, k := range c.pinnedOn(topo) {
		f := report.NewFinding(report.SMTSiblingShared, report.Proven, c.subject(k.Name), "", c.ownershipEvidence(k.Name)...)
		var mine, siblings cpuset.Set
		for _, core := range topo.Cores {
			own := core.CPUs.Intersection(k.cpus)
			other := core.CPUs.Difference(pod)
			if own.IsEmpty() || other.IsEmpty() {
				continue
			}
			mine, siblings = mine.Union(own), siblings.Union(other)
			source, field, value, _ := c.coreEvidence(topo, core.CPUs, "")
			f.Because = append(f.Because, report.Evidence{Source: source, Field: field, Value: value, Means: "threads of one core; the container owns " + own.String()})
		}
		if mine.IsEmpty() {
			continue
		}
		who, evidence := c.usersOf(siblings)
		f.Because = append(f.Because, evidence...)
		f.Summary = fmt.Sprintf("Container %s owns %s %s, but not the other %s (%s) of the same %s: %s run there and share the core's execution units.",
			k.Name, noun(mine.Size(), "CPU"), mine, noun(siblings.Size(), "thread"), siblings, noun(mine.Size(), "core"), who)
		f.Remedies = c.wholeCoreRemedies()
		out = append(out, f)
	}
	return out
}

// wholeCoreRemedies say how a container gets whole cores: by the option that
// insists on them, or, where it is set, by making the pod anew.
func (c *podCase) wholeCoreRemedies() []report.Remedy {
	caution := "With it a request that is no multiple of the threads of a core is refused."
	if c.configErr == nil && c.config.CPUManagerPolicyOptions[fullPCPUsOnly] == "true" {
		return []report.Remedy{{
			Summary: "Make the pod anew, with a request of whole cores: full-pcpus-only=true is set, and holds for pods admitted since it was.",
			Caution: caution,
		}}
	}
	return []report.Remedy{{Summary: "Set the CPU Manager's option full-pcpus-only=true and ask for whole cores.", Caution: caution}}
}

// usersOf says who may run on CPUs: the shared pool, other owners, the system.
func (n *nodeCase) usersOf(cpus cpuset.Set) (string, []report.Evidence) {
	state, _ := n.cpuCheckpoint()
	var who []string
	var evidence []report.Evidence
	if shared := state.Default.Intersection(cpus); !shared.IsEmpty() {
		who = append(who, fmt.Sprintf("the pods of the shared pool (on %s)", shared))
		evidence = append(evidence, n.fileEvidence(cpuStatePath, "defaultCpuSet", state.Default.String(), "the shared pool"))
		cpus = cpus.Difference(shared)
	}
	for i := range n.pods {
		other := newPodCase(n, &n.pods[i])
		for _, k := range other.pinned() {
			if on := k.cpus.Intersection(cpus); !on.IsEmpty() {
				who = append(who, fmt.Sprintf("container %s of pod %s/%s (on %s)", k.Name, other.pod.Namespace, other.pod.Name, on))
				evidence = append(evidence, other.ownershipEvidence(k.Name)...)
				cpus = cpus.Difference(on)
			}
		}
	}
	if !cpus.IsEmpty() {
		who = append(who, fmt.Sprintf("others (on %s)", cpus))
	}
	return join(who), evidence
}
