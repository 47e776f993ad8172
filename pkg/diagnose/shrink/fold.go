package shrink

import (
	"fmt"
	"slices"
	"strings"

	"github.com/noderes/kubectl-noderes/pkg/report"
)

// mostOfNodes is how many findings about single nodes the report of a pool
// holds. A pool may have thousands of nodes that are held by the same few causes.
const mostOfNodes = 24

// mostAlike is how many of them say the same of different nodes.
const mostAlike = 2

// mostNamed is how many of the other nodes a folded finding quotes.
const mostNamed = 5

// ofNodes are the findings of the pool's nodes, folded, and their verdicts.
// Rules whose codes the pool's own rules give are left to those.
func (p *poolCase) ofNodes(ofPool []report.Finding) []report.Finding {
	var rules []rule[*nodeCase]
	for _, r := range nodeRules {
		if !saidOfPools(r.codes) {
			rules = append(rules, r)
		}
	}
	var found, verdicts []report.Finding
	seen := map[string]bool{}
	for _, node := range p.nodes {
		if node.Node == nil && p.nodesErr != nil {
			continue // of what is not known of it nothing follows
		}
		n := p.nodeOf(node)
		n.missing()
		ofNode := apply(rules, n)
		verdicts = append(verdicts, n.verdict(slices.Concat(ofPool, ofNode))...)
		for _, f := range ofNode {
			if f.Code == report.PriceUnknown {
				verdicts = append(verdicts, f)
				continue
			}
			if key := fmt.Sprintf("%s %+v %s", f.Code, f.Subject, f.Summary); !seen[key] {
				seen[key] = true
				found = append(found, f)
			}
		}
	}
	return append(p.fold(found), p.together(verdicts)...)
}

func saidOfPools(codes []report.Code) bool {
	for _, code := range codes {
		said := false
		for _, r := range slices.Concat(poolRules, budgetRules) {
			said = said || slices.Contains(r.codes, code)
		}
		if !said {
			return false
		}
	}
	return true
}

// fold keeps findings up to mostOfNodes, shared out over their codes, and for
// each code counts those that it leaves out. Of findings with the same text but
// for the node's name the first comes before any second, and no more than
// mostAlike are told one by one.
func (p *poolCase) fold(findings []report.Finding) []report.Finding {
	return foldFor(p.subject(), findings)
}

// foldFor folds the findings of the nodes of a pool or a node group.
func foldFor(owner report.Subject, findings []report.Finding) []report.Finding {
	byCode := map[report.Code][]report.Finding{}
	var codes []report.Code
	for _, f := range findings {
		if byCode[f.Code] == nil {
			codes = append(codes, f.Code)
		}
		byCode[f.Code] = append(byCode[f.Code], f)
	}
	slices.Sort(codes)
	most := len(findings)
	if most > mostOfNodes {
		most = max(1, mostOfNodes/len(codes))
	}
	var out []report.Finding
	for _, code := range codes {
		of, distinct := distinctFirst(byCode[code])
		keep := min(most, max(distinct, mostAlike))
		if len(of) <= keep+1 {
			out = append(out, of...)
			continue
		}
		out = append(append(out, of[:keep]...), folded(owner, of[:keep], of[keep:]))
	}
	return out
}

// distinctFirst moves findings that say what none before them says to the front.
func distinctFirst(findings []report.Finding) (sorted []report.Finding, distinct int) {
	var first, again []report.Finding
	seen := map[string]bool{}
	for _, f := range findings {
		text := strings.ReplaceAll(f.Summary, f.Subject.Name, "")
		if seen[text] {
			again = append(again, f)
			continue
		}
		seen[text] = true
		first = append(first, f)
	}
	return append(first, again...), len(first)
}

func folded(owner report.Subject, told, rest []report.Finding) report.Finding {
	var names []string
	confidence := report.Proven
	for _, f := range rest {
		names = append(names, f.Subject.Name)
		if f.Confidence.Rank() > confidence.Rank() {
			confidence = f.Confidence
		}
	}
	slices.Sort(names)
	entry, _ := report.Lookup(rest[0].Code)
	f := report.NewFinding(rest[0].Code, confidence, owner,
		fmt.Sprintf("The same is found of %s of %s %s beside the %d told of one by one (%s): %s.", plural(len(rest), "other subject"), owner.Kind, owner.Name, len(told), entry.Title, some(names)))
	f.Because = ofSome(rest)
	f.Remedies = []report.Remedy{{Summary: "Ask for one of them to see what holds it and what would lift it.", Command: "kubectl noderes explain node " + shellWord(names[0])}}
	return f
}

// cut is a text that a stranger could have made long.
func cut(text string, most int) string {
	r := []rune(text)
	if len(r) <= most {
		return text
	}
	return string(r[:most]) + "…"
}

// ofSome is the first evidence of some of many findings, with what they say.
func ofSome(findings []report.Finding) []report.Evidence {
	var out []report.Evidence
	for _, f := range findings[:min(len(findings), mostNamed)] {
		if len(f.Because) == 0 {
			f.Because = []report.Evidence{{Source: "api:nodes/" + f.Subject.Name, Field: "metadata.name", Value: f.Subject.Name}}
		}
		e := f.Because[0]
		e.Value, e.Means = cut(e.Value, 200), cut(f.Summary, 300)
		out = append(out, e)
	}
	return out
}
