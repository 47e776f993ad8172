package cpumanager

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/noderes/kubectl-noderes/pkg/alloc"
	"github.com/noderes/kubectl-noderes/pkg/alloc/topology"
)

// The options of the static policy.
const (
	FullPCPUsOnly          = "full-pcpus-only"
	DistributeAcrossNUMA   = "distribute-cpus-across-numa"
	AlignBySocket          = "align-by-socket"
	DistributeAcrossCores  = "distribute-cpus-across-cores"
	StrictCPUReservation   = "strict-cpu-reservation"
	PreferAlignUncoreCache = "prefer-align-cpus-by-uncorecache"
)

type options struct {
	fullPCPUsOnly, acrossNUMA, bySocket, acrossCores, strict, byUncore bool
}

// parseOptions returns the options, or everything that is wrong with one of them: the kubelet names the first that it meets, in the
// random order of a map. A conflict between options comes after that and is always the same.
func parseOptions(given map[string]string, r alloc.Rules) (o options, wrong []error) {
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if err := o.set(name, given[name], r); err != nil {
			wrong = append(wrong, err)
		}
	}
	if len(wrong) > 0 {
		return o, wrong
	}
	for _, pair := range []struct {
		a, b         bool
		aName, bName string
	}{
		{o.fullPCPUsOnly, o.acrossCores, FullPCPUsOnly, DistributeAcrossCores},
		{o.acrossNUMA, o.acrossCores, DistributeAcrossNUMA, DistributeAcrossCores},
		{o.byUncore, o.acrossCores, PreferAlignUncoreCache, DistributeAcrossCores},
		{o.byUncore, o.acrossNUMA, PreferAlignUncoreCache, DistributeAcrossNUMA},
	} {
		if pair.a && pair.b {
			return o, []error{fmt.Errorf("static policy options %s and %s can not be used at the same time", pair.aName, pair.bName)}
		}
	}
	return o, nil
}

func (o *options) set(name, value string, r alloc.Rules) error {
	var to *bool
	switch name {
	case FullPCPUsOnly:
		to = &o.fullPCPUsOnly
	case DistributeAcrossNUMA:
		to = &o.acrossNUMA
	case AlignBySocket:
		to = &o.bySocket
	case DistributeAcrossCores:
		to = &o.acrossCores
	case StrictCPUReservation:
		to = &o.strict
	case PreferAlignUncoreCache:
		to = &o.byUncore
	default:
		return fmt.Errorf("unknown CPU Manager Policy option: %q", name)
	}
	switch alpha, beta := stage(name, r); {
	case alpha && !r.CPUManagerPolicyAlphaOptions:
		return fmt.Errorf("CPU Manager Policy Alpha-level Options not enabled, but option %q provided", name)
	case beta && !r.CPUManagerPolicyBetaOptions:
		return fmt.Errorf("CPU Manager Policy Beta-level Options not enabled, but option %q provided", name)
	}
	on, err := strconv.ParseBool(value)
	if err != nil {
		return fmt.Errorf("bad value for option %q: %w", name, err)
	}
	*to = on
	return nil
}

func stage(name string, r alloc.Rules) (alpha, beta bool) {
	switch name {
	case AlignBySocket, DistributeAcrossCores:
		return true, false
	case DistributeAcrossNUMA:
		return false, true
	case StrictCPUReservation:
		return false, r.StrictCPUReservationBeta
	case PreferAlignUncoreCache:
		return false, r.PreferAlignUncoreBeta
	}
	return false, false
}

func (o options) checkMachine(t *topology.Topology, topologyPolicy string) error {
	switch {
	case !o.bySocket:
		return nil
	case topologyPolicy == "single-numa-node":
		//lint:ignore ST1005 the words are the kubelet's
		return errors.New("Topolgy manager single-numa-node policy is incompatible with CPUManager align-by-socket policy option") //nolint:staticcheck // the kubelet's text
	case t.NumSockets > t.NumNUMANodes:
		//lint:ignore ST1005 the words are the kubelet's
		return errors.New("Align by socket is not compatible with hardware where number of sockets are more than number of NUMA") //nolint:staticcheck // the kubelet's text
	}
	return nil
}
