package shrink

import (
	"fmt"
	"strings"

	"github.com/noderes/kubectl-noderes/pkg/disruption"
	"github.com/noderes/kubectl-noderes/pkg/report"
)

// repairIgnoresBudget: an unhealthy node is replaced after a time, without
// asking budgets or sparing pods, unless too many of its pool are unhealthy
// (Karpenter 1.6 to 1.14, pkg/controllers/node/health). The policies are the
// provider's, and the feature gate is off unless set.
func repairIgnoresBudget(n *nodeCase) []report.Finding {
	rules := n.version.rules
	if !n.node.Managed() || n.node.Node == nil || n.going() || rules.RepairByMethod || rules.Minor < 6 {
		return nil
	}
	if !strings.HasPrefix(n.node.Node.Spec.ProviderID, "aws://") {
		return nil
	}
	repair, ok := disruption.RepairOf(n.node.Node, disruption.AWSRepairPolicies)
	if !ok || repair.Since.IsZero() {
		return nil
	}
	gate, evidence, known := n.featureGate("NodeRepair")
	if known && !gate {
		return nil
	}
	confidence, if_ := report.Likely, ""
	if !known {
		confidence, if_ = report.Possible, " if the feature gate NodeRepair is on, which is not known (off by default)"
		n.gaps.Lack("feature gates of Karpenter", "no FEATURE_GATES in the controller's pods or Deployment", "whether unhealthy nodes are repaired is not known", "collect Karpenter's Deployment")
	}
	pool, _ := n.node.NodePool()
	breaker := disruption.BreakerOf(pool, n.karpenter.Nodes, disruption.AWSRepairPolicies)
	what := fmt.Sprintf("is replaced at %s", utc(repair.At))
	if !repair.At.After(n.at) {
		what = fmt.Sprintf("was due to be replaced at %s", utc(repair.At))
	}
	if n.nodesErr == nil && breaker.Open() {
		what += fmt.Sprintf(", but is not while more than %d of the pool's %s are unhealthy (%d are)", breaker.Allowed, plural(breaker.Nodes, "node"), breaker.Unhealthy)
	}
	f := report.NewFinding(report.RepairIgnoresBudget, confidence, n.subject(),
		fmt.Sprintf("%s is unhealthy (%s %s since %s) and %s%s; repair asks no budget, and its pods are deleted without regard to PodDisruptionBudgets or annotations.",
			n.title(), repair.Policy.Type, repair.Policy.Status, utc(repair.Since), what, if_),
		n.field(fmt.Sprintf("status.conditions[%s]", repair.Policy.Type), string(repair.Policy.Status), "since "+utc(repair.Since)))
	if known {
		f.Because = append(f.Because, evidence)
	}
	f.Arithmetic = fmt.Sprintf("%s + %s (policy of the AWS provider) = %s; ceil(20%% of %d nodes) = %d may be unhealthy, %d are", utc(repair.Since), span(repair.Policy.Toleration), utc(repair.At), breaker.Nodes, breaker.Allowed, breaker.Unhealthy)
	return []report.Finding{f}
}

// featureGate is one of Karpenter's, where its pods or its Deployment show it.
func (c *Cluster) featureGate(name string) (on bool, evidence report.Evidence, known bool) {
	text, evidence, ok := c.controllerSetting("FEATURE_GATES", "feature-gates")
	if !ok {
		return false, evidence, false
	}
	for _, part := range strings.Split(text, ",") {
		key, value, _ := strings.Cut(strings.TrimSpace(part), "=")
		if key == name {
			return strings.EqualFold(value, "true"), evidence, true
		}
	}
	return false, evidence, true
}

// controllerSetting is a setting of Karpenter's controller, by its variable or
// its flag, which comes first.
func (c *Cluster) controllerSetting(variable, flag string) (value string, evidence report.Evidence, ok bool) {
	for _, k := range c.controllers() {
		for _, arg := range append(k.container.Command, k.container.Args...) {
			if v, found := strings.CutPrefix(strings.TrimLeft(arg, "-"), flag+"="); found {
				return v, report.Evidence{Source: k.source, Field: "args", Value: cut(arg, 300), Means: "setting of Karpenter's controller"}, true
			}
		}
		for _, e := range k.container.Env {
			if e.Name == variable && e.ValueFrom == nil {
				return e.Value, report.Evidence{Source: k.source, Field: "env." + variable, Value: cut(e.Value, 300), Means: "setting of Karpenter's controller"}, true
			}
		}
	}
	return "", report.Evidence{}, false
}
