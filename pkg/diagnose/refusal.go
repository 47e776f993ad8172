package diagnose

import (
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/noderes/kubectl-noderes/pkg/alloc"
	"github.com/noderes/kubectl-noderes/pkg/alloc/cpumanager"
	"github.com/noderes/kubectl-noderes/pkg/alloc/cpuset"
	"github.com/noderes/kubectl-noderes/pkg/alloc/hint"
	"github.com/noderes/kubectl-noderes/pkg/alloc/node"
	"github.com/noderes/kubectl-noderes/pkg/alloc/trace"
	"github.com/noderes/kubectl-noderes/pkg/report"
)

// attempt is one admission replayed. Why the managers refused is told by
//
//	m, err := n.managers()
//	a, err := m.try(m.podOf(pod))         // err: the kubelet does not start on this state
//	a.result.Reason, a.result.Message     // what the kubelet would write into the status
//	findings := n.refusals(a, subject)    // none where the managers admit the pod
//
// and what its own fit check, which comes after them, by n.fitCheck and
// n.fitRefusal.
type attempt struct {
	from     managers
	pod      node.Pod
	requests alloc.PodRequests
	result   node.Result
	trace    trace.Trace
	// crash is what the kubelet would do instead of answering: hint.ErrWouldHang
	// or a *hint.Crash.
	crash error
	// node is as the answer left it: the containers before a refused one still
	// hold what they got.
	node *node.Node
	// source is where the pod's spec was read.
	source string
}

// start is the node as it is now, with what pods held that are gone, finished
// or refused collected first. The error is a *node.StartError or a crash.
func (m managers) start() (*node.Node, error) {
	n, err := node.Start(m.config, m.recorded, m.pods...)
	if err != nil && !node.MayStart(err) && m.running {
		n, err = node.Resume(m.config, m.recorded, m.pods...)
	}
	if err != nil && !node.MayStart(err) {
		return nil, err
	}
	return n, n.Collect()
}

// try admits a pod now. It is an error if the kubelet would not start.
func (m managers) try(pod node.Pod) (*attempt, error) {
	n, err := m.start()
	if err != nil {
		return nil, err
	}
	return m.admit(n, pod), nil
}

func (m managers) admit(n *node.Node, pod node.Pod) *attempt {
	a := &attempt{from: m, pod: pod, node: n, requests: alloc.RequestsOf(pod.Pod, m.config.Rules), source: "api:pods/" + pod.Namespace + "/" + pod.Name}
	a.result, a.crash = n.Admit(pod, &a.trace)
	return a
}

// admits says whether a pod would be admitted by the managers of m; false too
// where no more may be run.
func (m managers) admits(pod node.Pod) bool {
	if !m.effort.spend(m.config) {
		return false
	}
	n, err := m.start()
	if err != nil {
		return false
	}
	result, err := n.Admit(pod, nil)
	return err == nil && result.Admit
}

// without is the managers' world with one pod less.
func (m managers) without(uid string) managers {
	pods := make([]node.Pod, 0, len(m.pods))
	for _, p := range m.pods {
		if string(p.UID) != uid {
			pods = append(pods, p)
		}
	}
	m.pods = pods
	return m
}

// refusals explain why the managers refused a pod: the code of the refusal
// with the arithmetic of this node, and the cause behind it where a second run
// tells one. Nil if they admit it.
func (n *nodeCase) refusals(a *attempt, subject report.Subject) []report.Finding {
	defer func() {
		n.noteCut(a.from.effort.wasCut(), "remedies", "remedies and causes of the refusal that only a run shows")
	}()
	switch {
	case a.crash != nil:
		return []report.Finding{n.neverAnswered(a, subject)}
	case a.result.Admit:
		return nil
	}
	var out []report.Finding
	container, failed := a.failure()
	if container != "" && !a.wholePod() {
		subject.Container = container
	}
	var smt cpumanager.SMTAlignmentError
	switch reason := a.result.Reason; {
	case errors.As(failed, &smt):
		out = append(out, n.smtRefused(a, smt, container, subject))
	case reason == "TopologyAffinityError":
		out = n.topologyRefused(a, subject)
	case reason == "EmptyPodSharedPoolError":
		subject.Container = ""
		out = append(out, n.podPoolEmpty(a, subject))
	case strings.Contains(a.result.Message, "[memorymanager]"):
		out = append(out, n.memoryRefused(a, container, subject))
	case strings.Contains(a.result.Message, "not enough cpus available"):
		out = append(out, n.cpusExhausted(a, container, subject))
	default:
		f := n.refusal(a, report.RefusalUnexplained, subject,
			fmt.Sprintf("The kubelet's managers would refuse the pod: %s: %s.", reason, clip(a.result.Message)))
		out = append(out, f)
	}
	return out
}

// refusal starts a finding about a refusal: what a replay by the very rules of
// the kubelet's version says follows from the data.
func (n *nodeCase) refusal(a *attempt, code report.Code, subject report.Subject, summary string, because ...report.Evidence) report.Finding {
	confidence := report.Proven
	if !n.rulesKnown || !n.rulesExact {
		confidence = report.Likely
	}
	because = append(because, report.Evidence{
		Source: "node:/" + cpuStatePath, Field: "replayed answer", Value: a.result.Reason, Means: clip(a.result.Message),
	})
	return report.NewFinding(code, confidence, subject, summary, because...)
}

// failure is the error of the allocation that failed, and the container at
// which the pod was refused; "" is the pod as a whole.
func (a *attempt) failure() (container string, err error) {
	for _, s := range a.trace.Steps {
		switch {
		case s.Allocate != nil && s.Allocate.Err != nil:
			return s.Container, s.Allocate.Err
		case s.Merge != nil && !s.Merge.Admit:
			return s.Container, nil
		}
	}
	return "", nil
}

// wholePod: the managers share out one amount to the pod, so that no container
// is to blame.
func (a *attempt) wholePod() bool {
	return a.requests.PodLevel && a.from.config.Kubelet.TopologyManagerScope == "pod" && a.from.config.Kubelet.TopologyManagerPolicy != "none"
}

// container is what the managers ask of a container of the pod, or where it is
// "" of the whole pod.
func (a *attempt) container(name string) alloc.ContainerRequests {
	for _, c := range a.requests.Containers {
		if c.Name == name && name != "" {
			return c
		}
	}
	return alloc.ContainerRequests{CPUs: a.requests.CPUs, Memory: a.requests.Memory}
}

// freeCPUs are those that the pod could get: of the shared pool without the
// reserved ones. reusable are those that its init containers leave to the
// containers after them.
func (a *attempt) freeCPUs() (free, reusable cpuset.Set) {
	for _, s := range a.trace.Steps {
		if s.Allocate == nil || s.Allocate.Err != nil {
			continue
		}
		set, own := a.node.CPU.Get(a.requests.UID, s.Container)
		if !own {
			continue
		}
		if a.container(s.Container).Kind == alloc.Init {
			reusable = reusable.Union(set)
		} else {
			reusable = reusable.Difference(set)
		}
	}
	return a.node.CPU.State.Default.Difference(a.node.CPU.Reserved), reusable
}

// who names the container or the pod in a sentence.
func who(container string) string {
	if container == "" {
		return "The pod"
	}
	return "Container " + container
}

// requestEvidence quotes what a container, or the whole pod, asks for.
func (a *attempt) requestEvidence(container string, resource corev1.ResourceName, value string) report.Evidence {
	field := "sum of spec.containers[].resources.requests[" + string(resource) + "]"
	for _, list := range []struct {
		name string
		of   []corev1.Container
	}{{"initContainers", a.pod.Spec.InitContainers}, {"containers", a.pod.Spec.Containers}} {
		for i := range list.of {
			if list.of[i].Name == container && container != "" {
				field = fmt.Sprintf("spec.%s[%s].resources.requests[%s]", list.name, container, resource)
				if q, ok := list.of[i].Resources.Requests[resource]; ok {
					value = q.String()
				}
			}
		}
	}
	if container == "" && a.requests.PodLevel {
		field = "spec.resources.requests[" + string(resource) + "]"
	}
	return report.Evidence{Source: a.source, Field: field, Value: value}
}

// neverAnswered: the kubelet's admission loops for ever, or the kubelet dies of
// it, and with it every later pod.
func (n *nodeCase) neverAnswered(a *attempt, subject report.Subject) report.Finding {
	summary := "Admitting the pod, the kubelet would never come to an end: its goroutine hangs, and no pod after it is admitted either."
	means := "a loop of the static policy that hands out nothing in a round (kubelet to 1.37), or more NUMA nodes than sets of them can be tried"
	var crash *hint.Crash
	if errors.As(a.crash, &crash) {
		summary = fmt.Sprintf("Admitting the pod, the kubelet would crash (%s), and again at each restart while the pod is there.", crash.Panic)
		means = "the kubelet does not check this case"
	}
	f := n.refusal(a, report.KubeletWouldHang, subject, summary)
	f.Because = []report.Evidence{
		{Source: a.source, Field: "spec.containers[].resources.requests", Value: requestsText(a.pod.Pod), Means: "what was replayed"},
		n.configEvidence("cpuManagerPolicyOptions", optionsText(a.from.config.Kubelet.CPUManagerPolicyOptions), means),
	}
	f.Remedies = []report.Remedy{{Summary: "Do not send the pod to this node; ask for another number of CPUs or other sizes of memory, or change the CPU Manager's options."}}
	return f
}

// pool is the shared pool at the start; empty if the node does not start.
func (m managers) pool() cpuset.Set {
	n, err := m.start()
	if err != nil {
		return cpuset.Set{}
	}
	return n.CPU.State.Default
}
