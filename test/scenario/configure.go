package scenario

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
)

// gates are the feature gates that decide something, in the versions that have them.
func (g *generator) gates() map[string]bool {
	gates := map[string]bool{"CPUManagerPolicyAlphaOptions": !g.oneIn(40)}
	off := func(name string, n int) {
		if g.oneIn(n) {
			gates[name] = false
		}
	}
	off("CPUManagerPolicyBetaOptions", 30)
	off("TopologyManagerPolicyBetaOptions", 20)
	if g.plr {
		if g.minor >= 36 {
			gates["PodLevelResourceManagers"] = !g.oneIn(8)
		}
		if g.minor >= 37 {
			off("PodLevelResourcesFixKubeletQOSClass", 6)
		}
		if g.oneIn(10) || !gates["PodLevelResourceManagers"] && g.oneIn(4) {
			gates["PodLevelResources"] = false
			// The kubelet does not start with gates on that need it.
			if g.minor >= 36 {
				gates["PodLevelResourceManagers"] = false
				gates["InPlacePodLevelResourcesVerticalScaling"] = false
			}
			if g.minor >= 37 {
				gates["PodLevelResourcesFixKubeletQOSClass"] = false
				gates["PodLevelResourcesFixDefaulting"] = false
			}
		}
	}
	if g.minor == 34 {
		off("InPlacePodVerticalScaling", 4)
	}
	return gates
}

// podLevel are the resources of a pod as a whole.
func (g *generator) podLevel() *Resources {
	r := &Resources{Limits: g.limits()}
	switch g.IntN(20) {
	case 0:
		r.Limits = nil
	case 1:
		delete(r.Limits, "memory")
	case 2:
		delete(r.Limits, "cpu")
	case 3:
		r.Requests = map[string]string{"cpu": "10m"}
	}
	return r
}

// restart is one with another configuration or machine at times.
func (g *generator) restart() Step {
	step := Step{Op: "restart"}
	if !g.oneIn(3) {
		return step
	}
	k := g.configured
	cpus := g.s.Topology.CPUs
	switch g.IntN(16) {
	case 0, 1, 2, 3:
		if k.CPUManagerPolicy == "static" {
			k.CPUManagerPolicyOptions = g.cpuOptions()
		}
	case 4, 5:
		k.TopologyManagerPolicy = pick(g, "none", "best-effort", "restricted", "single-numa-node")
	case 6, 7:
		k.TopologyManagerScope = pick(g, "container", "pod")
	case 8:
		k.TopologyManagerPolicyOptions = map[string]string{"prefer-closest-numa-nodes": pick(g, "true", "false")}
	case 9, 10:
		k.ReservedSystemCPUs = strconv.Itoa(pick(g, cpus...).CPU)
	case 11:
		k.NodeReservation = maps.Clone(k.NodeReservation)
		k.NodeReservation["cpu"], k.ReservedSystemCPUs = fmt.Sprintf("%dm", 1+g.IntN(3000)), ""
	case 12:
		k.MemoryManagerPolicy = pick(g, "None", "Static")
	case 13:
		k.CPUManagerPolicy, k.CPUManagerPolicyOptions = pick(g, "none", "static"), nil
	case 14:
		k.FeatureGates = g.gates()
	case 15:
		machine := g.s.Topology
		machine.NUMA = slices.Clone(machine.NUMA)
		if at := g.IntN(len(machine.NUMA)); g.oneIn(2) {
			machine.NUMA[at].Memory += 4096
		} else if len(cpus) > 2 {
			machine.CPUs = cpus[:len(cpus)-1]
		}
		step.Topology = &machine
		return step
	}
	g.configured = k
	step.Kubelet = &k
	return step
}
