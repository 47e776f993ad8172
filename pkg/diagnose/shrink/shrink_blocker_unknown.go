package shrink

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/noderes/kubectl-noderes/pkg/report"
)

// shrinkBlockerUnknown: nothing that could be read keeps the node, and something
// that decides could not be read, or not be computed without Karpenter's
// provider.
func (n *nodeCase) shrinkBlockerUnknown(doubts []doubt) report.Finding {
	confidence := report.Possible
	var texts, sums []string
	var because []report.Evidence
	for _, d := range doubts {
		texts = append(texts, d.text)
		because = append(because, d.evidence...)
		if d.sum != "" {
			sums = append(sums, d.sum)
		}
		if d.proven && len(doubts) == 1 {
			confidence = report.Proven
		}
	}
	f := report.NewFinding(report.ShrinkBlockerUnknown, confidence, n.subject(),
		fmt.Sprintf("Whether Karpenter can remove %s is not known: %s.", lowerTitle(n), strings.Join(texts, "; ")), because...)
	f.Arithmetic = strings.Join(sums, "; ")
	if e, ok := n.said(consolidates); ok {
		f.Because = append(f.Because, n.eventEvidence(e, "the last that consolidation said of the node; what holds now it does not tell"))
	}
	return f
}

// consolidates: the event is one of consolidation's about single nodes.
func consolidates(e corev1.Event) bool {
	switch e.Reason {
	case unconsolidatable, "ConsolidationCandidate", "ConsolidationRejected", "ConsolidationApproved":
		return true
	}
	return false
}

// lowerTitle is the subject in the middle of a sentence.
func lowerTitle(n *nodeCase) string { return "node " + n.node.Name() }
