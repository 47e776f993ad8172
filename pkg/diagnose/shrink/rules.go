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
		{codes: []report.Code{report.BudgetZeroNow, report.BudgetZeroAlways, report.BudgetUsedUp, report.BudgetInvalid}, find: nodeBudgets},
		{codes: []report.Code{report.MissingPriceLabels}, find: missingPriceLabels},
		{codes: []report.Code{report.BalancedScoreBelow}, find: balancedScoreBelow},
		{codes: []report.Code{report.NoCheaperReplacement}, find: noCheaperReplacement},
		{codes: []report.Code{report.SpotToSpotBarred}, find: spotToSpotBarred},
		{codes: []report.Code{report.PriceUnknown}, find: priceUnknown},
	}
	poolRules   = []rule[*poolCase]{}
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
