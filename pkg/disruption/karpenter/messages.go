package karpenter

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// This file holds what Karpenter says, word for word.

// InvalidCron is the error of a budget's schedule; the text names the parsed schedule, which is none, and never the expression.
func InvalidCron(err error) error {
	return fmt.Errorf("invariant violated, invalid cron, %w (cron=<nil>)", err)
}

// JoinErrors puts the errors of several budgets into one, as go.uber.org/multierr prints them.
func JoinErrors(errs []error) error {
	if len(errs) == 1 {
		return errs[0]
	}
	texts := make([]string, 0, len(errs))
	for _, err := range errs {
		texts = append(texts, err.Error())
	}
	return fmt.Errorf("%s", strings.Join(texts, "; "))
}

// Why a node is no candidate for any method (pkg/controllers/state/statenode.go, pkg/controllers/disruption/types.go).
const (
	InQueue          = "candidate is already being disrupted"
	NotManaged       = "node isn't managed by karpenter"
	NoNode           = "nodeclaim does not have an associated node"
	NotInitialized   = "node isn't initialized"
	Deleting         = "node is deleting or marked for deletion"
	Nominated        = "node is nominated for a pending pod"
	NodeDoNotDisrupt = `disruption is blocked through the "karpenter.sh/do-not-disrupt" annotation`
	NoNodePoolLabel  = "node doesn't have required label (label=karpenter.sh/nodepool)"
)

// NodePoolNotFound is the error for a pool that is gone, is not managed, or whose instance types cannot be listed.
func NodePoolNotFound(pool string) string { return "nodepool not found (NodePool=" + pool + ")" }

// PodDoNotDisrupt is the error for a pod that must not be disrupted.
func PodDoNotDisrupt(pod types.NamespacedName) string {
	return `pod has "karpenter.sh/do-not-disrupt" annotation (Pod=` + pod.String() + ")"
}

// PDBPrevents is the error for a pod whose one budget allows no eviction.
func PDBPrevents(pdb types.NamespacedName) string {
	return fmt.Sprintf("pdb prevents pod evictions (PodDisruptionBudget=[%s])", pdb)
}

// SeveralPDBs is the error for a pod that several budgets select.
func SeveralPDBs(pdbs []types.NamespacedName) string {
	return fmt.Sprintf("eviction does not support multiple PDBs (PodDisruptionBudget(s)=%s)", pdbs)
}

// Why a pod's do-not-disrupt holds nothing.

// NotADuration is the error of a value that is neither "true" nor a duration.
func NotADuration(value string, err error) error {
	return fmt.Errorf("failed to parse %q as a duration: %w", value, err)
}

// NotPositive is the error of a duration that is not above zero.
func NotPositive(value string) error { return fmt.Errorf("duration %q must be positive", value) }

// NotTrue is the error of a value in a version that knows no durations; Karpenter itself says nothing there.
func NotTrue(value string) error { return fmt.Errorf("%q is not \"true\"", value) }

// Why consolidation or emptiness leaves a candidate, as the event Unconsolidatable says it.

// ConsolidationDisabled is said of a pool whose consolidateAfter is Never.
func ConsolidationDisabled(pool string) string {
	return fmt.Sprintf("NodePool %q has consolidation disabled", pool)
}

// InstanceTypeNotFound is said of a node whose type the provider does not offer.
func InstanceTypeNotFound(instanceType string) string {
	return fmt.Sprintf("Instance Type %q not found", instanceType)
}

// NoLabel is said of a node without a label that a price is looked up by.
func NoLabel(label string) string { return fmt.Sprintf("Node does not have label %q", label) }

// PolicyWhenEmpty is said of a node with pods in a pool that gives up only empty nodes.
func PolicyWhenEmpty(pool string, rules Rules) string {
	if rules.OldWhenEmptyText {
		return fmt.Sprintf("NodePool %q has non-empty consolidation disabled", pool)
	}
	return fmt.Sprintf("NodePool %q has consolidation policy WhenEmpty, but node is not empty", pool)
}

// BlockedEvent is the message of the event DisruptionBlocked on a Node for an error of those above.
func BlockedEvent(err string, rules Rules) string {
	if rules.PrefixedMessages {
		if text, ok := oldBlocked[err]; ok {
			err = text
		}
		return "Cannot disrupt Node: " + err
	}
	if name, ok := strings.CutPrefix(err, "nodepool not found "); ok {
		return "NodePool not found " + name
	}
	if err == "" {
		return ""
	}
	return strings.ToUpper(err[:1]) + err[1:]
}

// oldBlocked are the texts of 1.0 where they are known to differ.
var oldBlocked = map[string]string{
	NotInitialized: "state node isn't initialized",
	Nominated:      "state node is nominated for a pending pod",
}

// BudgetEvent is the message of the event DisruptionBlocked on a NodePool: its budgets come to 0 before anything is subtracted.
func BudgetEvent(reason Reason) string {
	return fmt.Sprintf("No allowed disruptions for disruption reason %s due to blocking budget", reason)
}
