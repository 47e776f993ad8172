package diagnose

import (
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/noderes/kubectl-noderes/pkg/cgroup"
	"github.com/noderes/kubectl-noderes/pkg/cgroup/kernlog"
	"github.com/noderes/kubectl-noderes/pkg/report"
)

// pidsLimitReached speaks of forks that a pids.max refused, "Resource
// temporarily unavailable": of the container (the runtime's, or systemd's
// default for the units it makes), of the pod (podPidsLimit), of all pods, or of
// the node's kernel, whose limit no cgroup counts. Threads count as processes do.
func pidsLimitReached(c *podCase) []report.Finding {
	if c.groupsErr != nil || c.ended() {
		return nil
	}
	var out []report.Finding
	seen := map[string]bool{}
	// What was refused says more of a level than that it is full.
	for _, orFull := range []bool{false, true} {
		for _, chain := range c.pidsChains() {
			f, level, ok := c.pidsRefused(chain, orFull)
			if ok && !seen[level] {
				seen[level] = true
				out = append(out, f)
			}
		}
	}
	if len(out) == 0 {
		out = append(out, c.refusedInGone()...)
	}
	if len(out) == 0 {
		out = append(out, c.forkRejectedInLog()...)
	}
	if len(out) == 0 {
		out = c.kernelPIDs(c.subject(""))
	}
	return out
}

// pidsLevel is the pids controller of one group on the way to the root.
type pidsLevel struct {
	cgroup.PIDs
	who       string
	container string // at a container's level and below
}

// pidsChain is the way from a group that processes fork in up to the one below
// the root.
type pidsChain struct {
	levels []pidsLevel
	leaf   bool // no group below the first
}

// pidsChains begin at each container, at each group inside of one, and at the
// pod.
func (c *podCase) pidsChains() []pidsChain {
	read := func(g cgroup.Group, who, container string) pidsLevel {
		p, _ := g.PIDs()
		return pidsLevel{PIDs: p, who: who, container: container}
	}
	above := []pidsLevel{read(c.groups.Pod, "the pod", "")}
	for _, g := range c.groups.Ancestors {
		if g.Path != "/" {
			above = append(above, read(g, "cgroup "+g.Path, ""))
		}
	}
	var out []pidsChain
	for _, k := range c.groups.Containers {
		own := append([]pidsLevel{read(k.Group, "container "+k.Name, k.Name)}, above...)
		below := k.Nested
		if k.Subgroup != "" {
			below = append([]cgroup.Group{k.Group.Child(k.Subgroup)}, below...)
		}
		parents := map[string]bool{}
		for _, g := range below {
			for dir := path.Dir(g.Path); len(dir) > len(k.Group.Path); dir = path.Dir(dir) {
				parents[dir] = true
			}
		}
		for _, g := range below {
			p, _ := g.PIDs()
			level := pidsLevel{PIDs: p, who: "cgroup " + strings.TrimPrefix(g.Path, k.Group.Path+"/") + " in container " + k.Name, container: k.Name}
			out = append(out, pidsChain{append([]pidsLevel{level}, own...), !parents[g.Path]})
		}
		out = append(out, pidsChain{own, len(below) == 0})
	}
	return append(out, pidsChain{above, false})
}

// pidsRefused gives a finding if the chain's groups count refused forks, or are
// full now, if that is asked for. level is the path of the group whose limit it was.
func (c *podCase) pidsRefused(way pidsChain, orFull bool) (f report.Finding, level string, ok bool) {
	chain := way.levels
	groups := make([]cgroup.PIDs, len(chain))
	for i, l := range chain {
		groups[i] = l.PIDs
	}
	at, sure, refused := cgroup.RefusingPIDs(groups)
	if refused && !way.leaf && groups[0].Local != nil && (groups[at].Local == nil || *groups[at].Local == 0) {
		refused = false // counted for a group below, which has a way of its own
	}
	if !refused {
		if !orFull {
			return report.Finding{}, "", false
		}
		at = slices.IndexFunc(chain, func(l pidsLevel) bool { return l.Full() })
		if at < 0 {
			return report.Finding{}, "", false
		}
	}
	l, forking := chain[at], chain[0]
	counter := l
	local := l.Local != nil && *l.Local > 0
	if !local {
		counter = forking
	}
	if refused && local && isAbovePod(c, l) && !l.Full() {
		if grown, ok := c.grown(l.Group, refusedForks(local)); ok && grown == 0 {
			return report.Finding{}, "", false // past, and perhaps another pod's: the node's report has it
		}
	}
	f = report.NewFinding(report.PIDsLimitReached, report.Proven, c.subject(l.container), "")
	limit := "a limit that was not read"
	if l.Limited() {
		limit = fmt.Sprintf("pids.max %d", l.Max.Bytes)
	}
	switch {
	case !refused:
		f.Confidence = report.Likely
		f.Summary = fmt.Sprintf("%s has as many processes and threads as it may have (%s, %s): the next fork is refused", sentence(l.who), plural(*l.Current, "task"), limit)
	default:
		if !sure || isAbovePod(c, l) && local {
			f.Confidence = report.Likely
		}
		count, since := c.refusals(counter, local)
		f.Summary = fmt.Sprintf("%s met its limit of processes and threads (%s): %s refused%s", sentence(l.who), limit, forks(count), since)
		if l.Peak != nil {
			f.Summary += fmt.Sprintf(", the most at once was %d", *l.Peak)
		}
		if l.Current != nil {
			f.Summary += fmt.Sprintf(", now it has %d", *l.Current)
		}
	}
	origin, remedy, evidence := c.pidsOrigin(l)
	if origin != "" {
		f.Summary += "; " + origin
	}
	f.Summary += "."
	f.Because = append(f.Because, c.pidsEvidence(counter, local, "forks refused")...)
	f.Because = append(f.Because, c.pidsFiles(l)...)
	for _, other := range chain {
		if other.Group.Path != l.Group.Path && other.Limited() {
			f.Because = append(f.Because, c.fileEvidence(other.Group.File("pids.max"), "", other.Max.String(), other.who))
		}
	}
	f.Because = dedupe(append(f.Because, evidence...))
	if !sure && refused && !local {
		c.gaps.Lack(c.filePath(l.Group.File("pids.peak")), "NotCollected", "which of several limits of processes was met", "the node pod")
	}
	f.Remedies = []report.Remedy{{
		Summary: "Find what forks or starts threads without end: thread pools per request, zombies that nobody reaps, probes that hang. The list of the container's threads tells.",
		Effect:  "fork and pthread_create fail with EAGAIN, \"Resource temporarily unavailable\", while the limit is met; nothing is killed.",
	}, remedy}
	return f, l.Group.Path, true
}

func isAbovePod(c *podCase, l pidsLevel) bool {
	return slices.ContainsFunc(c.groups.Ancestors, func(g cgroup.Group) bool { return g.Path == l.Group.Path })
}

// refusals are the refused forks that a level counts, and since when.
func (c *podCase) refusals(l pidsLevel, local bool) (uint64, string) {
	count := l.Events
	if local {
		count = l.Local
	}
	if count == nil {
		return 0, ""
	}
	grown, ok := c.grown(l.Group, refusedForks(local))
	switch {
	case !ok:
		return *count, " since its cgroup was made"
	case grown == 0:
		return *count, " since its cgroup was made, none of them in the sample"
	default:
		return *count, fmt.Sprintf(", %d of them in the sample of %s", grown, usec(float64(c.wallUsec)))
	}
}

// refusedForks reads max of pids.events or of pids.events.local.
func refusedForks(local bool) func(cgroup.Group) (uint64, bool) {
	return func(g cgroup.Group) (uint64, bool) {
		e, err := g.PIDsEvents()
		if local {
			e, err = g.PIDsEventsLocal()
		}
		if err != nil {
			return 0, false
		}
		return e.Max()
	}
}

func forks(n uint64) string {
	if n == 1 {
		return "1 fork was"
	}
	return fmt.Sprintf("%d forks were", n)
}

func (c *podCase) pidsEvidence(l pidsLevel, local bool, what string) []report.Evidence {
	name, count := "pids.events", l.Events
	if local {
		name, count = "pids.events.local", l.Local
	}
	if count == nil {
		return nil
	}
	return []report.Evidence{c.fileEvidence(l.Group.File(name), "max", fmt.Sprint(*count), what+", counted at "+l.who)}
}

func (c *podCase) pidsFiles(l pidsLevel) []report.Evidence {
	var out []report.Evidence
	if l.Max != nil {
		out = append(out, c.fileEvidence(l.Group.File("pids.max"), "", l.Max.String(), l.who))
	}
	if l.Peak != nil {
		out = append(out, c.fileEvidence(l.Group.File("pids.peak"), "", fmt.Sprint(*l.Peak), "the most tasks at once"))
	}
	if l.Current != nil {
		out = append(out, c.fileEvidence(l.Group.File("pids.current"), "", fmt.Sprint(*l.Current), "tasks now"))
	}
	return out
}

// pidsOrigin says who sets the limit of a level and how to raise it.
func (c *podCase) pidsOrigin(l pidsLevel) (origin string, remedy report.Remedy, evidence []report.Evidence) {
	switch {
	case l.container != "":
		return "the kubelet sets none on a container: it is the runtime's or systemd's (DefaultTasksMax)", report.Remedy{
			Summary: "Raise the runtime's limit (CRI-O: pids_limit) or systemd's DefaultTasksMax, 15 % of the node's limit unless set, then recreate the pod.",
		}, nil
	case l.Group.Path == c.groups.Pod.Path:
		remedy = report.Remedy{Summary: "Raise podPidsLimit in the kubelet's configuration, then recreate the pod."}
		if c.configErr != nil {
			return "the kubelet sets it by podPidsLimit", remedy, nil
		}
		evidence = []report.Evidence{c.configEvidence("podPidsLimit", fmt.Sprint(c.config.PodPidsLimit), "tasks that each pod of the node may have; -1 is no limit")}
		if c.config.PodPidsLimit > 0 && l.Limited() && uint64(c.config.PodPidsLimit) == l.Max.Bytes {
			return "podPidsLimit of the kubelet", remedy, evidence
		}
		return "another value than the kubelet's podPidsLimit now gives", remedy, evidence
	default:
		return "all pods below it share it", report.Remedy{
			Summary: "Set podPidsLimit so that no pod can take all of it, or reserve fewer pids (systemReserved, kubeReserved), or raise the node's kernel.pid_max and kernel.threads-max.",
		}, nil
	}
}

// refusedInGone takes what the pod's group counts beyond the groups below it: a
// container that is gone met a limit of its own. Only kernels that have
// pids.events.local count so.
func (c *podCase) refusedInGone() []report.Finding {
	pod, _ := c.groups.Pod.PIDs()
	if pod.Events == nil || pod.Local == nil || *pod.Local > 0 {
		return nil
	}
	gone := *pod.Events
	below := slices.Clone(c.groups.Unknown)
	for _, k := range c.groups.Containers {
		below = append(below, k.Group)
	}
	for _, g := range below {
		p, _ := g.PIDs()
		if p.Events == nil {
			return nil
		}
		gone -= min(gone, *p.Events)
	}
	if gone == 0 {
		return nil
	}
	f := report.NewFinding(report.PIDsLimitReached, report.Proven, c.subject(c.onlyContainerName()),
		fmt.Sprintf("%s refused in a container of the pod that is gone, at a limit of its own: the pod's cgroup counts them, no group that is left does.", sentence(forks(gone))))
	level := pidsLevel{PIDs: pod, who: "the pod"}
	f.Because = append(c.pidsEvidence(level, false, "forks refused below it"), c.pidsEvidence(level, true, "forks refused at its own limit")...)
	f.Because = append(f.Because, c.pidsFiles(level)...)
	f.Remedies = []report.Remedy{{Summary: "Collect while the container runs: its pids.max and pids.peak name the limit. The kubelet sets none on a container; it is the runtime's or systemd's (DefaultTasksMax)."}}
	return []report.Finding{f}
}

// forkRejectedInLog takes the kernel's line about a container that is gone: it
// is printed once for each cgroup that a refused process forked in.
func (c *podCase) forkRejectedInLog() []report.Finding {
	if c.name == "" {
		return nil
	}
	log, err := c.kernel()
	if err != nil {
		return nil
	}
	for _, note := range slices.Backward(log.Notes) {
		info := cgroup.ParsePath(note.ForkRejectedIn())
		if note.Kind != kernlog.ForkRejected || info.PodUID != c.uid {
			continue
		}
		name, _ := c.containerOfID(info.ContainerID)
		line := report.Evidence{Source: "kernel:log", Field: fmt.Sprintf("line %d", note.Line), Value: note.Text, Means: "printed at the first refusal in that cgroup"}
		if note.Time.HasWall {
			line.At = metav1.NewTime(note.Time.Wall)
		}
		f := report.NewFinding(report.PIDsLimitReached, report.Likely, c.subject(name),
			"The kernel refused a fork in this pod: a limit of processes and threads was met. No counter that is left says which one, or how often.", line)
		pod := pidsLevel{who: "the pod"}
		pod.PIDs, _ = c.groups.Pod.PIDs()
		f.Because = append(f.Because, c.pidsFiles(pod)...)
		f.Remedies = []report.Remedy{{Summary: "Collect while it happens: pids.events of the container, and pids.peak against pids.max of each level, name the limit."}}
		return []report.Finding{f}
	}
	return nil
}

// nodePIDsLimitReached speaks of the limits that all pods share.
func nodePIDsLimitReached(n *nodeCase) []report.Finding {
	g, ok := n.kubepods()
	if !ok {
		return nil
	}
	p, _ := g.PIDs()
	local := p.Local != nil && *p.Local > 0
	if !local && !p.Full() {
		return n.kernelPIDs(n.subject())
	}
	f := report.NewFinding(report.PIDsLimitReached, report.Proven, n.subject(), "The pods of the node together have as many processes and threads as they may have")
	if p.Limited() {
		f.Summary += fmt.Sprintf(" (pids.max %d)", p.Max.Bytes)
		f.Because = append(f.Because, n.fileEvidence(g.File("pids.max"), "", p.Max.String(), "tasks of all pods: the node's limit less what is reserved"))
	}
	if local {
		f.Summary = fmt.Sprintf("The pods of the node together met their limit of processes and threads: %s refused since the kubelet made their cgroup", forks(*p.Local))
		f.Because = append(f.Because, n.fileEvidence(g.File("pids.events.local"), "max", fmt.Sprint(*p.Local), "forks refused"))
	} else {
		f.Confidence = report.Likely
	}
	if p.Current != nil {
		f.Because = append(f.Because, n.fileEvidence(g.File("pids.current"), "", fmt.Sprint(*p.Current), "tasks now"))
	}
	f.Summary += "."
	f.Remedies = []report.Remedy{{Summary: "Set podPidsLimit so that no pod can take all of it; find the pod with the highest pids.current."}}
	return []report.Finding{f}
}

// nearlyAllPIDs is the share of the kernel's limit from which it counts as met:
// the count is of one moment, and some numbers are not free at once.
const nearlyAllPIDs = 0.98

// kernelPIDs looks at the kernel's own limit, the smaller of kernel.pid_max and
// kernel.threads-max (kubelet, pidlimit.Stats): no cgroup counts its refusals.
func (n *nodeCase) kernelPIDs(subject report.Subject) []report.Finding {
	var limit uint64
	var because []report.Evidence
	for _, name := range []string{"pid_max", "threads-max"} {
		text, err := fs.ReadFile(n.fsys, "proc/sys/kernel/"+name)
		if err != nil {
			continue
		}
		if v, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 63); err == nil && v > 0 {
			if limit == 0 || v < limit {
				limit = v
			}
			because = append(because, n.fileEvidence("proc/sys/kernel/"+name, "", strings.TrimSpace(string(text)), "the kernel's limit"))
		}
	}
	tasks, ok := n.tasks()
	if !ok || limit == 0 || float64(tasks) < nearlyAllPIDs*float64(limit) {
		return nil
	}
	because = append(because, n.fileEvidence("proc/loadavg", "tasks", fmt.Sprint(tasks), "processes and threads of the node"))
	f := report.NewFinding(report.PIDsLimitReached, report.Likely, subject,
		fmt.Sprintf("The node has %d processes and threads, and its kernel allows %d: forks are refused, or soon are, in every pod.", tasks, limit), because...)
	f.Arithmetic = fmt.Sprintf("%d / %d = %s", tasks, limit, percent(float64(tasks)/float64(limit)))
	f.Remedies = []report.Remedy{{
		Summary: "Set podPidsLimit and reserve pids for the system (systemReserved pid), or raise kernel.pid_max and kernel.threads-max.",
		Effect:  "The kubelet evicts by pid.available only if a threshold for it is set.",
	}}
	return []report.Finding{f}
}

// tasks is the second number of the fourth field of /proc/loadavg.
func (n *nodeCase) tasks() (uint64, bool) {
	text, err := fs.ReadFile(n.fsys, "proc/loadavg")
	if err != nil {
		return 0, false
	}
	fields := strings.Fields(string(text))
	if len(fields) < 5 {
		return 0, false
	}
	_, total, ok := strings.Cut(fields[3], "/")
	count, err := strconv.ParseUint(total, 10, 63)
	return count, ok && err == nil
}
