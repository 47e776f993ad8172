package diagnose

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/noderes/kubectl-noderes/pkg/cgroup"
	"github.com/noderes/kubectl-noderes/pkg/report"
)

// containerStartOOM speaks of containers that the runtime cannot even start:
// what a container before left behind, a memory-backed emptyDir above all, is
// still charged to the pod and leaves too little under the limit.
func containerStartOOM(c *podCase) []report.Finding {
	e := c.oom()
	var out []report.Finding
	for _, k := range c.containers() {
		if !c.startFailed(k) {
			continue
		}
		said := strings.Contains(k.end().Message, "OOM-killed")
		ooms, known := e.slice.inTree("oom")
		if (!known || ooms == 0) && !said {
			continue
		}
		pod := e.slice.group
		limit, limited := c.podMemoryLimit()
		var stat cgroup.MemoryStat
		var current uint64
		var statErr, curErr error
		if c.groupsErr == nil {
			stat, statErr = pod.MemoryStat()
			current, curErr = pod.MemoryCurrent()
		}
		if c.groupsErr != nil || !limited || statErr != nil || curErr != nil {
			if said {
				out = append(out, c.startLimitTooLow(k))
			}
			continue
		}
		shmem, _ := stat.Shmem()
		// With room left it was the start itself that needed too much, if the
		// runtime says that it was an OOM at all.
		full := float64(current) >= nearLimit*float64(limit) || float64(shmem) >= tmpfsShare*float64(limit)
		if !full {
			if said {
				out = append(out, c.startLimitTooLow(k))
			}
			continue
		}
		f := report.NewFinding(report.ContainerStartOOM, report.Likely, c.subject(k.Name),
			fmt.Sprintf("Container %s cannot start: %s of the pod's limit of %s is taken although it does not run (%s), %s of it tmpfs%s.",
				k.Name, bytes(current), bothBytes(limit), percent(float64(current)/float64(limit)), bothBytes(shmem), c.volumesText(", of ")))
		if float64(shmem) >= tmpfsShare*float64(limit) {
			f.Confidence = report.Proven
		}
		f.Because = append(f.Because, c.endEvidence(k, "the runtime could not finish the start"),
			c.fileEvidence(pod.File("memory.current"), "", fmt.Sprint(current), "charged to the pod now"),
			c.fileEvidence(pod.File("memory.stat"), "shmem", fmt.Sprint(shmem), "tmpfs pages outlive the container that wrote them"))
		if l, err := pod.MemoryMax(); err == nil {
			f.Because = append(f.Because, c.fileEvidence(pod.File("memory.max"), "", l.String(), "the pod's limit"))
		}
		f.Because = append(f.Because, c.eventsEvidence(e.slice, false, "the pod's cgroup", "oom", "oom_kill")...)
		f.Because = append(f.Because, c.volumeEvidence()...)
		if kills := e.of(k.Name); len(kills) > 0 {
			f.Because = append(f.Because, killEvidence(kills[len(kills)-1], "the last kill in the kernel log"))
		}
		f.Arithmetic = fmt.Sprintf("%d / %d = %s", current, limit, percent(float64(current)/float64(limit)))
		f.Remedies = []report.Remedy{{
			Summary: "Delete the pod: the volume goes with it, a restart of the container keeps it.",
			Effect:  "The next pod starts with an empty volume.",
		}, {
			Summary: "Give the memory-backed emptyDir a sizeLimit that leaves the container room under its memory limit, or raise the limit by what the volume may hold.",
			Effect:  "A write beyond sizeLimit fails with ENOSPC instead of filling the pod's memory.",
		}}
		out = append(out, f)
	}
	return out
}

// startLimitTooLow speaks of a start that the runtime itself calls an OOM where
// nothing is known to be left behind: the limit is too small for the start.
func (c *podCase) startLimitTooLow(k container) report.Finding {
	e := c.oom()
	limit := quantityOrNone(k.Resources.Limits, corev1.ResourceMemory)
	f := report.NewFinding(report.ContainerStartOOM, report.Likely, c.subject(k.Name),
		fmt.Sprintf("Container %s cannot start: the runtime says that its own first process was OOM-killed while it set the container up; its memory limit of %s is too small for a start, or something left behind takes the room.", k.Name, limit),
		c.endEvidence(k, clip(k.end().Message)),
		c.podField(k.field("spec")+".resources.limits.memory", limit, "the runtime's own start needs some MiB of it"))
	f.Because = append(f.Because, c.eventsEvidence(e.slice, false, "the pod's cgroup", "oom", "oom_kill")...)
	if kills := e.of(k.Name); len(kills) > 0 {
		f.Because = append(f.Because, killEvidence(kills[len(kills)-1], "the last kill in the kernel log"))
	}
	f.Remedies = []report.Remedy{{
		Summary: fmt.Sprintf("Raise limits.memory of container %s.", k.Name),
		Effect:  "The limit holds from the first process on, before the program itself runs.",
	}}
	return f
}
