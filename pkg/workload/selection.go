package workload

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
)

// Selection asks for the pods of workloads, or for those that labels select.
type Selection struct {
	// Namespace is where pods are looked for; "" is everywhere.
	Namespace string
	Workloads []Ref
	// Labels select the pods where no workloads are named.
	Labels labels.Selector
	// Most is how many of the pods are to be explained: those that look worst.
	Most int
}

// String is as a person would say it.
func (s Selection) String() string {
	if len(s.Workloads) > 0 {
		names := make([]string, len(s.Workloads))
		for i, w := range s.Workloads {
			names[i] = w.String()
		}
		return strings.Join(names, ", ")
	}
	text := "pods"
	if s.Labels != nil && !s.Labels.Empty() {
		text = "pods with " + s.Labels.String()
	}
	if s.Namespace == "" {
		return text + " of all namespaces"
	}
	return fmt.Sprintf("%s of namespace %q", text, s.Namespace)
}

// NoPodsError says that a workload or a selection has no pods.
type NoPodsError struct {
	// Selection is set, or else Workload.
	Selection *Selection
	Workload  Ref
	// Why is what is known of the reason.
	Why string
}

func (e *NoPodsError) Error() string {
	text := e.Workload.String() + " has no pods"
	if e.Selection != nil {
		text = "there are no " + e.Selection.String()
	}
	if e.Why != "" {
		text += "; " + e.Why
	}
	return text
}

// mostValues bounds the values of a label that an error tells.
const mostValues = 5

// OtherValues tells which values the labels of a selector have there instead,
// for those that ask for a value; "" where there are none.
func OtherValues(selector labels.Selector, there []labels.Set) string {
	if selector == nil {
		return ""
	}
	requirements, _ := selector.Requirements()
	var parts []string
	for _, r := range requirements {
		values := map[string]bool{}
		for _, set := range there {
			if v, ok := set[r.Key()]; ok && !r.Matches(set) {
				values[v] = true
			}
		}
		names := slices.Sorted(maps.Keys(values))
		if len(r.ValuesUnsorted()) == 0 || len(names) == 0 {
			continue
		}
		if near := Nearest(names, r.ValuesUnsorted()[0]); len(near) > 0 {
			names = near
		}
		text := strings.Join(names[:min(len(names), mostValues)], ", ")
		if len(names) > mostValues {
			text += " and others"
		}
		parts = append(parts, fmt.Sprintf("label %s is there with %s", r.Key(), text))
	}
	return strings.Join(parts, "; ")
}
