package topologymanager

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/noderes/kubectl-noderes/pkg/alloc"
)

// The options of the topology manager's policies.
const (
	PreferClosestNUMANodes = "prefer-closest-numa-nodes"
	MaxAllowableNUMANodes  = "max-allowable-numa-nodes"
)

const defaultMaxNodes = 8

type options struct {
	closest  bool
	maxNodes int
}

// parseOptions returns the options, or everything that is wrong with one of them; the kubelet names the first that it meets in a map.
func parseOptions(given map[string]string, r alloc.Rules) (options, []error) {
	o := options{maxNodes: defaultMaxNodes}
	var wrong []error
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if err := o.set(name, given[name], r); err != nil {
			wrong = append(wrong, err)
		}
	}
	return o, wrong
}

func (o *options) set(name, value string, r alloc.Rules) error {
	switch name {
	case PreferClosestNUMANodes:
		on, err := strconv.ParseBool(value)
		if err != nil {
			return fmt.Errorf("bad value for option %q: %w", name, err)
		}
		o.closest = on
	case MaxAllowableNUMANodes:
		if r.MaxAllowableNUMANodesBeta && !r.TopologyManagerPolicyBetaOptions {
			return fmt.Errorf("topology manager policy beta-level options not enabled, but option %q provided", name)
		}
		n, err := strconv.Atoi(value)
		if err != nil {
			return fmt.Errorf("unable to convert policy option to integer %q: %w", name, err)
		}
		if n < defaultMaxNodes {
			return fmt.Errorf("the minimum value of %q should not be less than %v", name, defaultMaxNodes)
		}
		o.maxNodes = n
	default:
		return fmt.Errorf("unknown Topology Manager Policy option: %q", name)
	}
	return nil
}

var errDistances = errors.New("cannot discover NUMA topology: error getting NUMA distances from cadvisor")
