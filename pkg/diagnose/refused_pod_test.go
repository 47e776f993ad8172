package diagnose

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/noderes/kubectl-noderes/pkg/report"
)

// turnedAway is a pod that the kubelet refused as soon as it came.
func turnedAway(name string, minute int, cpus, reason, message string) corev1.Pod {
	p := whole(name, minute, cpus)
	p.Status = corev1.PodStatus{Phase: corev1.PodFailed, QOSClass: corev1.PodQOSGuaranteed, StartTime: p.Status.StartTime, Reason: reason, Message: "Pod was rejected: " + message}
	return p
}

// owned gives a pod a controller.
func owned(p corev1.Pod, kind, name string) corev1.Pod {
	yes := true
	p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: kind, Name: name, UID: "owner", Controller: &yes}}
	return p
}

const (
	noLocality = "Resources cannot be allocated with Topology locality"
	noCPUs     = "Allocate failed due to not enough cpus available to satisfy request: requested=%d, available=%d, which is unexpected"
	noMemory   = "Allocate failed due to [memorymanager] %s, which is unexpected"
	noCores    = "SMT Alignment Error: not enough free physical CPUs: available physical CPUs = %d, requested CPUs = %d, CPUs per core = 2"
)

// refusedAt adds the event of the refusal.
func refusedAt(minute int) func(*bundle) {
	return func(b *bundle) {
		b.event(b.pod().Status.Reason, "", "refused", time.Date(2026, 11, 30, 8, minute, 0, 0, time.UTC))
	}
}

func refusedFamily() family {
	one, two := adjacent(8, 2, 8, 8), adjacent(8, 2, 4, 4) // NUMA nodes
	single := map[string]any{"topologyManagerPolicy": "single-numa-node"}
	aligned := withOptions("full-pcpus-only")
	alone := func(rows []cpuRow, config map[string]any, pool string, pods ...corev1.Pod) func(testing.TB) *bundle {
		return onMachine(rows, config, pool, nil, pods...)
	}
	const smt, topology, exhausted = "smt-alignment-refused@app proven", "topology-affinity-refused@app proven", "cpus-exhausted@app proven"
	return family{name: "refused pods", codes: []report.Code{
		report.SMTAlignmentRefused, report.TopologyAffinityRefused, report.CPUsExhausted, report.MemoryGroupConflict, report.MemoryExhausted, report.PodPoolEmpty,
		report.InitContainerNUMATrap, report.FitCheckRefused, report.RefusalUnexplained, report.EvidenceMissing,
	}, cases: []ruleCase{
		{name: "an odd number with full-pcpus-only", on: alone(one, aligned, "0-7", turnedAway("a", 1, "3", "SMTAlignmentError", "SMT Alignment Error: requested 3 cpus not multiple cpus per core = 2")),
			want: []string{smt}, text: []string{"3 mod 2 = 1", "the kubelet's own words"}},
		{name: "an odd number, and the node is not known", on: alone(one, aligned, "0-7", turnedAway("a", 1, "3", "SMTAlignmentError", "SMT Alignment Error: requested 3 cpus not multiple cpus per core = 2")),
			edit: func(b *bundle) { b.forget("nodes"); b.nodes = nil }, want: []string{"smt-alignment-refused@ proven"}},
		{name: "too few whole cores", on: onMachine(one, aligned, "0-1,6-7", holds("b app 2-5"), turnedAway("a", 5, "4", "SMTAlignmentError", fmt.Sprintf(noCores, 2, 4)), whole("b", 1, "4")),
			want: []string{smt}, text: []string{"2 \\u003c 4", "ns/b"}},
		{name: "too few whole cores then, and now there are enough", on: alone(one, aligned, "0-7", turnedAway("a", 5, "4", "SMTAlignmentError", fmt.Sprintf(noCores, 2, 4))),
			want: []string{"smt-alignment-refused@ proven"}, text: []string{"would admit it", "the state was another then"}},

		{name: "no NUMA node with so many CPUs", on: onMachine(two, single, "0-3,6-7", holds("b app 4-5"), turnedAway("a", 5, "4", "TopologyAffinityError", noLocality), whole("b", 1, "2")),
			want: []string{topology}, text: []string{"1-3", "6-7", "single-numa-node", "held by ns/b"}},
		{name: "by pods that came before it only", on: onMachine(two, single, "0-1", holds("b app 4-5", "c app 2-3", "d app 6-7"), turnedAway("a", 5, "4", "TopologyAffinityError", noLocality), whole("b", 1, "2"), whole("c", 6, "2"), whole("d", 7, "2")),
			want: []string{topology}, text: []string{"1-3", "6-7", "came after the refusal", "ns/c, ns/d"}},
		{name: "another came in the same second", on: onMachine(two, single, "0-1", holds("b app 4-5", "c app 2-3", "d app 6-7"), turnedAway("a", 5, "4", "TopologyAffinityError", noLocality), whole("b", 1, "2"), whole("c", 5, "2"), whole("d", 5, "2")),
			want: []string{topology}},
		{name: "with the CPUs of pods that are gone", on: alone(two, single, "0-7", turnedAway("a", 5, "4", "TopologyAffinityError", noLocality)),
			want: []string{"topology-affinity-refused@ likely"}, text: []string{"would admit it"}},
		{name: "an older kubelet", on: onMachine(two, single, "0-3,6-7", holds("b app 4-5"), turnedAway("a", 5, "4", "TopologyAffinityError", noLocality), whole("b", 1, "2")), edit: withVersion("v1.28.3"),
			want: []string{"topology-affinity-refused@app likely"}},
		{name: "no configuration", on: alone(two, single, "0-7", turnedAway("a", 5, "4", "TopologyAffinityError", noLocality)), edit: func(b *bundle) { b.forget("nodes/n1/configz.json") },
			want: []string{"topology-affinity-refused@ likely"}},

		{name: "fewer CPUs than asked for", on: onMachine(one, nil, "0,5-7", holds("b app 1-4"), turnedAway("a", 5, "4", "UnexpectedAdmissionError", fmt.Sprintf(noCPUs, 4, 3)), whole("b", 1, "4")),
			want: []string{exhausted}, text: []string{"3 \\u003c 4"}},
		{name: "in the words of an older kubelet", on: onMachine(one, nil, "0,5-7", holds("b app 1-4"), turnedAway("a", 5, "4", "UnexpectedAdmissionError", "Allocate failed due to not enough cpus available to satisfy request, which is unexpected"), whole("b", 1, "4")),
			want: []string{exhausted}},
		{name: "other figures than now", on: onMachine(one, nil, "0,5-7", holds("b app 1-4"), turnedAway("a", 5, "4", "UnexpectedAdmissionError", fmt.Sprintf(noCPUs, 4, 1)), whole("b", 1, "4")),
			want: []string{"cpus-exhausted@ proven"}, text: []string{"requested=4, available=1", "the state was another then"}},

		{name: "memory, and no replay of the Memory Manager", on: alone(one, nil, "0-7", turnedAway("a", 5, "1", "UnexpectedAdmissionError", fmt.Sprintf(noMemory, "failed to get the default NUMA affinity, no NUMA nodes with enough memory is available"))),
			want: []string{"memory-exhausted@ likely"}},
		{name: "a group of NUMA nodes, and no replay of the Memory Manager", on: alone(one, nil, "0-7", turnedAway("a", 5, "1", "UnexpectedAdmissionError", fmt.Sprintf(noMemory, "preferred hint violates NUMA node allocation"))),
			want: []string{"memory-group-conflict@ proven"}},
		{name: "an empty pool of the pod", on: alone(one, nil, "0-7", turnedAway("a", 5, "1", "EmptyPodSharedPoolError", "pod rejected, sum of exclusive container cpu requests equals pod budget, leaving no cpus for shared containers")),
			want: []string{"pod-pool-empty@ proven"}},

		{name: "requests beyond allocatable", on: onMachine(one, nil, "0-2,5-7", holds("b app 3-4"), turnedAway("a", 5, "6", "OutOfcpu", "Node didn't have enough resource: cpu, requested: 6000, used: 2000, capacity: 7000"), whole("b", 1, "2")),
			want: []string{"fit-check-refused@ proven"}, text: []string{"2 + 6 = 8 \\u003e 7"}},
		{name: "requests beyond allocatable then", on: alone(one, nil, "0-7", turnedAway("a", 5, "6", "OutOfcpu", "Node didn't have enough resource: cpu, requested: 6000, used: 2000, capacity: 7000")),
			want: []string{"fit-check-refused@ proven"}, text: []string{"6000 + 2000 = 8000 \\u003e 7000"}},
		{name: "a label that the node lacks", on: alone(one, nil, "0-7", turnedAway("a", 5, "1", "NodeAffinity", "Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector")),
			edit: func(b *bundle) { b.pod().Spec.NodeSelector = map[string]string{"disk": "ssd"} }, want: []string{"fit-check-refused@ proven"}, text: []string{"spec.nodeSelector[disk]", "no such label"}},

		{name: "a reason that no rule knows", on: alone(one, nil, "0-7", turnedAway("a", 5, "1", "AppArmor", "Cannot enforce AppArmor: AppArmor is not enabled on the host")),
			want: []string{"refusal-unexplained@ proven"}, text: []string{"AppArmor is not enabled"}},
		{name: "devices", on: alone(one, nil, "0-7", turnedAway("a", 5, "1", "UnexpectedAdmissionError", "Allocate failed due to requested number of devices unavailable for example.com/gpu. Requested: 1, Available: 0, which is unexpected")),
			want: []string{"refusal-unexplained@ proven"}},
		{name: "a pod without containers", on: alone(one, aligned, "0-7", turnedAway("a", 5, "1", "TopologyAffinityError", noLocality)), edit: func(b *bundle) { b.pod().Spec.Containers = nil },
			want: []string{"topology-affinity-refused@ likely"}},
		{name: "a request beyond int64", on: alone(one, nil, "0-7", turnedAway("a", 5, "10E", "UnexpectedAdmissionError", "Allocate failed due to not enough cpus available to satisfy request: requested=10000000000000000000, available=7, which is unexpected")),
			want: []string{"cpus-exhausted@ proven"}},
		{name: "a checkpoint of another machine", on: alone(one, single, "0-3", turnedAway("a", 5, "4", "TopologyAffinityError", noLocality)), want: []string{"topology-affinity-refused@ likely"}, text: []string{"would not start"}},

		{name: "it runs", on: onMachine(one, nil, "0,3-7", holds("a app 1-2"), whole("a", 1, "2")), loose: true,
			not: []string{exhausted, "refusal-unexplained@ proven"}},
		{name: "it failed after it ran", on: alone(one, nil, "0-7", whole("a", 1, "2")), edit: func(b *bundle) {
			b.pod().Status.Phase, b.pod().Status.Reason = corev1.PodFailed, "OutOfcpu"
			b.pod().Status.ContainerStatuses[0].State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1}}
		}, want: []string{"evidence-missing@ proven"}},
	}}
}

func readmissionFamily() family {
	one, two := adjacent(8, 2, 8, 8), adjacent(8, 2, 4, 4)
	single := map[string]any{"topologyManagerPolicy": "single-numa-node"}
	aligned := withOptions("full-pcpus-only")
	again := turnedAway("a", 5, "4", "SMTAlignmentError", fmt.Sprintf(noCores, 2, 4))
	old := onMachine(one, aligned, "0-7", nil, again)
	const proven, likely = "readmission-refused@ proven", "readmission-refused@ likely"
	restart := func(b *bundle) {
		b.events = append(b.events, corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "n1.1"}, InvolvedObject: corev1.ObjectReference{Kind: "Node", Name: "n1"},
			Reason: "Starting", Message: "Starting kubelet.", FirstTimestamp: metav1.NewTime(time.Date(2026, 11, 30, 8, 29, 50, 0, time.UTC)), LastTimestamp: metav1.NewTime(time.Date(2026, 11, 30, 8, 29, 50, 0, time.UTC))})
	}
	return family{name: "readmission", codes: []report.Code{report.ReadmissionRefused, report.TopologyAffinityRefused, report.SMTAlignmentRefused, report.FitCheckRefused}, cases: []ruleCase{
		{name: "refused when it came", on: old, edit: refusedAt(5), want: []string{"smt-alignment-refused@ proven"}},
		{name: "taken 25 minutes before", on: old, edit: inOrder(withVersion("v1.36.3"), refusedAt(30), restart), want: []string{proven, "smt-alignment-refused@app proven"},
			text: []string{"25m0s before", "Starting kubelet.", "before it sees that the container has its own", "2 \\u003c 4"}},
		{name: "taken before, by a kubelet that sees what it has", on: old, edit: inOrder(withVersion("v1.37.2"), refusedAt(30), restart), want: []string{proven, "smt-alignment-refused@ proven"}, lacks: []string{"before it sees"}},
		{name: "its containers had run", on: old, edit: func(b *bundle) {
			b.pod().Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "app", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 137, Reason: "Error"}}}}
		}, want: []string{proven, "smt-alignment-refused@ proven"}, text: []string{"it had run"}},
		{name: "an event tells that it started", on: old, edit: func(b *bundle) {
			b.event("Started", "app", "Started container app", time.Date(2026, 11, 30, 8, 6, 0, 0, time.UTC))
		}, want: []string{proven, "smt-alignment-refused@ proven"}},
		{name: "its CPUs are booked", on: onMachine(one, aligned, "0-1,6-7", holds("a app 2-5"), again), want: []string{likely, "smt-alignment-refused@ proven"}, text: []string{"still booked"}},
		{name: "CPUs are booked that a refusal by the Memory Manager left", on: onMachine(one, nil, "0-1,6-7", holds("a app 2-5"), turnedAway("a", 5, "4", "UnexpectedAdmissionError", fmt.Sprintf(noMemory, "failed to find NUMA nodes to extend the current topology hint"))), want: nil},
		{name: "its CPUs are of two NUMA nodes, and single-numa-node since", on: onMachine(two, single, "0,4,6-7", holds("a app 1-3,5"), turnedAway("a", 5, "4", "TopologyAffinityError", noLocality)),
			want: []string{proven, "topology-affinity-refused@ proven"}, text: []string{"CPUs 1-3,5 on NUMA nodes 0-1", "one and the same NUMA node", "came with the restart"}, lacks: []string{"would admit it", "the state was another then"}},
		{name: "the same, and restricted since", on: onMachine(two, map[string]any{"topologyManagerPolicy": "restricted"}, "0,4,6-7", holds("a app 1-3,5"), turnedAway("a", 5, "4", "TopologyAffinityError", noLocality)),
			want: []string{proven, "topology-affinity-refused@ proven"}, lacks: []string{"would admit it"}},
		{name: "it holds less than it asks for", on: onMachine(two, single, "0-3,7", holds("a app 4-6"), turnedAway("a", 5, "4", "TopologyAffinityError", noLocality)),
			want: []string{proven, "topology-affinity-refused@ proven"}, text: []string{"asks for 4 CPUs and holds 3"}, lacks: []string{"would admit it"}},
		{name: "its CPUs are of one NUMA node, and explain nothing", on: onMachine(two, single, "0-3", holds("a app 4-7"), turnedAway("a", 5, "4", "TopologyAffinityError", noLocality)),
			want: []string{likely, "topology-affinity-refused@ likely"}, text: []string{"the state was another then"}},
		{name: "a label that went", on: onMachine(one, nil, "0-7", nil, turnedAway("a", 5, "1", "NodeAffinity", "Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector")), edit: refusedAt(40),
			want: []string{proven, "fit-check-refused@ proven"}, text: []string{"labels no longer match"}},
		{name: "it runs", on: onMachine(one, aligned, "0-1,6-7", holds("a app 2-5"), whole("a", 1, "4")), want: nil},
	}}
}

func loopsFamily() family {
	two := adjacent(8, 2, 4, 4)
	pods := func(n int, at func(i int) int) []corev1.Pod {
		var out []corev1.Pod
		for i := range n {
			out = append(out, owned(turnedAway(fmt.Sprintf("rs-%d", i), at(i), "5", "TopologyAffinityError", noLocality), "ReplicaSet", "rs"))
		}
		return out
	}
	on := func(pods ...corev1.Pod) func(testing.TB) *bundle {
		return onMachine(two, map[string]any{"topologyManagerPolicy": "single-numa-node"}, "0-7", nil, pods...)
	}
	each := func(i int) int { return i + 115 } // to 5 min before the reading at 10:00
	once := func(int) int { return 115 }
	bare := pods(3, each)
	for i := range bare {
		bare[i].OwnerReferences = nil
	}
	const proven, likely, possible = "admission-loop@ proven", "admission-loop@ likely", "admission-loop@ possible"
	return family{name: "loops", codes: []report.Code{report.AdmissionLoop}, cases: []ruleCase{
		{name: "three after each other", on: on(pods(3, each)...), want: []string{proven}, text: []string{"ReplicaSet ns/rs", "3 so far within 2m0s", "fits"}},
		{name: "asked about the node", on: on(pods(3, each)...), node: true, want: []string{proven}, text: []string{"ReplicaSet ns/rs"}},
		{name: "two after each other", on: on(pods(2, each)...), want: []string{likely}},
		{name: "two at once", on: on(pods(2, once)...), want: []string{possible}},
		{name: "one", on: on(pods(1, once)...), want: nil},
		{name: "one, and events of others that were deleted", on: on(pods(1, once)...), edit: func(b *bundle) {
			at := metav1.NewTime(time.Date(2026, 11, 30, 9, 56, 0, 0, time.UTC))
			for _, name := range []string{"rs-x", "rs-y", "other-z"} {
				b.events = append(b.events, corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name + ".1"}, InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: "ns", Name: name}, Reason: "TopologyAffinityError", LastTimestamp: at})
			}
		}, want: []string{proven}, text: []string{"rs-x, rs-y"}},
		{name: "a later one got in", on: on(append(pods(3, each), owned(whole("rs-9", 119, "2"), "ReplicaSet", "rs"))...), want: nil},
		{name: "an earlier one runs", on: on(append(pods(3, each), owned(whole("rs-9", 0, "2"), "ReplicaSet", "rs"))...), want: []string{proven}},
		{name: "three, and two hours of quiet since", on: on(pods(3, func(i int) int { return i + 1 })...), want: []string{possible}, text: []string{"The last came 1h57m0s before", "has stopped"}, lacks: []string{"keeps creating"}},
		{name: "hours apart, up to now", on: on(pods(3, func(i int) int { return 118 - 100*(2-i) })...), want: nil},
		{name: "one long ago, then two", on: on(pods(3, func(i int) int { return []int{116, 1, 117}[i] })...), want: []string{likely}, text: []string{"2 so far within 1m0s"}, lacks: []string{"08:01:00Z"}},
		{name: "one long ago, then two, asked about the first", on: on(pods(3, func(i int) int { return []int{1, 116, 117}[i] })...), want: nil},
		{name: "one, and events of others long ago", on: on(pods(1, once)...), edit: func(b *bundle) {
			b.events = append(b.events, corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "rs-x.1"}, InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: "ns", Name: "rs-x"}, Reason: "TopologyAffinityError",
				LastTimestamp: metav1.NewTime(time.Date(2026, 11, 30, 8, 56, 0, 0, time.UTC))})
		}, want: nil},
		{name: "of no controller", on: on(bare...), want: nil},
		{name: "of two controllers", on: on(append(pods(1, once), owned(turnedAway("b-1", 2, "5", "TopologyAffinityError", noLocality), "ReplicaSet", "b"))...), want: nil},
		{name: "a Job, which gives up at last", on: on(func() []corev1.Pod {
			p := pods(3, each)
			for i := range p {
				p[i].OwnerReferences[0].Kind = "Job"
			}
			return p
		}()...), want: []string{likely}},
		{name: "evicted ones", on: on(func() []corev1.Pod {
			p := pods(3, each)
			for i := range p {
				p[i].Status.Reason = "Evicted"
			}
			return p
		}()...), want: nil},
	}}
}
