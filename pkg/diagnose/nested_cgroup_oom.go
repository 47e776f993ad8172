package diagnose

import (
	"fmt"
	"strings"

	"github.com/noderes/kubectl-noderes/pkg/report"
)

// nestedCgroupOOM speaks of groups that the application made inside its
// container (systemd, a job runner) and that hit a limit of their own:
// memory.events of the container counts those kills too, memory.events.local
// does not.
func nestedCgroupOOM(c *podCase) []report.Finding {
	e := c.oom()
	var out []report.Finding
	seen := map[string]bool{}
	for _, n := range e.nested {
		oom, _ := n.inLocal("oom")
		kills, _ := n.inLocal("oom_kill")
		if oom == 0 && kills == 0 {
			continue
		}
		limit, err := n.group.MemoryMax()
		if oom == 0 && (err != nil || limit.Max) {
			continue // killed here, but by a limit further up
		}
		name, path := c.ownerOf(n.group.Path)
		seen[name] = true
		size := "of unknown size"
		because := c.eventsEvidence(n, true, "the nested group", "oom", "oom_kill")
		if err == nil {
			size = "of none"
			if !limit.Max {
				size = "of " + bothBytes(limit.Bytes)
			}
			because = append(because, c.fileEvidence(n.group.File("memory.max"), "", limit.String(), "the nested group's own limit"))
		}
		if scope, ok := e.scopes[name]; ok {
			because = append(because, c.eventsEvidence(scope, false, "container "+name, "oom_kill")...)
			because = append(because, c.eventsEvidence(scope, true, "container "+name, "oom_kill")...)
		}
		confidence := report.Proven
		if own, ok := e.scopes[name].inLocal("oom"); !ok || own > 0 || oom == 0 {
			confidence = report.Likely
		}
		f := report.NewFinding(report.NestedCgroupOOM, confidence, c.subject(name),
			fmt.Sprintf("%s in the group %q inside container %s hit that group's own limit %s; the container's limit was not met.", killsText(kills), path, name, size), because...)
		f.Remedies = []report.Remedy{{
			Summary: fmt.Sprintf("Raise the limit of %q where the application sets it, or give its work less to hold.", path),
			Effect:  "Raising the container's limit changes nothing: it was not reached.",
		}}
		out = append(out, f)
	}
	// The group may be gone: the kernel log still names it.
	for _, v := range c.oomVerdicts() {
		if v.limit != limitNested || seen[v.container.Name] {
			continue
		}
		kill := v.kills[len(v.kills)-1]
		size := "of unknown size"
		if kill.HasLimit {
			size = "of " + bothBytes(kill.LimitKB*1024)
		}
		f := report.NewFinding(report.NestedCgroupOOM, v.confidence, c.subject(v.container.Name),
			fmt.Sprintf("%s in the group %q inside container %s hit that group's own limit %s; the container's limit was not met.",
				killsText(uint64(len(kill.Victims))), kill.limit.Nested, v.container.Name, size), v.because...)
		f.Remedies = []report.Remedy{{Summary: fmt.Sprintf("Raise the limit of %q where the application sets it, or give its work less to hold.", kill.limit.Nested)}}
		out = append(out, f)
	}
	return out
}

func killsText(n uint64) string {
	if n == 1 {
		return "1 process"
	}
	return fmt.Sprintf("%d processes", n)
}

// ownerOf is the container whose cgroup a path lies in, and the path below it.
func (c *podCase) ownerOf(path string) (name, rest string) {
	for _, k := range c.containers() {
		if g, ok := c.containerGroup(k.Name); ok && below(path, g.Path) {
			return k.Name, strings.TrimPrefix(path, g.Path+"/")
		}
	}
	return "", path
}

// below says whether a cgroup path lies strictly below another.
func below(path, parent string) bool { return strings.HasPrefix(path, parent+"/") }
