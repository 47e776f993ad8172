package diagnose

import (
	"fmt"
	"math"
	"math/bits"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/noderes/kubectl-noderes/pkg/cgroup"
	"github.com/noderes/kubectl-noderes/pkg/report"
)

// Shares of the whole from which a kind of memory counts as what filled it.
const (
	anonShare   = 0.5
	tmpfsShare  = 0.2
	cacheShare  = 0.5
	kernelShare = 0.25
	// nearLimit of the limit is where it is worth saying what fills it without
	// an OOM.
	nearLimit = 0.8
)

// fill is what a memory cgroup held at one moment, in bytes.
type fill struct {
	subject string // container, "" for the pod
	where   string // "the pod's cgroup", "container app"
	when    string
	source  string
	at      metav1.Time
	total   uint64 // what the shares are of
	limit   uint64 // 0: none or not known
	anon    uint64
	file    uint64 // without shmem
	shmem   uint64
	kernel  uint64 // with sockets
	detail  string // the largest parts of kernel
	// unsplit: shmem is not known, so that file is page cache or tmpfs.
	unsplit bool
	group   *memoryGroup // of a fill that is read now
	usage   usage
}

// add sums up the whole; false means that the amounts are no sizes.
func (f *fill) add(amounts ...uint64) bool {
	for _, a := range amounts {
		sum, carry := bits.Add64(f.total, a, 0)
		if carry != 0 {
			return false
		}
		f.total = sum
	}
	return f.total > 0
}

// memoryFilledBy says what filled the memory: at an OOM by the statistics that
// the kernel prints with it, the only figures of that moment; else by
// memory.stat now, where the group is near its limit or at memory.high, or where
// tmpfs outlived the container that wrote it.
func memoryFilledBy(c *podCase) []report.Finding {
	var out []report.Finding
	done := map[string]bool{}
	for _, f := range c.fills() {
		if done[f.subject] {
			continue
		}
		done[f.subject] = true
		out = append(out, c.fillFindings(f)...)
	}
	return out
}

// fills are the moments worth explaining, the best first for each subject.
func (c *podCase) fills() []fill {
	e := c.oom()
	var out []fill
	for _, k := range c.containers() {
		if c.startFailed(k) {
			continue
		}
		kills := e.of(k.Name)
		for i := len(kills) - 1; i >= 0; i-- {
			if f, ok := fillOfKill(k.Name, kills[i]); ok {
				out = append(out, f)
				break
			}
		}
	}
	for _, k := range c.containers() {
		if g, ok := c.containerGroup(k.Name); ok {
			limit, err := g.MemoryMax()
			if f, ok := c.fillNow(k.Name, c.memoryGroup(g, "container "+k.Name, k.Name, e.scopes[k.Name])); ok && err == nil && !limit.Max {
				f.limit = limit.Bytes
				if near(f) || c.atHigh(f.group) {
					out = append(out, f)
				}
			}
		}
	}
	if c.groupsErr == nil {
		f, ok := c.fillNow(c.onlyContainerName(), c.memoryGroup(c.groups.Pod, "the pod's cgroup", c.onlyContainerName(), e.slice))
		limit, limited := c.podMemoryLimit()
		if ok && limited {
			f.limit = limit
			if near(f) || float64(f.shmem) >= tmpfsShare*float64(limit) {
				out = append(out, f)
			}
		}
	}
	return out
}

// atHigh says whether a group stands at its memory.high.
func (c *podCase) atHigh(m *memoryGroup) bool {
	high, err := m.group.MemoryHigh()
	return err == nil && !high.Max && m.currentErr == nil && float64(m.current) >= atHigh*float64(high.Bytes)
}

func near(f fill) bool { return f.limit > 0 && float64(f.total) >= nearLimit*float64(f.limit) }

// onlyContainerName is the pod's one app container, "" where it has more.
func (c *podCase) onlyContainerName() string {
	if all := c.containers(); len(all) == 1 {
		return all[0].Name
	}
	return ""
}

func fillOfKill(name string, k podKill) (fill, bool) {
	if len(k.Stats) == 0 {
		return fill{}, false
	}
	f := fill{subject: name, where: groupLabel(k.limit, name), when: "at the OOM", source: "kernel:log"}
	if k.Time.HasWall {
		f.at = metav1.NewTime(k.Time.Wall)
		f.when = "at the OOM of " + utc(k.Time.Wall)
	}
	get := func(key string) uint64 { v, _ := k.Stats.Get(key); return v }
	_, hasShmem := k.Stats.Get("shmem")
	f.unsplit = !hasShmem
	f.anon, f.shmem = get("anon"), get("shmem")
	f.file = get("file") - min(get("file"), f.shmem)
	f.kernel = get("kernel")
	if f.kernel == 0 {
		f.kernel = saturated(get("slab"), get("kernel_stack"), get("pagetables"), get("percpu"))
	}
	f.detail = kernelDetail(get)
	f.kernel = saturated(f.kernel, get("sock"))
	if k.HasLimit {
		f.limit = k.LimitKB * 1024
	}
	return f, f.add(f.anon, f.shmem, f.file, f.kernel)
}

// saturated is a sum that stops at the largest number.
func saturated(amounts ...uint64) uint64 {
	var f fill
	if !f.add(amounts...) && f.total > 0 {
		return math.MaxUint64
	}
	return f.total
}

// groupLabel names the cgroup of a kernel log record for a reader.
func groupLabel(info cgroup.PathInfo, container string) string {
	switch info.Level {
	case cgroup.Container:
		return "container " + container
	case cgroup.Pod:
		return "the pod's cgroup"
	case cgroup.QOS, cgroup.Kubepods:
		return "the cgroup of all pods"
	default:
		return "the node"
	}
}

func (c *podCase) fillNow(name string, m memoryGroup) (fill, bool) {
	if m.statErr != nil {
		return fill{}, false
	}
	stat := m.group.File("memory.stat")
	f := fill{subject: name, where: m.who, when: "now", source: c.source(stat), at: c.readAt(stat), group: &m, usage: c.usageOfGroup(m)}
	get := func(key string) uint64 { v, _ := m.stat.Get(key); return v }
	_, hasShmem := m.stat.Shmem()
	f.unsplit = !hasShmem
	f.anon, f.shmem = get("anon"), get("shmem")
	f.file = get("file") - min(get("file"), f.shmem)
	f.kernel, _ = kernelOf(m.stat)
	f.detail = kernelDetail(get)
	f.kernel = saturated(f.kernel, get("sock"))
	return f, f.add(f.anon, f.shmem, f.file, f.kernel)
}

func kernelOf(stat cgroup.MemoryStat) (uint64, bool) {
	v, _, ok := stat.Kernel()
	return v, ok
}

func kernelDetail(get func(string) uint64) string {
	var parts []string
	for _, key := range []string{"slab_unreclaimable", "slab_reclaimable", "pagetables", "kernel_stack", "percpu", "sock"} {
		if v := get(key); v > 0 {
			parts = append(parts, key+" "+bytes(v))
		}
	}
	return strings.Join(parts, ", ")
}

func (c *podCase) fillFindings(f fill) []report.Finding {
	share := func(b uint64) float64 { return float64(b) / float64(f.total) }
	type kind struct {
		code  report.Code
		bytes uint64
		least float64
		text  string
	}
	kinds := []kind{
		{report.MemoryFilledByAnon, f.anon, anonShare, "anonymous memory (heap, stacks)"},
		{report.MemoryFilledByTmpfs, f.shmem, tmpfsShare, "tmpfs and shared memory" + c.volumesText(", of ")},
		{report.MemoryFilledByPageCache, f.file, cacheShare, "page cache, which the kernel takes back under pressure"},
		{report.MemoryFilledByKernel, f.kernel, kernelShare, "kernel memory"},
	}
	var out []report.Finding
	for _, k := range kinds {
		split := k.code == report.MemoryFilledByTmpfs || k.code == report.MemoryFilledByPageCache
		if share(k.bytes) < k.least || split && f.unsplit {
			continue
		}
		of := ""
		if f.limit > 0 {
			of = fmt.Sprintf(" (%s of the limit of %s)", percent(float64(k.bytes)/float64(f.limit)), bytes(f.limit))
		}
		finding := report.NewFinding(k.code, report.Proven, c.subject(f.subject),
			fmt.Sprintf("%s: %s of %s is %s%s, %s.", sentence(f.where), bytes(k.bytes), bytes(f.total), k.text, of, f.when))
		for _, part := range []struct {
			field string
			bytes uint64
			means string
		}{{"anon", f.anon, anonMeans}, {"shmem", f.shmem, "tmpfs and shared memory"}, {"file − shmem", f.file, "page cache"}, {"kernel + sock", f.kernel, f.detail}} {
			finding.Because = append(finding.Because, report.Evidence{Source: f.source, Field: part.field, Value: fmt.Sprint(part.bytes), Means: part.means, At: f.at})
		}
		finding.Remedies = fillRemedies(k.code)
		switch k.code {
		case report.MemoryFilledByTmpfs:
			finding.Because = append(finding.Because, c.volumeEvidence()...)
			finding.Summary += c.volumeRoom(f.limit)
		case report.MemoryFilledByPageCache:
			text, because := c.cacheHarm(f)
			finding.Summary += text
			finding.Because = append(finding.Because, because...)
		case report.MemoryFilledByAnon:
			advice, because := c.heapAdvice(f.subject, f.limit)
			finding.Because = append(finding.Because, because...)
			if len(advice) > 0 {
				finding.Remedies = append(advice, report.Remedy{Summary: "Or find the leak with the runtime's heap profile."})
			}
		}
		finding.Because = dedupe(append(finding.Because, f.usage.because...))
		finding.Arithmetic = fmt.Sprintf("%d / (%d + %d + %d + %d) = %s", k.bytes, f.anon, f.shmem, f.file, f.kernel, percent(share(k.bytes))) + f.usage.arithmetic
		out = append(out, finding)
	}
	return out
}

// cacheHarm says whether page cache that fills a limit is a harm: only if what
// is taken of it is needed again.
func (c *podCase) cacheHarm(f fill) (string, []report.Evidence) {
	if f.group == nil {
		return "", nil
	}
	if _, thrashes := c.thrash(*f.group); thrashes {
		return " It is needed, though: what is taken back is read again (memory-reclaim-thrash).", nil
	}
	r := c.refaults(*f.group)
	if !r.sampled {
		return "", nil
	}
	if r.count == 0 {
		return " No page that was taken back was needed again in the sample: it does no harm.", nil
	}
	return fmt.Sprintf(" %s that were taken back were needed again in the sample, which cost no time worth a word.", plural(r.count, "page")), r.evidence
}

func sentence(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

func fillRemedies(code report.Code) []report.Remedy {
	switch code {
	case report.MemoryFilledByTmpfs:
		return []report.Remedy{{Summary: "Give each memory-backed emptyDir a sizeLimit that fits the memory limit beside the heap, or write to disk instead.",
			Effect: "tmpfs pages count against the memory limit and cannot be taken back without swap."}}
	case report.MemoryFilledByAnon:
		return []report.Remedy{{Summary: "Set the runtime's own limit below the container's (-Xmx or MaxRAMPercentage, GOMEMLIMIT, --max-old-space-size), or find the leak with its heap profile."}}
	case report.MemoryFilledByKernel:
		return []report.Remedy{{Summary: "Look at what the kernel holds for it: many sockets, threads, open files, or page tables of shared memory."}}
	default:
		return nil
	}
}
