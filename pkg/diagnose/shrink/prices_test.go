package shrink

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/noderes/kubectl-noderes/pkg/diagnose/gap"
	"github.com/noderes/kubectl-noderes/pkg/disruption"
	"github.com/noderes/kubectl-noderes/pkg/disruption/karpenter"
	"github.com/noderes/kubectl-noderes/pkg/report"
)

// priceCodes are those of prices, which compete for the same nodes.
var priceCodes = []report.Code{report.MissingPriceLabels, report.BalancedScoreBelow, report.NoCheaperReplacement, report.SpotToSpotBarred, report.PriceUnknown}

func TestPriceRules(t *testing.T) {
	priced := func(n *corev1.Node, _ *karpenter.NodeClaim) { n.Labels[ownPriceLabel] = "0.2" }
	base := func() *world { return newWorld().pool("a").node("a", "x", priced).pod("x", "p") }
	balanced := func(pods int) *world {
		w := newWorld().pool("a", func(p *karpenter.NodePool) { p.Spec.Disruption.ConsolidationPolicy = karpenter.Balanced }).node("a", "x", priced)
		for i := range pods {
			w.pod("x", fmt.Sprintf("p%d", i))
		}
		for i := range 3 {
			name := fmt.Sprintf("other%d", i)
			w.node("a", name, priced)
			for k := range 9 {
				w.pod(name, fmt.Sprintf("%s-%d", name, k))
			}
		}
		return w
	}
	offered := "karpenter_cloudprovider_instance_type_offering_price_estimate{instance_type=\"m-4x\",capacity_type=\"on-demand\",zone=\"zone-a\"} 0.25\n"
	for _, c := range []struct {
		name   string
		world  *world
		stated disruption.InstanceTypes
		want   []string
		text   []string
	}{
		{name: "a price on the node", world: base()},
		{name: "no price", world: newWorld().pool("a").node("a", "x").pod("x", "p"), want: []string{"price-unknown@x proven"}},
		{name: "an empty node has no use for one", world: newWorld().pool("a").node("a", "x")},
		{name: "nor one of a static pool", world: newWorld().pool("a", func(p *karpenter.NodePool) { n := int64(1); p.Spec.Replicas = &n }).node("a", "x").pod("x", "p")},
		{name: "a price in the metrics", world: func() *world {
			w := newWorld().pool("a").node("a", "x").pod("x", "p")
			w.files[metricsFile] = offered
			return w
		}()},
		{name: "a price that is stated for every zone", world: newWorld().pool("a").node("a", "x").pod("x", "p"), stated: disruption.InstanceTypes{"m-4x": {{Zone: "*", CapacityType: "on-demand"}: 0.1}}},
		{name: "one of another type", world: newWorld().pool("a").node("a", "x").pod("x", "p"), stated: disruption.InstanceTypes{"c-4x": {{Zone: "*", CapacityType: "on-demand"}: 0.1}}, want: []string{"price-unknown@x proven"}},
		{name: "a label that is missing", world: newWorld().pool("a").node("a", "x", priced, func(n *corev1.Node, _ *karpenter.NodeClaim) { delete(n.Labels, corev1.LabelTopologyZone) }).pod("x", "p"),
			want: []string{"missing-price-labels@x proven"}, text: []string{"lacks topology.kubernetes.io/zone"}},
		{name: "nothing cheaper", world: base().event("Node", "x", "Unconsolidatable", noCheaper, 5*time.Minute), want: []string{"no-cheaper-replacement@x likely"}, text: []string{"said 5m before", "$0.2 an hour, $146.00 in 730 hours"}},
		{name: "on the NodeClaim", world: base().event("NodeClaim", "x-claim", "Unconsolidatable", noCheaper, 5*time.Minute), want: []string{"no-cheaper-replacement@x likely"}},
		{name: "another node's", world: base().event("Node", "y", "Unconsolidatable", noCheaper, 5*time.Minute)},
		{name: "too long ago to hold", world: base().event("Node", "x", "Unconsolidatable", noCheaper, 21*time.Minute)},
		{name: "before the timer ended", world: func() *world {
			w := base().event("Node", "x", "Unconsolidatable", noCheaper, 5*time.Minute)
			w.Claims[0].Status.LastPodEventTime.Time = now.Add(-2 * time.Minute)
			return w
		}()},
		{name: "while the timer runs", world: func() *world {
			w := base().event("Node", "x", "Unconsolidatable", noCheaper, 5*time.Second)
			w.Claims[0].Status.LastPodEventTime.Time = now.Add(-10 * time.Second)
			return w
		}()},
		{name: "a candidate since", world: base().event("Node", "x", "Unconsolidatable", noCheaper, 5*time.Minute).event("Node", "x", "ConsolidationCandidate", "Consolidation candidate: delete: [x]", time.Minute)},
		{name: "too few spot types", world: base().event("Node", "x", "Unconsolidatable", spotFewer+"6", 5*time.Minute), want: []string{"spot-to-spot-barred@x likely"}, text: []string{"has 6 cheaper", "asks for 15"}},
		{name: "the gate", world: base().event("Node", "x", "Unconsolidatable", spotDisabled, 5*time.Minute), want: []string{"spot-to-spot-barred@x likely"}, text: []string{"gate SpotToSpotConsolidation"}},
		{name: "a dense node of a Balanced pool", world: balanced(30), want: []string{"balanced-score-below@x likely"}, text: []string{"(0.2 / 0.8) / (31 / 61) = 0.492 < 0.50"}},
		{name: "an average one", world: balanced(9)},
		{name: "before Balanced", world: func() *world {
			w := balanced(30)
			w.files[metricsFile] = "karpenter_build_info{version=\"1.13.0\"} 1\n"
			return w
		}()},
	} {
		t.Run(c.name, func(t *testing.T) {
			var found []report.Finding
			for _, f := range Read(c.world.open(t), now, &gap.Log{}, Options{Prices: c.stated}).Node("x") {
				if slices.Contains(priceCodes, f.Code) {
					found = append(found, f)
				}
			}
			if got := spelled(found); !slices.Equal(got, append([]string{}, c.want...)) {
				t.Errorf("got %q, want %q", got, c.want)
			}
			checkText(t, found, c.text, nil)
			noteData(t, found, priceCodes...)
		})
	}
}
