package checkpoint

import (
	"encoding/json"
	"hash/fnv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	kubeletcpuset "k8s.io/utils/cpuset"
	"k8s.io/utils/dump"
	"pgregory.net/rapid"
)

// The kubelet's structures under other package names, to write files as a kubelet would: with the library that it hashes by, against
// which the texts of this package are checked.

type tables = map[corev1.ResourceName]MemoryTable

type sum uint64

type podCPUs struct{ CPUSet kubeletcpuset.CPUSet }

func (p podCPUs) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		CPUSet string `json:"cpuSet,omitempty"`
	}{p.CPUSet.String()})
}

type PodCPUAssignments map[string]podCPUs

type cpuFile1 struct {
	PolicyName    string            `json:"policyName"`
	DefaultCPUSet string            `json:"defaultCpuSet"`
	Entries       map[string]string `json:"entries,omitempty"`
	Checksum      sum               `json:"checksum"`
}

type cpuFile2 struct {
	PolicyName    string                       `json:"policyName"`
	DefaultCPUSet string                       `json:"defaultCpuSet"`
	Entries       map[string]map[string]string `json:"entries,omitempty"`
	Checksum      sum                          `json:"checksum"`
}

type cpuFile3 struct {
	PolicyName    string                       `json:"policyName"`
	DefaultCPUSet string                       `json:"defaultCpuSet"`
	Entries       map[string]map[string]string `json:"entries,omitempty"`
	PodEntries    PodCPUAssignments            `json:"podEntries,omitempty"`
	Checksum      sum                          `json:"checksum"`
}

type memoryTable struct {
	TotalMemSize   uint64 `json:"total"`
	SystemReserved uint64 `json:"systemReserved"`
	Allocatable    uint64 `json:"allocatable"`
	Reserved       uint64 `json:"reserved"`
	Free           uint64 `json:"free"`
}

type numaNodeState struct {
	NumberOfAssignments int                                  `json:"numberOfAssignments"`
	MemoryMap           map[corev1.ResourceName]*memoryTable `json:"memoryMap"`
	Cells               []int                                `json:"cells"`
}

type memoryBlock struct {
	NUMAAffinity []int               `json:"numaAffinity"`
	Type         corev1.ResourceName `json:"type"`
	Size         uint64              `json:"size"`
}

type podMemory struct {
	MemoryBlocks []memoryBlock `json:"memoryBlocks,omitempty"`
}

type (
	NUMANodeMap                map[int]*numaNodeState
	ContainerMemoryAssignments map[string]map[string][]memoryBlock
	PodMemoryAssignments       map[string]podMemory
)

type memoryFile1 struct {
	PolicyName   string                     `json:"policyName"`
	MachineState NUMANodeMap                `json:"machineState"`
	Entries      ContainerMemoryAssignments `json:"entries,omitempty"`
	Checksum     sum                        `json:"checksum"`
}

type memoryFile2 struct {
	PolicyName   string                     `json:"policyName"`
	MachineState NUMANodeMap                `json:"machineState"`
	Entries      ContainerMemoryAssignments `json:"entries,omitempty"`
	PodEntries   PodMemoryAssignments       `json:"podEntries,omitempty"`
	Checksum     sum                        `json:"checksum"`
}

var kubeletNames = strings.NewReplacer(
	"checkpoint.sum", "checksum.Checksum",
	"checkpoint.cpuFile1", "state.CPUManagerCheckpoint", "checkpoint.cpuFile2", "state.CPUManagerCheckpoint", "checkpoint.cpuFile3", "state.CPUManagerCheckpoint",
	"checkpoint.memoryFile1", "state.MemoryManagerCheckpoint", "checkpoint.memoryFile2", "state.MemoryManagerCheckpoint",
	"checkpoint.memoryTable", "state.MemoryTable", "checkpoint.memoryBlock", "state.Block",
	"checkpoint.", "state.",
)

// seal writes a file with its checksum; at points to the checksum inside file.
func seal(t *rapid.T, file any, at *sum) []byte {
	h := fnv.New32a()
	h.Write([]byte(kubeletNames.Replace(dump.ForHash(file))))
	*at = sum(h.Sum32())
	data, err := json.Marshal(file)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func name() *rapid.Generator[string] { return rapid.StringMatching(`[a-z0-9 :\[\]é-]{0,6}`) }

func list() *rapid.Generator[string] {
	return rapid.SampledFrom([]string{"", "0", "1-3", "0-1,7", "2047", "900-1000"})
}

func containers() *rapid.Generator[map[string]map[string]string] {
	return rapid.MapOfN(name(), rapid.MapOfN(name(), list(), 0, 3), 0, 3)
}

func TestCPUSumsAsKubelet(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		policy, def := name().Draw(t, "policy"), list().Draw(t, "default")
		var data []byte
		form := rapid.IntRange(1, 3).Draw(t, "form")
		want := form
		switch form {
		case 1:
			f := &cpuFile1{policy, def, rapid.MapOfN(name(), list(), 0, 3).Draw(t, "entries"), 0}
			data = seal(t, f, &f.Checksum)
		case 2:
			f := &cpuFile2{policy, def, containers().Draw(t, "entries"), 0}
			data = seal(t, f, &f.Checksum)
		case 3:
			pods := PodCPUAssignments{}
			for uid, l := range rapid.MapOfN(name(), list(), 0, 3).Draw(t, "pods") {
				set, err := kubeletcpuset.Parse(l)
				if err != nil {
					t.Fatal(err)
				}
				pods[uid] = podCPUs{set}
			}
			f := &cpuFile3{policy, def, containers().Draw(t, "entries"), pods, 0}
			data = seal(t, f, &f.Checksum)
		}
		got, err := ReadCPU(data)
		if err != nil || got.Version != want || !got.Checksums[0].OK {
			t.Fatalf("%s: form %d, want %d; %v", data, got.Version, want, err)
		}
	})
}

func blocks() *rapid.Generator[[]memoryBlock] {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) memoryBlock {
		return memoryBlock{
			rapid.SampledFrom([][]int{nil, {}, {0}, {1, 3}}).Draw(t, "nodes"),
			rapid.SampledFrom([]corev1.ResourceName{"memory", "hugepages-2Mi"}).Draw(t, "type"),
			rapid.Uint64().Draw(t, "size"),
		}
	}), 0, 2)
}

func TestMemorySumsAsKubelet(t *testing.T) {
	table := rapid.Ptr(rapid.Custom(func(t *rapid.T) memoryTable {
		n := rapid.Uint64()
		return memoryTable{n.Draw(t, "total"), n.Draw(t, "reserved"), n.Draw(t, "allocatable"), n.Draw(t, "used"), n.Draw(t, "free")}
	}), false)
	node := rapid.Ptr(rapid.Custom(func(t *rapid.T) numaNodeState {
		return numaNodeState{
			rapid.IntRange(-1, 20).Draw(t, "assignments"),
			rapid.MapOfN(rapid.SampledFrom([]corev1.ResourceName{"memory", "hugepages-1Gi"}), table, 0, 2).Draw(t, "tables"),
			rapid.SampledFrom([][]int{nil, {}, {0}, {0, 1}}).Draw(t, "cells"),
		}
	}), false)
	rapid.Check(t, func(t *rapid.T) {
		policy := name().Draw(t, "policy")
		nodes := NUMANodeMap(rapid.MapOfN(rapid.IntRange(0, 12), node, 0, 3).Draw(t, "nodes"))
		entries := ContainerMemoryAssignments(rapid.MapOfN(name(), rapid.MapOfN(name(), blocks(), 0, 2), 0, 2).Draw(t, "entries"))
		pods := PodMemoryAssignments{}
		for uid, b := range rapid.MapOfN(name(), blocks(), 0, 2).Draw(t, "pods") {
			if len(b) == 0 {
				b = nil // the file does not tell an empty list from none
			}
			pods[uid] = podMemory{b}
		}
		want := rapid.IntRange(1, 2).Draw(t, "form")
		var data []byte
		if want == 1 {
			f := &memoryFile1{policy, nodes, entries, 0}
			data = seal(t, f, &f.Checksum)
		} else {
			f := &memoryFile2{policy, nodes, entries, pods, 0}
			data = seal(t, f, &f.Checksum)
		}
		got, err := ReadMemory(data)
		if err != nil || got.Version != want || !got.Checksums[0].OK {
			t.Fatalf("%s: form %d, want %d; %v", data, got.Version, want, err)
		}
	})
}
