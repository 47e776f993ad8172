package kubeletconfig

import (
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/noderes/kubectl-noderes/pkg/alloc/internal/cut"
)

// Invalid is a setting with which a kubelet does not start.
type Invalid struct {
	Field, Value string
	Message      string // the kubelet's
}

// Invalid returns what a kubelet of 1.minor refuses in the configuration itself, before it looks at the machine: of the fields that
// are read here, what ValidateKubeletConfiguration (kubelet 1.37, apis/config/validation) names. A kubelet names all of it at once.
// Reservations and thresholds, which it parses later, are Reservation's.
func (c Config) Invalid(minor int) []Invalid {
	if wrong := c.invalidGates(minor); len(wrong) > 0 {
		return wrong
	}
	var wrong []Invalid
	add := func(field, value, format string, args ...any) {
		if len(wrong) < maxErrors {
			wrong = append(wrong, Invalid{field, value, "invalid configuration: " + fmt.Sprintf(format, args...)})
		}
	}
	c.invalidManagers(add)
	c.invalidReservations(add)
	c.invalidEnforcement(add)
	c.invalidCgroups(minor, add)
	return wrong
}

// dependencies are between the gates listed here, with the first minor that checks them (pkg/features/kube_features.go).
var dependencies = []struct {
	minor     int
	gate, dep string
}{
	{35, "InPlacePodLevelResourcesVerticalScaling", "PodLevelResources"},
	{36, "PodLevelResourceManagers", "PodLevelResources"},
	{37, "PodLevelResourcesFixDefaulting", "PodLevelResources"},
	{37, "PodLevelResourcesFixKubeletQOSClass", "PodLevelResources"},
}

// invalidGates checks featureGates against the gates known here (component-base/featuregate). A gate that is not among them may well
// be one of the kubelet's.
func (c Config) invalidGates(minor int) []Invalid {
	if minor < MinMinor || minor > MaxMinor {
		return nil
	}
	var wrong []Invalid
	for _, name := range slices.Sorted(maps.Keys(c.FeatureGates)) {
		stages, listed := gateStages[name]
		if !listed {
			continue
		}
		on, field := c.FeatureGates[name], "featureGates."+name
		switch s := stages[minor-MinMinor]; {
		case s == none:
			wrong = append(wrong, Invalid{field, fmt.Sprint(on), "unrecognized feature gate: " + name})
		case s.locked() && !on:
			wrong = append(wrong, Invalid{field, fmt.Sprint(on), fmt.Sprintf("cannot set feature gate %s to %t, feature is locked to true", name, on)})
		}
	}
	if len(wrong) > 0 {
		return wrong
	}
	for _, d := range dependencies {
		on, known := c.Gate(d.gate, minor)
		need, _ := c.Gate(d.dep, minor)
		if minor >= d.minor && known && on && !need {
			wrong = append(wrong, Invalid{"featureGates." + d.dep, "false", fmt.Sprintf("%s is enabled, but depends on features that are disabled: [%s]", d.gate, d.dep)})
		}
	}
	return wrong
}

type addInvalid func(field, value, format string, args ...any)

func (c Config) invalidManagers(add addInvalid) {
	policies := []string{"none", "best-effort", "restricted", "single-numa-node"}
	if p := c.TopologyManagerPolicy; !slices.Contains(policies, p) {
		add("topologyManagerPolicy", p, "topologyManagerPolicy (--topology-manager-policy) %s must be one of: %q", cut.Quote(p), policies)
	}
	if s := c.TopologyManagerScope; s != "container" && s != "pod" {
		add("topologyManagerScope", s, "topologyManagerScope (--topology-manager-scope) %s must be one of: \"container\", or \"pod\"", cut.Quote(s))
	}
}

func (c Config) invalidReservations(add addInvalid) {
	if !c.ReservedSystemCPUs.IsEmpty() && (c.SystemReservedCgroup != "" || c.KubeReservedCgroup != "") {
		add("reservedSystemCPUs", c.ReservedSystemCPUs.String(), "can't use reservedSystemCPUs (--reserved-cpus) with systemReservedCgroup (--system-reserved-cgroup) or kubeReservedCgroup (--kube-reserved-cgroup)")
	}
	type key struct {
		node int
		name corev1.ResourceName
	}
	seen := map[key]bool{}
	for i, r := range c.ReservedMemory {
		field := fmt.Sprintf("reservedMemory[%d]", i)
		for _, name := range slices.Sorted(maps.Keys(r.Limits)) {
			q := r.Limits[name]
			if name != corev1.ResourceMemory && !isHugePages(name) {
				add(field, string(name), "the limit type %s for NUMA node %d is not supported, only [memory hugepages-<HugePageSize>] is accepted", cut.Quote(string(name)), r.NUMANode)
			}
			if q.IsZero() {
				add(field, q.String(), "reserved memory may not be zero for NUMA node %d and resource %s", r.NUMANode, cut.Quote(string(name)))
			}
			if seen[key{r.NUMANode, name}] {
				add(field, q.String(), "the reserved memory has a duplicate value for NUMA node %d and resource %s", r.NUMANode, cut.Quote(string(name)))
			}
			seen[key{r.NUMANode, name}] = true
		}
	}
}

func isHugePages(name corev1.ResourceName) bool {
	return len(name) >= len(corev1.ResourceHugePagesPrefix) && name[:len(corev1.ResourceHugePagesPrefix)] == corev1.ResourceHugePagesPrefix
}

func (c Config) invalidEnforcement(add addInvalid) {
	const field = "enforceNodeAllocatable"
	both := func(a, b string) {
		if slices.Contains(c.EnforceNodeAllocatable, a) && slices.Contains(c.EnforceNodeAllocatable, b) {
			add(field, b, "both %q and %q cannot be specified together in enforceNodeAllocatable (--enforce-node-allocatable)", a, b)
		}
	}
	both("system-reserved", "system-reserved-compressible")
	both("kube-reserved", "kube-reserved-compressible")
	seen := map[string]bool{}
	for _, v := range c.EnforceNodeAllocatable {
		if seen[v] {
			add(field, v, "duplicated enforcements %s in enforceNodeAllocatable (--enforce-node-allocatable)", cut.Quote(v))
			continue
		}
		seen[v] = true
		switch v {
		case "pods":
		case "system-reserved", "system-reserved-compressible":
			if c.SystemReservedCgroup == "" {
				add(field, v, "systemReservedCgroup (--system-reserved-cgroup) must be specified when \"system-reserved\" or \"system-reserved-compressible\" included in enforceNodeAllocatable (--enforce-node-allocatable)")
			}
		case "kube-reserved", "kube-reserved-compressible":
			if c.KubeReservedCgroup == "" {
				add(field, v, "kubeReservedCgroup (--kube-reserved-cgroup) must be specified when \"kube-reserved\" or \"kube-reserved-compressible\" included in enforceNodeAllocatable (--enforce-node-allocatable)")
			}
		case "none":
			if len(c.EnforceNodeAllocatable) > 1 {
				add(field, v, "enforceNodeAllocatable (--enforce-node-allocatable) may not contain additional enforcements when \"none\" is specified")
			}
			continue
		default:
			add(field, v, "option %s specified for enforceNodeAllocatable (--enforce-node-allocatable)", cut.Quote(v))
			continue
		}
		if !c.CgroupsPerQOS {
			add("cgroupsPerQOS", "false", "cgroupsPerQOS (--cgroups-per-qos) must be set to true when %s contained in enforceNodeAllocatable (--enforce-node-allocatable)", cut.Quote(v))
		}
	}
}

func (c Config) invalidCgroups(minor int, add addInvalid) {
	if c.SystemCgroups != "" && c.CgroupRoot == "" && c.set["cgroupRoot"] {
		add("systemCgroups", c.SystemCgroups, "systemCgroups (--system-cgroups) was specified and cgroupRoot (--cgroup-root) was not specified")
	}
	period := c.CPUCFSQuotaPeriod
	switch custom, known := c.Gate("CustomCPUCFSQuotaPeriod", minor); {
	case known && !custom && period != 100*time.Millisecond:
		add("cpuCFSQuotaPeriod", period.String(), "cpuCFSQuotaPeriod (--cpu-cfs-quota-period) {%v} requires feature gate CustomCPUCFSQuotaPeriod", period)
	case known && custom && (period < time.Millisecond || period > time.Second):
		add("cpuCFSQuotaPeriod", period.String(), "cpuCFSQuotaPeriod (--cpu-cfs-quota-period) {%v} must be between 1ms and 1sec, inclusive", period)
	}
	if c.MaxPods < 0 {
		add("maxPods", fmt.Sprint(c.MaxPods), "maxPods (--max-pods) %d must not be a negative number", c.MaxPods)
	}
	if c.PodsPerCore < 0 {
		add("podsPerCore", fmt.Sprint(c.PodsPerCore), "podsPerCore (--pods-per-core) %d must not be a negative number", c.PodsPerCore)
	}
	switch b := c.MemorySwapBehavior; b {
	case "", "NoSwap", "LimitedSwap":
	default:
		add("memorySwap.swapBehavior", b, "memorySwap.swapBehavior %s must be one of: \"\", \"LimitedSwap\" or \"NoSwap\"", cut.Quote(b))
	}
	c.invalidMemoryQoS(minor, add)
}

// previousThrottlingFactor was the default before 1.37, which a configuration may still carry there with MemoryQoS off.
const previousThrottlingFactor = 0.9

func (c Config) invalidMemoryQoS(minor int, add addInvalid) {
	qos, _ := c.Gate("MemoryQoS", minor)
	if f := c.MemoryThrottlingFactor; f != nil {
		if minor >= 37 && !qos && *f != previousThrottlingFactor {
			add("memoryThrottlingFactor", fmt.Sprint(*f), "memoryThrottlingFactor must not be set when MemoryQoS feature gate is disabled")
		}
		if *f <= 0 || *f > 1 {
			add("memoryThrottlingFactor", fmt.Sprint(*f), "memoryThrottlingFactor %v must be greater than 0 and less than or equal to 1.0", *f)
		}
	}
	switch p := c.MemoryReservationPolicy; p {
	case "", "None":
	case "TieredReservation":
		if minor >= 36 && !qos {
			add("memoryReservationPolicy", p, "memoryReservationPolicy %q requires MemoryQoS feature gate to be enabled", p)
		}
	default:
		if minor >= 36 {
			add("memoryReservationPolicy", p, "option %s specified for memoryReservationPolicy. Valid options are \"None\" or \"TieredReservation\"", cut.Quote(p))
		}
	}
}
