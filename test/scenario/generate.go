package scenario

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"github.com/noderes/kubectl-noderes/pkg/alloc"
)

// Profiles are the kinds of scenarios that Generate knows.
func Profiles() []string { return []string{"mixed", "cpu", "memory", "podlevel", "numa8", "uneven"} }

// Generate returns a random scenario for a kubelet version ("1.36"), always the same for a version, a seed, an index and a profile. It
// panics on a version that is none.
func Generate(version string, seed uint64, index int, profile string) Scenario {
	rules, _, err := alloc.RulesFor(version)
	if err != nil {
		panic(err)
	}
	g := &generator{Rand: rand.New(rand.NewPCG(seed, uint64(index)*0x9e3779b97f4a7c15+uint64(len(profile)))), profile: profile, minor: rules.Minor}
	g.s.ID, g.s.Version = fmt.Sprintf("%s-%d-%d", profile, seed, index), version
	g.machine()
	g.memoryNodes()
	g.kubelet()
	if g.oneIn(6) {
		g.s.State = g.seed()
	}
	g.steps()
	return g.s
}

type generator struct {
	*rand.Rand
	profile string
	minor   int // of the version
	s       Scenario
	smt     int
	nodes   []int // ids
	huge    bool
	plr     bool // pod-level resources

	configured Kubelet // at the last restart
}

func (g *generator) oneIn(n int) bool { return g.IntN(n) == 0 }

func pick[T any](g *generator, from ...T) T { return from[g.IntN(len(from))] }

// machine makes sockets of dies of cores of threads. A NUMA node is a die, a socket, or two sockets.
func (g *generator) machine() {
	sockets, dies, cores := pick(g, 1, 1, 2, 2, 4), pick(g, 1, 1, 2, 4), pick(g, 1, 2, 3, 4, 6, 8)
	g.smt = pick(g, 1, 2, 2, 2, 4)
	nodeOf := func(socket, die int) int { return socket*dies + die }
	switch {
	case g.profile == "numa8":
		sockets = pick(g, 1, 2, 4)
		dies, cores, g.smt = 8/sockets, pick(g, 2, 3, 4), pick(g, 1, 2, 2)
	case g.oneIn(8) && sockets > 1:
		nodeOf = func(socket, _ int) int { return socket / 2 }
	case g.oneIn(4):
		nodeOf = func(socket, _ int) int { return socket }
	}
	for sockets*dies > 8 {
		dies /= 2
	}
	for sockets*dies*cores*g.smt > 128 {
		cores = max(1, cores/2)
		if cores == 1 && g.smt > 1 {
			g.smt = 1
		}
	}
	stride := 1 // of node ids
	if g.oneIn(15) {
		stride = pick(g, 2, 4)
	}
	cachesPerDie := pick(g, 0, 0, 1, 2, 3)
	type place struct{ socket, die, core, thread int }
	var places []place
	for s := range sockets {
		for d := range dies {
			for c := range cores {
				threads := g.smt
				if g.profile == "uneven" && g.oneIn(3) {
					threads = 1 + g.IntN(g.smt)
				}
				for t := range threads {
					places = append(places, place{s, d, c, t})
				}
			}
		}
	}
	switch order := g.IntN(4); order {
	case 0: // siblings side by side
	case 1: // first threads first
		slices.SortStableFunc(places, func(a, b place) int { return a.thread - b.thread })
	case 2: // round robin over sockets and dies
		slices.SortStableFunc(places, func(a, b place) int { return (a.thread*64 + a.core) - (b.thread*64 + b.core) })
	case 3:
		g.Shuffle(len(places), func(i, j int) { places[i], places[j] = places[j], places[i] })
	}
	gap, offline := 0, 0
	if g.oneIn(8) {
		gap = pick(g, 1, 16, 100)
	}
	if g.oneIn(8) {
		offline = 1 + g.IntN(3)
	}
	for i, p := range places {
		if offline > 0 && i > 0 && len(places) > 4 && g.oneIn(6) {
			offline--
			continue
		}
		id := i
		if i >= len(places)/2 {
			id += gap
		}
		node := nodeOf(p.socket, p.die) * stride
		c := CPU{CPU: id, Core: (p.die*cores + p.core), Socket: p.socket, NUMA: node}
		if cachesPerDie > 0 && !(g.profile == "uneven" && p.core == 0) {
			cache := (p.socket*dies+p.die)*cachesPerDie + p.core*cachesPerDie/cores
			c.Uncore = &cache
		}
		g.s.Topology.CPUs = append(g.s.Topology.CPUs, c)
		if !slices.Contains(g.nodes, node) {
			g.nodes = append(g.nodes, node)
		}
	}
	slices.Sort(g.nodes)
	if g.oneIn(20) && len(g.nodes) < 8 {
		g.nodes = append(g.nodes, g.nodes[len(g.nodes)-1]+1) // memory only
	}
	if g.oneIn(30) {
		g.s.Topology.NumSockets = 1 + g.IntN(4)
	}
}

func (g *generator) memoryNodes() {
	g.huge = g.oneIn(3)
	size := pick[uint64](g, 2, 4, 16, 64) << 30
	noDistances := g.oneIn(30)
	for i, id := range g.nodes {
		n := NUMA{ID: id, Memory: size + g.Uint64N(1<<18)*4096}
		if g.huge {
			n.HugePages = []HugePage{{2048, pick[uint64](g, 0, 64, 200, 512)}, {1048576, pick[uint64](g, 0, 1)}}
		}
		if !noDistances {
			for j := range g.nodes {
				n.Distances = append(n.Distances, pick[uint64](g, 12, 21, 21, 32))
				switch {
				case i == j:
					n.Distances[j] = 10
				case j < i:
					n.Distances[j] = g.s.Topology.NUMA[j].Distances[i]
				}
			}
		}
		g.s.Topology.NUMA = append(g.s.Topology.NUMA, n)
	}
}

func (g *generator) kubelet() {
	k := &g.s.Kubelet
	g.plr = g.profile == "podlevel" || g.profile == "mixed" && g.oneIn(5)
	k.FeatureGates = g.gates()
	k.CPUManagerPolicy, k.MemoryManagerPolicy = "static", pick(g, "None", "Static")
	switch g.profile {
	case "cpu", "numa8":
		k.MemoryManagerPolicy = "None"
	case "memory":
		k.MemoryManagerPolicy = "Static"
		if g.oneIn(6) {
			k.CPUManagerPolicy = "none"
		}
	}
	k.TopologyManagerPolicy = pick(g, "none", "best-effort", "best-effort", "restricted", "restricted", "single-numa-node")
	k.TopologyManagerScope = pick(g, "container", "pod")
	if g.oneIn(4) {
		k.TopologyManagerPolicyOptions = map[string]string{"prefer-closest-numa-nodes": pick(g, "true", "true", "false")}
	}
	if g.oneIn(25) {
		k.TopologyManagerPolicyOptions = map[string]string{"max-allowable-numa-nodes": pick(g, "8", "9", "16", "7", "x"), "prefer-closest-numa-nodes": pick(g, "true", "yes")}
	}
	if k.CPUManagerPolicy == "static" {
		k.CPUManagerPolicyOptions = g.cpuOptions()
	}
	k.NodeReservation = map[string]string{}
	cpus := g.s.Topology.CPUs
	if g.oneIn(2) {
		k.NodeReservation["cpu"] = fmt.Sprintf("%dm", 1+g.IntN(max(1000, len(cpus)*200)))
	} else {
		var ids []string
		from := g.IntN(len(cpus))
		for i := range 1 + g.IntN(min(6, len(cpus))) {
			at := i
			if from%2 == 0 {
				at = (from + i*7) % len(cpus)
			}
			if id := strconv.Itoa(cpus[at].CPU); !slices.Contains(ids, id) {
				ids = append(ids, id)
			}
		}
		k.ReservedSystemCPUs = strings.Join(ids, ",")
	}
	if k.MemoryManagerPolicy == "Static" {
		var sum uint64
		for _, n := range g.s.Topology.NUMA {
			if sum > 0 && g.oneIn(3) {
				continue
			}
			v := pick[uint64](g, 64, 100, 300, 1000) << 20
			sum += v
			k.ReservedMemory = append(k.ReservedMemory, ReservedMemory{int32(n.ID), map[string]string{"memory": strconv.FormatUint(v, 10)}})
		}
		if g.oneIn(60) {
			sum -= 1 << 20
		}
		k.NodeReservation["memory"] = strconv.FormatUint(sum, 10)
	}
}

func (g *generator) cpuOptions() map[string]string {
	o := map[string]string{}
	on := func(names ...string) {
		for _, name := range names {
			o[name] = "true"
		}
	}
	const full, numa, cores, uncore = "full-pcpus-only", "distribute-cpus-across-numa", "distribute-cpus-across-cores", "prefer-align-cpus-by-uncorecache"
	switch n := g.IntN(20); {
	case g.profile == "numa8":
		on(numa)
		if g.oneIn(3) {
			on(full)
		}
	case n < 4:
	case n < 7:
		on(full)
	case n < 9:
		on(numa)
	case n < 11:
		on(numa, full)
	case n < 13:
		on(cores)
	case n < 16:
		on(uncore)
	case n < 18:
		on(uncore, full)
	default:
		for _, name := range []string{full, numa, cores, uncore, "no-such-option"} {
			if g.oneIn(3) {
				o[name] = pick(g, "true", "true", "false", "T", "nope")
			}
		}
	}
	if g.oneIn(4) {
		on("align-by-socket")
	}
	if g.oneIn(4) {
		on("strict-cpu-reservation")
	}
	return o
}

func (g *generator) steps() {
	g.configured = g.s.Kubelet
	var alive []*Pod
	for i := range 5 + g.IntN(16) {
		n := g.IntN(100)
		switch {
		case n < 64 || len(alive) == 0:
			p := g.pod(fmt.Sprintf("p%d", i))
			alive = append(alive, p)
			g.s.Steps = append(g.s.Steps, Step{Op: "add", Pod: p})
		case n < 84:
			at := g.IntN(len(alive))
			g.s.Steps = append(g.s.Steps, Step{Op: "remove", UID: alive[at].UID})
			alive = slices.Delete(alive, at, at+1)
		case n < 93:
			p := pick(g, alive...)
			names := p.Containers
			if len(p.InitContainers) > 0 && g.oneIn(3) {
				names = p.InitContainers
			}
			g.s.Steps = append(g.s.Steps, Step{Op: "start", UID: p.UID, Container: pick(g, names...).Name})
		default:
			g.s.Steps = append(g.s.Steps, g.restart())
		}
	}
}

func (g *generator) pod(uid string) *Pod {
	p := &Pod{UID: uid}
	kind := pick(g, "guaranteed", "guaranteed", "guaranteed", "guaranteed", "guaranteed", "burstable", "none")
	plr := g.plr && !g.oneIn(3)
	container := func(name string) Container {
		c := Container{Name: name}
		switch {
		case plr:
			switch g.IntN(5) {
			case 0:
			case 1:
				c.Requests = map[string]string{"cpu": "200m"}
			case 2:
				c.Limits = map[string]string{"cpu": "1500m", "memory": "32Mi"}
			default:
				c.Limits = map[string]string{"cpu": strconv.Itoa(1 + g.IntN(4)), "memory": fmt.Sprintf("%dMi", 8+g.IntN(100))}
			}
			return c
		case kind == "guaranteed":
			c.Limits = g.limits()
		case kind == "burstable":
			c.Requests = map[string]string{"cpu": "1", "memory": "64Mi"}
			c.Limits = map[string]string{"cpu": "2", "memory": "64Mi"}
		}
		if g.minor == 34 && c.Limits != nil && g.oneIn(8) {
			c.AllocatedResources = maps.Clone(c.Limits)
			c.AllocatedResources["cpu"] = strconv.Itoa(1 + g.IntN(4))
		}
		if g.oneIn(12) {
			c.DeviceHints = map[string][]Hint{"example.com/nic": g.devices()}
		}
		return c
	}
	if g.oneIn(3) {
		for i := range 1 + g.IntN(3) {
			c := container(fmt.Sprintf("i%d", i))
			if g.oneIn(3) {
				c.RestartPolicy = "Always"
			}
			p.InitContainers = append(p.InitContainers, c)
		}
	}
	for i := range 1 + g.IntN(3)*g.IntN(2) {
		p.Containers = append(p.Containers, container(fmt.Sprintf("c%d", i)))
	}
	if plr {
		p.Resources = g.podLevel()
	}
	return p
}

func (g *generator) limits() map[string]string {
	total := len(g.s.Topology.CPUs)
	perNode := max(1, total/len(g.nodes))
	n := 1 + g.IntN(max(2, total/3))
	switch g.IntN(6) {
	case 0:
		n = perNode
	case 1:
		n = g.smt * (1 + g.IntN(4))
	case 2:
		n = perNode + g.IntN(perNode+1)
	case 3:
		n = max(1, perNode/2)
	}
	l := map[string]string{"cpu": strconv.Itoa(min(n, total)), "memory": fmt.Sprintf("%dMi", pick(g, 32, 100, 500, 1000, 2500))}
	if g.oneIn(9) {
		l["cpu"] = fmt.Sprintf("%dm", 50+g.IntN(4000))
	}
	if g.oneIn(4) {
		l["memory"] = strconv.FormatUint(pick(g, g.s.Topology.NUMA...).Memory/16*uint64(4+g.IntN(20)), 10)
	}
	if g.huge && g.oneIn(4) {
		l["hugepages-2Mi"] = fmt.Sprintf("%dMi", pick(g, 2, 64, 128, 400))
	}
	return l
}

func (g *generator) devices() []Hint {
	list := []Hint{}
	if g.oneIn(8) {
		return list
	}
	list = append(list, Hint{[]int{pick(g, g.nodes...)}, true})
	if len(g.nodes) > 1 && g.oneIn(2) {
		list = append(list, Hint{g.nodes[:2], g.oneIn(4)})
	}
	if g.oneIn(2) {
		list = append(list, Hint{g.nodes, false})
	}
	return list
}
