package shrink

import (
	"fmt"
	"strings"

	"github.com/noderes/kubectl-noderes/pkg/report"
)

// settled are findings as far as the version of Karpenter carries them. Where
// the rules are those of another minor version none is proven, and where nothing
// tells the version that is said as a gap: most rules are the same in every
// version, so that only what differs among them is doubted.
func (c *Cluster) settled(findings []report.Finding) []report.Finding {
	// The arithmetic of budgets is the same in every version.
	concerned, beyondBudgets := false, false
	for i := range findings {
		f := &findings[i]
		if !ofKarpenter(f.Code) {
			continue
		}
		concerned = true
		beyondBudgets = beyondBudgets || !strings.HasPrefix(string(f.Code), "budget")
		if f.Confidence == report.Proven && (!c.version.exact || c.version.text == "" && differsByVersion[f.Code]) {
			f.Confidence = report.Likely
		}
	}
	rules := c.RulesName()
	switch {
	case !concerned:
	case c.version.text == "" && beyondBudgets:
		c.gaps.Lack("Karpenter's version", "no image of its controller, no karpenter_build_info in its metrics, no --karpenter-version",
			rules+" were taken; what differs among versions is at most likely", "collect Karpenter's pods or Deployment, or say --karpenter-version")
	case c.version.text != "" && !c.version.exact:
		c.gaps.Lack("rules of Karpenter "+c.version.text, fmt.Sprintf("%s are the nearest ones known", rules), "no finding by them is more than likely", "")
	}
	return findings
}

// differsByVersion are codes whose rule not every version has.
var differsByVersion = map[report.Code]bool{report.SeveralPDBs: true, report.RepairIgnoresBudget: true}

// ofKarpenter reports whether the rules of Karpenter decide a code.
func ofKarpenter(code report.Code) bool {
	entry, _ := report.Lookup(code)
	return entry.Group == report.GroupShrinking && !strings.HasPrefix(string(code), "ca-") && code != "not-managed"
}
