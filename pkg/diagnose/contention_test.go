package diagnose

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/noderes/kubectl-noderes/pkg/cgroup"
	"github.com/noderes/kubectl-noderes/pkg/report"
)

// wholeNode adds to a pod and its node what bears on the CPUs of a recording's
// other pods, for questions about neighbours.
func wholeNode(archive, namespace, name string) func(testing.TB) *bundle {
	cut := recorded(archive, namespace, name)
	whole := sync.OnceValues(func() (*bundle, error) {
		all, err := archiveFiles(archive)
		if err != nil {
			return nil, err
		}
		b := &bundle{files: map[string]string{}}
		if b.pods, err = itemsOf[corev1.Pod](all["cluster/pods.json"]); err != nil {
			return nil, err
		}
		b.pods = slices.DeleteFunc(b.pods, func(p corev1.Pod) bool { return p.Namespace == namespace && p.Name == name })
		for file, text := range all {
			if strings.HasPrefix(path.Base(file), "cpu") || path.Base(file) == "stat" {
				b.files[file] = text
			}
		}
		return b, nil
	})
	return func(t testing.TB) *bundle {
		t.Helper()
		b := cut(t)
		others, err := whole()
		if err != nil {
			t.Fatal(err)
		}
		others = others.clone()
		b.pods = append(b.pods, others.pods...)
		maps.Copy(b.files, others.files)
		b.events = nil
		return b
	}
}

// other is the pod of that name beside the one that is asked about.
func (b *bundle) other(name string) *corev1.Pod {
	b.t.Helper()
	i := slices.IndexFunc(b.pods, func(p corev1.Pod) bool { return p.Name == name })
	if i < 0 {
		b.t.Fatalf("no pod %q", name)
	}
	return &b.pods[i]
}

// otherDir is the cgroup of another pod, or of its first container.
func (b *bundle) otherDir(name, container string) string {
	b.t.Helper()
	p := b.other(name)
	dir, err := cgroup.PodPath(b.driver, "", p.Status.QOSClass, cgroup.PodUID(p))
	if err != nil {
		b.t.Fatal(err)
	}
	if container == "" {
		return dir
	}
	return dir + "/" + b.scopeName(cgroup.ContainerID(statusOf(p.Status.ContainerStatuses, container).ContainerID))
}

// write puts a file of any cgroup into every sample.
func (b *bundle) write(dir, name, text string) {
	b.t.Helper()
	for _, k := range b.samples() {
		b.files[b.file(k, dir, name)] = text + "\n"
	}
}

// usesCPUs makes a cgroup use CPUs in the sample of 38.294 s.
func (b *bundle) usesCPUs(cpus float64, dirs ...string) {
	b.t.Helper()
	for _, dir := range dirs {
		for k, usec := range map[int]int64{0: 1000, 1: 1000 + int64(cpus*38.294e6)} {
			file := b.file(k, dir, "cpu.stat")
			text, ok := b.files[file]
			if !ok {
				b.t.Fatalf("no cpu.stat in %s", dir)
			}
			b.files[file] = withKeys(b.t, text, map[string]int64{"usage_usec": usec})
		}
	}
}

// idle makes the CPUs of a node of 8 idle for a share of the sample; the others
// are busy all the time.
func (b *bundle) idle(percent int, cpus ...int) {
	b.t.Helper()
	for k := range 2 {
		text := "cpu  0 0 0 0 0 0 0 0 0 0\n"
		for cpu := range 8 {
			busy, idle := 1000+3800*k, 1000
			if slices.Contains(cpus, cpu) {
				busy, idle = 1000+38*(100-percent)*k, 1000+38*percent*k
			}
			text += fmt.Sprintf("cpu%d %d 0 0 %d 0 0 0 0 0 0\n", cpu, busy, idle)
		}
		b.files[fmt.Sprintf("nodes/%s/samples/%d/root/proc/stat", b.node, k)] = text
	}
}

var (
	starvedPod = wholeNode("numa4-k61/bundle", "mill", "starved") // BestEffort, two busy threads on 0,4-5
	noLimitPod = wholeNode("numa4-k61/bundle", "mill", "nolimit") // Burstable 100m, one busy thread
	widePod    = wholeNode("numa4-k61/bundle", "mill", "wide")    // owns 2-3,6-7
)

// alone takes away what competes with the starved pod.
func alone(b *bundle) {
	b.usesCPUs(0, "/system.slice", "/kubepods.slice/kubepods-burstable.slice", b.otherDir("two-app", ""))
}

// evenly gives the starved pod and its only rival the same weight and use.
func evenly(b *bundle) {
	alone(b)
	b.usesCPUs(1.4, "/system.slice")
	b.usesCPUs(1.4, "/kubepods.slice", b.dir(qosGroup), b.dir(podGroup), b.dir("app"))
	b.write("/system.slice", "cpu.weight", "235")
}

func contentionFamily() family {
	weight, crowded := "cpu-starved-by-weight@app ", "cpu-shared-pool-crowded@app "
	return family{name: "contention", codes: []report.Code{report.CPUStarvedByWeight, report.CPUSharedPoolCrowded}, cases: []ruleCase{
		{name: "BestEffort in a busy pool, exclusive CPUs idle", on: starvedPod, want: []string{weight + "likely", crowded + "likely"},
			text: []string{"77.3 %", "1 / (1 + 5 + 8) = 7.1 %", "235 / (235 + 100) = 70.1 %", "0.15 CPU", "0.654 CPU", "mill/nolimit", "mill/two-app", "0,4-5", "8 CPUs − 5 exclusive = 3 shared"}},
		{name: "the exclusive CPUs are busy too", on: starvedPod, edit: func(b *bundle) { b.idle(0) }, want: []string{weight + "proven"}},
		{name: "the container's CPUs are not busy", on: starvedPod, edit: func(b *bundle) { b.idle(40, 0, 4, 5) }, want: nil},
		{name: "busy enough", on: starvedPod, edit: func(b *bundle) { b.idle(10, 0, 4, 5) }, want: []string{weight + "proven"}},
		{name: "9.9 % of the time", on: starvedPod, edit: func(b *bundle) { b.waits("app", 3_791_000) }, want: nil},
		{name: "10 % of the time", on: starvedPod, edit: func(b *bundle) { b.waits("app", 3_830_000) }, want: []string{weight + "likely", crowded + "likely"}},
		{name: "a busy thread that gets its CPU", on: noLimitPod, want: nil},
		{name: "more than its weight is sure of was all it wanted", on: noLimitPod, edit: func(b *bundle) {
			b.idle(0)
			b.usesCPUs(0.02, "/system.slice", b.otherDir("two-app", ""), "/kubepods.slice/kubepods-besteffort.slice")
			b.waits("app", 5_000_000)
		}, want: nil},
		{name: "alone on its CPUs", on: starvedPod, edit: alone, want: nil},

		{name: "throttled by its own quota", on: wholeNode("numa4-k61/bundle", "mill", "throttled"), want: nil},
		{name: "throttled by the pod's quota", on: starvedPod, edit: func(b *bundle) {
			b.put(podGroup, "cpu.max", "60000 100000")
			b.cpu(podGroup, cpuCounts{}, cpuCounts{380, 300, 20_000_000, 25_000_000})
		}, want: nil},
		{name: "cpu.stat.local moves", on: starvedPod, edit: func(b *bundle) {
			b.putAt(0, "app", "cpu.stat.local", "throttled_usec 1000")
			b.putAt(1, "app", "cpu.stat.local", "throttled_usec 9001000")
		}, want: nil},
		{name: "cpu.stat.local stands still", on: starvedPod, edit: func(b *bundle) {
			b.idle(0)
			b.put("app", "cpu.stat.local", "throttled_usec 1000")
		}, want: []string{weight + "proven"}},
		{name: "a quota that does nothing", on: starvedPod, edit: func(b *bundle) {
			b.idle(0)
			b.put("app", "cpu.max", "300000 100000")
			b.cpu("app", cpuCounts{}, cpuCounts{380, 1, 1_000, 25_000_000})
		}, want: []string{weight + "proven"}},
		{name: "a quota whose counters went down", on: starvedPod, edit: func(b *bundle) {
			b.put("app", "cpu.max", "300000 100000")
			b.cpu("app", cpuCounts{400, 1, 1_000, 45_000_000}, cpuCounts{-380, -1, -1_000, -25_000_000})
		}, want: nil},
		{name: "the pod's cgroup was not read", on: starvedPod, edit: func(b *bundle) { b.drop(podGroup, "cpu.max", "cpu.stat") }, want: []string{weight + "likely", crowded + "likely"}},
		{name: "the pod's cgroup was not read, and has no quota by the spec", on: noLimitPod, edit: func(b *bundle) {
			b.idle(0)
			b.waits("app", 20_000_000)
			b.drop(podGroup, "cpu.max", "cpu.stat")
		}, want: []string{weight + "likely"}},
		{name: "the pod's cgroup was not read, and has a quota by the spec", on: noLimitPod, edit: func(b *bundle) {
			b.idle(0)
			b.waits("app", 20_000_000)
			b.container("app").Resources.Limits = amounts("cpu", "2")
			b.drop(podGroup, "cpu.max", "cpu.stat")
		}, want: nil},
		{name: "the pod's cgroup was not read, but cpu.stat.local", on: starvedPod, edit: func(b *bundle) {
			b.idle(0)
			b.drop(podGroup, "cpu.max", "cpu.stat")
			b.put("app", "cpu.stat.local", "throttled_usec 1000")
		}, want: []string{weight + "proven"}},

		{name: "no PSI", on: starvedPod, edit: func(b *bundle) { b.drop("app", "cpu.pressure") }, want: nil},
		{name: "PSI went down", on: starvedPod, edit: func(b *bundle) { b.waits("app", -500) }, want: nil},
		{name: "a broken cpu.pressure", on: starvedPod, edit: func(b *bundle) { b.put("app", "cpu.pressure", "some avg10=x") }, want: nil},
		{name: "no /proc/stat", on: starvedPod, edit: func(b *bundle) {
			for k := range 2 {
				delete(b.files, fmt.Sprintf("nodes/numa4/samples/%d/root/proc/stat", k))
			}
		}, want: []string{weight + "likely"}},
		{name: "a sibling's use is not known", on: starvedPod, edit: func(b *bundle) {
			b.idle(0)
			for k := range 2 {
				delete(b.files, b.file(k, "/system.slice", "cpu.stat"))
			}
		}, want: []string{weight + "likely"}, text: []string{"235 / (235 + 100) = 70.1 %, if all siblings run: how much they use was not read"}},
		{name: "a sibling's weight is not known", on: starvedPod, edit: func(b *bundle) {
			b.idle(0)
			for k := range 2 {
				delete(b.files, b.file(k, "/system.slice", "cpu.weight"))
			}
		}, want: []string{weight + "likely"}, lacks: []string{"system.slice with"}},
		{name: "a bug report's files: its own counters and the weights", on: starvedPod, edit: func(b *bundle) {
			delete(b.files, "gaps.json")
			maps.DeleteFunc(b.files, func(file, _ string) bool {
				return strings.Contains(file, "/sys/fs/cgroup/") && !strings.Contains(file, b.dir("app")) && path.Base(file) != "cpu.weight"
			})
		}, want: []string{weight + "likely", crowded + "likely"}, text: []string{"while all its siblings run", "1 / (1 + 5 + 8 + 8) = 4.5 %"}},
		{name: "its own weight was not read", on: starvedPod, edit: func(b *bundle) {
			b.idle(0)
			b.drop(qosGroup, "cpu.weight")
		}, want: []string{weight + "likely"}},
		{name: "cpu.idle", on: starvedPod, edit: func(b *bundle) {
			b.idle(0)
			b.put(qosGroup, "cpu.idle", "1")
			b.put(qosGroup, "cpu.weight", "0")
		}, want: []string{weight + "proven"}, text: []string{"cpu.idle", "0 / (0 + 5 + 8) = 0 %"}},
		{name: "a heavy neighbour on CPUs of its own does not count", on: starvedPod, edit: func(b *bundle) {
			b.idle(0)
			b.usesCPUs(4, b.otherDir("wide", ""), b.otherDir("wide", "app"))
		}, want: []string{weight + "proven"}, text: []string{"1 / (1 + 5 + 8)"}, lacks: []string{"mill/wide"}},
		{name: "a heavy neighbour on the same CPUs", on: starvedPod, edit: func(b *bundle) {
			b.idle(0)
			b.usesCPUs(1, b.otherDir("huge", ""), b.otherDir("huge", "app"))
			b.write(b.otherDir("huge", ""), "cpu.weight", "157")
		}, want: []string{weight + "proven"}, text: []string{"1 / (1 + 5 + 157 + 8)", "mill/huge"}},
		{name: "it fills its CPUs itself", on: starvedPod, edit: func(b *bundle) {
			b.idle(0)
			b.usesCPUs(2.8, "/kubepods.slice", b.dir(qosGroup), b.dir(podGroup), b.dir("app"))
		}, want: nil},
		{name: "owned CPUs with more threads than that", on: widePod, edit: func(b *bundle) {
			b.waits("app", 30_000_000)
			b.usesCPUs(3.9, b.dir(podGroup), b.dir("app"))
			b.idle(0)
		}, want: nil},
		{name: "policy none", on: starvedPod, edit: func(b *bundle) {
			b.idle(0)
			b.put("app", "cpuset.cpus.effective", "0-7")
			b.config(map[string]any{"cpuManagerPolicy": "none"})
			b.forgetKnown(b.root("var/lib/kubelet/cpu_manager_state"))
		}, want: []string{weight + "proven"}, text: []string{"× 8 CPUs"}},

		{name: "one reading, long pressure", on: starvedPod, edit: func(b *bundle) {
			b.put("app", "cpu.pressure", "some avg10=70.00 avg60=65.00 avg300=60.00 total=100\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0")
			b.oneReading()
		}, want: []string{weight + "likely"}, text: []string{"60 %", "the last minute"}},
		{name: "one reading, a short peak", on: starvedPod, edit: func(b *bundle) {
			b.put("app", "cpu.pressure", "some avg10=70.00 avg60=65.00 avg300=6.00 total=100\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0")
			b.oneReading()
		}, want: nil},
		{name: "one reading of a throttled life", on: wholeNode("numa4-k61/bundle", "mill", "throttled"), edit: func(b *bundle) {
			b.put("app", "cpu.pressure", "some avg10=70.00 avg60=65.00 avg300=60.00 total=100\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0")
			b.oneReading()
		}, want: nil},

		{name: "equals on a pool that is too small", on: starvedPod, edit: evenly, want: []string{crowded + "proven"}, text: []string{"4.189 CPU of 5 CPUs"}},
		{name: "equals, and no CPU idle", on: starvedPod, edit: func(b *bundle) {
			evenly(b)
			b.idle(0)
		}, want: []string{weight + "proven"}, text: []string{"235 / (235 + 235) = 50 %"}},
		{name: "it fills the pool, exclusive CPUs idle", on: starvedPod, edit: func(b *bundle) {
			alone(b)
			b.usesCPUs(2.9, "/kubepods.slice", b.dir(qosGroup), b.dir(podGroup), b.dir("app"))
		}, want: []string{crowded + "likely"}},
		{name: "requests beyond the pool", on: starvedPod, edit: overbooked, want: []string{crowded + "proven"},
			text: []string{"8 CPUs − 5 exclusive = 3 shared", "4 CPUs + 200m", "= 4430m, more than 3 CPUs"}},
		{name: "requests of just the pool", on: starvedPod, edit: func(b *bundle) {
			b.other("nolimit").Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse("2570m")
			b.other("nolimit").Status.ContainerStatuses[0].AllocatedResources = nil
			b.idle(0)
		}, want: []string{weight + "proven"}},
		{name: "requests beyond the pool, nobody waits", on: starvedPod, edit: func(b *bundle) {
			overbooked(b)
			b.waits("app", 0)
		}, want: nil},
		{name: "requests beyond the pool, no PSI", on: starvedPod, edit: func(b *bundle) {
			overbooked(b)
			b.drop("app", "cpu.pressure")
		}, want: []string{crowded + "likely"}},
		{name: "requests beyond the pool, no cgroup read", on: starvedPod, edit: func(b *bundle) {
			overbooked(b)
			delete(b.files, "gaps.json")
			maps.DeleteFunc(b.files, func(file, _ string) bool { return strings.Contains(file, "/sys/fs/cgroup/") })
		}, want: []string{crowded + "likely"}},
		{name: "requests beyond the pool, throttled", on: wholeNode("numa4-k61/bundle", "mill", "throttled"), edit: func(b *bundle) {
			overbooked(b)
			b.drop("app", "cpu.pressure")
		}, want: nil},
		{name: "requests beyond the pool of others, owned CPUs", on: widePod, edit: overbooked, want: nil},
		{name: "requests beyond the pool: the node", on: starvedPod, node: true, edit: overbooked, want: []string{"cpu-shared-pool-crowded@ proven"}, text: []string{"4430m"}},
		{name: "a pod-level request beyond the pool", on: starvedPod, node: true, edit: func(b *bundle) {
			b.other("nolimit").Spec.Resources = &corev1.ResourceRequirements{Requests: amounts("cpu", "3")}
		}, want: []string{"cpu-shared-pool-crowded@ proven"}, text: []string{"pod-level request 3"}},
		{name: "requests within the pool: the node", on: starvedPod, node: true, want: nil},
		{name: "requests of refused and finished pods do not count", on: starvedPod, node: true, edit: func(b *bundle) {
			b.other("four").Spec.Containers[0].Resources.Requests = amounts("cpu", "64")
		}, want: nil},
		{name: "a corrupt checkpoint", on: starvedPod, node: true, edit: func(b *bundle) {
			overbooked(b)
			spoilChecksum(b, "cpu_manager_state")
		}, want: nil},
		{name: "absurd requests", on: starvedPod, node: true, edit: func(b *bundle) {
			for _, name := range []string{"nolimit", "huge", "child-oom"} {
				b.other(name).Spec.Containers[0].Resources.Requests = amounts("cpu", "9223372036854775807")
				b.other(name).Status.ContainerStatuses[0].AllocatedResources = nil
			}
		}, want: []string{"cpu-shared-pool-crowded@ proven"}},
	}}
}

// overbooked makes a pod that shares the pool request more than that has.
func overbooked(b *bundle) {
	p := b.other("nolimit")
	p.Spec.Containers[0].Resources.Requests = amounts("cpu", "4")
	p.Status.ContainerStatuses[0].AllocatedResources = amounts("cpu", "4")
}

// Whatever the tree holds, a pod's report comes out, and no group is its own
// rival.
func TestRivalsAreOthers(t *testing.T) {
	b := starvedPod(t)
	s := b.open()
	pods, err := s.Pods()
	if err != nil {
		t.Fatal(err)
	}
	c := newPodCase(newNodeCase(s, b.node, time.Time{}), &pods[0])
	waiting := c.contended()
	if len(waiting) != 1 {
		t.Fatalf("%d containers wait", len(waiting))
	}
	for _, r := range waiting[0].rungs {
		for _, o := range r.rivals {
			if o.group.Path == r.level.group.Path || path.Dir(o.group.Path) != path.Dir(r.level.group.Path) {
				t.Errorf("%s competes with %s", r.level.group.Path, o.group.Path)
			}
		}
	}
}
