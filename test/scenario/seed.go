package scenario

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/noderes/kubectl-noderes/pkg/alloc/checkpoint"
	"github.com/noderes/kubectl-noderes/pkg/alloc/cpuset"
)

// seed is state files that a pod has left which is gone, as kubelets before 1.36 write them. Some are not as the kubelet wants them.
func (g *generator) seed() *SeedState {
	s := &SeedState{}
	if !g.oneIn(3) {
		s.CPU = g.cpuFile()
	}
	if g.s.Kubelet.MemoryManagerPolicy == "Static" && !g.oneIn(3) {
		s.Memory = g.memoryFile()
	}
	return s
}

func (g *generator) cpuFile() json.RawMessage {
	k := &g.s.Kubelet
	ids := make([]int, len(g.s.Topology.CPUs))
	for i, c := range g.s.Topology.CPUs {
		ids[i] = c.CPU
	}
	reserved, err := cpuset.Parse(k.ReservedSystemCPUs)
	if err != nil {
		panic(err)
	}
	all := cpuset.Of(ids...)
	free := all.Difference(reserved).List()
	held := cpuset.Of(free[:g.IntN(len(free)+1)/2]...)
	shared := all.Difference(held)
	if k.CPUManagerPolicyOptions["strict-cpu-reservation"] == "true" {
		shared = shared.Difference(reserved)
	}
	file := map[string]any{"policyName": k.CPUManagerPolicy, "checksum": 0}
	entry := held.String()
	switch g.IntN(12) {
	case 0:
		file["policyName"] = pick(g, "none", "static")
	case 1:
		shared = shared.Union(held) // overlaps
	case 2:
		shared = shared.Difference(cpuset.Of(ids[g.IntN(len(ids))]))
	case 3:
		shared = all
	case 4:
		shared = cpuset.Set{}
	case 5:
		file["checksum"] = 4711
	case 6:
		entry = "0-" + strconv.Itoa(slices.Max(ids)+1)
	}
	file["defaultCpuSet"] = shared.String()
	if entry != "" {
		file["entries"] = map[string]any{"gone": map[string]string{"c0": entry}}
	}
	return g.withChecksum(file, func(text []byte) error {
		_, err := checkpoint.ReadCPU(text)
		return err
	})
}

// withChecksum sets the checksum, unless it is to be wrong. One of 0 is none, where the kubelet can do without.
func (g *generator) withChecksum(file map[string]any, read func([]byte) error) json.RawMessage {
	if file["checksum"] != 0 || g.oneIn(4) {
		return asJSON(file)
	}
	file["checksum"] = 1
	var wrong *checkpoint.ChecksumError
	if errors.As(read(asJSON(file)), &wrong) {
		file["checksum"] = wrong.Checksum.Computed
	}
	return asJSON(file)
}

func (g *generator) memoryFile() json.RawMessage {
	k := &g.s.Kubelet
	type table = map[string]uint64
	machine := map[string]any{}
	held := uint64(g.IntN(3)) << 26
	holder := pick(g, g.nodes...)
	wrong := g.IntN(12)
	for _, n := range g.s.Topology.NUMA {
		tables := map[string]table{}
		var huge uint64
		for _, p := range n.HugePages {
			size := p.PageSizeKiB << 10 * p.Count
			huge += size
			name := map[uint64]string{2048: "hugepages-2Mi", 1048576: "hugepages-1Gi"}[p.PageSizeKiB]
			tables[name] = table{"total": size, "systemReserved": 0, "allocatable": size, "reserved": 0, "free": size}
		}
		var reserved uint64
		for _, r := range k.ReservedMemory {
			if int(r.NUMANode) == n.ID {
				v, err := strconv.ParseUint(r.Limits["memory"], 10, 64)
				if err != nil {
					panic(err)
				}
				reserved += v
			}
		}
		assignments := 0
		memory := table{"total": n.Memory, "systemReserved": reserved, "allocatable": n.Memory - reserved - huge, "reserved": 0}
		if n.ID == holder && held > 0 {
			memory["reserved"], assignments = held, 1
		}
		memory["free"] = memory["allocatable"] - memory["reserved"]
		switch wrong {
		case 0:
			memory["total"]++
		case 1:
			memory["free"]--
		case 2:
			memory["systemReserved"]++
		case 3:
			assignments++
		}
		tables["memory"] = memory
		cells := []int{n.ID}
		if wrong == 4 {
			cells = g.nodes
		}
		machine[strconv.Itoa(n.ID)] = map[string]any{"numberOfAssignments": assignments, "memoryMap": tables, "cells": cells}
	}
	file := map[string]any{"policyName": "Static", "machineState": machine, "checksum": 0}
	switch wrong {
	case 5:
		delete(machine, strconv.Itoa(holder))
	case 6:
		file["policyName"] = "None"
	case 7:
		file["checksum"] = 4711
	}
	if held > 0 {
		block := map[string]any{"numaAffinity": []int{holder}, "type": "memory", "size": held}
		file["entries"] = map[string]any{"gone": map[string]any{"c0": []any{block}}}
	}
	return g.withChecksum(file, func(text []byte) error {
		_, err := checkpoint.ReadMemory(text)
		return err
	})
}

func asJSON(v any) json.RawMessage {
	text, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprint("no JSON of ", v))
	}
	return text
}
