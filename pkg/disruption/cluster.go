package disruption

import (
	"github.com/noderes/kubectl-noderes/pkg/disruption/karpenter"
)

// Cluster is what a pass of Karpenter's disruption controller looks at.
type Cluster struct {
	Rules karpenter.Rules
	Nodes []*Node // of Join
	Pools map[string]*karpenter.NodePool
	PDBs  PDBs

	// Types are the instance types that the provider offers, by what is known of their prices. Nil: not known.
	Types InstanceTypes
	// Prices are stated ones, for what Types do not tell. A zone "*" stands for every zone.
	Prices InstanceTypes
	// PoolCosts are Karpenter's own figures of what a pool costs an hour; nil: not known.
	PoolCosts map[string]float64
	// Unlisted are the pools whose instance types Karpenter cannot list. They count as not found.
	Unlisted map[string]bool
}

// InstanceTypes are the offerings of each instance type.
type InstanceTypes map[string]Offerings

// Offerings are hourly prices.
type Offerings map[Offering]float64

// Offering is where and how an instance type is offered.
type Offering struct {
	Zone, CapacityType string
}
