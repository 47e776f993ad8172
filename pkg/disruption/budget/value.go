package budget

import (
	"strconv"

	"k8s.io/apimachinery/pkg/util/intstr"
)

// Unlimited is the value of a budget that sets no limit, as Karpenter prints it.
const Unlimited = 1<<31 - 1

// scaled returns how many nodes the text allows of total: a number as it is, cut to 32 bits, or a percentage rounded up.
func scaled(nodes string, total int) (int, error) {
	value := intstr.FromString(nodes)
	if n, err := strconv.Atoi(nodes); err == nil {
		value = intstr.FromInt32(int32(n)) //nolint:gosec // Karpenter cuts it so too: 4294967296 is 0
	}
	return intstr.GetScaledValueFromIntOrPercent(&value, total, true)
}
