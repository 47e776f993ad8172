package placement

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// kept are the required anti-affinities of pods that run, each once: a pod that one of them selects may be kept off nodes by it.
type kept struct {
	terms map[string]keptTerm
	said  map[string]bool
}

type keptTerm struct {
	namespaces []string // nil: any
	selector   labels.Selector
}

func newKept(pods func(func(*corev1.Pod) bool)) kept {
	k := kept{terms: map[string]keptTerm{}, said: map[string]bool{}}
	for pod := range pods {
		a := pod.Spec.Affinity
		if a == nil || a.PodAntiAffinity == nil || isTerminal(pod) {
			continue
		}
		for _, term := range a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution {
			t := keptTerm{namespaces: term.Namespaces}
			switch {
			case term.NamespaceSelector != nil:
				t.namespaces = nil
			case len(term.Namespaces) == 0:
				t.namespaces = []string{pod.Namespace}
			}
			selector, err := metav1.LabelSelectorAsSelector(term.LabelSelector)
			if err != nil {
				selector = labels.Everything()
			}
			// Label keys that take their values from the pod only narrow the selector.
			t.selector = selector
			key := selector.String()
			for _, n := range t.namespaces {
				key += "\n" + n
			}
			k.terms[key] = t
		}
	}
	return k
}

// mostKept bounds how many pairs of a term and of a pod's labels are compared.
const mostKept = 5_000_000

// keeps reports whether an anti-affinity selects the pod, and true where there are too many to tell.
func (k kept) keeps(pod *corev1.Pod) bool {
	if len(k.terms) == 0 {
		return false
	}
	key := pod.Namespace + "\n" + labels.Set(pod.Labels).String()
	said, known := k.said[key]
	if !known && len(k.terms)*len(k.said) > mostKept {
		return true
	}
	if !known {
		for _, t := range k.terms {
			if said = (t.namespaces == nil || slices.Contains(t.namespaces, pod.Namespace)) && t.selector.Matches(labels.Set(pod.Labels)); said {
				break
			}
		}
		k.said[key] = said
	}
	return said
}
