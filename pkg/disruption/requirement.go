package disruption

import (
	"math"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"github.com/noderes/kubectl-noderes/pkg/disruption/karpenter"
)

// constraint is what all requirements of one label come to (pkg/scheduling/requirement.go): the values that are allowed, or where
// except is set all but those, within bounds.
type constraint struct {
	except    bool
	values    []string
	low, high int // both included; only where except is set
}

var absent = constraint{low: math.MinInt, high: math.MaxInt}

// Unsatisfied returns the labels of a node that do not satisfy the requirements, all those of one label taken together, sorted.
func Unsatisfied(labels map[string]string, requirements []karpenter.Requirement) []string {
	byLabel := map[string]constraint{}
	for _, r := range requirements {
		key := stableLabel(r.Key)
		next := constraintOf(r)
		if existing, ok := byLabel[key]; ok {
			next = next.and(existing)
		}
		byLabel[key] = next
	}
	var out []string
	for key, c := range byLabel {
		value, present := labels[key]
		if present && !c.allows(value) || !present && !c.allowsAbsence() {
			out = append(out, key)
		}
	}
	slices.Sort(out)
	return out
}

func constraintOf(r karpenter.Requirement) constraint {
	c := constraint{except: true, low: math.MinInt, high: math.MaxInt}
	bound := 0 // as for a value that is no number: the API server admits none
	if len(r.Values) > 0 {
		bound, _ = strconv.Atoi(r.Values[0])
	}
	switch r.Operator {
	case corev1.NodeSelectorOpIn:
		c.except, c.values = false, r.Values
	case corev1.NodeSelectorOpNotIn:
		c.values = r.Values
	case corev1.NodeSelectorOpDoesNotExist:
		return absent
	case corev1.NodeSelectorOpGt:
		if bound == math.MaxInt {
			return absent
		}
		c.low = bound + 1
	case corev1.NodeSelectorOpLt:
		c.high = bound - 1
	case "Gte":
		c.low = bound
	case "Lte":
		c.high = bound
	}
	return c
}

// and is what two constraints allow together.
func (c constraint) and(other constraint) constraint {
	both := constraint{except: c.except && other.except, low: max(c.low, other.low), high: min(c.high, other.high)}
	if both.low > both.high {
		return absent
	}
	if both.except {
		both.values = slices.Concat(c.values, other.values)
		return both
	}
	for _, value := range slices.Concat(c.values, other.values) {
		if c.lists(value) && other.lists(value) && within(value, both.low, both.high) {
			both.values = append(both.values, value)
		}
	}
	both.low, both.high = math.MinInt, math.MaxInt
	return both
}

// lists tests a value without the bounds.
func (c constraint) lists(value string) bool { return slices.Contains(c.values, value) != c.except }

func (c constraint) allows(value string) bool { return c.lists(value) && within(value, c.low, c.high) }

// allowsAbsence reports whether a node may be without the label. Bounds alone ask for one.
func (c constraint) allowsAbsence() bool {
	if c.except {
		return len(c.values) > 0
	}
	return len(c.values) == 0
}

func within(value string, low, high int) bool {
	if low == math.MinInt && high == math.MaxInt {
		return true
	}
	number, err := strconv.Atoi(value)
	return err == nil && low <= number && number <= high
}

// stableLabel returns the name that took the place of a label's (pkg/apis/v1/labels.go:NormalizedLabels).
func stableLabel(key string) string {
	switch key {
	case corev1.LabelFailureDomainBetaZone:
		return corev1.LabelTopologyZone
	case corev1.LabelFailureDomainBetaRegion:
		return corev1.LabelTopologyRegion
	case "beta.kubernetes.io/arch":
		return corev1.LabelArchStable
	case "beta.kubernetes.io/os":
		return corev1.LabelOSStable
	case corev1.LabelInstanceType:
		return corev1.LabelInstanceTypeStable
	}
	return key
}
