package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	corev1 "k8s.io/api/core/v1"
)

func filesTree(names ...string) fstest.MapFS {
	tree := fstest.MapFS{}
	for _, name := range names {
		tree[name] = &fstest.MapFile{Data: []byte("1\n")}
	}
	return tree
}

func TestDetect(t *testing.T) {
	for name, tc := range map[string]struct {
		tree fstest.MapFS
		want Mode
	}{
		"v2":     {filesTree("sys/fs/cgroup/cgroup.controllers"), V2},
		"kernel": {loadTree(t, "k612"), V2},
		"hybrid": {filesTree("sys/fs/cgroup/unified/cgroup.controllers", "sys/fs/cgroup/memory/memory.limit_in_bytes"), Hybrid},
		"hybrid, partial": {filesTree("sys/fs/cgroup/unified/system.slice/cgroup.procs",
			"sys/fs/cgroup/cpu,cpuacct/cpu.shares"), Hybrid},
		"v1":                                  {filesTree("sys/fs/cgroup/cpu,cpuacct/cpu.shares", "sys/fs/cgroup/memory/memory.limit_in_bytes"), V1},
		"v1, partial":                         {filesTree("sys/fs/cgroup/memory/kubepods/burstable/memory.limit_in_bytes"), V1},
		"v1, systemd":                         {filesTree("sys/fs/cgroup/systemd/kubepods.slice/cgroup.procs"), V1},
		"nothing":                             {filesTree("proc/meminfo"), None},
		"empty":                               {fstest.MapFS{"sys/fs/cgroup": {Mode: fs.ModeDir}}, None},
		"no sign":                             {filesTree("sys/fs/cgroup/cgroup.procs", "sys/fs/cgroup/foo/bar"), None},
		"a file of a v1 name is no v1 folder": {filesTree("sys/fs/cgroup/memory"), None},
		"kubepods alone":                      {filesTree("sys/fs/cgroup/kubepods.slice/memory.max"), V2},
		"one container": {filesTree("sys/fs/cgroup/kubepods/burstable/pod" + testUID + "/" + testID("a") +
			"/cpu.max"), V2},
		"kubepods without a sign": {filesTree("sys/fs/cgroup/kubepods/cpu.stat"), None},
		"root pressure alone":     {filesTree("sys/fs/cgroup/cpu.pressure"), V2},
		"v2 group of a v1 name":   {filesTree("sys/fs/cgroup/cgroup.controllers", "sys/fs/cgroup/memory/memory.max"), V2},
		"folder named as a file":  {filesTree("sys/fs/cgroup/cgroup.controllers/x"), None},
	} {
		if got, err := Detect(tc.tree); err != nil || got != tc.want {
			t.Errorf("%s: %q, %v, want %q", name, got, err, tc.want)
		}
	}
}

func TestDetectUnreadable(t *testing.T) {
	errGap := errors.New("refused")
	controllers := map[string]error{"sys/fs/cgroup/cgroup.controllers": errGap}

	got, err := Detect(faultyFS{filesTree("proc/x"), controllers})
	if got != None || !errors.Is(err, errGap) {
		t.Errorf("nothing else known: %q, %v", got, err)
	}
	got, err = Detect(faultyFS{filesTree("sys/fs/cgroup/kubepods.slice/cpu.max"), controllers})
	if got != V2 || err != nil {
		t.Errorf("known by kubepods: %q, %v", got, err)
	}
	got, err = Detect(faultyFS{filesTree("proc/x"), map[string]error{"sys/fs/cgroup": errGap}})
	if got != None || !errors.Is(err, errGap) {
		t.Errorf("folder unreadable: %q, %v", got, err)
	}
	if got, err = Detect(nil); got != None || err == nil {
		t.Errorf("no file system: %q, %v", got, err)
	}
}

func TestFindTree(t *testing.T) {
	systemdPod := "/kubepods-pod" + testUID_ + ".slice"
	kindPod := "/kubelet-kubepods-pod" + testUID_ + ".slice"
	node := "/docker/" + testID("a")
	for name, tc := range map[string]struct {
		groups   []string
		driver   Driver
		kubepods string
	}{
		"systemd":   {[]string{"/system.slice/kubelet.service", "/kubepods.slice/kubepods-burstable.slice"}, Systemd, "/kubepods.slice"},
		"cgroupfs":  {[]string{"/kubepods/burstable", "/user.slice"}, Cgroupfs, "/kubepods"},
		"kind":      {[]string{"/kubelet.slice/kubelet-kubepods.slice"}, Systemd, "/kubelet.slice/kubelet-kubepods.slice"},
		"kind, old": {[]string{"/kubelet/kubepods/besteffort"}, Cgroupfs, "/kubelet/kubepods"},
		"kind, seen from its host": {[]string{node + "/kubelet.slice/kubelet-kubepods.slice"}, Systemd,
			node + "/kubelet.slice/kubelet-kubepods.slice"},
		"kind, host with systemd": {[]string{"/system.slice/docker-" + testID("a") + ".scope/kubelet.slice/kubelet-kubepods.slice"}, Systemd,
			"/system.slice/docker-" + testID("a") + ".scope/kubelet.slice/kubelet-kubepods.slice"},
		"kind, podman": {[]string{"/machine.slice/libpod-" + testID("a") + ".scope/container/kubelet.slice/kubelet-kubepods.slice"}, Systemd,
			"/machine.slice/libpod-" + testID("a") + ".scope/container/kubelet.slice/kubelet-kubepods.slice"},
		"the driver was changed": {[]string{"/kubepods/burstable", "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" + testUID_ + ".slice"},
			Systemd, "/kubepods.slice"},
		"changed the other way": {[]string{"/kubepods/burstable/pod" + testUID, "/kubepods.slice/kubepods-burstable.slice"},
			Cgroupfs, "/kubepods"},
		"two, no pod in either": {[]string{"/kubepods.slice", "/kubepods"}, Cgroupfs, "/kubepods"},
		"the host's own comes first": {[]string{node + "/kubelet.slice/kubelet-kubepods.slice" + kindPod, "/kubepods.slice" + systemdPod},
			Systemd, "/kubepods.slice"},
		"the host's own is empty": {[]string{node + "/kubelet.slice/kubelet-kubepods.slice" + kindPod, "/kubepods.slice"},
			Systemd, node + "/kubelet.slice/kubelet-kubepods.slice"},
		"several nodes on one host": {[]string{"/docker/" + testID("b") + "/kubelet.slice/kubelet-kubepods.slice" + kindPod,
			node + "/kubelet.slice/kubelet-kubepods.slice" + kindPod}, Systemd, node + "/kubelet.slice/kubelet-kubepods.slice"},
		"a cluster in a pod": {[]string{"/kubepods.slice" + systemdPod + "/cri-containerd-" + testID("c") + ".scope/kubelet/kubepods/pod" + testUID},
			Systemd, "/kubepods.slice"},
	} {
		got, err := FindTree(groupTree(tc.groups...))
		if err != nil || got.Driver != tc.driver || got.Kubepods != tc.kubepods {
			t.Errorf("%s: %s %s, %v, want %s %s", name, got.Driver, got.Kubepods, err, tc.driver, tc.kubepods)
		}
	}
	for _, name := range []string{"k612", "k61"} {
		if got, err := FindTree(loadTree(t, name)); err != nil || got.Driver != Systemd || got.Kubepods != "/kubepods.slice" {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

func TestFindTreeNone(t *testing.T) {
	for name, tree := range map[string]fstest.MapFS{
		"no cgroup files": filesTree("proc/meminfo"),
		"no kubepods":     groupTree("/system.slice/sshd.service"),
		"too deep":        groupTree("/a.slice/b.slice/c.slice/d.slice/e.slice/kubepods.slice"),
		"v1":              filesTree("sys/fs/cgroup/memory/kubepods/memory.limit_in_bytes"),
		"a file":          filesTree("sys/fs/cgroup/kubepods.slice"),
		"not on the way":  groupTree("/some/kubepods.slice"),
	} {
		if got, err := FindTree(tree); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	errGap := errors.New("refused")
	_, err := FindTree(faultyFS{groupTree("/kubelet.slice"), map[string]error{"sys/fs/cgroup/kubelet.slice": errGap}})
	if !errors.Is(err, errGap) || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("unreadable on the way: %v", err)
	}
}

// A tree beyond every bound ends the search, and is not called absence.
func TestWalkIsBounded(t *testing.T) {
	tree := fstest.MapFS{}
	for i := range 2000 {
		tree[fmt.Sprintf("sys/fs/cgroup/a%d.slice/b.slice/cpu.max", i)] = &fstest.MapFile{}
	}
	visited := 0
	err := walkGroups(Group{FS: tree, Path: "/"}, 8, 2500, func(Group) step { visited++; return enter })
	if !errors.Is(err, errWalkCut) || errors.Is(err, fs.ErrNotExist) || visited > 2500 {
		t.Errorf("%d groups visited, %v", visited, err)
	}

	deep := groupTree(strings.Repeat("/a.slice", 100))
	visited = 0
	if err := walkGroups(Group{FS: deep, Path: "/"}, 8, maxWalkEntries, func(Group) step { visited++; return enter }); err != nil || visited != 8 {
		t.Errorf("deep tree: %d groups, %v", visited, err)
	}
}

func TestQOSOfParent(t *testing.T) {
	for name, want := range map[string]corev1.PodQOSClass{
		"kubepods":                          corev1.PodQOSGuaranteed,
		"kubepods.slice":                    corev1.PodQOSGuaranteed,
		"a-kubepods.slice":                  corev1.PodQOSGuaranteed,
		"burstable":                         corev1.PodQOSBurstable,
		"kubepods-burstable.slice":          corev1.PodQOSBurstable,
		"kubelet-kubepods-besteffort.slice": corev1.PodQOSBestEffort,
		"besteffort":                        corev1.PodQOSBestEffort,
		"system.slice":                      "",
		"burstable.slice":                   "",
	} {
		if got := qosOfParent(name); got != want {
			t.Errorf("qosOfParent(%q) = %q, want %q", name, got, want)
		}
	}
}
