package diagnose

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/noderes/kubectl-noderes/pkg/alloc/memorymanager"
	"github.com/noderes/kubectl-noderes/pkg/alloc/node"
	"github.com/noderes/kubectl-noderes/pkg/report"
)

// heldPart is what the checkpoints still book for a container of a refused pod.
type heldPart struct {
	// text is "app CPUs 1,3-5 on NUMA nodes 0,1".
	text     string
	evidence []report.Evidence
	// other says what it asks for where that is not what it holds.
	other string
}

// heldParts are those of each container, in the order of the pod.
func (c *podCase) heldParts(m managers) []heldPart {
	var out []heldPart
	for _, r := range c.requestsOf(kubeletPod(c.pod).Pod).Containers {
		var p heldPart
		var texts []string
		if set, ok := c.ownedCPUs(c.uid, r.Name); ok {
			var nodes []int
			for _, n := range m.config.Topology.NUMANodes {
				if !set.Intersection(n.CPUs).IsEmpty() {
					nodes = append(nodes, n.ID)
				}
			}
			texts = append(texts, fmt.Sprintf("%s %s on NUMA %s %s", noun(set.Size(), "CPU"), set, noun(len(nodes), "node"), idList(nodes)))
			p.evidence = append(p.evidence, c.fileEvidence(cpuStatePath, "entries["+c.uid+"]["+r.Name+"]", set.String(), "CPUs that are still booked for container "+r.Name))
			if r.CPUs != set.Size() {
				p.other = fmt.Sprintf("container %s asks for %s and holds %d", r.Name, plural(r.CPUs, "CPU"), set.Size())
			}
		}
		if m.recorded.Memory != nil {
			for _, b := range m.recorded.Memory.Entries[c.uid][r.Name] {
				texts = append(texts, memoryHeld(b))
				p.evidence = append(p.evidence, c.fileEvidence(memoryStatePath, "entries["+c.uid+"]["+r.Name+"] "+string(b.Type), fmt.Sprint(b.Size), "bytes still booked on NUMA node "+idList(b.Nodes.IDs())))
			}
		}
		if len(texts) > 0 {
			p.text = r.Name + " " + strings.Join(texts, " and ")
			out = append(out, p)
		}
	}
	return out
}

func memoryHeld(b memorymanager.Block) string {
	return fmt.Sprintf("%s of %s on NUMA %s %s", bytes(b.Size), b.Type, noun(b.Nodes.Count(), "node"), idList(b.Nodes.IDs()))
}

// readmittedHeld runs the pod as a restart does that finds its entries in the
// checkpoints: it is active, what is booked for it stays, and the pods created
// before it are admitted first. Nil where nothing is booked.
func (c *podCase) readmittedHeld(m managers, pod node.Pod) *attempt {
	if len(c.heldParts(m)) == 0 {
		return nil
	}
	then := c.restartManagers(m)
	then.pods = nil
	e, told := c.refusalEvent()
	for _, p := range m.pods {
		if !told || firstSeen(e).IsZero() || !p.CreationTimestamp.After(firstSeen(e)) {
			then.pods = append(then.pods, p)
		}
	}
	then.pods = append(then.pods, pod)
	slices.SortStableFunc(then.pods, func(a, b node.Pod) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.UID, b.UID))
	})
	n, err := node.Start(then.config, then.recorded, then.pods...)
	if err != nil && !node.MayStart(err) {
		return nil
	}
	for _, p := range then.pods {
		if p.UID == pod.UID {
			break
		}
		if _, err := n.Admit(p, nil); err != nil {
			return nil
		}
	}
	return then.admit(n, pod)
}

// heldRefusal is the status's answer, replayed for a pod whose entries are still
// there.
type heldRefusal struct {
	attempt *attempt
	parts   []heldPart
	// proven: each container has an entry, so that none was refused on the pod's
	// first way through.
	proven bool
}

// refusedWithHeld tells whether what is booked for the refused pod explains the
// refusal at a restart.
func (c *podCase) refusedWithHeld() (heldRefusal, bool) {
	if _, again, _ := c.refusedAgain(); !again || fitReason(c.pod.Status.Reason) {
		return heldRefusal{}, false
	}
	m, err := c.managers()
	if err != nil {
		return heldRefusal{}, false
	}
	a := c.readmittedHeld(m, c.newPodDevices(kubeletPod(c.pod)))
	if a == nil || a.crash != nil || !c.sameAnswer(a) {
		return heldRefusal{}, false
	}
	h := heldRefusal{attempt: a, parts: c.heldParts(m)}
	_, _, seen := c.refusedAgain()
	h.proven = c.rulesKnown && c.rulesExact && (seen || len(h.parts) == len(a.requests.Containers)) && len(c.unknownDevices(c.pod)) == 0
	return h, true
}

// texts are what is held, and what is asked for otherwise.
func (h heldRefusal) texts() (held, other string) {
	var parts, others []string
	for _, p := range h.parts {
		parts = append(parts, p.text)
		if p.other != "" {
			others = append(others, p.other)
		}
	}
	return strings.Join(parts, ", "), strings.Join(others, ", ")
}

func (h heldRefusal) evidence() []report.Evidence {
	var out []report.Evidence
	for _, p := range h.parts {
		out = append(out, p.evidence...)
	}
	return out
}

// heldTopology explains a refusal by the Topology Manager's policy: a container
// with an entry gets no other hint than what it holds.
func (c *podCase) heldTopology(h heldRefusal) report.Finding {
	k := h.attempt.from.config.Kubelet
	held, other := h.texts()
	why := map[string]string{"single-numa-node": "it would have to be one and the same NUMA node", "restricted": "they would have to be the fewest NUMA nodes that can serve, the same for all"}[k.TopologyManagerPolicy]
	if other != "" {
		why = "the kubelet has no hint for other amounts than are held: " + other
	}
	f := c.refusal(h.attempt, report.TopologyAffinityRefused, c.subject(""),
		fmt.Sprintf("The kubelet of %s, started anew, refused the pod by what it holds: for containers with an entry in the checkpoint only that is offered to the Topology Manager (%s). By topologyManagerPolicy %s, %s.", c.name, held, k.TopologyManagerPolicy, why),
		c.configEvidence("topologyManagerPolicy", k.TopologyManagerPolicy, "the policy that says no"),
		c.configEvidence("topologyManagerScope", k.TopologyManagerScope, ""))
	f.Because = append(f.Because, h.evidence()...)
	f.Remedies = []report.Remedy{{Summary: "Delete the pod: its controller makes a new one, which gets CPUs and memory by the policy of now.",
		Effect: "The entries are released as the kubelet no longer counts the pod."}}
	return f
}

// heldExplained is what a restart explains of a pod that holds its own still.
func (c *podCase) heldExplained() []report.Finding {
	h, ok := c.refusedWithHeld()
	if !ok {
		return nil
	}
	var out []report.Finding
	if h.attempt.result.Reason == "TopologyAffinityError" {
		out = []report.Finding{c.heldTopology(h)}
	} else {
		out = c.explained(h.attempt)
	}
	for i := range out {
		if !h.proven {
			out[i].Confidence = report.Likely
		}
	}
	return out
}
