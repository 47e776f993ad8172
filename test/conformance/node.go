package conformance

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/cpuset"

	"github.com/noderes/kubectl-noderes/test/scenario"
)

// Node is what the managers of a kubelet find: the machine, the configuration, a folder with the state files, and the active pods.
type Node struct {
	Folder  string
	Machine scenario.Topology
	Kubelet scenario.Kubelet
	// Of the configuration: reservedSystemCPUs, and the node's reservation.
	Reserved    cpuset.CPUSet
	Reservation corev1.ResourceList

	mu    sync.Mutex
	pods  []*corev1.Pod
	asked chan struct{} // gets a token whenever the managers ask for the active pods
	specs map[types.UID]*scenario.Pod
}

// newNode makes a node with the state files of a scenario.
func newNode(s *scenario.Scenario, folder string) (*Node, error) {
	n := &Node{Folder: folder, Machine: s.Topology, Kubelet: s.Kubelet, specs: map[types.UID]*scenario.Pod{}}
	if s.State == nil {
		return n, nil
	}
	for name, file := range map[string]json.RawMessage{"cpu_manager_state": s.State.CPU, "memory_manager_state": s.State.Memory} {
		if file == nil {
			continue
		}
		text := []byte(file)
		var quoted string
		if json.Unmarshal(file, &quoted) == nil {
			text = []byte(quoted)
		}
		if err := os.WriteFile(filepath.Join(folder, name), text, 0o600); err != nil {
			return nil, err
		}
	}
	return n, nil
}

// ActivePods is for the managers.
func (n *Node) ActivePods() []*corev1.Pod {
	n.mu.Lock()
	defer n.mu.Unlock()
	select {
	case n.asked <- struct{}{}:
	default:
	}
	return slices.Clone(n.pods)
}

// Never is the period of the loop that repairs cpusets: the first pass, which comes at once, is the only one.
const Never = 1000 * time.Hour

// Repaired waits for the first pass of that loop. It asks for the active pods twice.
func (n *Node) Repaired() {
	if n.Kubelet.CPUManagerPolicy != "static" {
		return
	}
	<-n.asked
	<-n.asked
	time.Sleep(time.Millisecond)
}

func (n *Node) find(uid string) *corev1.Pod {
	for _, pod := range n.pods {
		if string(pod.UID) == uid {
			return pod
		}
	}
	return nil
}

func (n *Node) add(spec *scenario.Pod) *corev1.Pod {
	pod := newPod(spec)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.specs[pod.UID] = spec
	n.pods = append(n.pods, pod)
	return pod
}

func (n *Node) drop(uid types.UID) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.pods = slices.DeleteFunc(n.pods, func(p *corev1.Pod) bool { return p.UID == uid })
}

// DeviceHints returns by resource what the device manager would say of a container, or of the whole pod if there is no name.
func (n *Node) DeviceHints(pod *corev1.Pod, container string) map[string][]scenario.Hint {
	spec := n.specs[pod.UID]
	var answer map[string][]scenario.Hint
	for _, c := range slices.Concat(spec.InitContainers, spec.Containers) {
		if container != "" && c.Name != container {
			continue
		}
		for name, list := range c.DeviceHints {
			if answer == nil {
				answer = map[string][]scenario.Hint{}
			}
			answer[name] = list
		}
	}
	return answer
}

// configured reads what the configuration reserves. The reservation of cpu is the number of reservedSystemCPUs if there are any.
func (n *Node) configured() (err error) {
	n.Reservation = Quantities(n.Kubelet.NodeReservation)
	if n.Reserved, err = cpuset.Parse(n.Kubelet.ReservedSystemCPUs); n.Reserved.Size() > 0 {
		if n.Reservation == nil {
			n.Reservation = corev1.ResourceList{}
		}
		n.Reservation[corev1.ResourceCPU] = *resource.NewQuantity(int64(n.Reserved.Size()), resource.DecimalSI)
	}
	return err
}

// MachineInfo sets info, a cadvisor *MachineInfo, to the machine as cadvisor would tell it. The package of that type hangs on the version,
// its JSON does not.
func (n *Node) MachineInfo(info any) error {
	type cache struct {
		ID    int    `json:"id"`
		Level int    `json:"level"`
		Type  string `json:"type"`
	}
	type core struct {
		ID           int     `json:"core_id"`
		Threads      []int   `json:"thread_ids"`
		UncoreCaches []cache `json:"uncore_caches"`
		SocketID     int     `json:"socket_id"`
	}
	type hugePages struct {
		PageSize uint64 `json:"page_size"`
		NumPages uint64 `json:"num_pages"`
	}
	type numaNode struct {
		ID        int         `json:"node_id"`
		Memory    uint64      `json:"memory"`
		HugePages []hugePages `json:"hugepages"`
		Cores     []core      `json:"cores"`
		Distances []uint64    `json:"distances"`
	}
	m := struct {
		NumCores   int        `json:"num_cores"`
		NumSockets int        `json:"num_sockets"`
		Topology   []numaNode `json:"topology"`
	}{NumCores: n.Machine.NumCores, NumSockets: n.Machine.NumSockets}
	sockets := map[int]bool{}
	for _, from := range n.Machine.NUMA {
		to := numaNode{ID: from.ID, Memory: from.Memory, Distances: from.Distances}
		for _, p := range from.HugePages {
			to.HugePages = append(to.HugePages, hugePages{PageSize: p.PageSizeKiB, NumPages: p.Count})
		}
		for _, c := range n.Machine.CPUs {
			if c.NUMA != from.ID {
				continue
			}
			sockets[c.Socket] = true
			i := slices.IndexFunc(to.Cores, func(core core) bool { return core.ID == c.Core && core.SocketID == c.Socket })
			if i < 0 {
				add := core{ID: c.Core, SocketID: c.Socket}
				if c.Uncore != nil {
					add.UncoreCaches = []cache{{ID: *c.Uncore, Level: 3, Type: "Unified"}}
				}
				i = len(to.Cores)
				to.Cores = append(to.Cores, add)
			}
			to.Cores[i].Threads = append(to.Cores[i].Threads, c.CPU)
		}
		m.Topology = append(m.Topology, to)
	}
	if m.NumCores == 0 {
		m.NumCores = len(n.Machine.CPUs)
	}
	if m.NumSockets == 0 {
		m.NumSockets = len(sockets)
	}
	return transcribe(m, info)
}

func transcribe(from, to any) error {
	text, err := json.Marshal(from)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, to)
}
