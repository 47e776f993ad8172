package disruption

import (
	"time"

	"github.com/noderes/kubectl-noderes/pkg/disruption/karpenter"
)

// ExpiresAt is when a NodeClaim is deleted because of its age, whatever the budgets say and without a replacement first. ok is false
// where it never is. The pods still drain by their own budgets (pkg/controllers/nodeclaim/expiration).
func ExpiresAt(claim *karpenter.NodeClaim) (at time.Time, ok bool) {
	if !claim.Spec.ExpireAfter.Set {
		return time.Time{}, false
	}
	return claim.CreationTimestamp.Add(claim.Spec.ExpireAfter.Duration), true
}
