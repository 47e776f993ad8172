package cgroup

import (
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
)

// ContainerValues returns what the container's scope holds by the kubelet's
// orders to the runtime (kubelet 1.34–1.37: generateLinuxContainerResources,
// calculateLinuxResources). A file that nobody writes is not named; see
// [DefaultText] for what such a file holds. The error is for a container that
// the pod does not have.
//
// Two runtimes are told apart by nothing the node shows, so that both weight
// formulas are right and, with the systemd driver, both the exact and the
// rounded quota.
func ContainerValues(pod *corev1.Pod, container string, res Resources, s Settings) ([]FileValues, error) {
	pod = withResources(pod, res)
	c, ok := FindContainer(pod, container)
	if !ok {
		return nil, fmt.Errorf("pod has no container %q", cut(container))
	}
	e := &expectation{settings: s}
	e.addScopeWeight(pod, c)
	e.addScopeQuota(pod, c)
	if bytes, ok := memoryLimit(pod, c, s.PodLevelResources); ok && bytes > 0 {
		e.add("memory.max", e.bytesValue(bytes, memoryLimitText(pod, c)))
	}
	e.addContainerMemoryQoS(pod, c)
	if !s.SingleProcessOOMKill {
		e.add("memory.oom.group", Value{Text: "1", Rule: "singleProcessOOMKill is false"})
	}
	e.addSwap(pod, c)
	return e.files, nil
}

func (e *expectation) addScopeWeight(pod *corev1.Pod, c *corev1.Container) {
	milli, ok := cpuRequest(pod, c, e.settings.PodLevelResources)
	if !ok {
		e.add("cpu.weight", Value{Text: "1", Rule: "no CPU request: 2 shares", Arithmetic: linearArithmetic(minShares)})
		return
	}
	origin := ""
	if _, own := c.Resources.Requests[corev1.ResourceCPU]; !own {
		if origin = cpuLimitText(c, milli); origin == "" {
			origin = fmt.Sprintf("limit %dm", milli)
		}
	}
	shares := MilliCPUToShares(milli)
	arithmetic := sharesArithmetic(milli, origin, shares)
	linear, quadratic := WeightLinear(shares), WeightQuadratic(shares)
	if linear == quadratic {
		e.add("cpu.weight", Value{
			Text:       strconv.FormatUint(linear, 10),
			Rule:       "linear and quadratic formula",
			Arithmetic: arithmetic + "; " + linearArithmetic(shares),
		})
		return
	}
	e.add("cpu.weight",
		Value{
			Text:       strconv.FormatUint(quadratic, 10),
			Rule:       "quadratic formula",
			Arithmetic: arithmetic + "; " + quadraticArithmetic(shares),
		},
		Value{
			Text:       strconv.FormatUint(linear, 10),
			Rule:       ruleLinear,
			Arithmetic: arithmetic + "; " + linearArithmetic(shares),
		})
}

func (e *expectation) addScopeQuota(pod *corev1.Pod, c *corev1.Container) {
	s := e.settings
	if !s.CFSQuota {
		return // neither quota nor period is sent
	}
	milli, limited := cpuLimit(pod, c, s.PodLevelResources)
	switch {
	case s.withoutQuota(c.Name):
		e.add("cpu.max", e.unlimitedCPU("no quota: exclusive CPUs"))
	case !limited || milli == 0:
		e.add("cpu.max", e.unlimitedCPU("no CPU limit"))
	default:
		e.add("cpu.max", e.quotaValues(milli, cpuLimitText(c, milli), nil)...)
	}
}

// cpuLimitText says where a limit came from if it is not the container's own.
func cpuLimitText(c *corev1.Container, milli int64) string {
	if c.Resources.Limits.Cpu().IsZero() {
		return fmt.Sprintf("pod-level limit %dm", milli)
	}
	return ""
}

func memoryLimitText(pod *corev1.Pod, c *corev1.Container) string {
	if own := c.Resources.Limits.Memory(); !own.IsZero() {
		return own.String()
	}
	return "pod-level limit " + pod.Spec.Resources.Limits.Memory().String()
}
