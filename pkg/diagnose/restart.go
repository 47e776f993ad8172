package diagnose

import (
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/noderes/kubectl-noderes/pkg/alloc/node"
	"github.com/noderes/kubectl-noderes/pkg/report"
)

// readmit is a pod that a restart of the kubelet would refuse.
type readmit struct {
	pod             *corev1.Pod
	reason, message string
	evidence        []report.Evidence
}

// restart replays a start of the kubelet on the recorded state: every pod is
// admitted again in the order of creation, by the managers and then by the fit
// check, whose sums count the older pods only. refused are the running pods that
// do not get through. crash is what ends the kubelet instead. The error says
// what the replay lacks; a kubelet that does not start at all is not its matter.
func (n *nodeCase) restart() (admitted int, refused []readmit, crash error, err error) { //nolint:revive // crash is a finding of the replay
	m, err := n.managers()
	if err != nil {
		return 0, nil, nil, err
	}
	m = n.restartManagers(m)
	nd, err := node.Start(m.config, m.recorded, m.pods...)
	if err != nil && !node.MayStart(err) {
		return 0, nil, nil, err
	}
	var older []*corev1.Pod
	for _, p := range m.pods {
		result, err := nd.Admit(p, nil)
		if err != nil {
			return admitted, append(refused, readmit{pod: p.Pod}), err, nil
		}
		r := readmit{pod: p.Pod, reason: result.Reason, message: result.Message}
		if result.Admit {
			r.reason, r.message, r.evidence = n.refit(p.Pod, older)
		}
		if r.reason == "" {
			admitted++
			older = append(older, p.Pod)
			continue
		}
		if p.Status.Phase == corev1.PodRunning {
			refused = append(refused, r)
		}
	}
	return admitted, refused, nil, nil
}

// restartManagers is what a start reads: to 1.36 the CPU Manager's from the
// fields that 1.37 repeats, which have no pod entries.
func (n *nodeCase) restartManagers(m managers) managers {
	if n.rules.Minor > 36 || m.recorded.CPU == nil {
		return m
	}
	if state, err := n.cpuState(); err == nil && state.Version == 4 {
		cpu := m.recorded.CPU.Clone()
		cpu.PodEntries = nil
		m.recorded.CPU = &cpu
	}
	return m
}

// refit is the first answer of the fit check to a pod that comes again; a pod
// that the node itself brings is not asked.
func (n *nodeCase) refit(pod *corev1.Pod, older []*corev1.Pod) (reason, message string, evidence []report.Evidence) {
	if n.object == nil || isCritical(pod) {
		return "", "", nil
	}
	short, _ := n.insufficient(pod, older)
	for _, m := range short {
		if _, told := n.object.Status.Allocatable[m.resource]; !told {
			continue
		}
		return m.reason, m.message, []report.Evidence{n.apiEvidence("status.allocatable."+string(m.resource), m.amount(m.allocatable),
			fmt.Sprintf("older pods of the node ask for %s, this one for %s", m.amount(m.used), m.amount(m.requested)))}
	}
	misfits, _ := n.fitCheck(pod, "api:pods/"+pod.Namespace+"/"+pod.Name)
	for _, m := range misfits {
		if m.reason == "NodeAffinity" {
			return m.reason, m.message, m.evidence
		}
	}
	return "", "", nil
}

// held quotes what the checkpoint books for a pod.
func (n *nodeCase) held(pod *corev1.Pod) []report.Evidence {
	return (&podCase{nodeCase: n, pod: pod, uid: string(pod.UID)}).heldEvidence()
}

// restartRefuses speaks of running pods that the kubelet would refuse if it were
// restarted as it is: nobody notices before.
func restartRefuses(n *nodeCase) []report.Finding {
	if !n.rulesKnown || !n.rulesExact {
		return nil
	}
	_, refused, crash, err := n.restart()
	if err != nil || crash != nil {
		return nil
	}
	var out []report.Finding
	for _, r := range refused {
		if len(n.unknownDevices(r.pod)) == 0 {
			out = append(out, n.wouldRefuse(r, ""))
		}
	}
	return out
}

// podRestartRefuses says it in the pod's report.
func podRestartRefuses(c *podCase) []report.Finding {
	if !active(c.pod) || c.name == "" {
		return nil
	}
	var out []report.Finding
	for _, f := range restartRefuses(c.nodeCase) {
		if f.Subject.Namespace == c.pod.Namespace && f.Subject.Name == c.pod.Name {
			out = append(out, f)
		}
	}
	return out
}

// wouldRefuse is the finding about one pod; supposed are the settings of the
// kubelet, "" for those it has.
func (n *nodeCase) wouldRefuse(r readmit, supposed string) report.Finding {
	with := ""
	if supposed != "" {
		with = " with " + supposed
	}
	f := report.NewFinding(report.WouldBeRefusedNow, report.Proven, report.Subject{Kind: "Pod", Namespace: r.pod.Namespace, Name: r.pod.Name},
		fmt.Sprintf("The pod runs, and a restart of the kubelet of %s%s would refuse it: %s (%s). Its containers would be killed, and the pod would fail.", n.name, with, r.reason, strings.TrimSuffix(clip(r.message), ".")),
		report.Evidence{Source: "api:pods/" + r.pod.Namespace + "/" + r.pod.Name, Field: "replayed answer", Value: r.reason, Means: clip(r.message)})
	f.Because = append(f.Because, r.evidence...)
	f.Because = append(f.Because, n.held(r.pod)...)
	if n.rules.SMTCheckFirst && r.reason == "SMTAlignmentError" {
		f.Because = append(f.Because, n.configEvidence("cpuManagerPolicyOptions[full-pcpus-only]", n.config.CPUManagerPolicyOptions["full-pcpus-only"],
			fmt.Sprintf("a kubelet of 1.%d asks for free CPUs on whole cores before it sees that the container has its own", n.rules.Minor)))
	}
	f.Remedies = []report.Remedy{{Summary: "Drain the node before its kubelet restarts, or move the pod away.", Command: "kubectl drain " + n.name + " --ignore-daemonsets"}}
	return f
}

// startRules are those that ask what the kubelet's next start does.
var startRules = []rule[*nodeCase]{
	{codes: []report.Code{report.ReservedMemoryMismatch}, find: reservedMemoryMismatch},
	{codes: []report.Code{report.TooManyNUMANodes}, find: tooManyNUMANodes},
	{codes: []report.Code{report.KubeletCheckpointInvalid}, find: checkpointInvalid},
	{codes: []report.Code{report.KubeletConfigInvalid}, find: kubeletConfigInvalid},
	{codes: []report.Code{report.KubeletWouldHang}, find: nodeWouldHang},
	{codes: []report.Code{report.WouldBeRefusedNow}, find: restartRefuses},
}

// suppose answers for a kubelet of other settings or another version, started on
// this node's checkpoints with its pods: in place of what is found of the next
// start as it is.
func (n *nodeCase) suppose(set Settings, findings []report.Finding) ([]report.Finding, *nodeCase, error) {
	c, err := n.with(set)
	if err != nil {
		return nil, nil, fmt.Errorf("--set: %w", err)
	}
	// No kubelet has run with these settings, which would show that they are taken.
	c.config.Served = false
	var out []report.Finding
	for _, f := range findings {
		if !ofRules(startRules, f.Code) {
			out = append(out, f)
		}
	}
	supposed := strings.Join(set.Texts(), ", ")
	var because []report.Evidence
	for _, s := range set {
		because = append(because, report.Evidence{Source: "kubelet:/configz", Field: strings.TrimSuffix(s.Field+"."+s.Key, "."), Value: valueOr(s.Value, "taken out"), Means: "as --set supposes" + c.replaced(s)})
	}
	var found []report.Finding
	for _, r := range startRules[:len(startRules)-1] {
		found = append(found, r.find(c)...)
	}
	if len(found) == 0 {
		found = c.supposedRestart(supposed)
	}
	for i := range found {
		if !strings.Contains(found[i].Summary, supposed) {
			found[i].Summary = "With " + supposed + ": " + found[i].Summary
		}
		found[i].Because = append(found[i].Because, because...)
	}
	return append(out, found...), c, nil
}

func ofRules(rules []rule[*nodeCase], code report.Code) bool {
	for _, r := range rules {
		for _, c := range r.codes {
			if c == code {
				return true
			}
		}
	}
	return false
}

// supposedRestart is what the start with other settings does to the pods.
func (n *nodeCase) supposedRestart(supposed string) []report.Finding {
	admitted, refused, crash, err := n.restart()
	if err != nil {
		if !errors.Is(err, errNoNode) {
			n.gaps.Lack("nodes/"+n.name, err.Error(), "whether the pods would be admitted again", "")
		}
		f := report.NewFinding(report.EvidenceMissing, report.Proven, n.subject(), "The start can not be replayed: "+clip(err.Error())+".")
		return []report.Finding{f}
	}
	if crash != nil {
		return []report.Finding{n.crashFinding(refused[len(refused)-1].pod, crash)}
	}
	var out []report.Finding
	for _, r := range refused {
		now := n.wouldRefuse(r, supposed)
		f := report.NewFinding(report.ReadmissionRefused, report.Likely, now.Subject,
			fmt.Sprintf("Started with %s on these checkpoints, the kubelet of %s would refuse pod %s/%s, which runs there: %s (%s).", supposed, n.name, r.pod.Namespace, r.pod.Name, r.reason, strings.TrimSuffix(clip(r.message), ".")), now.Because...)
		f.Remedies = now.Remedies
		now.Confidence = report.Likely
		out = append(out, f, now)
	}
	if len(out) > 0 {
		return out
	}
	state, _ := n.cpuState()
	f := report.NewFinding(report.WouldBeAdmittedNow, report.Likely, n.subject(),
		fmt.Sprintf("Started with %s, the kubelet takes the checkpoints over and admits %s again, with what they have.", supposed, plural(admitted, "pod")),
		n.fileEvidence(cpuStatePath, "policyName", valueOr(state.PolicyName, "not read"), "the checkpoint that the replayed start takes over"))
	return []report.Finding{f}
}
