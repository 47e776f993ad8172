package diagnose

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/noderes/kubectl-noderes/pkg/alloc/cpuset"
	"github.com/noderes/kubectl-noderes/pkg/alloc/node"
	"github.com/noderes/kubectl-noderes/pkg/alloc/topology"
	"github.com/noderes/kubectl-noderes/pkg/report"
)

// placement is the node's placement with this pod's containers only.
func (c *podCase) placement() *report.Placement {
	if c.name == "" {
		return nil
	}
	return c.nodeCase.placement([]corev1.Pod{*c.pod})
}

// placement lays out which container holds which CPUs and memory. Nil where
// nothing of it is known.
func (n *nodeCase) placement(pods []corev1.Pod) *report.Placement {
	p := &report.Placement{}
	if n.configErr == nil {
		p.Policy, p.Options = n.config.CPUManagerPolicy, n.config.CPUManagerPolicyOptions
		p.Scope, p.TopologyPolicy, p.MemoryPolicy = n.config.TopologyManagerScope, n.config.TopologyManagerPolicy, n.config.MemoryManagerPolicy
	}
	p.CPUs = n.placementCPUs()
	p.NUMANodes = n.placementNUMA()
	for i := range pods {
		if active(&pods[i]) {
			p.Containers = append(p.Containers, newPodCase(n, &pods[i]).placementContainers()...)
		}
	}
	if p.Policy == "" && p.CPUs == nil && len(p.NUMANodes) == 0 && len(p.Containers) == 0 {
		return nil
	}
	return p
}

func (n *nodeCase) placementCPUs() *report.PlacementCPUs {
	out := &report.PlacementCPUs{}
	if topo, err := n.topo(); err == nil {
		out.All = text(topo.AllCPUs())
		if isolated, _, ok := n.isolatedCPUs(); ok {
			out.Isolated = text(isolated)
		}
	}
	if online, ok := n.onlineCPUs(); ok {
		out.Online = text(online)
	}
	reserved, reservedKnown := n.reservedCPUs()
	if reservedKnown {
		out.Reserved = text(reserved)
	}
	if state, ok := n.cpuCheckpoint(); ok && state.PolicyName == "static" {
		out.Shared = text(state.Default)
		if reservedKnown {
			out.Free = text(state.Default.Difference(reserved))
		}
	}
	if *out == (report.PlacementCPUs{}) {
		return nil
	}
	return out
}

// reservedCPUs are those that the static policy keeps from exclusive use: the
// explicit set, or those that the kubelet picks by its own rule of taking CPUs.
func (n *nodeCase) reservedCPUs() (cpuset.Set, bool) {
	if n.configErr != nil {
		return cpuset.Set{}, false
	}
	if set := n.config.ReservedSystemCPUs; !set.IsEmpty() {
		return set, true
	}
	return n.pickedCPUs()
}

// pickReservedCPUs starts a CPU Manager without state, which picks them.
func (n *nodeCase) pickReservedCPUs() (cpuset.Set, bool) {
	c, err := n.managerConfig()
	if err != nil || n.config.CPUManagerPolicy != "static" {
		return cpuset.Set{}, false
	}
	// The other managers' settings do not bear on it.
	c.Kubelet.MemoryManagerPolicy = "None"
	c.Kubelet.TopologyManagerPolicyOptions = nil
	started, err := node.Start(c, node.State{})
	if err != nil {
		return cpuset.Set{}, false
	}
	return started.CPU.Reserved, true
}

func text(s cpuset.Set) *string {
	t := s.String()
	return &t
}

func (n *nodeCase) placementNUMA() []report.NUMANode {
	topo, err := n.topo()
	if err != nil {
		return nil
	}
	state, stateKnown := n.cpuCheckpoint()
	reserved, reservedKnown := n.reservedCPUs()
	mem, memErr := n.memState()
	var out []report.NUMANode
	for _, node := range topo.NUMANodes {
		r := report.NUMANode{ID: node.ID, CPUs: node.CPUs.String()}
		if node.HasDistances {
			r.Distances = node.Distances
		}
		if stateKnown && reservedKnown && state.PolicyName == "static" {
			r.FreeCPUs = text(state.Default.Difference(reserved).Intersection(node.CPUs))
		}
		if memErr == nil {
			if s, ok := mem.MachineState[node.ID]; ok {
				for _, t := range slices.Sorted(maps.Keys(s.MemoryMap)) {
					table := s.MemoryMap[t]
					r.Memory = append(r.Memory, report.NUMAMemory{Type: string(t), Total: table.Total, Reserved: table.SystemReserved, Free: table.Free})
				}
			}
		}
		out = append(out, r)
	}
	return out
}

func (c *podCase) placementContainers() []report.PlacementContainer {
	state, stateKnown := c.cpuCheckpoint()
	var out []report.PlacementContainer
	for _, k := range c.containers() {
		p := report.PlacementContainer{Namespace: c.pod.Namespace, Pod: c.pod.Name, Container: k.Name, UID: c.uid, Init: k.init}
		if set, owns := c.ownedCPUs(c.uid, k.Name); owns {
			p.CPUs, p.Exclusive, p.NUMANodes = text(set), true, c.numaNodesOf(set)
			p.Source = c.source(cpuStatePath)
		} else if listed, ok := c.podResourcesCPUs(k.Name); ok && !stateKnown {
			p.CPUs, p.Exclusive, p.NUMANodes, p.Source = text(listed), true, c.numaNodesOf(listed), podResourcesSource
			c.gaps.Lack(c.filePath(cpuStatePath)+" (PodResources instead)", "the checkpoint was not read", "the shared pool and the CPUs of normal init containers: PodResources names neither", "the node pod")
		} else if stateKnown && state.PolicyName == "static" && !k.finished() {
			p.CPUs, p.Source = text(state.Default), c.source(cpuStatePath)
		}
		p.Memory = c.memoryBlocks(c.uid, k.Name)
		if live, _, ok := c.liveCPUs(k.Name); ok {
			p.Live = &live
		}
		if p.CPUs != nil || p.Live != nil || len(p.Memory) > 0 {
			out = append(out, p)
		}
	}
	return out
}

// topologyEvidence says where the machine's description puts CPUs.
func (n *nodeCase) topologyEvidence(topo *topology.Topology, node topology.NUMANode, own cpuset.Set) report.Evidence {
	source := n.source(fmt.Sprintf("sys/devices/system/node/node%d/cpulist", node.ID))
	if topo.Source == topology.Lscpu {
		source = "node:lscpu -p"
	}
	return report.Evidence{Source: source, Value: node.CPUs.String(), Means: fmt.Sprintf("NUMA node %d; %s of it are the container's", node.ID, own)}
}
