package diagnose

import (
	"fmt"
	"strings"

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
		ooms, known := e.slice.inTree("oom")
		if !known || ooms == 0 {
			continue
		}
		pod := e.slice.group
		limit, limited := c.podMemoryLimit()
		stat, statErr := pod.MemoryStat()
		current, curErr := pod.MemoryCurrent()
		if !limited || statErr != nil || curErr != nil {
			continue
		}
		shmem, _ := stat.Shmem()
		// With room left it was the start itself that needed too much, if the
		// runtime says that it was an OOM at all.
		full := float64(current) >= nearLimit*float64(limit) || float64(shmem) >= tmpfsShare*float64(limit)
		if !full && !strings.Contains(k.end().Message, "OOM-killed") {
			continue
		}
		f := newFinding(report.ContainerStartOOM, report.Likely, c.subject(k.Name),
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
