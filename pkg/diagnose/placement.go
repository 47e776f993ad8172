package diagnose

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/noderes/kubectl-noderes/pkg/alloc/history"
	"github.com/noderes/kubectl-noderes/pkg/report"
	"github.com/noderes/kubectl-noderes/pkg/snapshot"
)

// Placement lays out who holds which CPUs and memory of a node, and whether the
// kubelet's rules give exactly that. Errors: *NotFoundError.
func Placement(s *snapshot.Snapshot, name string, o Options) (report.Report, error) {
	if known := s.NodeNames(); !slices.Contains(known, name) {
		return report.Report{}, &NotFoundError{What: "nodes", Name: name, Known: known}
	}
	n := newNodeCase(s, name, o.At)
	findings := n.placementFindings()
	order(findings)
	uid := ""
	if n.object != nil {
		uid = string(n.object.UID)
	}
	placement := n.placement(n.pods)
	if placement != nil {
		placement.Layout = n.layout()
	}
	return report.Report{
		APIVersion: report.APIVersion,
		Kind:       report.PlacementReport,
		Metadata:   report.Metadata{Name: name, UID: uid},
		ObservedAt: metav1.NewTime(n.at),
		Versions:   n.versions(),
		Findings:   findings,
		Placement:  placement,
		Gaps:       n.gaps.List(),
	}, nil
}

// placementPodCodes are asked of every pod of the node.
var placementPodCodes = []report.Code{report.SMTSiblingShared, report.NUMASplit, report.UncoreCacheSplit, report.MemoryRemote, report.DeviceNUMAMismatch}

// placementNodeCodes are those of the node beside the group Placement: why the
// kubelet would not take its own record or setting.
var placementNodeCodes = []report.Code{report.KubeletCheckpointInvalid, report.KubeletConfigInvalid, report.ReservedMemoryMismatch, report.TooManyNUMANodes}

func (n *nodeCase) placementFindings() []report.Finding {
	findings := nodeReplayed(n)
	for _, r := range nodeRules {
		about := func(code report.Code) bool {
			e, _ := report.Lookup(code)
			return e.Group == report.GroupPlacement && code != report.PlacementDiffers || slices.Contains(placementNodeCodes, code)
		}
		if slices.ContainsFunc(r.codes, about) {
			findings = append(findings, r.find(n)...)
		}
	}
	for _, r := range podRules {
		if !slices.ContainsFunc(r.codes, func(code report.Code) bool { return slices.Contains(placementPodCodes, code) }) {
			continue
		}
		var all []report.Finding
		for i := range n.pods {
			all = append(all, r.find(newPodCase(n, &n.pods[i]))...)
		}
		findings = append(findings, firstOf(all)...)
	}
	return findings
}

// firstOf keeps a code's report readable where the whole node shows the same:
// the facts name every container.
func firstOf(findings []report.Finding) []report.Finding {
	const most = 12
	if len(findings) <= most {
		return findings
	}
	last := &findings[most-1]
	last.Summary += fmt.Sprintf(" (%d more containers of the node show the same.)", len(findings)-most)
	return findings[:most]
}

// nodeReplayed sums up the replay of all pods that hold CPUs or memory.
func nodeReplayed(n *nodeCase) []report.Finding {
	e, err := n.past()
	if err != nil {
		if errors.Is(err, errRecordInvalid) {
			return []report.Finding{report.NewFinding(report.EvidenceMissing, report.Proven, n.subject(), fmt.Sprintf(
				"Nothing was replayed: the kubelet itself would not take over what is recorded (%s).", clip(err.Error())))}
		}
		return []report.Finding{report.NewFinding(report.EvidenceMissing, report.Proven, n.subject(), fmt.Sprintf(
			"Whether the kubelet's rules give what the node holds cannot be told: %s.", clip(err.Error())))}
	}
	var holders, open []history.Step
	for _, s := range e.Steps {
		if s.Verdict != history.Nothing {
			holders = append(holders, s)
			if s.Verdict != history.Follows && s.Verdict != history.FollowsListed {
				open = append(open, s)
			}
		}
	}
	if len(open) > 0 {
		return n.openFindings(e.Explanation, holders, open)
	}
	f := report.NewFinding(report.PlacementReplayed, report.Proven, n.subject(), "", n.placementEvidence(holders)...)
	if !n.rulesExact {
		f.Confidence = report.Likely
	}
	how := fmt.Sprintf("from an empty node in the order of %s", e.Order)
	switch {
	case len(holders) == 0 && n.config.CPUManagerPolicy != "static" && n.config.MemoryManagerPolicy != "Static":
		f.Summary = "Neither CPUs nor memory are pinned on this node (policies none): there is nothing to replay, and nothing is recorded for any container."
	case len(holders) == 0:
		f.Summary = "No container holds CPUs or memory of its own, by the checkpoint and by the replay."
	case !e.All(history.Nothing, history.Follows):
		f.Summary = fmt.Sprintf("Replaying the %s with CPUs or memory of their own, %s, gives exactly what is recorded, if pods count that have ended since and are still listed or still in the checkpoint.",
			plural(len(holders), "pod"), how)
	default:
		f.Summary = fmt.Sprintf("Replaying the %s with CPUs or memory of %s own, %s, gives exactly what is recorded.",
			plural(len(holders), "pod"), verb(len(holders), "its", "their"), how)
	}
	if e.invalid != nil {
		f.Summary += fmt.Sprintf(" The next start of the kubelet would refuse it all the same (%s).", clip(e.invalid.Error()))
	}
	if left := n.unlisted(); left > 0 {
		f.Summary += fmt.Sprintf(" The checkpoint has entries of %s besides that the data do not have.", plural(left, "pod"))
		f.Confidence = report.Likely
	}
	return []report.Finding{f}
}

// openFindings gives one finding about the node for each verdict that is not
// plain.
func (n *nodeCase) openFindings(e history.Explanation, holders, open []history.Step) []report.Finding {
	byCode := map[report.Code][]report.Finding{}
	for _, s := range open {
		for i := range n.pods {
			c := newPodCase(n, &n.pods[i])
			if c.uid != string(s.Pod.UID) {
				continue
			}
			f := c.replayFinding(e, s)
			f.Because = append(c.recordEvidence(s), c.orderEvidence(e))
			byCode[f.Code] = append(byCode[f.Code], f)
		}
	}
	var out []report.Finding
	for _, code := range []report.Code{report.PlacementNeedsGonePods, report.PlacementDiffers} {
		list := byCode[code]
		if len(list) == 0 {
			continue
		}
		f := report.NewFinding(code, list[0].Confidence, n.subject(), fmt.Sprintf(
			"%d of the %s with CPUs or memory of their own %s from those before them, in the order of %s.", len(holders)-len(open), plural(len(holders), "pod"), verb(len(holders)-len(open), "follows", "follow"), e.Order))
		const most = 8
		for i, one := range list {
			if one.Confidence.Rank() > f.Confidence.Rank() {
				f.Confidence = one.Confidence
			}
			if i < most {
				f.Summary += fmt.Sprintf(" Pod %s/%s: %s", one.Subject.Namespace, one.Subject.Name, strings.ToLower(one.Summary[:1])+one.Summary[1:])
				f.Because = append(f.Because, one.Because...)
			}
			if i == 0 {
				f.Arithmetic, f.Remedies = one.Arithmetic, one.Remedies
			}
		}
		if len(list) > most {
			f.Summary += fmt.Sprintf(" So do %d more.", len(list)-most)
		}
		out = append(out, f)
	}
	return out
}

// placementEvidence quotes the pool and the first of the holders; the facts
// have all of them.
func (n *nodeCase) placementEvidence(holders []history.Step) []report.Evidence {
	out := []report.Evidence{
		n.configEvidence("cpuManagerPolicy", n.config.CPUManagerPolicy, "who picks CPUs"),
		n.configEvidence("memoryManagerPolicy", n.config.MemoryManagerPolicy, "who picks memory"),
	}
	if state, ok := n.cpuCheckpoint(); ok {
		out = append(out, n.fileEvidence(cpuStatePath, "policyName", state.PolicyName, verified(state.Checksums)))
		if state.PolicyName == "static" {
			out = append(out, n.fileEvidence(cpuStatePath, "defaultCpuSet", state.Default.String(), "the shared pool, as replayed"))
		}
	}
	const most = 8
	for i, s := range holders {
		if i == most {
			break
		}
		out = append(out, report.Evidence{Source: n.source(cpuStatePath), Field: "entries[" + string(s.Pod.UID) + "]", Value: clip(recordText(s)),
			Means: clip(fmt.Sprintf("pod %s/%s, as replayed", s.Pod.Namespace, s.Pod.Name))})
	}
	return out
}

// unlisted counts the checkpoint's pods that are not among the node's.
func (n *nodeCase) unlisted() int {
	state, ok := n.cpuCheckpoint()
	if !ok {
		return 0
	}
	known := map[string]bool{}
	for i := range n.pods {
		known[newPodCase(n, &n.pods[i]).uid] = true
	}
	count := 0
	for uid := range state.Entries {
		if !known[uid] {
			count++
		}
	}
	return count
}

// nodeDiffers keeps of it, for the report about the node itself, only what is
// wrong beyond doubt.
func nodeDiffers(n *nodeCase) []report.Finding {
	if n.config.CPUManagerPolicy != "static" && n.config.MemoryManagerPolicy != "Static" {
		return nil
	}
	return slices.DeleteFunc(nodeReplayed(n), func(f report.Finding) bool {
		return f.Code != report.PlacementDiffers || f.Confidence != report.Proven
	})
}
