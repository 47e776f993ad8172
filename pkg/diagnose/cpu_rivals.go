package diagnose

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/cpuset"

	"github.com/noderes/kubectl-noderes/pkg/cgroup"
)

// rung is one level of a container's way to the root, with the siblings that
// want the same CPUs.
type rung struct {
	level     *cpuLevel
	weight    uint64
	weightErr error
	idle      bool // cpu.idle is 1
	rivals    []rival
	unknown   int // siblings of which use or weight is not known
	share     float64
}

// rival is a sibling that used CPUs of the container's set in the sample, or one
// of which that is not known.
type rival struct {
	name   string
	group  cgroup.Group
	weight uint64
	unread bool    // its use is not known
	usec   uint64  // CPU time in the sample, on CPUs of the set
	cpus   float64 // the same in CPUs
}

// climb compares weights level by level, from the container to the root.
func (c *podCase) climb(w contention) []rung {
	var out []rung
	for _, l := range w.levels {
		if l.group.Path == "/" {
			break
		}
		r := rung{level: l, share: 1}
		r.weight, r.weightErr = l.group.CPUWeight()
		if idle, err := l.group.CPUIdle(); err == nil && idle == 1 {
			r.idle = true
		}
		c.findRivals(&r, w)
		if r.weightErr == nil {
			weights := make([]uint64, len(r.rivals))
			for i, o := range r.rivals {
				weights[i] = o.weight
			}
			r.share = cgroup.Share(r.weight, weights...)
		}
		out = append(out, r)
	}
	return out
}

// maxSiblings bounds the groups that one level is compared with.
const maxSiblings = 4096

// findRivals finds the siblings that used CPUs of the container's set.
func (c *podCase) findRivals(r *rung, w contention) {
	own := path.Base(r.level.group.Path)
	parent := cgroup.Group{FS: c.fsys, Path: path.Dir(r.level.group.Path)}
	names, err := parent.Children()
	if err != nil {
		r.unknown++
		return
	}
	for _, name := range names[:min(len(names), maxSiblings)] {
		if name == own {
			continue
		}
		g := parent.Child(name)
		weight, err := g.CPUWeight()
		usec, known := c.usedOn(g, w.set, 0)
		cpus := share(usec, c.wallUsec)
		switch {
		case known && cpus < runnableShare*float64(max(w.set.Size(), 1)):
		case err != nil:
			r.unknown++
		case !known:
			if c.runsElsewhere(g, w.set) {
				continue
			}
			r.unknown++
			r.rivals = append(r.rivals, rival{name: c.groupName(g), group: g, weight: weight, unread: true})
		default:
			r.rivals = append(r.rivals, rival{name: c.groupName(g), group: g, weight: weight, usec: usec, cpus: cpus})
		}
	}
	slices.SortStableFunc(r.rivals, func(a, b rival) int { return compareDesc(a.cpus, b.cpus) })
}

// runsElsewhere says whether a group can have no use for the set's CPUs: its own
// are others, or it is a pod whose containers all own CPUs that are.
func (c *podCase) runsElsewhere(g cgroup.Group, set cpuset.CPUSet) bool {
	if set.IsEmpty() {
		return false
	}
	if own, err := g.CPUSetCPUsEffective(); err == nil && !own.IsEmpty() && own.Intersection(set).IsEmpty() {
		return true
	}
	info := cgroup.ParsePath(g.Path)
	state, ok := c.cpuCheckpoint()
	if info.Level != cgroup.Pod || !ok {
		return false
	}
	for i := range c.pods {
		pod := &c.pods[i]
		if cgroup.PodUID(pod) != info.PodUID {
			continue
		}
		entries := state.Entries[info.PodUID]
		for _, k := range pod.Spec.Containers {
			own, owns := entries[k.Name]
			if !owns || !cpuset.New(own.List()...).Intersection(set).IsEmpty() {
				return false
			}
		}
		return len(pod.Spec.Containers) > 0
	}
	return false
}

// usedOn is the CPU time that a group used in the sample on CPUs that the set
// has too: of its subgroups only those whose CPUs meet the set count. A group
// whose CPUs are not known counts.
func (c *podCase) usedOn(g cgroup.Group, set cpuset.CPUSet, depth int) (uint64, bool) {
	total, ok := c.usageGrowth(g)
	if !ok || share(total, c.wallUsec) < runnableShare {
		return total, ok
	}
	meets := true
	if own, err := g.CPUSetCPUsEffective(); err == nil && !own.IsEmpty() && !set.IsEmpty() {
		meets = !own.Intersection(set).IsEmpty()
	}
	if !meets {
		return 0, true
	}
	const deepest = 6
	names, err := g.Children()
	if err != nil || len(names) == 0 || len(names) > maxSiblings || depth == deepest {
		return total, true
	}
	// Processes are in the leaves: what a group used beyond its subgroups is of
	// subgroups that have ended, or of readings apart in time. Outside of the
	// kubelet's tree subgroups need not have counters.
	inside := cgroup.ParsePath(g.Path).Level != cgroup.Other
	var sum, below uint64
	counted := false
	for _, name := range names {
		child := g.Child(name)
		all, ok := c.usageGrowth(child)
		if !ok {
			continue
		}
		counted = true
		below += all
		part, _ := c.usedOn(child, set, depth+1)
		sum += part
	}
	switch {
	case !counted:
		return total, true
	case !inside && total > below:
		sum += total - below
	}
	return min(sum, total), true
}

// usageGrowth is the CPU time that a group used in the sample.
func (c *podCase) usageGrowth(g cgroup.Group) (uint64, bool) {
	if c.first == nil {
		return 0, false
	}
	after, err := cgroup.Group{FS: c.last.Files, Path: g.Path}.CPUStat()
	if err != nil {
		return 0, false
	}
	now, ok := after.UsageUsec()
	if !ok {
		return 0, false
	}
	before, err := cgroup.Group{FS: c.first.Files, Path: g.Path}.CPUStat()
	if err != nil {
		return now, errors.Is(err, fs.ErrNotExist) // made in between
	}
	was, ok := before.UsageUsec()
	return now - min(was, now), ok && was <= now
}

// groupName names a group for a reader: the pod's, the container's, else its path.
func (c *podCase) groupName(g cgroup.Group) string {
	info := cgroup.ParsePath(g.Path)
	switch {
	case info.Level == cgroup.Container && info.Nested == "":
		for _, k := range c.groups.Containers {
			if k.Group.Path == g.Path {
				return "container " + k.Name
			}
		}
		return "a container or sandbox of the pod that its status does not name"
	case info.Level == cgroup.Pod && info.Nested == "":
		for i := range c.pods {
			if cgroup.PodUID(&c.pods[i]) == info.PodUID {
				return "pod " + c.pods[i].Namespace + "/" + c.pods[i].Name
			}
		}
		return "a pod that the API does not name (" + info.PodUID + ")"
	case info.Level == cgroup.QOS && info.Nested == "" && info.QOS == corev1.PodQOSBurstable:
		return "all Burstable pods" + c.mostOf(g)
	case info.Level == cgroup.QOS && info.Nested == "" && info.QOS == corev1.PodQOSBestEffort:
		return "all BestEffort pods" + c.mostOf(g)
	case info.Level == cgroup.Kubepods && info.Nested == "":
		return "all pods"
	}
	return strings.TrimPrefix(g.Path, "/")
}

// mostOf names the pod of a QoS class that used most.
func (c *podCase) mostOf(g cgroup.Group) string {
	names, err := g.Children()
	if err != nil || len(names) > maxSiblings {
		return ""
	}
	var most uint64
	who := ""
	for _, name := range names {
		if used, ok := c.usageGrowth(g.Child(name)); ok && used > most && cgroup.ParsePath(g.Child(name).Path).Level == cgroup.Pod {
			most, who = used, c.groupName(g.Child(name))
		}
	}
	if who == "" || share(most, c.wallUsec) < runnableShare {
		return ""
	}
	return fmt.Sprintf(" (most of it %s with %s)", who, cores(share(most, c.wallUsec)))
}

func compareDesc(a, b float64) int {
	switch {
	case a > b:
		return -1
	case a < b:
		return 1
	}
	return 0
}
