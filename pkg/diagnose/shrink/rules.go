package shrink

import (
	"slices"

	"github.com/noderes/kubectl-noderes/pkg/report"
)

// rule is one cause: the codes it can give and what it looks for. S is the
// subject it can speak of.
type rule[S any] struct {
	codes []report.Code
	find  func(S) []report.Finding
}

// nodeRules, poolRules and budgetRules register every rule for the subjects it
// can speak of. What a budget rule says of a pool stands in the reports of the
// pool and of its budgets. Their order does not matter: findings are sorted by
// the catalogue.
var (
	nodeRules = []rule[*nodeCase]{
		{codes: []report.Code{report.NotManaged}, find: notManaged},
		{codes: []report.Code{report.AlreadyDisrupting}, find: alreadyDisrupting},
		{codes: []report.Code{report.StaticNodePool}, find: ofPool(staticNodePool)},
		{codes: []report.Code{report.ConsolidationNever}, find: ofPool(consolidationNever)},
		{codes: []report.Code{report.PolicyWhenEmpty}, find: nodePolicyWhenEmpty},
		{codes: []report.Code{report.NodeClaimNotInitialized}, find: nodeClaimNotInitialized},
		{codes: []report.Code{report.NodeNominated}, find: nodeNominated},
		{codes: []report.Code{report.NodePoolNotFound}, find: nodePoolNotFound},
		{codes: []report.Code{report.MissingPriceLabels}, find: missingPriceLabels},
		{codes: []report.Code{report.NodeDoNotDisrupt}, find: nodeDoNotDisrupt},
		{codes: []report.Code{report.PodDoNotDisrupt}, find: podDoNotDisrupt},
		{codes: []report.Code{report.PDBBlocks}, find: pdbBlocks},
		{codes: []report.Code{report.SeveralPDBs}, find: severalPDBs},
		{codes: []report.Code{report.ConsolidateAfterRunning}, find: consolidateAfterRunning},
		{codes: []report.Code{report.DestinationConsolidateAfter}, find: destinationConsolidateAfter},
		{codes: []report.Code{report.BudgetZeroNow, report.BudgetZeroAlways, report.BudgetUsedUp, report.BudgetInvalid}, find: nodeBudgets},
		{codes: []report.Code{report.BalancedScoreBelow}, find: balancedScoreBelow},
		{codes: []report.Code{report.NoCheaperReplacement}, find: noCheaperReplacement},
		{codes: []report.Code{report.SpotToSpotBarred}, find: spotToSpotBarred},
		{codes: []report.Code{report.PodsFitNowhere}, find: podsFitNowhere},
		{codes: []report.Code{report.TopologySpreadFloor}, find: topologySpreadFloor},
		{codes: []report.Code{report.AntiAffinityFloor}, find: antiAffinityFloor},
		{codes: []report.Code{report.VolumeZone}, find: volumeZone},
		{codes: []report.Code{report.PriceUnknown}, find: priceUnknown},
		{codes: []report.Code{report.DriftQueued}, find: driftQueued},
		{codes: []report.Code{report.ExpiryIgnoresBudget}, find: expiryIgnoresBudget},
		{codes: []report.Code{report.RepairIgnoresBudget}, find: repairIgnoresBudget},
		{codes: []report.Code{report.DrainStuck}, find: drainStuck},
		{codes: []report.Code{report.NodePoolLimitReached}, find: ofPool(nodePoolLimitReached)},
		{codes: []report.Code{report.PodEventNotRecorded}, find: podEventNotRecorded},
		{codes: []report.Code{report.DoNotDisruptIgnored}, find: doNotDisruptIgnored},
		{codes: []report.Code{report.BarePodLost}, find: barePodLost},
		{codes: []report.Code{report.NeedsSeveralReplacements}, find: needsSeveralReplacements},
		{codes: []report.Code{report.KarpenterUnsynced}, find: nodeUnsynced},
		{codes: []report.Code{report.PDBBlocks, report.SeveralPDBs}, find: evictionRefused},
		{codes: []report.Code{report.CAScaleDownDisabled}, find: ofAutoscaler(caScaleDownDisabled)},
		{codes: []report.Code{report.CAPodNotSafeToEvict}, find: ofAutoscaler(caPodNotSafeToEvict)},
		{codes: []report.Code{report.CAPodWithoutController}, find: ofAutoscaler(caPodWithoutController)},
		{codes: []report.Code{report.CALocalStorage}, find: ofAutoscaler(caLocalStorage)},
		{codes: []report.Code{report.CASystemPodWithoutPDB}, find: ofAutoscaler(caSystemPodWithoutPDB)},
		{codes: []report.Code{report.CANotUnderutilized}, find: ofAutoscaler(caNotUnderutilized)},
		{codes: []report.Code{report.CAMinSize}, find: ofAutoscaler(caMinSize)},
		{codes: []report.Code{report.CACooldown}, find: ofAutoscaler(caCooldown)},
		{codes: []report.Code{report.CAUnready}, find: ofAutoscaler(caUnready)},
	}
	poolRules = []rule[*poolCase]{
		{codes: []report.Code{report.StaticNodePool}, find: staticNodePool},
		{codes: []report.Code{report.ConsolidationNever}, find: consolidationNever},
		{codes: []report.Code{report.PolicyWhenEmpty}, find: policyWhenEmpty},
		{codes: []report.Code{report.TopologySpreadFloor}, find: poolTopologySpreadFloor},
		{codes: []report.Code{report.AntiAffinityFloor}, find: poolAntiAffinityFloor},
		{codes: []report.Code{report.NodePoolLimitReached}, find: nodePoolLimitReached},
		{codes: []report.Code{report.KarpenterUnsynced}, find: poolUnsynced},
	}
	budgetRules = []rule[*poolCase]{
		{codes: []report.Code{report.BudgetZeroNow}, find: budgetZeroNow},
		{codes: []report.Code{report.BudgetUsedUp}, find: budgetUsedUp},
		{codes: []report.Code{report.BudgetZeroAlways}, find: budgetZeroAlways},
		{codes: []report.Code{report.BudgetInvalid}, find: budgetInvalid},
		{codes: []report.Code{report.BudgetNeverFires}, find: budgetNeverFires},
		{codes: []report.Code{report.BudgetInert}, find: budgetInert},
		{codes: []report.Code{report.BudgetWithoutReasons}, find: budgetWithoutReasons},
		{codes: []report.Code{report.BudgetDefaultReplaced}, find: budgetDefaultReplaced},
		{codes: []report.Code{report.BudgetOneBarsMultiNode}, find: budgetOneBarsMultiNode},
		{codes: []report.Code{report.BudgetLocalTime}, find: budgetLocalTime},
		{codes: []report.Code{report.BudgetsOpen}, find: budgetsOpen},
	}
)

// Codes are those that the registered rules can give, each once.
func Codes() []report.Code {
	var out []report.Code
	for _, r := range nodeRules {
		out = append(out, r.codes...)
	}
	for _, r := range slices.Concat(poolRules, budgetRules) {
		out = append(out, r.codes...)
	}
	out = append(out, verdictCodes...)
	slices.Sort(out)
	return slices.Compact(out)
}

func apply[S any](rules []rule[S], subject S) []report.Finding {
	var out []report.Finding
	for _, r := range rules {
		out = append(out, r.find(subject)...)
	}
	return out
}
