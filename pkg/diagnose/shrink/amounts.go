package shrink

import (
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// thousandths is an amount of a resource that is given in thousandths of its
// unit: bytes as a binary quantity, everything else as a decimal.
func thousandths(name corev1.ResourceName, amount int64) string {
	if isBytes(name) && amount%1000 == 0 {
		return resource.NewQuantity(amount/1000, resource.BinarySI).String()
	}
	sign := ""
	if amount < 0 {
		sign, amount = "-", -amount
	}
	text := sign + strconv.FormatInt(amount/1000, 10)
	if rest := amount % 1000; rest > 0 {
		text += "." + strings.TrimRight(strconv.FormatInt(1000+rest, 10)[1:], "0")
	}
	return text
}

func isBytes(name corev1.ResourceName) bool {
	return name == corev1.ResourceMemory || name == corev1.ResourceEphemeralStorage || strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix)
}

// quantity is one of a list, as it was read.
func quantity(list corev1.ResourceList, name corev1.ResourceName) string {
	if q, ok := list[name]; ok {
		return q.String()
	}
	return "none"
}
