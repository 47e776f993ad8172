package diagnose

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/noderes/kubectl-noderes/pkg/report"
)

// memoryVolumes are the pod's memory-backed volumes.
func (c *podCase) memoryVolumes() []corev1.Volume {
	var out []corev1.Volume
	for _, v := range c.pod.Spec.Volumes {
		if v.EmptyDir != nil && v.EmptyDir.Medium == corev1.StorageMediumMemory {
			out = append(out, v)
		}
	}
	return out
}

// volumesText names them: they can be what holds tmpfs pages, beside /dev/shm.
func (c *podCase) volumesText(prefix string) string {
	volumes := c.memoryVolumes()
	if len(volumes) == 0 {
		return ""
	}
	var names []string
	for _, v := range volumes {
		size := "no sizeLimit"
		if v.EmptyDir.SizeLimit != nil {
			size = "sizeLimit " + v.EmptyDir.SizeLimit.String()
		}
		names = append(names, fmt.Sprintf("%s (%s)", v.Name, size))
	}
	noun := "the memory-backed volume "
	if len(names) > 1 {
		noun = "the memory-backed volumes "
	}
	return prefix + noun + join(names)
}

// volumeEvidence quotes their size limits, who mounts them, and what the
// kubelet measured in them.
func (c *podCase) volumeEvidence() []report.Evidence {
	var out []report.Evidence
	for _, v := range c.memoryVolumes() {
		size := "none"
		if v.EmptyDir.SizeLimit != nil {
			size = v.EmptyDir.SizeLimit.String()
		}
		var at []string
		for _, k := range c.containers() {
			for _, m := range k.VolumeMounts {
				if m.Name == v.Name {
					at = append(at, k.Name+" at "+m.MountPath)
				}
			}
		}
		means := "medium: Memory"
		if len(at) > 0 {
			means += "; mounted in " + join(at)
		}
		out = append(out, c.podField(fmt.Sprintf("spec.volumes[%s].emptyDir.sizeLimit", v.Name), size, means))
		if used, ok := c.volumeUse(v.Name); ok {
			out = append(out, report.Evidence{Source: "kubelet:/stats/summary", Field: fmt.Sprintf("pods[%s].volume[%s].usedBytes", c.pod.Name, v.Name), Value: fmt.Sprint(used), Means: "in this volume, by the kubelet's measure"})
		}
	}
	return out
}

// volumeUse is what the kubelet measured in a volume.
func (c *podCase) volumeUse(name string) (uint64, bool) {
	if c.name == "" {
		return 0, false
	}
	stats, err := c.stats()
	if err != nil {
		return 0, false
	}
	pod, ok := stats.Pod(c.uid)
	if !ok {
		return 0, false
	}
	for _, v := range pod.Volumes {
		if v.Name == name && v.Used != nil {
			return *v.Used, true
		}
	}
	return 0, false
}

// volumeRoom holds the memory-backed volumes against a limit: which of them
// holds most, and what they may take. One without a sizeLimit may grow to the
// pod's memory limit (kubelet, calculateEmptyDirMemorySize).
func (c *podCase) volumeRoom(limit uint64) string {
	volumes := c.memoryVolumes()
	if len(volumes) == 0 {
		return " The pod has no memory-backed volume: it is /dev/shm or shared memory of its processes."
	}
	var text string
	most, mostUsed := "", uint64(0)
	var may uint64
	bounded := true
	for _, v := range volumes {
		if used, ok := c.volumeUse(v.Name); ok && used > mostUsed {
			most, mostUsed = v.Name, used
		}
		if v.EmptyDir.SizeLimit == nil || v.EmptyDir.SizeLimit.Value() <= 0 {
			bounded = false
			continue
		}
		may = saturated(may, uint64(v.EmptyDir.SizeLimit.Value()))
	}
	if most != "" {
		text = fmt.Sprintf(" By the kubelet's measure volume %s holds %s.", most, bytes(mostUsed))
	}
	them := "the volume"
	if len(volumes) > 1 {
		them = "the volumes together"
	}
	switch {
	case limit == 0:
	case !bounded:
		text += " Without a sizeLimit a volume may fill the whole of the pod's memory limit."
	case may >= limit:
		text += fmt.Sprintf(" %s may hold %s, and the limit is %s: the limit is met before sizeLimit is.", sentence(them), bytes(may), bytes(limit))
	default:
		text += fmt.Sprintf(" %s may hold %s; that leaves %s of the limit for everything else.", sentence(them), bytes(may), bytes(limit-may))
	}
	return text
}
