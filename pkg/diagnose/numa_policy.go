package diagnose

import (
	"fmt"

	"github.com/noderes/kubectl-noderes/pkg/alloc/history"
	"github.com/noderes/kubectl-noderes/pkg/report"
)

// insists says whether the Topology Manager's policy refuses a pod that fits no
// preferred place, rather than place it worse.
func (n *nodeCase) insists() bool {
	policy := n.config.TopologyManagerPolicy
	return policy == "restricted" || policy == "single-numa-node"
}

// policyLetsThrough completes a sentence about a set that is spread although one
// place could have done: why the policy did not prevent it.
func (c *podCase) policyLetsThrough() string {
	policy := c.config.TopologyManagerPolicy
	if !c.insists() {
		return fmt.Sprintf("the policy %s does not insist on it", policy)
	}
	switch _, s, ok := c.pastStep(); {
	case ok && (s.Verdict == history.Follows || s.Verdict == history.FollowsListed || s.Verdict == history.NeedsHeld):
		return fmt.Sprintf("the policy %s admits the pod all the same, by the replay", policy)
	case policy == "single-numa-node":
		return "the policy single-numa-node refuses such a set: it was placed before the policy or the state changed"
	default:
		return fmt.Sprintf("no state was found in which the policy %s admits it: it may have been placed before the policy or the state changed", policy)
	}
}

// onePlaceRemedies say how a pod is kept to one place: by a policy that insists
// on it, or, where one is set, by making the pod anew.
func (c *podCase) onePlaceRemedies() []report.Remedy {
	if c.configErr != nil {
		return nil
	}
	if c.insists() {
		return []report.Remedy{{
			Summary: fmt.Sprintf("Make the pod anew: the policy %s holds for what it is given then.", c.config.TopologyManagerPolicy),
			Caution: "Where the node has no such place free it is refused: Failed, and made anew by its controller again and again.",
		}}
	}
	return []report.Remedy{{
		Summary: "Set topologyManagerPolicy to restricted or single-numa-node if a pod that fits no common place is rather to be refused.",
		Caution: "The policy holds for pods admitted afterwards, and one that is refused is Failed, and made anew by its controller again and again.",
	}}
}
