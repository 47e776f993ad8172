package shrink

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/noderes/kubectl-noderes/pkg/disruption/karpenter"
	"github.com/noderes/kubectl-noderes/pkg/report"
)

// A node that looks like Karpenter's has its word although no NodeClaim of it is
// known.
func TestUnclaimed(t *testing.T) {
	const unknown = "shrink-blocker-unknown@x possible"
	claims := func(list []karpenter.NodeClaim) *world { w := edited(); w.Claims = list; return w }
	checkRules(t, []ruleCase{
		{name: "NodeClaims that nobody collected", world: claims(nil), want: []string{unknown}, text: []string{"its NodeClaim, which says how far it is and since when it is quiet, could not be read", "metadata.labels[karpenter.sh/nodepool]"}, gap: "cluster/nodeclaims.karpenter.sh.json"},
		{name: "none has its providerID", world: claims([]karpenter.NodeClaim{}), want: []string{unknown}, text: []string{"no NodeClaim has its providerID: without one no method of Karpenter looks at it", "test:///x"}, lacks: []string{"could not be read"}},
		{name: "no providerID", world: edited(func(n *corev1.Node, _ *karpenter.NodeClaim) { n.Spec.ProviderID = "" }), want: []string{unknown}, text: []string{"has no spec.providerID", "(absent)"}},
		{name: "not registered, and no NodeClaim", world: newWorld().pool("a").node("", "x", func(n *corev1.Node, _ *karpenter.NodeClaim) {
			n.Spec.Taints = []corev1.Taint{{Key: unregisteredTaint, Effect: corev1.TaintEffectNoExecute}}
		}), want: []string{unknown}, text: []string{"spec.taints", "no NodeClaim has its providerID"}},
		{name: "of nobody", world: newWorld().pool("a").node("", "x")},
		{name: "of nobody, without a providerID", world: newWorld().pool("a").node("", "x", func(n *corev1.Node, _ *karpenter.NodeClaim) { n.Spec.ProviderID = "" })},
		{name: "in the pool's report", world: claims(nil), pool: "a", want: []string{unknown}, gap: "cluster/nodeclaims.karpenter.sh.json"},
	}, report.ShrinkBlockerUnknown)
}
