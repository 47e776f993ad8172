package diagnose

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/noderes/kubectl-noderes/pkg/alloc"
	"github.com/noderes/kubectl-noderes/pkg/report"
)

// resizeStates speaks of an in-place resize that is not done: one that the
// kubelet will never grant (resize-infeasible), or one that waits, is under way
// or has failed (resize-pending). The conditions PodResizePending and
// PodResizeInProgress tell; both may stand, for two resizes after each other.
// What counts for every sum until the kubelet grants it is the allocated amount.
func resizeStates(c *podCase) []report.Finding {
	if c.ended() {
		return nil
	}
	var out []report.Finding
	pending, waits := c.condition(corev1.PodResizePending)
	if waits {
		rule, forbidden := c.resizeRule(pending)
		switch {
		case pending.Reason == corev1.PodReasonInfeasible || forbidden && rule.never:
			out = append(out, c.resizeInfeasible(pending, rule))
		default:
			out = append(out, c.resizeDeferred(pending, rule))
		}
	}
	if progress, ok := c.condition(corev1.PodResizeInProgress); ok {
		out = append(out, c.resizeInProgress(progress))
	} else if !waits {
		out = append(out, c.resizeUnseen()...)
	}
	return out
}

// condition is a condition of the pod that is not False.
func (c *podCase) condition(kind corev1.PodConditionType) (corev1.PodCondition, bool) {
	for _, cond := range c.pod.Status.Conditions {
		if cond.Type == kind {
			return cond, cond.Status != corev1.ConditionFalse
		}
	}
	return corev1.PodCondition{}, false
}

func (c *podCase) conditionEvidence(cond corev1.PodCondition, means string) report.Evidence {
	e := c.podField(fmt.Sprintf("status.conditions[%s]", cond.Type), strings.TrimSuffix(cond.Reason+": "+cutText(cond.Message), ": "), means)
	e.At = cond.LastTransitionTime
	return e
}

// resizeRule is why the kubelet does not grant a resize, by its own words.
type resizeRule struct {
	// why completes "…: ".
	why      string
	evidence []report.Evidence
	remedies []report.Remedy
	// arithmetic holds what was asked for against what there is.
	arithmetic string
	// never means that no waiting helps, whatever the condition's reason is.
	never bool
	// doubt says what in the data speaks against the kubelet's words.
	doubt string
}

// gateEvidence quotes what the configuration says of a gate that would lift the
// rule, which mostly is nothing.
func (c *podCase) gateEvidence(name string) report.Evidence {
	value, means := "not set", "would lift the rule; alpha and off where it is not set, in 1.34 to 1.37"
	if on, set := c.config.FeatureGates[name]; set {
		value = strconv.FormatBool(on)
	} else if on, _ := c.config.Gate(name, c.rules.Minor); on {
		means = "would lift the rule; on by AllAlpha"
	}
	return c.configEvidence("featureGates."+name, value, means)
}

// capacityMessage is the kubelet's: in 1.34 and 1.35 a resize beyond the node is
// Infeasible; from 1.36 on the fit check answers for it, which only ever defers.
// CPU is in millicores, memory in bytes.
var capacityMessage = regexp.MustCompile(`Node didn't have enough (?:capacity|resource): ([a-z0-9./-]+), requested: ([0-9]{1,18}), (?:used: ([0-9]{1,18}), )?capacity: ([0-9]{1,18})`)

const recreate = "Recreate the pod with the new resources: a new pod is admitted by what it asks for."

// resizeRule recognises the kubelet's message (1.34–1.37: allocation,
// podResizesAdmitHandler, canResizePod, lifecycle.InsufficientResourceError).
func (c *podCase) resizeRule(cond corev1.PodCondition) (resizeRule, bool) {
	message := cond.Message
	has := func(parts ...string) bool {
		for _, p := range parts {
			if !strings.Contains(message, p) {
				return false
			}
		}
		return true
	}
	class := c.podField("status.qosClass", string(alloc.QOSClass(c.pod, c.rules)), "")
	switch {
	case has("alongside CPU Manager"):
		r := resizeRule{why: "the CPU Manager's static policy does not change the CPU of a Guaranteed pod that runs, not even of one without CPUs of its own", evidence: []report.Evidence{class}, never: true,
			remedies: []report.Remedy{{Summary: recreate, Effect: "The CPU Manager assigns CPUs at admission only."}, {Summary: "Or take the change back; the pod keeps running with what it was allocated."}}}
		if c.configErr == nil {
			if is := c.config.CPUManagerPolicy; is != "static" {
				r.doubt = fmt.Sprintf(" But cpuManagerPolicy is %s by what was read: it was changed since, and a kubelet started with it decides anew.", is)
			}
			r.evidence = append(r.evidence, c.configEvidence("cpuManagerPolicy", c.config.CPUManagerPolicy, ""), c.gateEvidence("InPlacePodVerticalScalingExclusiveCPUs"))
		}
		return r, true
	case has("alongside Memory Manager"):
		r := resizeRule{why: "the Memory Manager's Static policy does not change the memory of a Guaranteed pod that runs", evidence: []report.Evidence{class}, never: true,
			remedies: []report.Remedy{{Summary: recreate, Effect: "The Memory Manager books memory on NUMA nodes at admission only."}, {Summary: "Or take the change back; the pod keeps running with what it was allocated."}}}
		if c.configErr == nil {
			if is := c.config.MemoryManagerPolicy; is != "Static" {
				r.doubt = fmt.Sprintf(" But memoryManagerPolicy is %s by what was read: it was changed since, and a kubelet started with it decides anew.", is)
			}
			r.evidence = append(r.evidence, c.configEvidence("memoryManagerPolicy", c.config.MemoryManagerPolicy, ""), c.gateEvidence("InPlacePodVerticalScalingExclusiveMemory"))
		}
		return r, true
	case has("static-pods") || has("static pods"):
		return resizeRule{why: "the kubelet does not resize static pods", never: true,
			remedies: []report.Remedy{{Summary: "Change the static pod's manifest on the node: the kubelet then makes the pod anew."}}}, true
	case has("containers with swap"):
		r := resizeRule{why: "the kubelet does not change the memory request of a container that may use swap: its limit of swap follows the request", never: true,
			remedies: []report.Remedy{{Summary: "Set resizePolicy RestartContainer for memory, or recreate the pod."}}}
		if c.configErr == nil {
			r.evidence = []report.Evidence{c.configEvidence("memorySwap.swapBehavior", or(c.config.MemorySwapBehavior, "NoSwap"), "")}
		}
		return r, true
	case has("Memory-backed emptyDir"):
		return resizeRule{why: "the size of a memory-backed emptyDir is not changed in place", never: true, remedies: []report.Remedy{{Summary: recreate}}}, true
	case has("VerticalScaling is disabled"):
		name, _, _ := strings.Cut(message, " ")
		return resizeRule{why: "the kubelet's feature gate " + name + " is off", never: true, remedies: []report.Remedy{{Summary: "Turn the gate on in the kubelet's configuration, or recreate the pod with the new resources."}}}, true
	}
	if m := capacityMessage.FindStringSubmatch(message); m != nil {
		return capacityRule(m[1], m[2], m[3], m[4]), true
	}
	return resizeRule{why: "the kubelet says why: " + cutText(message), remedies: []report.Remedy{{Summary: recreate}}}, false
}

func capacityRule(name, requestedText, usedText, capacityText string) resizeRule {
	requested, _ := strconv.ParseUint(requestedText, 10, 64)
	used, _ := strconv.ParseUint(usedText, 10, 64)
	capacity, _ := strconv.ParseUint(capacityText, 10, 64)
	amount := func(n uint64) string {
		switch name {
		case "cpu":
			return cores(float64(n) / 1000)
		case "memory":
			return bothBytes(n) + " of memory"
		}
		return fmt.Sprintf("%d of %s", n, name)
	}
	if requested > capacity {
		r := resizeRule{never: true,
			why:        fmt.Sprintf("the pod would ask for %s, more than the %s that the node has for pods, reservations taken off", amount(requested), amount(capacity)),
			arithmetic: fmt.Sprintf("%d > %d", requested, capacity),
			remedies:   []report.Remedy{{Summary: "Ask for no more than the node has, or recreate the pod where a larger node can take it."}}}
		return r
	}
	return resizeRule{
		why:        fmt.Sprintf("the pod would ask for %s, and of the node's %s others ask for %s", amount(requested), amount(capacity), amount(used)),
		arithmetic: fmt.Sprintf("%d + %d = %d > %d", requested, used, requested+used, capacity),
		remedies: []report.Remedy{{Summary: "Make room: move other pods off the node, or ask for less. The kubelet tries again when pods leave or shrink, and every 3 minutes.",
			Effect: "Without room the resize waits for ever; a new pod can go to another node."}},
	}
}

func (c *podCase) resizeInfeasible(cond corev1.PodCondition, rule resizeRule) report.Finding {
	changes := c.resizeChanges()
	f := report.NewFinding(report.ResizeInfeasible, report.Proven, c.subject(changes.container()),
		fmt.Sprintf("The resize %swill not be made: %s.", changes.text(), strings.TrimSuffix(rule.why, ".")))
	if cond.Reason != corev1.PodReasonInfeasible {
		f.Summary += " The kubelet calls it deferred, but no waiting helps."
	}
	if kept := changes.kept(); kept != "" {
		f.Summary += " What counts is what the pod was allocated: " + kept + "."
	}
	if rule.doubt != "" {
		f.Confidence = report.Likely
		f.Summary += rule.doubt
	}
	if len(changes) == 0 {
		f.Confidence = report.Likely
		f.Summary += " The spec asks for what is allocated: the change was taken back, or the status is older than it."
	}
	f.Because = append(f.Because, c.conditionEvidence(cond, "the kubelet's own words"))
	f.Because = append(f.Because, c.generationEvidence(cond)...)
	f.Because = append(f.Because, changes.evidence(c)...)
	f.Because = append(f.Because, rule.evidence...)
	f.Arithmetic = rule.arithmetic
	f.Remedies = rule.remedies
	return f
}

// generationEvidence says whether a condition is about the present spec.
func (c *podCase) generationEvidence(cond corev1.PodCondition) []report.Evidence {
	if cond.ObservedGeneration == 0 || cond.ObservedGeneration >= c.pod.Generation {
		return nil
	}
	return []report.Evidence{c.podField("metadata.generation", fmt.Sprint(c.pod.Generation),
		fmt.Sprintf("the condition is about generation %d: the spec has changed since", cond.ObservedGeneration))}
}

// resizeChange is one amount that the spec asks for otherwise than allocated.
type resizeChange struct {
	name      string // container, "" for the pod's own resources
	field     string // "spec.containers[app].resources.requests.cpu"
	resource  corev1.ResourceName
	list      string // requests or limits
	want, has string
	hasField  string
}

type resizeChanges []resizeChange

// resizeChanges compares the spec with what the kubelet admitted. The status
// tells admitted requests exactly (allocatedResources); of limits it has those
// that the runtime reports, which are the admitted ones but for an amount that
// the runtime rounds.
func (c *podCase) resizeChanges() resizeChanges {
	var out resizeChanges
	add := func(name, spec, status, list string, kind corev1.ResourceName, want, has corev1.ResourceList) {
		w, okW := want[kind]
		h, okH := has[kind]
		if !okW || okH && sameAmount(kind, list, w, h) || !okH && (list == "limits" || has == nil) {
			return
		}
		amount := "none"
		if okH {
			amount = h.String()
		}
		out = append(out, resizeChange{name: name, field: spec + ".resources." + list + "." + string(kind), resource: kind, list: list, want: w.String(), has: amount, hasField: status + "." + string(kind)})
	}
	resources := []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory}
	for _, k := range c.containers() {
		if k.status == nil {
			continue
		}
		for _, r := range resources {
			add(k.Name, k.field("spec"), k.field("status")+".allocatedResources", "requests", r, k.Resources.Requests, k.status.AllocatedResources)
			if k.status.Resources != nil {
				add(k.Name, k.field("spec"), k.field("status")+".resources.limits", "limits", r, k.Resources.Limits, k.status.Resources.Limits)
			}
		}
	}
	if own := c.pod.Spec.Resources; own != nil && len(c.pod.Spec.Overhead) == 0 {
		for _, r := range resources {
			add("", "spec", "status.allocatedResources", "requests", r, own.Requests, c.pod.Status.AllocatedResources)
			if c.pod.Status.Resources != nil {
				add("", "spec", "status.resources.limits", "limits", r, own.Limits, c.pod.Status.Resources.Limits)
			}
		}
	}
	return out
}

// sameAmount leaves out a CPU limit that the runtime reports as systemd rounds
// it, up to a whole percent of a CPU.
func sameAmount(name corev1.ResourceName, list string, want, has resource.Quantity) bool {
	if want.Cmp(has) == 0 {
		return true
	}
	w, h := want.MilliValue(), has.MilliValue()
	return name == corev1.ResourceCPU && list == "limits" && h > w && h-w < 10 && h%10 == 0
}

// container is the only one that changes, "" where it is the pod or several.
func (cs resizeChanges) container() string {
	name := ""
	for i, ch := range cs {
		if i > 0 && ch.name != name {
			return ""
		}
		name = ch.name
	}
	return name
}

// text is "of container app (cpu from 2 to 4) ", with a blank at its end.
func (cs resizeChanges) text() string {
	if len(cs) == 0 {
		return ""
	}
	var order []string // of the containers
	of := map[string][]string{}
	for i, ch := range cs {
		who := "the pod"
		if ch.name != "" {
			who = "container " + ch.name
		}
		what := fmt.Sprintf("%s %s from %s to %s", ch.resource, ch.list, ch.has, ch.want)
		alike := func(o resizeChange) bool {
			return o.name == ch.name && o.resource == ch.resource && o.list != ch.list && o.has == ch.has && o.want == ch.want
		}
		if j := slices.IndexFunc(cs, alike); j >= 0 {
			if j < i {
				continue // requests and limits that change alike are said once
			}
			what = fmt.Sprintf("%s from %s to %s", ch.resource, ch.has, ch.want)
		}
		if of[who] == nil {
			order = append(order, who)
		}
		of[who] = append(of[who], what)
	}
	var parts []string
	for _, who := range order {
		parts = append(parts, fmt.Sprintf("of %s (%s)", who, strings.Join(of[who], ", ")))
	}
	return join(parts) + " "
}

// kept are the allocated requests.
func (cs resizeChanges) kept() string {
	var parts []string
	for _, ch := range cs {
		if ch.list == "requests" && ch.has != "none" {
			parts = append(parts, fmt.Sprintf("%s %s", ch.has, map[corev1.ResourceName]string{corev1.ResourceCPU: "CPU", corev1.ResourceMemory: "of memory"}[ch.resource]))
		}
	}
	return join(parts)
}

func (cs resizeChanges) evidence(c *podCase) []report.Evidence {
	var out []report.Evidence
	for _, ch := range cs {
		means := "allocated: what the kubelet counts with"
		if ch.list == "limits" {
			means = "in force, as the runtime reports it"
		}
		out = append(out, c.podField(ch.field, ch.want, "asked for"), c.podField(ch.hasField, ch.has, means))
	}
	return out
}
