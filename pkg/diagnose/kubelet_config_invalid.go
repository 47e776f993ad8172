package diagnose

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/noderes/kubectl-noderes/pkg/alloc/kubeletconfig"
	"github.com/noderes/kubectl-noderes/pkg/report"
)

// kubeletConfigInvalid speaks of a setting with which the kubelet does not
// start: an option, a value, a pair of options or a feature gate.
func kubeletConfigInvalid(n *nodeCase) []report.Finding {
	var out []report.Finding
	for _, fault := range n.startFaults() {
		if fault.code != report.KubeletConfigInvalid {
			continue
		}
		f := report.NewFinding(report.KubeletConfigInvalid, n.startConfidence(), n.subject(),
			fmt.Sprintf("The kubelet %s with its configuration: %s.", n.startVerb(), strings.TrimSuffix(clip(fault.message), ".")),
			n.configEvidence(fault.field, clip(valueOr(fault.value, "as configured")), "the kubelet's words: "+clip(fault.message)))
		f.Because = append(f.Because, n.logEvidence(fault.message)...)
		f.Because = append(f.Because, n.readyEvidence()...)
		f.Remedies = n.configRemedies(fault)
		out = append(out, f)
	}
	return out
}

// startConfidence is that of what a kubelet of this configuration does at its
// start. One that runs with it, or one of other rules, speaks against it.
func (n *nodeCase) startConfidence() report.Confidence {
	if _, up, known := n.ready(); known && up && n.config.Served || !n.rulesExact {
		return report.Likely
	}
	return report.Proven
}

func (n *nodeCase) configRemedies(fault startFault) []report.Remedy {
	restart := "Then restart the kubelet; the checkpoints can stay."
	var r report.Remedy
	switch message := fault.message; {
	case strings.Contains(message, "Alpha-level Options not enabled"):
		r = report.Remedy{Summary: "Take the option out of cpuManagerPolicyOptions, or allow options of that stage.", Patch: "featureGates:\n  CPUManagerPolicyAlphaOptions: true", Caution: "Alpha options may change or vanish with the next version."}
	case strings.Contains(message, "Beta-level Options not enabled"):
		r = report.Remedy{Summary: "Take the option out of cpuManagerPolicyOptions, or allow options of that stage.", Patch: "featureGates:\n  CPUManagerPolicyBetaOptions: true"}
	case strings.Contains(message, "beta-level options not enabled"):
		r = report.Remedy{Summary: "Take the option out of topologyManagerPolicyOptions, or allow options of that stage.", Patch: "featureGates:\n  TopologyManagerPolicyBetaOptions: true"}
	case strings.Contains(message, "can not be used at the same time"):
		r = report.Remedy{Summary: "Keep one of the two options and take the other out of cpuManagerPolicyOptions."}
	case strings.Contains(message, "incompatible with CPUManager align-by-socket"):
		r = report.Remedy{Summary: "Take align-by-socket out of cpuManagerPolicyOptions, or choose another topologyManagerPolicy than single-numa-node."}
	case strings.Contains(message, "is not a subset of online-cpus"):
		r = report.Remedy{Summary: "Reserve CPUs that the machine has online.", Effect: "The online CPUs are those of the message."}
	case strings.HasPrefix(message, "unrecognized feature gate"), strings.Contains(message, "feature is locked to"):
		r = report.Remedy{Summary: fmt.Sprintf("Remove %s from featureGates: this version does not let it be set so.", strings.TrimPrefix(fault.field, "featureGates."))}
	case strings.Contains(message, "depends on features that are disabled"):
		gate, _, _ := strings.Cut(message, " is enabled")
		r = report.Remedy{Summary: fmt.Sprintf("Switch %s off as well, or %s on.", gate, strings.TrimPrefix(fault.field, "featureGates.")), Patch: fmt.Sprintf("featureGates:\n  %s: false", gate)}
	case strings.Contains(message, "unable to determine reserved CPU"), strings.Contains(message, "to be greater than zero"):
		r = report.Remedy{Summary: "Reserve CPU: the static policy needs at least one CPU that it never gives away.", Patch: "reservedSystemCPUs: \"0\"", Caution: "On a machine with two threads to a core reserve whole cores."}
	case strings.Contains(message, "NUMA node"):
		r = report.Remedy{Summary: "Name only NUMA nodes that the machine has in reservedMemory."}
	case strings.HasPrefix(message, "unknown policy"), strings.Contains(message, "is not available for platform"):
		r = report.Remedy{Summary: fmt.Sprintf("Set %s to a policy of this kubelet: cpuManagerPolicy none or static, memoryManagerPolicy None or Static.", fault.field)}
	case strings.Contains(message, "unsupported options"):
		r = report.Remedy{Summary: "Take cpuManagerPolicyOptions out, or set cpuManagerPolicy to static."}
	default:
		r = report.Remedy{Summary: fmt.Sprintf("Correct %s in the kubelet's configuration.", fault.field)}
	}
	r.Effect = strings.TrimSpace(r.Effect + " " + restart)
	return []report.Remedy{r}
}

func valueOr(value, none string) string {
	if value == "" {
		return none
	}
	return value
}

// options writes a map of options as "a=true, b=false".
func options(m map[string]string) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(m)) {
		parts = append(parts, name+"="+m[name])
	}
	return strings.Join(parts, ", ")
}

// reservedMemoryText writes reservedMemory as "NUMA node 0: memory 993Mi".
func reservedMemoryText(list []kubeletconfig.MemoryReservation) string {
	var parts []string
	for _, r := range list {
		for _, name := range slices.Sorted(maps.Keys(r.Limits)) {
			q := r.Limits[name]
			parts = append(parts, fmt.Sprintf("NUMA node %d: %s %s", r.NUMANode, name, q.String()))
		}
	}
	return valueOr(strings.Join(parts, ", "), "none")
}
