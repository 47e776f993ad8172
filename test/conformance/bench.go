package conformance

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/noderes/kubectl-noderes/pkg/alloc/node"
	"github.com/noderes/kubectl-noderes/test/scenario"
)

// Unsaved are the policies of a kubelet's managers on a state that is in memory only.
type Unsaved interface {
	Admit(*corev1.Pod) Answer
	Remove(*corev1.Pod)
}

// bench compares how long an admission takes: in the kubelet as it runs, with its state files in memory; in the same without state files;
// in the replay. In each round each of them takes the whole load, one after the other.
func (k *Kubelet) bench() error {
	low := false
	for _, shape := range shapes() {
		var saved, unsaved, replayed []time.Duration
		for round := range *rounds + 1 {
			t := &timer{kubelet: k, scenario: &shape.scenario}
			if err := t.run(); err != nil {
				return fmt.Errorf("%s: %w", shape.name, err)
			}
			if round == 0 {
				continue // everything is slower the first time
			}
			saved, unsaved, replayed = append(saved, t.saved...), append(unsaved, t.unsaved...), append(replayed, t.replayed...)
		}
		own := median(replayed)
		ratio, ratioUnsaved := float64(median(saved))/float64(own), float64(median(unsaved))/float64(own)
		fmt.Printf("%-56s %6d admissions: %6.0f times, without its state files %5.0f times\n", shape.name, len(replayed), ratio, ratioUnsaved)
		if ratio < shape.least || ratioUnsaved < shape.leastUnsaved {
			fmt.Printf("%-56s below %g and %g times\n", "", shape.least, shape.leastUnsaved)
			low = true
		}
	}
	if err := whole(); err != nil {
		return err
	}
	if low {
		return errors.New("not as fast as it has to be")
	}
	return nil
}

// timer runs a load once.
type timer struct {
	kubelet                  *Kubelet
	scenario                 *scenario.Scenario
	saved, unsaved, replayed []time.Duration
}

func (t *timer) run() error {
	folder, err := os.MkdirTemp(MemoryFolder(), "managers")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	n, err := newNode(t.scenario, folder)
	if err != nil {
		return err
	}
	kubelet := &runner{kubelet: t.kubelet, node: n, resetGates: func() {}}
	setup, err := kubelet.start()
	defer func() { kubelet.resetGates() }()
	if err != nil || !setup.OK {
		return fmt.Errorf("%s: %s, %v", setup.Stage, setup.Error, err)
	}
	unsaved, err := t.kubelet.Unsaved(n)
	if err != nil {
		return err
	}
	config, err := t.scenario.NodeConfig()
	if err != nil {
		return err
	}
	replay, err := node.Start(config, node.State{})
	if err != nil {
		return err
	}

	var real, policies, own []Answer
	if t.saved, err = t.load(&real, func(p *scenario.Pod) (func() Answer, error) {
		pod := n.add(p)
		return func() Answer { return kubelet.managers.Admit(pod) }, nil
	}, func(uid string) {
		if pod := n.find(uid); pod != nil {
			n.drop(pod.UID)
			kubelet.collect()
		}
	}); err != nil {
		return err
	}
	pods := map[string]*corev1.Pod{}
	if t.unsaved, err = t.load(&policies, func(p *scenario.Pod) (func() Answer, error) {
		pod := newPod(p)
		pods[p.UID] = pod
		return func() Answer { return unsaved.Admit(pod) }, nil
	}, func(uid string) { unsaved.Remove(pods[uid]) }); err != nil {
		return err
	}
	if t.replayed, err = t.load(&own, func(p *scenario.Pod) (func() Answer, error) {
		pod, err := p.NodePod()
		return func() Answer {
			result, err := replay.Admit(pod, nil)
			if err != nil {
				return Answer{Message: err.Error()}
			}
			return Answer{result.Admit, result.Reason, result.Message}
		}, err
	}, func(uid string) {
		replay.Remove(uid)
		_ = replay.Collect() // an error would show in the next answer
	}); err != nil {
		return err
	}
	if !slices.Equal(real, policies) || !slices.Equal(real, own) {
		return fmt.Errorf("other answers: %v; %v; %v", real, policies, own)
	}
	return nil
}

// load times the admissions of a scenario. What is not admitted is removed.
func (t *timer) load(answers *[]Answer, admit func(*scenario.Pod) (func() Answer, error), remove func(uid string)) ([]time.Duration, error) {
	var times []time.Duration
	runtime.GC() // not what the others have left
	for i := range t.scenario.Steps {
		step := &t.scenario.Steps[i]
		if step.Op == "remove" {
			remove(step.UID)
			continue
		}
		run, err := admit(step.Pod)
		if err != nil {
			return nil, err
		}
		start := time.Now()
		answer := run()
		times = append(times, time.Since(start))
		if *answers = append(*answers, answer); !answer.Admit {
			remove(step.Pod.UID)
		}
	}
	return times, nil
}

// whole tells how often a second a big node can be replayed from its start to the last of its pods.
func whole() error {
	s := bigNode()
	config, err := s.NodeConfig()
	if err != nil {
		return err
	}
	var pods []node.Pod
	for _, step := range s.Steps {
		pod, err := step.Pod.NodePod()
		if err != nil {
			return err
		}
		pods = append(pods, pod)
	}
	var times []time.Duration
	admitted := 0
	for range 50 {
		start := time.Now()
		n, err := node.Start(config, node.State{})
		if err != nil {
			return err
		}
		for _, pod := range pods {
			if _, err := n.Admit(pod, nil); err != nil {
				return err
			}
		}
		times = append(times, time.Since(start))
		admitted = len(n.Pods())
	}
	fmt.Printf("%d pods on %d CPUs, %d of them admitted: replayed %.0f times a second\n", len(pods), len(s.Topology.CPUs), admitted,
		float64(time.Second)/float64(median(times)))
	return nil
}

func median(d []time.Duration) time.Duration {
	slices.Sort(d)
	return max(1, d[len(d)/2])
}

// shape is a scenario and how many times faster the replay's median admission has to be at least.
type shape struct {
	name                string
	scenario            scenario.Scenario
	least, leastUnsaved float64
}
