package eviction

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"time"
)

// Summary is what of the kubelet's /stats/summary bears on evictions
// (k8s.io/kubelet stats v1alpha1). A pointer is nil where the field is absent.
type Summary struct {
	Node NodeStats  `json:"node"`
	Pods []PodStats `json:"pods"`
}

// NodeStats are those of the node. SystemContainers has "pods", the cgroup of
// all pods.
type NodeStats struct {
	NodeName         string           `json:"nodeName"`
	SystemContainers []ContainerStats `json:"systemContainers"`
	Memory           *MemoryStats     `json:"memory"`
	Fs               *FsStats         `json:"fs"`
	Runtime          *RuntimeStats    `json:"runtime"`
	Rlimit           *RlimitStats     `json:"rlimit"`
}

// RuntimeStats are the file systems of the container runtime.
type RuntimeStats struct {
	ImageFs     *FsStats `json:"imageFs"`
	ContainerFs *FsStats `json:"containerFs"`
}

// RlimitStats count processes against the most there may be.
type RlimitStats struct {
	Time    time.Time `json:"time"`
	MaxPID  *int64    `json:"maxpid"`
	Running *int64    `json:"curproc"`
}

// PodStats are those of one pod. A pod without a running container has none.
type PodStats struct {
	PodRef     PodReference     `json:"podRef"`
	Containers []ContainerStats `json:"containers"`
	Memory     *MemoryStats     `json:"memory"`
	Volumes    []VolumeStats    `json:"volume"`
	Processes  *ProcessStats    `json:"process_stats"`
	Ephemeral  *FsStats         `json:"ephemeral-storage"`
}

// PodReference names a pod. UID is the kubelet's: for a static pod the hash of
// its manifest.
type PodReference struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
	UID       string `json:"uid"`
}

// ContainerStats are those of a container or a system daemon.
type ContainerStats struct {
	Name   string       `json:"name"`
	Memory *MemoryStats `json:"memory"`
	Rootfs *FsStats     `json:"rootfs"`
	Logs   *FsStats     `json:"logs"`
}

// ProcessStats count processes.
type ProcessStats struct {
	Count *uint64 `json:"process_count"`
}

// MemoryStats are bytes.
type MemoryStats struct {
	Time       time.Time `json:"time"`
	Available  *uint64   `json:"availableBytes"`
	WorkingSet *uint64   `json:"workingSetBytes"`
}

// FsStats are of a file system, or of what one user holds of it.
type FsStats struct {
	Time       time.Time `json:"time"`
	Available  *uint64   `json:"availableBytes"`
	Capacity   *uint64   `json:"capacityBytes"`
	Used       *uint64   `json:"usedBytes"`
	InodesFree *uint64   `json:"inodesFree"`
	Inodes     *uint64   `json:"inodes"`
	InodesUsed *uint64   `json:"inodesUsed"`
}

// VolumeStats are those of one volume of a pod.
type VolumeStats struct {
	FsStats
	Name string `json:"name"`
}

// ParseSummary reads the answer of /stats/summary.
func ParseSummary(data []byte) (Summary, error) {
	var s Summary
	if err := json.Unmarshal(data, &s); err != nil {
		return Summary{}, fmt.Errorf("stats/summary: %w", err)
	}
	return s, nil
}

// Pod finds a pod's statistics by the kubelet's UID.
func (s Summary) Pod(uid string) (PodStats, bool) {
	for _, p := range s.Pods {
		if p.PodRef.UID == uid && uid != "" {
			return p, true
		}
	}
	return PodStats{}, false
}

// Observation is one signal as the kubelet measures it.
type Observation struct {
	Signal string // as configured; allocatableMemory.available stands for itself
	// Available and Capacity are bytes, inodes or processes.
	Available, Capacity int64
	Time                time.Time
	Field               string // where Available stands in the summary
}

// Observations are the signals in the order in which the kubelet would act on
// them: memory first (makeSignalObservations, byEvictionPriority).
func (s Summary) Observations() []Observation {
	var out []Observation
	add := func(signal, field string, available, capacity *uint64, at time.Time) {
		if available == nil || capacity == nil {
			return
		}
		out = append(out, Observation{Signal: signal, Field: field, Available: clamp(*available), Capacity: clamp(*capacity), Time: at})
	}
	memory := func(signal, field string, m *MemoryStats) {
		if m == nil || m.Available == nil || m.WorkingSet == nil {
			return
		}
		capacity := *m.Available + *m.WorkingSet
		add(signal, field, m.Available, &capacity, m.Time)
	}
	memory("memory.available", "node.memory.availableBytes", s.Node.Memory)
	for _, c := range s.Node.SystemContainers {
		if c.Name == "pods" {
			memory("allocatableMemory.available", "node.systemContainers[pods].memory.availableBytes", c.Memory)
		}
	}
	filesystem := func(name, field string, f *FsStats) {
		if f == nil {
			return
		}
		add(name+".available", field+".availableBytes", f.Available, f.Capacity, f.Time)
		add(name+".inodesFree", field+".inodesFree", f.InodesFree, f.Inodes, f.Time)
	}
	filesystem("nodefs", "node.fs", s.Node.Fs)
	if r := s.Node.Runtime; r != nil {
		filesystem("imagefs", "node.runtime.imageFs", r.ImageFs)
		filesystem("containerfs", "node.runtime.containerFs", r.ContainerFs)
	}
	if r := s.Node.Rlimit; r != nil && r.MaxPID != nil && r.Running != nil {
		out = append(out, Observation{Signal: "pid.available", Field: "node.rlimit.maxpid − curproc",
			Available: max(*r.MaxPID, 0) - max(*r.Running, 0), Capacity: max(*r.MaxPID, 0), Time: r.Time})
	}
	return out
}

// DedicatedImageFs says whether images lie on a file system of their own; told
// by size and inodes, as the summary names no device.
func (s Summary) DedicatedImageFs() (dedicated, known bool) {
	if s.Node.Fs == nil || s.Node.Runtime == nil || s.Node.Runtime.ImageFs == nil {
		return false, false
	}
	node, image := s.Node.Fs, s.Node.Runtime.ImageFs
	if node.Capacity == nil || image.Capacity == nil {
		return false, false
	}
	same := *node.Capacity == *image.Capacity && (node.Inodes == nil || image.Inodes == nil || *node.Inodes == *image.Inodes)
	return !same, true
}

// usagePart is one of the places where a pod holds disk.
type usagePart int

const (
	partRoot usagePart = 1 << iota
	partLogs
	partVolumes
)

// Usage is what a pod holds of a signal's resource; localVolumes are the names
// of its volumes on the node's disk (LocalVolumes). dedicated is
// DedicatedImageFs (buildSignalToRankFunc; images and containers on one disk).
func (p PodStats) Usage(signal string, localVolumes []string, dedicated bool) int64 {
	parts := partRoot | partLogs | partVolumes
	switch signal {
	case "memory.available", "allocatableMemory.available":
		if p.Memory == nil || p.Memory.WorkingSet == nil {
			return 0
		}
		return clamp(*p.Memory.WorkingSet)
	case "pid.available":
		if p.Processes == nil || p.Processes.Count == nil {
			return 0
		}
		return clamp(*p.Processes.Count)
	case "nodefs.available", "nodefs.inodesFree":
		if dedicated {
			parts = partLogs | partVolumes
		}
	default:
		if dedicated {
			parts = partRoot
		}
	}
	of := func(f *FsStats) uint64 {
		if f == nil {
			return 0
		}
		v := f.Used
		if strings.HasSuffix(signal, ".inodesFree") {
			v = f.InodesUsed
		}
		if v == nil {
			return 0
		}
		return *v
	}
	var sum uint64
	add := func(v uint64) {
		if sum += v; sum < v {
			sum = math.MaxUint64
		}
	}
	for _, c := range p.Containers {
		if parts&partRoot != 0 {
			add(of(c.Rootfs))
		}
		if parts&partLogs != 0 {
			add(of(c.Logs))
		}
	}
	if parts&partVolumes != 0 {
		for _, name := range localVolumes {
			for i := range p.Volumes {
				if p.Volumes[i].Name == name {
					add(of(&p.Volumes[i].FsStats))
					break
				}
			}
		}
	}
	return clamp(sum)
}

func clamp(v uint64) int64 { return int64(min(v, math.MaxInt64)) }
