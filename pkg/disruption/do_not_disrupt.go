package disruption

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/noderes/kubectl-noderes/pkg/disruption/karpenter"
)

// DoNotDisrupt is the annotation karpenter.sh/do-not-disrupt of a pod.
type DoNotDisrupt struct {
	Value   string // "" where there is none
	Forever bool   // "true", or a duration without a start to count it from
	// Until is when a duration, counted from the pod's start, has passed.
	Until time.Time
	// Err is why the value holds nothing: it is neither "true" nor a positive duration.
	Err error
}

// DoNotDisruptOf reads the annotation.
func DoNotDisruptOf(pod *corev1.Pod, rules karpenter.Rules) DoNotDisrupt {
	value, ok := pod.Annotations[karpenter.DoNotDisruptAnnotation]
	switch {
	case !ok:
		return DoNotDisrupt{}
	case value == "true":
		return DoNotDisrupt{Value: value, Forever: true}
	case !rules.TimedDoNotDisrupt:
		return DoNotDisrupt{Value: value, Err: karpenter.NotTrue(value)}
	}
	length, err := time.ParseDuration(value)
	switch {
	case err != nil:
		return DoNotDisrupt{Value: value, Err: karpenter.NotADuration(value, err)}
	case length <= 0:
		return DoNotDisrupt{Value: value, Err: karpenter.NotPositive(value)}
	case pod.Status.StartTime == nil:
		return DoNotDisrupt{Value: value, Forever: true}
	}
	return DoNotDisrupt{Value: value, Until: pod.Status.StartTime.Add(length)}
}

// Holds reports whether the annotation protects the pod at now, if the pod is one that can be protected.
func (d DoNotDisrupt) Holds(now time.Time) bool { return d.Forever || now.Before(d.Until) }
