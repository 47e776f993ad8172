package diagnose

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/noderes/kubectl-noderes/pkg/alloc/cpuset"
	"github.com/noderes/kubectl-noderes/pkg/alloc/hint"
	"github.com/noderes/kubectl-noderes/pkg/alloc/node"
	"github.com/noderes/kubectl-noderes/pkg/diagnose/gap"
	"github.com/noderes/kubectl-noderes/pkg/report"
	"github.com/noderes/kubectl-noderes/pkg/snapshot"
)

// whatIfCodes are those that WhatIf can give.
var whatIfCodes = []report.Code{
	report.WouldBeAdmittedNow, report.WouldBeRefusedNow, report.SMTAlignmentRefused, report.TopologyAffinityRefused, report.CPUsExhausted,
	report.MemoryGroupConflict, report.MemoryExhausted, report.PodPoolEmpty, report.InitContainerNUMATrap, report.FitCheckRefused,
	report.KubeletWouldHang, report.RefusalUnexplained, report.EvidenceMissing,
	report.ReservedMemoryMismatch, report.TooManyNUMANodes, report.KubeletCheckpointInvalid, report.UnevenCoreAverages, report.KubeletConfigInvalid,
}

// WhatIfOptions are what a what-if supposes.
type WhatIfOptions struct {
	Options
	// Set are changes of the nodes' kubelets.
	Set Settings
}

// WhatIf asks each of the nodes whether its kubelet would admit the pod now.
// Errors: *NotFoundError, or settings that a node's configuration cannot take.
func WhatIf(s *snapshot.Snapshot, t Template, nodes []string, o WhatIfOptions) (report.Report, error) {
	r := report.Report{
		APIVersion: report.APIVersion,
		Kind:       report.WhatIfReport,
		Metadata:   report.Metadata{Namespace: t.Namespace, Name: t.Name},
	}
	known := s.NodeNames()
	gaps := &gap.Log{}
	for i, name := range nodes {
		if !slices.Contains(known, name) {
			return r, &NotFoundError{What: "nodes", Name: name, Known: known}
		}
		n := newNodeCase(s, name, o.At)
		q, err := newWhatIf(n, t, o.Set)
		if err != nil {
			return r, fmt.Errorf("node %s: %w", name, err)
		}
		fact, findings := q.answer()
		r.WhatIf = append(r.WhatIf, fact)
		r.Findings = append(r.Findings, findings...)
		for _, gap := range n.gaps.List() {
			// What the cgroups hold does not bear on admission.
			if !strings.HasSuffix(gap.Wanted, "/sys/fs/cgroup") && !strings.HasSuffix(gap.Wanted, "/events.json") {
				gaps.Lack(gap.Wanted, gap.Reason, gap.Costs, gap.Fix)
			}
		}
		versions := q.changed.versions()
		switch {
		case i == 0:
			r.ObservedAt, r.Versions = metav1.NewTime(n.at), versions
		case versions != r.Versions:
			r.Versions = report.Versions{}
		}
	}
	if len(nodes) == 1 {
		r.Metadata.Node = nodes[0]
	}
	order(r.Findings)
	r.Gaps = gaps.List()
	return r, nil
}

// SelectNodes are the names of the nodes whose labels match, in the snapshot's
// order.
func SelectNodes(s *snapshot.Snapshot, selector string) ([]string, error) {
	sel, err := labels.Parse(selector)
	if err != nil {
		return nil, err
	}
	nodes, err := s.Nodes()
	if err != nil {
		return nil, fmt.Errorf("nodes of the snapshot: %w", err)
	}
	var out []string
	for i := range nodes {
		if sel.Matches(labels.Set(nodes[i].Labels)) {
			out = append(out, nodes[i].Name)
		}
	}
	return out, nil
}

// PodTemplate makes a template of a pod of the snapshot. Without a namespace
// the only pod of that name is meant.
func PodTemplate(s *snapshot.Snapshot, namespace, name string) (Template, error) {
	pods, err := s.Pods()
	if err != nil {
		return Template{}, fmt.Errorf("pods of the snapshot: %w", err)
	}
	pod, err := findPod(pods, namespace, name)
	if err != nil {
		return Template{}, err
	}
	return TemplateOf(pod)
}

// whatIf is one question: a pod on a node, under settings.
type whatIf struct {
	now     *nodeCase // as the node is
	changed *nodeCase // with the settings; now where there are none
	set     Settings
	pod     *corev1.Pod // as the API server would store it
	source  string
}

func newWhatIf(n *nodeCase, t Template, set Settings) (*whatIf, error) {
	changed, err := n.with(set)
	if err != nil {
		return nil, err
	}
	q := &whatIf{now: n, changed: changed, set: set, pod: defaulted(t.Pod, changed.rules), source: t.Source}
	q.pod.UID = q.freeUID()
	return q, nil
}

// freeUID is one that no pod and no entry of a state file has.
func (q *whatIf) freeUID() types.UID {
	taken := func(uid string) bool {
		for i := range q.now.pods {
			if string(q.now.pods[i].UID) == uid {
				return true
			}
		}
		cpu, _ := q.now.cpuState()
		mem, _ := q.now.memState()
		_, inCPU := cpu.Entries[uid]
		_, inMemory := mem.Entries[uid]
		return inCPU || inMemory
	}
	uid := "whatif"
	for taken(uid) {
		uid += "-"
	}
	return types.UID(uid)
}

func (q *whatIf) subject() report.Subject {
	return report.Subject{Kind: "Pod", Namespace: q.pod.Namespace, Name: q.pod.Name}
}

// trial is one run of the whole admission: managers, then fit check.
type trial struct {
	*attempt // nil where the node has no managers to ask
	misfits  []misfit
	// fitKnown false: without the node object no fit check was made.
	fitKnown bool
}

func (t trial) admitted() bool {
	return (t.attempt == nil || t.crash == nil && t.result.Admit) && len(t.misfits) == 0
}

// run admits a pod in the managers' world w of node n, as if the pods gone had
// ended.
func (q *whatIf) run(n *nodeCase, w world, pod *corev1.Pod, gone ...types.UID) (trial, error) {
	var t trial
	if m, pressed := n.pressure(pod); pressed {
		t.misfits, t.fitKnown = []misfit{m}, true
		return t, nil
	}
	if !w.none {
		a, err := w.try(n.newPodDevices(node.Pod{Pod: pod}, gone...))
		if err != nil {
			return t, err
		}
		a.source = q.source
		t.attempt = a
	}
	if t.attempt == nil || t.crash == nil && t.result.Admit {
		t.misfits, t.fitKnown = n.fitCheck(pod, q.source, gone...)
		if t.fitKnown && w.podsUnknown {
			// Labels and taints can be judged without them, sums cannot.
			t.fitKnown = slices.ContainsFunc(t.misfits, func(m misfit) bool { return m.resource == "" })
		}
	}
	return t, nil
}

// answer runs the question.
func (q *whatIf) answer() (report.WhatIf, []report.Finding) {
	fact := report.WhatIf{Node: q.now.name, Settings: q.set.Texts()}
	w, err := q.world(q.changed)
	fact.Readmitted = w.readmitted
	if err != nil {
		return q.notRunning(fact, err)
	}
	t, err := q.run(q.changed, w, q.pod)
	if err != nil {
		return fact, []report.Finding{q.unknown(err)}
	}
	admitted := t.admitted()
	fact.Admitted = &admitted
	if admitted {
		fact.Containers = q.places(t)
		findings := []report.Finding{q.admittedFinding(t, w, fact)}
		if !q.taken(t).IsEmpty() {
			findings = append(findings, unevenCoreAverages(q.changed)...)
		}
		return fact, findings
	}
	refusals := q.refusals(t, w)
	fact.Reason, fact.Message = t.answerText()
	fact.Nearest = q.nearest(t, w)
	return fact, append(refusals, q.refusedFinding(t, w, fact, refusals))
}

// notRunning is the answer where there are no managers to ask: no kubelet starts
// with these settings or state files, or what it has in memory is not known.
func (q *whatIf) notRunning(fact report.WhatIf, err error) (report.WhatIf, []report.Finding) {
	why := startFindings(q.changed)
	_, up, known := q.now.ready()
	var start *node.StartError
	switch {
	case errors.As(err, &start) || errors.Is(err, hint.ErrWouldHang):
	case len(why) > 0 && !(known && up):
	default:
		return fact, append(why, q.unknown(err))
	}
	if faults := q.changed.startFaults(); start == nil && len(faults) > 0 {
		err = errors.New(faults[0].message)
	}
	fact.Admitted = new(bool)
	fact.Message = "the kubelet does not start: " + startText(err)
	return fact, append(why, q.noStart(err))
}

// taken are CPUs that the pod would get although they are reserved or another
// pod's: on a machine of unlike cores the kubelet's averages allow it.
func (q *whatIf) taken(t trial) cpuset.Set {
	var twice cpuset.Set
	if t.attempt == nil || t.node.CPU.Reserved.IsEmpty() {
		return twice
	}
	others := t.node.CPU.Reserved
	for uid, containers := range t.node.CPU.State.Entries {
		for _, set := range containers {
			if uid != string(q.pod.UID) {
				others = others.Union(set)
			}
		}
	}
	for _, set := range t.node.CPU.State.Entries[string(q.pod.UID)] {
		twice = twice.Union(set.Intersection(others))
	}
	return twice
}

// answerText is the kubelet's reason and message.
func (t trial) answerText() (reason, message string) {
	switch {
	case t.attempt != nil && t.crash != nil:
		return "", t.crash.Error()
	case t.attempt != nil && !t.result.Admit:
		return t.result.Reason, t.result.Message
	case len(t.misfits) > 0:
		return t.misfits[0].reason, t.misfits[0].message
	}
	return "", ""
}

func (q *whatIf) refusals(t trial, w world) []report.Finding {
	var out []report.Finding
	if t.attempt != nil && (t.crash != nil || !t.result.Admit) {
		out = q.changed.refusals(t.attempt, q.subject())
	} else {
		out = []report.Finding{q.changed.fitRefusal(t.misfits, q.pod, q.subject(), q.source)}
	}
	if confidence, _ := q.confidence(t, w); confidence != report.Proven {
		for i := range out {
			if out[i].Confidence == report.Proven {
				out[i].Confidence = confidence
			}
		}
	}
	return out
}

// places is what each container would get.
func (q *whatIf) places(t trial) []report.WhatIfContainer {
	var out []report.WhatIfContainer
	add := func(list []corev1.Container, init bool) {
		for i := range list {
			out = append(out, q.place(t, list[i].Name, init))
		}
	}
	add(q.pod.Spec.InitContainers, true)
	add(q.pod.Spec.Containers, false)
	return out
}

func (q *whatIf) place(t trial, name string, init bool) report.WhatIfContainer {
	c := report.WhatIfContainer{Name: name, Init: init}
	if t.attempt == nil || t.from.config.Kubelet.CPUManagerPolicy != "static" {
		if topo, err := q.now.topo(); err == nil {
			c.CPUs = text(topo.AllCPUs())
		}
	}
	if t.attempt == nil {
		return c
	}
	uid := string(q.pod.UID)
	if t.from.config.Kubelet.CPUManagerPolicy == "static" {
		set, own := t.node.CPU.Get(uid, name)
		c.CPUs, c.Exclusive = text(set), own
		c.NUMANodes = q.now.numaNodesOf(set)
	}
	for _, b := range t.node.Memory.Get(uid, name) {
		c.Memory = append(c.Memory, report.MemoryBlock{Type: string(b.Type), NUMANodes: b.Nodes.IDs(), Size: b.Size})
	}
	return c
}
