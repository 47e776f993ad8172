package conformance

import (
	"fmt"
	"math/rand/v2"
	"strconv"

	"github.com/noderes/kubectl-noderes/test/scenario"
)

func shapes() []shape {
	usual := churn(machine(2, 1, 16), 60, func(r *rand.Rand) int { return 2 + 2*r.IntN(4) })
	static(&usual, "restricted", "full-pcpus-only")
	noMemory := churn(machine(2, 1, 16), 60, func(r *rand.Rand) int { return 1 + r.IntN(6) })
	static(&noMemory, "best-effort")
	noMemory.Kubelet.MemoryManagerPolicy, noMemory.Kubelet.ReservedMemory = "None", nil
	// Many sets of nodes are tried for a container that needs at least four of them, and a number that leaves a remainder.
	distributed := churn(machine(2, 4, 16), 8, func(r *rand.Rand) int { return 3 + r.IntN(5) })
	r := rand.New(rand.NewPCG(8, 4))
	for i := range 24 {
		pod := randomPod(r, 100+i, 97+r.IntN(32), 1<<30)
		distributed.Steps = append(distributed.Steps, scenario.Step{Op: "add", Pod: pod}, scenario.Step{Op: "remove", UID: pod.UID})
	}
	static(&distributed, "best-effort", "distribute-cpus-across-numa")
	distributed.Kubelet.MemoryManagerPolicy, distributed.Kubelet.ReservedMemory = "None", nil
	memory := churn(machine(2, 4, 16), 60, func(r *rand.Rand) int { return 1 + r.IntN(8) })
	static(&memory, "best-effort")
	return []shape{
		{"64 CPUs on 2 NUMA nodes, static CPUs and memory", usual, 100, 10},
		{"64 CPUs on 2 NUMA nodes, static CPUs only", noMemory, 100, 10},
		{"256 CPUs on 8 NUMA nodes, distribute-cpus-across-numa", distributed, 20, 1},
		{"256 CPUs on 8 NUMA nodes, static CPUs and memory", memory, 20, 1},
	}
}

// bigNode is 512 CPUs on 8 NUMA nodes, and 250 pods come to it.
func bigNode() scenario.Scenario {
	s := churn(machine(2, 4, 32), 0, nil)
	static(&s, "best-effort", "full-pcpus-only")
	r := rand.New(rand.NewPCG(250, 512))
	for i := range 250 {
		s.Steps = append(s.Steps, scenario.Step{Op: "add", Pod: randomPod(r, i, 2+2*r.IntN(2), 2<<30)})
	}
	return s
}

// machine has two threads for each core; the first threads of all come first, as with most firmware.
func machine(sockets, nodesPerSocket, coresPerNode int) scenario.Topology {
	var t scenario.Topology
	nodes := sockets * nodesPerSocket
	for thread := range 2 {
		for n := range nodes {
			for core := range coresPerNode {
				id := (thread*nodes+n)*coresPerNode + core
				cache := n
				t.CPUs = append(t.CPUs, scenario.CPU{CPU: id, Core: core, Socket: n / nodesPerSocket, NUMA: n, Uncore: &cache})
			}
		}
	}
	for n := range nodes {
		to := scenario.NUMA{ID: n, Memory: 128 << 30}
		for other := range nodes {
			switch {
			case other == n:
				to.Distances = append(to.Distances, 10)
			case other/nodesPerSocket == n/nodesPerSocket:
				to.Distances = append(to.Distances, 12)
			default:
				to.Distances = append(to.Distances, 32)
			}
		}
		t.NUMA = append(t.NUMA, to)
	}
	return t
}

func static(s *scenario.Scenario, topologyPolicy string, options ...string) {
	k := &s.Kubelet
	k.CPUManagerPolicy, k.MemoryManagerPolicy, k.TopologyManagerPolicy, k.TopologyManagerScope = "static", "Static", topologyPolicy, "container"
	k.CPUManagerPolicyOptions = map[string]string{}
	for _, name := range options {
		k.CPUManagerPolicyOptions[name] = "true"
	}
	k.NodeReservation = map[string]string{"cpu": "2", "memory": strconv.Itoa(1 << 30)}
	k.ReservedMemory = []scenario.ReservedMemory{{Limits: map[string]string{"memory": strconv.Itoa(1 << 30)}}}
}

// churn fills a machine with pods, and then lets some go and others come.
func churn(t scenario.Topology, steps int, cpus func(*rand.Rand) int) scenario.Scenario {
	s := scenario.Scenario{ID: "churn", Topology: t}
	r := rand.New(rand.NewPCG(uint64(len(t.CPUs)), uint64(steps)))
	var alive []string
	for i := range steps {
		if len(alive) > 0 && i > steps/4 && r.IntN(3) == 0 {
			at := r.IntN(len(alive))
			s.Steps = append(s.Steps, scenario.Step{Op: "remove", UID: alive[at]})
			alive = append(alive[:at], alive[at+1:]...)
			continue
		}
		pod := randomPod(r, i, cpus(r), 1<<30)
		alive = append(alive, pod.UID)
		s.Steps = append(s.Steps, scenario.Step{Op: "add", Pod: pod})
	}
	return s
}

// randomPod is Guaranteed with whole CPUs but for one in six; some have a second container, some an init container.
func randomPod(r *rand.Rand, i, cpus, memory int) *scenario.Pod {
	guaranteed := scenario.Resources{Limits: map[string]string{"cpu": strconv.Itoa(cpus), "memory": strconv.Itoa(memory * (1 + r.IntN(3)))}}
	pod := &scenario.Pod{UID: fmt.Sprintf("pod-%d", i)}
	switch r.IntN(6) {
	case 0:
		pod.Containers = []scenario.Container{{Name: "main", Resources: scenario.Resources{Requests: map[string]string{"cpu": "100m"}}}}
		return pod
	case 1:
		pod.InitContainers = []scenario.Container{{Name: "init", Resources: guaranteed}}
	case 2:
		side := scenario.Resources{Limits: map[string]string{"cpu": "500m", "memory": strconv.Itoa(memory)}}
		pod.Containers = append(pod.Containers, scenario.Container{Name: "side", Resources: side})
	}
	pod.Containers = append(pod.Containers, scenario.Container{Name: "main", Resources: guaranteed})
	return pod
}
