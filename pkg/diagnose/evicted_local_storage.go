package diagnose

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/noderes/kubectl-noderes/pkg/cgroup/eviction"
	"github.com/noderes/kubectl-noderes/pkg/report"
)

// evictedLocalStorage speaks of a pod that the kubelet ended because of a limit
// of its own for the node's disk, whatever room the node had: sizeLimit of an
// emptyDir volume, limits.ephemeral-storage of one container, or of all together
// (kubelet 1.34 to 1.37, localStorageEviction).
func evictedLocalStorage(c *podCase) []report.Finding {
	t, ok := c.evicted()
	if !ok || !t.done {
		return nil
	}
	subject, counted := c.subject(""), ""
	var evidence []report.Evidence
	var arithmetic string
	remedy := report.Remedy{}
	switch t.Kind {
	case eviction.EmptyDirLimit:
		counted = "all that the volume holds"
		for i, v := range c.pod.Spec.Volumes {
			if v.Name != t.Volume || v.EmptyDir == nil {
				continue
			}
			limit := "none"
			if v.EmptyDir.SizeLimit != nil {
				limit = v.EmptyDir.SizeLimit.String()
			}
			evidence = append(evidence, c.podField(fmt.Sprintf("spec.volumes[%d].emptyDir.sizeLimit", i), limit, "volume "+v.Name+mediumText(v.EmptyDir.Medium)+c.mountedBy(v.Name)))
		}
		remedy = report.Remedy{
			Summary: fmt.Sprintf("Raise sizeLimit of volume %s, write less to it, or use a PersistentVolumeClaim.", t.Volume),
			Effect:  "The kubelet measures every 10 s or slower and ends the whole pod; a sizeLimit refuses no write (but for medium Memory, where it is the size of the tmpfs).",
		}
	case eviction.PodStorageLimit:
		counted = "writable layers, logs and emptyDir volumes of all containers"
		var terms []string
		for _, k := range c.containers() {
			if q, ok := k.Resources.Limits[corev1.ResourceEphemeralStorage]; ok {
				terms = append(terms, q.String())
				evidence = append(evidence, c.podField(k.field("spec")+".resources.limits.ephemeral-storage", q.String(), ""))
			}
		}
		if len(terms) > 0 {
			arithmetic = strings.Join(terms, ", ") + " → " + t.Limit + " (init containers count by their largest, not by their sum)"
		}
		remedy = report.Remedy{Summary: "Raise limits.ephemeral-storage, or have logs rotated (containerLogMaxSize) and scratch files cleaned up.",
			Effect: "The sum of the containers' limits bounds the pod as a whole, emptyDir volumes included."}
	case eviction.ContainerStorageLimit:
		counted = "its writable layer and its logs"
		subject = c.subject(t.Container)
		for _, k := range c.containers() {
			if k.Name == t.Container {
				evidence = append(evidence, c.podField(k.field("spec")+".resources.limits.ephemeral-storage", quantityOrNone(k.Resources.Limits, corev1.ResourceEphemeralStorage), ""))
			}
		}
		remedy = report.Remedy{Summary: fmt.Sprintf("Raise limits.ephemeral-storage of container %s, write to a volume instead of the image's file system, or log less.", t.Container),
			Effect: "Volumes do not count towards one container's limit; they do towards the pod's."}
	default:
		return nil
	}
	summary := "The kubelet evicted the pod"
	if !t.at.IsZero() {
		summary += " at " + utc(t.at)
	}
	f := report.NewFinding(report.EvictedLocalStorage, report.Proven, subject, fmt.Sprintf("%s: %s (%s count). It is a limit of the pod's own: neither the node's disk nor memory was short.", summary, t.what(), counted))
	f.Because = append(c.evictionEvidence(t), evidence...)
	f.Arithmetic = arithmetic
	f.Remedies = []report.Remedy{remedy}
	return []report.Finding{f}
}

func mediumText(m corev1.StorageMedium) string {
	if m == corev1.StorageMediumDefault {
		return ", on the node's disk"
	}
	return ", medium " + string(m)
}

// mountedBy names the containers that can write to a volume.
func (c *podCase) mountedBy(volume string) string {
	var names []string
	for _, k := range c.containers() {
		for _, m := range k.VolumeMounts {
			if m.Name == volume && !m.ReadOnly {
				names = append(names, k.Name)
				break
			}
		}
	}
	if len(names) == 0 {
		return ""
	}
	return ", written by " + join(names)
}
