package cgroup

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// recordedNode is a real node of kubelet 1.37.2, containerd and runc 1.5.3 with
// the systemd driver: what its pods asked for and what the files held.
type recordedNode struct {
	Node                 string            `json:"node"`
	CPUCapacity          int64             `json:"cpuCapacityMilli"`
	CapacityMemory       int64             `json:"capacityMemory"`
	ReservedMemory       int64             `json:"reservedMemory"`
	SingleProcessOOMKill bool              `json:"singleProcessOOMKill"`
	Kubepods             map[string]string `json:"kubepods"`
	Burstable            map[string]string `json:"burstable"`
	BestEffort           map[string]string `json:"besteffort"`
	Pods                 []recordedPod     `json:"pods"`
}

type recordedPod struct {
	Pod         *corev1.Pod                  `json:"pod"`
	Slice       map[string]string            `json:"slice"`
	Containers  map[string]map[string]string `json:"containers"`
	OOMScoreAdj map[string]int               `json:"oomScoreAdj"`
	Exclusive   []string                     `json:"exclusive"`
}

func (n recordedNode) settings() Settings {
	return Settings{
		Minor: 37, Systemd: true, CFSQuota: true, MemoryQoS: true, PodLevelResources: true,
		SingleProcessOOMKill: n.SingleProcessOOMKill,
		CapacityMemory:       n.CapacityMemory,
		ReservableMemory:     n.CapacityMemory - n.ReservedMemory,
	}
}

func (p recordedPod) exclusive(container string) bool {
	for _, name := range p.Exclusive {
		if name == container {
			return true
		}
	}
	return false
}

// checkRecorded compares each file: with what is expected of it, or with what
// it holds where nothing writes it. An unlimited pids.max stands for systemd's
// own limit, and hugetlb is set by the kubelet for every page size.
func checkRecorded(t *testing.T, where string, expected []FileValues, files map[string]string) (compared int) {
	t.Helper()
	named := map[string]bool{}
	for _, f := range expected {
		if named[f.File] {
			t.Errorf("%s: %s named twice", where, f.File)
		}
		named[f.File] = true
		text, ok := files[f.File]
		if !ok {
			t.Errorf("%s: %s expected, but not recorded", where, f.File)
			continue
		}
		compared++
		if _, ok := f.Accepts(text); !ok {
			t.Errorf("%s: %s holds %q, expected %+v", where, f.File, text, f.Accept)
		}
		for _, v := range f.Accept {
			if v.Rule == "" {
				t.Errorf("%s: %s %q without a rule", where, f.File, v.Text)
			}
		}
	}
	for file, text := range files {
		if want, ok := DefaultText(file); ok && !named[file] && text != want {
			t.Errorf("%s: %s holds %q and nothing is expected of it, so %q", where, file, text, want)
		}
	}
	return compared
}

func TestRecordedNodes(t *testing.T) {
	for _, name := range []string{"smt2", "numa4"} {
		t.Run(name, func(t *testing.T) {
			var node recordedNode
			readVectors(t, "recordings/"+name+".json", &node)
			compared, scores := 0, 0
			var pods []*corev1.Pod
			for _, p := range node.Pods {
				pods = append(pods, p.Pod)
				s := node.settings()
				s.Exclusive = p.exclusive
				for _, res := range []Resources{Desired, Allocated, Actuated} {
					where := p.Pod.Name + " " + res.String()
					compared += checkRecorded(t, where, PodValues(p.Pod, res, s), p.Slice)
					for container, files := range p.Containers {
						values, err := ContainerValues(p.Pod, container, res, s)
						if err != nil {
							t.Errorf("%s: %v", where, err)
						}
						compared += checkRecorded(t, where+" "+container, values, files)
					}
				}
				for container, want := range p.OOMScoreAdj {
					scores++
					if got, why, err := OOMScoreAdj(p.Pod, container, node.CapacityMemory, 37); got != want || err != nil {
						t.Errorf("%s/%s: %d (%s), %v; processes have %d", p.Pod.Name, container, got, why, err, want)
					}
				}
			}
			resources := NodeResources{CPUCapacity: node.CPUCapacity, CPUReserved: 2000, EnforcePods: true}
			slices := NodeValues(resources, pods, Allocated, node.settings())
			compared += checkRecorded(t, "kubepods", slices.Kubepods, node.Kubepods)
			compared += checkRecorded(t, "burstable", slices.Burstable, node.Burstable)
			compared += checkRecorded(t, "besteffort", slices.BestEffort, node.BestEffort)
			if compared < 200 || scores < 10 {
				t.Errorf("only %d files and %d processes compared", compared, scores)
			}
		})
	}
}

func TestRecordedSidecarPod(t *testing.T) {
	var node recordedNode
	readVectors(t, "recordings/smt2.json", &node)
	for _, p := range node.Pods {
		if p.Pod.Name != "sidecar" {
			continue
		}
		want := []Value{{
			Text: "40000 100000", Rule: "exact",
			Arithmetic: "max(400m, 100m + 300m) = 400m; 400m × 100000 µs / 1000 = 40000 µs",
		}}
		wantFile(t, PodValues(p.Pod, Desired, node.settings()), "cpu.max", want...)
		wantFile(t, PodValues(p.Pod, Desired, node.settings()), "memory.max",
			Value{Text: "134217728", Rule: "exact", Arithmetic: "64Mi + 64Mi = 134217728 bytes"})
		return
	}
	t.Error("no pod sidecar")
}
