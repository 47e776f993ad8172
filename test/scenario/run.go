package scenario

import (
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/noderes/kubectl-noderes/pkg/alloc"
	"github.com/noderes/kubectl-noderes/pkg/alloc/hint"
	"github.com/noderes/kubectl-noderes/pkg/alloc/node"
)

// maxAlternatives bounds the number of possible results that are told.
const maxAlternatives = 64

// Run replays a scenario. Where several results are possible, the others are its Alternatives.
func Run(s *Scenario) Output {
	first := run(s, nil)
	main := first.out
	// Each choice that was met for the first time is tried in every other way, depth first.
	pending := first.others(0)
	for len(pending) > 0 && len(main.Alternatives) < maxAlternatives {
		next := pending[0]
		pending = pending[1:]
		r := run(s, next)
		main.Alternatives = append(main.Alternatives, r.out)
		pending = append(r.others(len(next)), pending...)
	}
	return main
}

// runner runs a scenario once, with the outcomes of chance given.
type runner struct {
	node  *node.Node
	out   Output
	given []int // the outcomes to take, the first of each beyond
	taken []int
	ways  []int // how many there were
}

func (r *runner) choose(n int) int {
	pick := 0
	if len(r.taken) < len(r.given) {
		pick = r.given[len(r.taken)]
	}
	r.taken, r.ways = append(r.taken, pick), append(r.ways, n)
	return pick
}

// others returns the outcomes not taken at the choices from the given one on.
func (r *runner) others(from int) [][]int {
	var list [][]int
	for i := from; i < len(r.ways); i++ {
		for pick := 1; pick < r.ways[i]; pick++ {
			list = append(list, append(slices.Clone(r.taken[:i]), pick))
		}
	}
	return list
}

func run(s *Scenario, given []int) *runner {
	r := &runner{out: Output{ID: s.ID}, given: given}
	if err := r.run(s); err != nil {
		var crash *hint.Crash
		switch {
		case errors.Is(err, hint.ErrWouldHang):
			r.out.Setup, r.out.Steps, r.out.Error = SetupResult{}, nil, "timeout"
		case errors.As(err, &crash):
			r.out.Error = "panic: " + crash.Panic
		default:
			r.out.Error = err.Error()
		}
	}
	return r
}

func (r *runner) run(s *Scenario) error {
	config, err := s.Kubelet.build(s.Version)
	if err != nil {
		r.out.Setup = SetupResult{Stage: "input", Error: err.Error()}
		return nil
	}
	if config.Topology, err = s.Topology.build(); err != nil {
		r.out.Setup = SetupResult{Stage: string(node.CPUManager), Error: err.Error()}
		return nil
	}
	state, err := s.State.build(config.Rules)
	if err != nil {
		return err
	}
	if r.out.Setup, err = r.start(node.Start(config, state)); err != nil || !r.out.Setup.OK {
		return err
	}
	for i := range s.Steps {
		step, err := r.step(&s.Steps[i], &config, s.Version)
		if err != nil {
			return err
		}
		r.out.Steps = append(r.out.Steps, step)
		if step.Restart != nil && !step.Restart.OK {
			return nil
		}
	}
	return nil
}

// start takes the result of a kubelet start, and throws the dice where it hangs on chance.
func (r *runner) start(n *node.Node, err error) (SetupResult, error) {
	var start *node.StartError
	if errors.As(err, &start) {
		possible := distinct(start.Possible)
		err = possible[0]
		if len(possible) > 1 {
			err = possible[r.choose(len(possible))]
		}
	}
	var crash *hint.Crash
	switch {
	case errors.As(err, &crash) || errors.Is(err, hint.ErrWouldHang):
		return SetupResult{}, err
	case err != nil && start == nil:
		return SetupResult{}, err
	case err != nil:
		return SetupResult{Stage: string(start.Stage), Error: err.Error()}, nil
	}
	r.node = n
	return SetupResult{OK: true, AllCPUs: n.CPU.All().String(), Allocatable: n.CPU.Allocatable().String(), State: stateOf(n)}, nil
}

func distinct(errs []error) []error {
	var list []error
	for _, err := range errs {
		if !slices.ContainsFunc(list, func(e error) bool { return fmt.Sprint(e) == fmt.Sprint(err) }) {
			list = append(list, err)
		}
	}
	return list
}

func (r *runner) step(s *Step, config *node.Config, version string) (StepResult, error) {
	result := StepResult{Op: s.Op, UID: s.UID}
	var err error
	switch s.Op {
	case "add":
		err = r.add(s.Pod, config.Rules, &result)
	case "remove":
		if !r.node.Remove(s.UID) {
			result.Message = "not active"
			break
		}
		err = r.node.Collect()
	case "start":
		requests := r.node.Requests(s.UID)
		if requests == nil {
			result.Message = "not active"
			break
		}
		if !slices.ContainsFunc(requests.Containers, func(c alloc.ContainerRequests) bool { return c.Name == s.Container }) {
			return result, fmt.Errorf("start: no container %q", s.Container)
		}
		err = r.node.Started(s.UID, s.Container)
	case "restart":
		return result, r.restart(s, config, version, &result)
	default:
		return result, fmt.Errorf("unknown op %q", s.Op)
	}
	if err != nil {
		return result, err
	}
	result.State = stateOf(r.node)
	return result, nil
}

func (r *runner) add(p *Pod, rules alloc.Rules, result *StepResult) error {
	if p == nil {
		return errors.New("add: no pod")
	}
	pod, err := p.build()
	if err != nil {
		return err
	}
	result.UID = p.UID
	result.QOS = string(alloc.QOSClass(pod.Pod, rules))
	answer, err := r.node.Admit(pod, nil)
	if err != nil {
		return err
	}
	result.Admit, result.Reason, result.Message = &answer.Admit, answer.Reason, answer.Message
	if !answer.Admit {
		result.AtReject = stateOf(r.node)
		return r.node.Collect()
	}
	result.Containers = r.containers(pod.Pod, answer.Hints)
	result.PodCPUs = r.node.CPU.State.PodEntries[p.UID].String()
	result.PodMemory = blocksOf(r.node.Memory.State.PodEntries[p.UID])
	return nil
}

func (r *runner) restart(s *Step, config *node.Config, version string, result *StepResult) error {
	if s.Kubelet != nil {
		next, err := s.Kubelet.build(version)
		if err != nil {
			result.Restart = &SetupResult{Stage: "input", Error: err.Error()}
			return nil
		}
		next.Topology = config.Topology
		*config = next
	}
	if s.Topology != nil {
		t, err := s.Topology.build()
		if err != nil {
			result.Restart = &SetupResult{Stage: string(node.CPUManager), Error: err.Error()}
			return nil
		}
		config.Topology = t
	}
	setup, err := r.start(r.node.Restart(*config))
	if err != nil {
		return err
	}
	result.Restart = &setup
	if !setup.OK {
		return nil
	}
	for _, pod := range r.node.Pods() {
		answer, err := r.node.Admit(pod, nil)
		if err != nil {
			return err
		}
		result.Readmit = append(result.Readmit, Readmit{string(pod.UID), answer.Admit, answer.Reason, answer.Message})
	}
	if err := r.node.Collect(); err != nil {
		return err
	}
	result.State = stateOf(r.node)
	return nil
}

func (r *runner) containers(pod *corev1.Pod, hints []hint.Hint) []ContainerResult {
	var list []ContainerResult
	requests := r.node.Requests(string(pod.UID))
	for i := range requests.Containers {
		c := &requests.Containers[i]
		cpus, own := r.node.CPU.Get(requests.UID, c.Name)
		blocks := r.node.Memory.Get(requests.UID, c.Name)
		to := ContainerResult{Name: c.Name, Init: c.Kind != alloc.App, Assigned: own, CPUs: cpus.String(), Memory: blocksOf(blocks)}
		to.CPULevel = level(own, requests.PodLevel && !c.OwnCPUs)
		to.MemLevel = level(len(blocks) > 0, requests.PodLevel && !c.OwnMemory)
		var nodes hint.Mask
		for _, b := range blocks {
			nodes |= b.Nodes
		}
		if nodes != 0 {
			to.MemNodes = nodes.IDs()
		}
		h := hints[i]
		to.MergedHint = &Hint{Preferred: h.Preferred}
		if h.Aligned {
			to.MergedHint.NUMA = h.Mask.IDs()
		}
		list = append(list, to)
	}
	return list
}

func level(has, ofPod bool) string {
	switch {
	case !has:
		return "host"
	case ofPod:
		return "pod"
	}
	return "container"
}
