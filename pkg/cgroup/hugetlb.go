package cgroup

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// addHugepages adds hugetlb.<size>.max of a pod's slice for each page size in
// the pod's requests, by size. The scope's file is left out: containerd does
// not pass the limit on unless told to (disable_hugetlb_controller).
func (e *expectation) addHugepages(amounts corev1.ResourceList) {
	sizes := map[int64]resource.Quantity{}
	for name, amount := range amounts {
		if size, ok := hugepageSize(name); ok {
			sizes[size] = amount
		}
	}
	ordered := make([]int64, 0, len(sizes))
	for size := range sizes {
		ordered = append(ordered, size)
	}
	slices.Sort(ordered)
	for _, size := range ordered {
		amount := sizes[size]
		e.add("hugetlb."+hugepageName(size)+".max", e.bytesValue(amount.Value(), amount.String()))
	}
}

// hugepageSize returns the page size in bytes of a resource hugepages-<size>.
func hugepageSize(name corev1.ResourceName) (int64, bool) {
	text, ok := strings.CutPrefix(string(name), corev1.ResourceHugePagesPrefix)
	if !ok {
		return 0, false
	}
	q, err := resource.ParseQuantity(text)
	if err != nil || q.Value() < 1024 {
		return 0, false
	}
	return q.Value(), true
}

// hugepageName is a page size as the kernel names its files: "2MB", "1GB".
func hugepageName(size int64) string {
	switch {
	case size >= 1<<30:
		return fmt.Sprintf("%dGB", size>>30)
	case size >= 1<<20:
		return fmt.Sprintf("%dMB", size>>20)
	}
	return fmt.Sprintf("%dKB", size>>10)
}
