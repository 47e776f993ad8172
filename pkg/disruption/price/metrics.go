// Package price reads what is known of prices: from the metrics of Karpenter's controller, from a file, or from the labels of a node.
// It is pure: text in, values out.
package price

import (
	"math"
	"slices"
	"strings"

	"github.com/noderes/kubectl-noderes/pkg/disruption"
	"github.com/noderes/kubectl-noderes/pkg/promtext"
)

// Names of the series that Metrics reads. The offerings are those of a provider (AWS: pkg/controllers/metrics), the rest is
// Karpenter's own.
const (
	OfferingPrice     = "karpenter_cloudprovider_instance_type_offering_price_estimate"
	OfferingAvailable = "karpenter_cloudprovider_instance_type_offering_available"
	PoolCost          = "karpenter_nodepools_cost_total"
	StateSynced       = "karpenter_cluster_state_synced"
	BuildInfo         = "karpenter_build_info"
)

// Series are the names of all that ReadMetrics reads.
var Series = []string{OfferingPrice, OfferingAvailable, PoolCost, StateSynced, BuildInfo}

// Metrics is what the controller's metrics tell of prices and of itself.
type Metrics struct {
	// Types are the offerings of every pool's instance types; nil where the provider exports none.
	Types disruption.InstanceTypes
	// Available tells of each offering whether it can be had now; nil where the provider does not say.
	Available map[string]map[disruption.Offering]bool
	// PoolCosts are dollars an hour of all nodes of a pool, as Balanced counts them; nil where none is exported.
	PoolCosts map[string]float64
	// Synced is whether Karpenter's picture of the cluster is complete; nil where the series is absent. SyncedText is its value.
	Synced     *bool
	SyncedText string
	// Version is the controller's, "" where it is not told.
	Version string
}

// ReadMetrics reads the Prometheus text of the controller. What can be read is returned beside the error of what cannot.
func ReadMetrics(text string) (Metrics, error) {
	samples, err := promtext.Read(text, Series...)
	var m Metrics
	var versions []string
	for _, s := range samples {
		switch s.Name {
		case OfferingAvailable:
			m.addAvailable(s)
		case PoolCost:
			if pool := s.Labels["nodepool"]; pool != "" && isPrice(s.Value) {
				if m.PoolCosts == nil {
					m.PoolCosts = map[string]float64{}
				}
				m.PoolCosts[pool] = s.Value
			}
		case StateSynced:
			synced := s.Value == 1
			m.Synced, m.SyncedText = &synced, s.Text
		case BuildInfo:
			if v := s.Labels["version"]; v != "" {
				versions = append(versions, v)
			}
		}
	}
	for _, s := range samples {
		if s.Name == OfferingPrice {
			m.addPrice(s)
		}
	}
	if len(versions) > 0 {
		m.Version = slices.MinFunc(versions, strings.Compare)
	}
	return m, err
}

func offeringOf(s promtext.Sample) (instanceType string, offering disruption.Offering, ok bool) {
	instanceType = s.Labels["instance_type"]
	offering = disruption.Offering{Zone: s.Labels["zone"], CapacityType: s.Labels["capacity_type"]}
	return instanceType, offering, instanceType != "" && offering.Zone != "" && offering.CapacityType != ""
}

func (m *Metrics) addAvailable(s promtext.Sample) {
	instanceType, offering, ok := offeringOf(s)
	if !ok {
		return
	}
	if m.Available == nil {
		m.Available = map[string]map[disruption.Offering]bool{}
	}
	if m.Available[instanceType] == nil {
		m.Available[instanceType] = map[disruption.Offering]bool{}
	}
	m.Available[instanceType][offering] = s.Value == 1
}

// addPrice leaves out reserved capacity that cannot be had: its price of 0 is made up.
func (m *Metrics) addPrice(s promtext.Sample) {
	instanceType, offering, ok := offeringOf(s)
	if !ok || !isPrice(s.Value) || offering.CapacityType == "reserved" && !m.Available[instanceType][offering] {
		return
	}
	if m.Types == nil {
		m.Types = disruption.InstanceTypes{}
	}
	add(m.Types, instanceType, offering, s.Value)
}

func add(types disruption.InstanceTypes, instanceType string, offering disruption.Offering, price float64) {
	if types[instanceType] == nil {
		types[instanceType] = disruption.Offerings{}
	}
	types[instanceType][offering] = price
}

// maxPrice is above what any machine or pool costs an hour; sums of prices below it stay exact enough to compare.
const maxPrice = 1e9

func isPrice(v float64) bool { return !math.IsNaN(v) && v >= 0 && v <= maxPrice }
