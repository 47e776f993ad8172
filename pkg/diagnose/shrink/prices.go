package shrink

import (
	"fmt"
	"math"
	"strconv"

	"github.com/noderes/kubectl-noderes/pkg/disruption"
	"github.com/noderes/kubectl-noderes/pkg/disruption/price"
	"github.com/noderes/kubectl-noderes/pkg/report"
)

const (
	metricsFile   = "cluster/karpenter-metrics.txt"
	metricsSource = "karpenter:metrics"
	// ownPriceLabel tells the price of the launched offering, where the provider
	// writes it (the KWOK provider does).
	ownPriceLabel = "eks-node-viewer/instance-price"
)

// readPrices takes prices from Karpenter's metrics, from the nodes' labels, and
// those that the question states.
func (c *Cluster) readPrices(stated disruption.InstanceTypes) {
	data, err := c.snap.File(metricsFile)
	if err == nil {
		c.metrics, err = price.ReadMetrics(string(data))
	}
	c.metricsErr = err
	c.karpenter.Types, c.karpenter.Prices, c.karpenter.PoolCosts = c.metrics.Types, stated, c.metrics.PoolCosts
	for _, n := range c.karpenter.Nodes {
		if v, err := strconv.ParseFloat(n.Labels()[ownPriceLabel], 64); err == nil && v >= 0 && !math.IsInf(v, 0) {
			n.OwnPrice = &v
		}
	}
}

// totals are what moves of each pool are measured against.
func (c *Cluster) totals() map[string]disruption.Totals {
	if c.poolTotals == nil {
		c.poolTotals = c.karpenter.Totals(c.karpenter.Candidates(disruption.Graceful, c.at))
	}
	return c.poolTotals
}

// savings is what the node costs an hour, in words and as evidence. ok is false
// where its price is not known.
func (n *nodeCase) savings() (text string, evidence []report.Evidence, ok bool) {
	cost, ok := n.karpenter.Price(n.node)
	if !ok {
		return "", nil, false
	}
	source := report.Evidence{Source: metricsSource, Field: price.OfferingPrice, Value: dollars(cost), Means: "price of the node's own offering an hour"}
	if n.node.OwnPrice != nil && n.karpenter.Types == nil {
		source = n.field("metadata.labels["+ownPriceLabel+"]", n.node.Labels()[ownPriceLabel], "price of the launched offering an hour")
	} else if n.karpenter.Types == nil {
		source = report.Evidence{Source: "flag:--prices", Field: "usd_per_hour", Value: dollars(cost), Means: "price of the node's own offering an hour"}
	}
	return fmt.Sprintf("$%s an hour, $%.2f in 730 hours", dollars(cost), cost*730), []report.Evidence{source}, true
}

func dollars(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }
