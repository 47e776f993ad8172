package conformance

import (
	"fmt"
	"os"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/noderes/kubectl-noderes/test/scenario"
)

type runner struct {
	kubelet  *Kubelet
	node     *Node
	managers Managers
	starts   int // of containers

	resetGates func()
}

// Run runs a scenario on the kubelet's code.
func (k *Kubelet) Run(s *scenario.Scenario) (out scenario.Output) {
	out.ID = s.ID
	folder, err := os.MkdirTemp(MemoryFolder(), "managers")
	if err != nil {
		out.Error = err.Error()
		return out
	}
	defer os.RemoveAll(folder)
	n, err := newNode(s, folder)
	if err != nil {
		out.Error = err.Error()
		return out
	}
	r := &runner{kubelet: k, node: n, resetGates: func() {}}
	defer func() { r.resetGates() }()
	defer func() {
		if p := recover(); p != nil {
			out.Error = fmt.Sprintf("panic: %v", p)
		}
	}()
	if out.Setup, err = r.start(); err != nil {
		out.Error = err.Error()
	}
	for i := range s.Steps {
		if err != nil || !out.Setup.OK {
			break
		}
		var step scenario.StepResult
		if step, err = r.step(&s.Steps[i]); err != nil {
			out.Error = err.Error()
			break
		}
		out.Steps = append(out.Steps, step)
		if step.Restart != nil && !step.Restart.OK {
			break
		}
	}
	return out
}

// MemoryFolder is where state files are written fastest; "" for the system's choice.
func MemoryFolder() string {
	const shm = "/dev/shm"
	if info, err := os.Stat(shm); err == nil && info.IsDir() {
		return shm
	}
	return ""
}

func (r *runner) start() (setup scenario.SetupResult, err error) {
	r.resetGates()
	if r.resetGates, err = r.kubelet.SetGates(r.node.Kubelet.FeatureGates); err != nil {
		return scenario.SetupResult{Stage: "gates", Error: err.Error()}, nil
	}
	if err := r.node.configured(); err != nil {
		return setup, err
	}
	r.node.mu.Lock()
	r.node.asked = make(chan struct{}, 2)
	r.node.mu.Unlock()
	r.managers, setup, err = r.kubelet.Start(r.node)
	setup.Error = strings.ReplaceAll(setup.Error, r.node.Folder, "/var/lib/kubelet")
	if setup.OK {
		setup.State = r.managers.State()
	}
	return setup, err
}

func (r *runner) collect() {
	pod := &corev1.Pod{}
	pod.UID = "nobody"
	pod.Spec.Containers = make([]corev1.Container, 1)
	r.managers.Collect(pod)
}

func (r *runner) step(s *scenario.Step) (scenario.StepResult, error) {
	result := scenario.StepResult{Op: s.Op, UID: s.UID}
	switch s.Op {
	case "add":
		r.add(s.Pod, &result)
	case "remove", "start":
		pod := r.node.find(s.UID)
		if pod == nil {
			result.Message = "not active"
			break
		}
		if s.Op == "remove" {
			r.node.drop(pod.UID)
			r.collect()
			break
		}
		for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
			for i := range list {
				if list[i].Name == s.Container {
					r.starts++
					r.managers.AddContainer(pod, &list[i], fmt.Sprintf("id-%d", r.starts))
				}
			}
		}
	case "restart":
		if err := r.restart(s, &result); err != nil || !result.Restart.OK {
			return result, err
		}
	default:
		return result, fmt.Errorf("unknown op %q", s.Op)
	}
	result.State = r.managers.State()
	return result, nil
}

func (r *runner) add(spec *scenario.Pod, result *scenario.StepResult) {
	pod := r.node.add(spec)
	result.UID, result.QOS = spec.UID, string(r.kubelet.QOS(pod))
	answer := r.managers.Admit(pod)
	result.Admit, result.Reason, result.Message = &answer.Admit, answer.Reason, answer.Message
	state := r.managers.State()
	if !answer.Admit {
		result.AtReject = state
		r.node.drop(pod.UID)
		r.collect()
		return
	}
	for i, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for j := range list {
			c := r.managers.Container(pod, &list[j])
			c.Name, c.Init = list[j].Name, i == 0
			result.Containers = append(result.Containers, c)
		}
	}
	result.PodCPUs, result.PodMemory = state.PodAssignments[spec.UID], state.PodMemory[spec.UID]
}

func (r *runner) restart(s *scenario.Step, result *scenario.StepResult) error {
	if s.Kubelet != nil {
		r.node.Kubelet = *s.Kubelet
	}
	if s.Topology != nil {
		r.node.Machine = *s.Topology
	}
	setup, err := r.start()
	result.Restart = &setup
	if err != nil || !setup.OK {
		return err
	}
	for _, pod := range slices.Clone(r.node.pods) {
		answer := r.managers.Admit(pod)
		result.Readmit = append(result.Readmit, scenario.Readmit{UID: string(pod.UID), Admit: answer.Admit, Reason: answer.Reason, Message: answer.Message})
		if !answer.Admit {
			r.node.drop(pod.UID)
		}
	}
	r.collect()
	return nil
}
