package shrink

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/noderes/kubectl-noderes/pkg/disruption/karpenter"
)

// deleted is a NodeClaim that is being deleted for some time.
func deleted(ago time.Duration) func(*corev1.Node, *karpenter.NodeClaim) {
	return func(_ *corev1.Node, c *karpenter.NodeClaim) {
		at := metav1.NewTime(now.Add(-ago))
		c.DeletionTimestamp, c.Finalizers = &at, []string{"karpenter.sh/termination"}
	}
}
