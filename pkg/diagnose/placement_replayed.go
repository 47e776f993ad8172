package diagnose

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/noderes/kubectl-noderes/pkg/alloc/cpuset"
	"github.com/noderes/kubectl-noderes/pkg/alloc/history"
	"github.com/noderes/kubectl-noderes/pkg/alloc/memorymanager"
	"github.com/noderes/kubectl-noderes/pkg/report"
)

// podReplayed compares what the kubelet recorded for the pod with what its
// rules give at the pod's place in the order of admission. The state of that
// moment is not recorded, so that only the present pods are sure.
func podReplayed(c *podCase) []report.Finding {
	if !active(c.pod) {
		return nil
	}
	e, s, ok := c.pastStep()
	if !ok {
		return nil
	}
	f := c.replayFinding(e.Explanation, s)
	f.Because = append(f.Because, c.recordEvidence(s)...)
	f.Because = append(f.Because, c.orderEvidence(e.Explanation))
	return []report.Finding{f}
}

func (c *podCase) replayFinding(e history.Explanation, s history.Step) report.Finding {
	subject := c.subject("")
	switch s.Verdict {
	case history.Follows:
		return report.NewFinding(report.PlacementReplayed, c.replayConfidence(s), subject, fmt.Sprintf(
			"The kubelet's rules give the pod exactly what is recorded, %s, %s.", recordText(s), afterText(c.holdersBefore(e, s))))
	case history.FollowsListed:
		return report.NewFinding(report.PlacementReplayed, c.replayConfidence(s), subject, fmt.Sprintf(
			"The kubelet's rules give the pod exactly what is recorded, %s, if pods count that have ended since and are still listed or still in the checkpoint.", recordText(s)))
	case history.NeedsHeld:
		return c.neededFinding(e, s)
	}
	return c.differsFinding(s)
}

func afterText(holders int) string {
	if holders == 0 {
		return "on a node where no other pod holds anything yet"
	}
	return fmt.Sprintf("after the %s that came before and still %s", plural(holders, "pod"), verb(holders, "holds its own", "hold theirs"))
}

// neededFinding says with what the record follows, if pods since gone held it.
// Other holdings can explain it as well: what was tried is not all there is.
func (c *podCase) neededFinding(e history.Explanation, s history.Step) report.Finding {
	f := report.NewFinding(report.PlacementNeedsGonePods, report.Likely, c.subject(""), fmt.Sprintf(
		"What is recorded, %s, does not follow from the pods that were there and still are: from these it would be %s. By the kubelet's rules it follows if other pods, gone since, held %s when it came.",
		recordText(s), replayText(s), heldText(s)))
	switch {
	case s.Only:
		f.Arithmetic = "no smaller choice of whole cores explains it, and no other of this size"
	case s.Fewest:
		f.Arithmetic = "no smaller choice of whole cores explains it; others of this size do too"
	}
	if len(s.HeldMemory) > 0 {
		f.Arithmetic = "the least amounts with which the replay gives the record"
	}
	if f.Arithmetic != "" {
		f.Arithmetic += fmt.Sprintf(" (%d runs for the node)", e.Runs)
	}
	if !c.rulesExact || len(c.unknownDevices(c.pod)) > 0 {
		f.Confidence = report.Possible
	}
	if names, evidence := c.goneByEvents(s.Pod.Admitted); len(names) > 0 {
		f.Summary += fmt.Sprintf(" Events name %s, which %s there before and %s gone now.", join(names), verb(len(names), "was", "were"), verb(len(names), "is", "are"))
		f.Because = append(f.Because, evidence...)
	}
	return f
}

// heldText names what others can have held: CPUs and memory, or devices, or both
// together.
func heldText(s history.Step) string {
	var parts, devices []string
	if !s.Held.IsEmpty() {
		parts = append(parts, fmt.Sprintf("%s %s", noun(s.Held.Size(), "CPU"), s.Held))
	}
	for _, b := range s.HeldMemory {
		parts = append(parts, fmt.Sprintf("%s of %s on NUMA node %s", leastBytes(b.Size), b.Type, idList(b.Nodes.IDs())))
	}
	const most = 8
	for i, d := range s.HeldDevices {
		if i == most {
			devices = append(devices, fmt.Sprintf("%d more", len(s.HeldDevices)-most))
			break
		}
		devices = append(devices, fmt.Sprintf("%s %s", clip(d.Resource), clip(d.ID)))
	}
	switch list := noun(len(s.HeldDevices), "device") + " " + join(devices); {
	case len(devices) == 0:
		return join(parts)
	case len(parts) == 0:
		return list
	case s.DevicesBeside:
		return join(parts) + " and " + list
	default:
		return join(parts) + ", or " + list + ","
	}
}

// leastBytes writes a least amount: one byte over a round one is more than that.
func leastBytes(b uint64) string {
	const mi = 1 << 20
	switch b % mi {
	case 0:
		return bytes(b)
	case 1:
		return "more than " + bytes(b-1)
	}
	return fmt.Sprintf("%d bytes", b)
}

// differsFinding says that no state of the node was found that gives the
// record.
func (c *podCase) differsFinding(s history.Step) report.Finding {
	f := report.NewFinding(report.PlacementDiffers, report.Possible, c.subject(""), "")
	unknown := c.unknownDevices(c.pod)
	switch {
	case s.Verdict == history.Never:
		f.Summary = fmt.Sprintf("The kubelet's rules cannot give what is recorded, %s: %s.", recordText(s), s.Why)
		if f.Confidence = report.Proven; !c.rulesExact || !c.recordIsLater() {
			f.Confidence = report.Possible
		}
	default:
		f.Summary = fmt.Sprintf("No state of the node was found in which the kubelet's rules give what is recorded, %s; from the present pods they give %s.", recordText(s), replayText(s))
		if s.Exhausted && c.rulesExact && len(unknown) == 0 {
			f.Confidence = report.Likely
		}
	}
	if len(unknown) > 0 && s.Verdict != history.Never {
		f.Summary += fmt.Sprintf(" The hints of %s are not known.", join(unknown))
		c.gaps.Lack("nodes/"+c.name+"/podresources.json", "nothing names the devices of "+join(unknown), "which NUMA nodes the device manager preferred", "PodResources of the node")
	}
	f.Remedies = []report.Remedy{{
		Summary: "See whether policy, options, reservation or kubelet version were changed after the pod came, or CPUs went offline: what is in the checkpoint stays as it was.",
		Effect:  "The pod gets a new placement only when it is made anew.",
	}}
	return f
}

// recordIsLater says whether the pod's containers run since well before the
// reading, so that the checkpoint has had time to show them.
func (c *podCase) recordIsLater() bool {
	read := c.snap.Manifest().CapturedAt
	for _, k := range c.containers() {
		if k.init && !k.sidecar {
			continue
		}
		if !k.running() || read.Sub(k.status.State.Running.StartedAt.Time) < c.reconcilePeriod() {
			return false
		}
	}
	return true
}

func (c *podCase) replayConfidence(history.Step) report.Confidence {
	if c.rulesExact {
		return report.Proven
	}
	return report.Likely
}

// holdersBefore counts the pods before it that hold something.
func (c *podCase) holdersBefore(e history.Explanation, s history.Step) int {
	count := 0
	for _, other := range e.Steps {
		if other.Pod.UID == s.Pod.UID {
			break
		}
		if other.Verdict != history.Nothing {
			count++
		}
	}
	return count
}

// recordEvidence quotes the checkpoints' entries and the live cpusets: replay,
// checkpoint and cgroup side by side.
func (c *podCase) recordEvidence(s history.Step) []report.Evidence {
	var out []report.Evidence
	wants := map[string]int{}
	for _, r := range c.requestsOf(kubeletPod(c.pod).Pod).Containers {
		wants[r.Name] = r.CPUs
	}
	for _, k := range c.containers() {
		own := c.ownershipEvidence(k.Name)
		if _, replayed := s.Replayed[k.Name]; len(own) == 0 && (wants[k.Name] > 0 || replayed) {
			own = []report.Evidence{c.fileEvidence(cpuStatePath, "entries["+c.uid+"]["+k.Name+"]", "absent", fmt.Sprintf("the container asks for %s of its own", plural(wants[k.Name], "CPU")))}
		}
		out = append(out, own...)
		if blocks := s.ReplayedMemory[k.Name]; len(blocks) > 0 && len(s.RecordedMemory[k.Name]) == 0 {
			out = append(out, c.fileEvidence(memoryStatePath, "entries["+c.uid+"]["+k.Name+"]", "absent", "the replay books memory for the container"))
		}
		for _, b := range s.RecordedMemory[k.Name] {
			out = append(out, c.fileEvidence(memoryStatePath, "entries["+c.uid+"]["+k.Name+"] "+string(b.Type), fmt.Sprint(b.Size), "bytes on NUMA node "+idList(b.Nodes.IDs())))
		}
		if set, held := s.Recorded[k.Name]; held {
			if live, file, ok := c.liveCPUs(k.Name); ok {
				means := "the cgroup's cpuset agrees"
				if live != set.String() {
					means = "the cgroup's cpuset does not agree"
				}
				out = append(out, c.fileEvidence(file, "", live, means))
			}
		}
	}
	return out
}

func (c *podCase) orderEvidence(e history.Explanation) report.Evidence {
	if e.Order == history.ByAdmission {
		return c.podField("status.startTime", utc(startTime(c.pod)), "the pods were replayed in this order")
	}
	return c.podField("metadata.creationTimestamp", utc(c.pod.CreationTimestamp.Time), "the pods were replayed in this order")
}

func recordText(s history.Step) string { return holdings(s.Recorded, s.RecordedMemory) }

func replayText(s history.Step) string {
	if s.Refusal != "" {
		return "refused (" + clip(s.Refusal) + ")"
	}
	return holdings(s.Replayed, s.ReplayedMemory)
}

// holdings says what each container holds.
func holdings(cpus map[string]cpuset.Set, memory map[string][]memorymanager.Block) string {
	names := slices.Collect(maps.Keys(cpus))
	for name := range memory {
		if _, both := cpus[name]; !both {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	var parts []string
	for _, name := range names {
		var own []string
		if set, ok := cpus[name]; ok {
			own = append(own, noun(set.Size(), "CPU")+" "+set.String())
		}
		nodes := map[string]bool{}
		for _, b := range memory[name] {
			if on := fmt.Sprintf("memory on NUMA %s %s", noun(b.Nodes.Count(), "node"), idList(b.Nodes.IDs())); !nodes[on] {
				nodes[on] = true
				own = append(own, on)
			}
		}
		if len(own) > 0 {
			parts = append(parts, strings.Join(own, " and ")+" for "+name)
		}
	}
	if len(parts) == 0 {
		return "nothing"
	}
	return join(parts)
}
