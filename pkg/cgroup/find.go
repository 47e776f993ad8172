package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
)

// Mode is the cgroup version of a node.
type Mode string

const (
	V2 Mode = "v2"
	// Hybrid is v1 controllers beside a v2 mount that has none.
	Hybrid Mode = "hybrid"
	V1     Mode = "v1"
	// None means that the files do not tell.
	None Mode = "none"
)

// Levels below the root that a search looks at.
const (
	maxTreeLevels = 5 // kubepods: /docker/<id>/kubelet.slice/kubelet-kubepods.slice is 4
	maxPodLevels  = 8
)

// v2Files are names that no v1 controller has.
var v2Files = []string{
	"cgroup.controllers", "cgroup.events", "cgroup.stat", "cgroup.subtree_control", "cgroup.type",
	"cpu.max", "cpu.pressure", "cpu.weight", "cpuset.cpus.effective", "cpuset.mems.effective",
	"io.pressure", "io.stat", "memory.current", "memory.events", "memory.high", "memory.low",
	"memory.max", "memory.min", "memory.pressure",
}

// v1Controllers are the folders below a v1 mount point.
var v1Controllers = []string{
	"blkio", "cpu", "cpu,cpuacct", "cpuacct", "cpuacct,cpu", "cpuset", "devices", "freezer", "hugetlb",
	"memory", "net_cls", "net_cls,net_prio", "net_prio", "perf_event", "pids", "rdma", "systemd",
}

// Detect tells the cgroup version from what is below sys/fs/cgroup. A tree may
// be partial, as in a bundle: file names that only v2 has count as v2 without
// the root's cgroup.controllers, and a v1 controller's folder counts as v1.
//
// The result is None, without an error, when nothing there tells. When a part
// that could tell was unreadable for another reason than absence, that error
// comes with None.
func Detect(fsys fs.FS) (Mode, error) {
	root := Group{FS: fsys, Path: "/"}
	controllersErr := root.stat("cgroup.controllers")
	if controllersErr == nil {
		return V2, nil
	}
	unifiedErr := root.stat("unified/cgroup.controllers")
	if unifiedErr == nil {
		return Hybrid, nil
	}

	isV2 := root.hasV2File()
	walkErr := error(nil)
	if !isV2 {
		walkErr = walkGroups(root, maxPodLevels, maxWalkEntries, func(g Group) step {
			switch {
			case !mayHoldKubepods(path.Base(g.Path)):
				return skip
			case g.hasV2File():
				isV2 = true
				return stop
			}
			return enter
		})
	}
	if isV2 {
		return V2, nil
	}

	names, err := root.Children()
	unified := slices.Contains(names, "unified")
	for _, name := range names {
		switch {
		case !slices.Contains(v1Controllers, name):
		case unified:
			return Hybrid, nil
		default:
			return V1, nil
		}
	}
	return None, notAbsence(err, walkErr, controllersErr, unifiedErr)
}

func (g Group) hasV2File() bool {
	entries, err := g.entries()
	return err == nil && slices.ContainsFunc(entries, func(entry fs.DirEntry) bool {
		return !entry.IsDir() && slices.Contains(v2Files, entry.Name())
	})
}

// stat says with a nil error that the file is there; "" is the group itself.
func (g Group) stat(name string) error {
	if g.FS == nil {
		return g.readError(name, fs.ErrInvalid)
	}
	info, err := fs.Stat(g.FS, g.File(name))
	if err != nil {
		return g.readError(name, err)
	}
	if info.IsDir() != (name == "") {
		return g.readError(name, fs.ErrNotExist)
	}
	return nil
}

// notAbsence returns the first error that is not fs.ErrNotExist.
func notAbsence(errs ...error) error {
	for _, err := range errs {
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// Tree is the part of the hierarchy that the kubelet owns.
type Tree struct {
	FS       fs.FS
	Driver   Driver
	Kubepods string // path of the kubepods group: "/kubepods.slice"

	// pods are the pods' groups wherever they stand, searched for once however
	// many pods are not where they should be; nil: not by FindTree.
	pods func() (podIndex, error)
}

// FindTree finds the kubepods group, at most five levels below the root: the
// hierarchy of a kind node may be seen from its host. Of several candidates it
// takes one that holds a pod over one that does not (a driver that was changed
// leaves an empty tree behind), then the one nearest to the root (the host's
// own rather than that of a node in a container), then the first by name.
//
// The error matches [fs.ErrNotExist] when there is none. When a directory on
// the way was unreadable for another reason, it is that error instead.
func FindTree(fsys fs.FS) (Tree, error) {
	root := Group{FS: fsys, Path: "/"}
	if err := root.stat(""); err != nil {
		return Tree{}, err
	}
	var candidates []Group
	walkErr := walkGroups(root, maxTreeLevels, maxWalkEntries, func(g Group) step {
		name := path.Base(g.Path)
		switch {
		case isKubepodsDir(name):
			candidates = append(candidates, g)
			return skip
		case mayHoldKubepods(name):
			return enter
		}
		return skip
	})
	if len(candidates) == 0 {
		if walkErr != nil {
			return Tree{}, fmt.Errorf("cgroup: no kubepods group found: %w", walkErr)
		}
		return Tree{}, fmt.Errorf("cgroup: no kubepods group below %s: %w", mountPoint, fs.ErrNotExist)
	}
	// The walk was breadth first and sorted: the candidates are in the order of
	// depth, then name.
	best := candidates[0]
	if i := slices.IndexFunc(candidates, holdsPod); i >= 0 {
		best = candidates[i]
	}
	t := Tree{FS: fsys, Driver: kubepodsDir(path.Base(best.Path)).driver(), Kubepods: best.Path}
	t.pods = sync.OnceValues(t.indexPods)
	return t, nil
}

// holdsPod says whether a pod's group is below a kubepods group.
func holdsPod(kubepods Group) bool {
	found := false
	dir := kubepodsDir(path.Base(kubepods.Path))
	_ = walkGroups(kubepods, 2, maxWalkEntries, func(g Group) step {
		name := path.Base(g.Path)
		if name == dir.qos(corev1.PodQOSBurstable) || name == dir.qos(corev1.PodQOSBestEffort) {
			return enter
		}
		if _, found = ParsePodDir(name); found {
			return stop
		}
		return skip
	})
	return found
}

// locate finds the directory of a pod's group: first where its QoS class puts
// it, then where the other classes would, then anywhere.
func (t Tree) locate(uid string, likely corev1.PodQOSClass) (Group, corev1.PodQOSClass, error) {
	classes := []corev1.PodQOSClass{corev1.PodQOSGuaranteed, corev1.PodQOSBurstable, corev1.PodQOSBestEffort}
	if i := slices.Index(classes, likely); i > 0 {
		classes = slices.Insert(slices.Delete(classes, i, i+1), 0, likely)
	}
	kubepods := Group{FS: t.FS, Path: t.Kubepods}
	dir := kubepodsDir(path.Base(t.Kubepods))
	var errs []error
	for _, class := range classes {
		g := kubepods.Child(dir.pod(class, uid))
		err := g.stat("")
		if err == nil {
			return g, class, nil
		}
		errs = append(errs, err)
	}

	index := t.pods
	if index == nil {
		index = t.indexPods
	}
	pods, walkErr := index()
	if dir, ok := pods.find(uid); ok {
		return dir.group, dir.class, nil
	}
	if err := notAbsence(append(errs, walkErr)...); err != nil {
		return Group{}, "", err
	}
	return Group{}, "", errs[0]
}

// podIndex is the pods' groups by name: "/pod<uid>", or of systemd's
// "<parent>-pod<uid, - as _>.slice" what is between "-pod" and ".slice".
type podIndex map[string]podDir

type podDir struct {
	group Group
	class corev1.PodQOSClass
	order int // in which it was met
}

// indexPods searches the hierarchy for pods' groups. With an error, those that
// it met up to there.
func (t Tree) indexPods() (podIndex, error) {
	pods := podIndex{}
	err := walkGroups(Group{FS: t.FS, Path: "/"}, maxPodLevels, maxWalkEntries, func(g Group) step {
		name := path.Base(g.Path)
		if class := qosOfParent(path.Base(path.Dir(g.Path))); class != "" {
			dir := podDir{group: g, class: class, order: len(pods)}
			if strings.HasPrefix(name, "pod") {
				pods.add("/"+name, dir)
			}
			if slice, ok := strings.CutSuffix(name, sliceSuffix); ok {
				if i := strings.LastIndex(slice, "-pod"); i >= 0 {
					pods.add(slice[i+len("-pod"):], dir)
				}
			}
		}
		if mayHoldKubepods(name) {
			return enter
		}
		return skip
	})
	return pods, err
}

// add keeps the first of a name.
func (p podIndex) add(key string, dir podDir) {
	if _, known := p[key]; !known {
		p[key] = dir
	}
}

// find gives the first group that was met of a pod.
func (p podIndex) find(uid string) (podDir, bool) {
	dir, ok := p["/pod"+uid]
	slice, okSlice := p[strings.ReplaceAll(uid, "-", "_")]
	if okSlice && (!ok || slice.order < dir.order) {
		return slice, true
	}
	return dir, ok
}

// qosOfParent returns the QoS class of the pods below a directory of this name,
// "" if the kubelet puts none there.
func qosOfParent(name string) corev1.PodQOSClass {
	if isKubepodsDir(name) {
		return corev1.PodQOSGuaranteed
	}
	for _, class := range []corev1.PodQOSClass{corev1.PodQOSBurstable, corev1.PodQOSBestEffort} {
		if name == qosName(class) || strings.HasSuffix(name, "-"+qosName(class)+sliceSuffix) {
			return class
		}
	}
	return ""
}
