package cgroup

import (
	"path"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Level is what a cgroup path leads to.
type Level string

const (
	Container Level = "container"
	Pod       Level = "pod"
	QOS       Level = "qos"
	Kubepods  Level = "kubepods" // the node allocatable root
	Other     Level = "other"    // outside of kubepods
	Root      Level = "root"
)

// PathInfo is what a cgroup path says. Level is the deepest group of Kubernetes
// on the way, and Nested is what follows it.
type PathInfo struct {
	Level       Level
	PodUID      string             // at Pod and Container
	ContainerID string             // at Container; it may be the pod's sandbox
	QOS         corev1.PodQOSClass // at QOS, Pod and Container, from the path
	// Nested is the path below the group of Level, without a leading "/": crun's
	// "container", "init.scope", groups that the application made. At Other it is
	// empty.
	Nested  string
	Deleted bool // the path ended in " (deleted)": the group is gone
}

// ParsePath classifies the path of a group as the node's own tree, the kernel
// log or /proc/PID/cgroup gives it. Paths of the latter two may begin with a
// prefix of the host (kind) or with "/../"; all before kubepods is ignored.
// Where kubepods occurs twice, a node that runs in a pod of another, the outer
// one counts, and Nested may be parsed again for the inner.
func ParsePath(p string) PathInfo {
	p, deleted := strings.CutSuffix(p, " (deleted)")
	info := PathInfo{Level: Other, Deleted: deleted}
	if p != "" && strings.Trim(p, "/") == "" {
		info.Level = Root
		return info
	}

	elements := strings.Split(strings.TrimPrefix(path.Clean("/"+p), "/"), "/")
	for len(elements) > 0 && !isKubepodsDir(elements[0]) {
		elements = elements[1:]
	}
	if len(elements) == 0 {
		return info
	}
	kubepods := kubepodsDir(elements[0])
	elements = elements[1:]
	info.Level = Kubepods

	qos := corev1.PodQOSGuaranteed
	if len(elements) > 0 {
		for _, class := range []corev1.PodQOSClass{corev1.PodQOSBurstable, corev1.PodQOSBestEffort} {
			if elements[0] == kubepods.qos(class) {
				info.Level, info.QOS, qos = QOS, class, class
				elements = elements[1:]
				break
			}
		}
	}
	if len(elements) > 0 {
		if uid, ok := kubepods.podUID(qos, elements[0]); ok {
			info.Level, info.PodUID, info.QOS = Pod, uid, qos
			elements = elements[1:]
			if len(elements) > 0 {
				if id, _, ok := ParseContainerDir(elements[0]); ok {
					info.Level, info.ContainerID = Container, id
					elements = elements[1:]
				}
			}
		}
	}
	info.Nested = path.Join(elements...)
	return info
}

// kubepodsDir is the name of the node allocatable root's directory: "kubepods",
// "kubepods.slice", "kubelet-kubepods.slice". It fixes the names of all below.
type kubepodsDir string

func isKubepodsDir(name string) bool {
	return name == kubepodsName || name == kubepodsName+sliceSuffix ||
		strings.HasSuffix(name, "-"+kubepodsName+sliceSuffix)
}

func (k kubepodsDir) driver() Driver {
	if strings.HasSuffix(string(k), sliceSuffix) {
		return Systemd
	}
	return Cgroupfs
}

// qos returns the name of the directory of Burstable or BestEffort pods.
func (k kubepodsDir) qos(class corev1.PodQOSClass) string {
	slice, isSlice := strings.CutSuffix(string(k), sliceSuffix)
	if !isSlice {
		return qosName(class)
	}
	return slice + "-" + qosName(class) + sliceSuffix
}

// podAffixes returns what stands around the UID in the name of a pod's directory.
func (k kubepodsDir) podAffixes(class corev1.PodQOSClass) (prefix, suffix string) {
	slice, isSlice := strings.CutSuffix(string(k), sliceSuffix)
	if !isSlice {
		return "pod", ""
	}
	if class != corev1.PodQOSGuaranteed {
		slice += "-" + qosName(class)
	}
	return slice + "-pod", sliceSuffix
}

// pod returns the path of a pod's group relative to kubepods.
func (k kubepodsDir) pod(class corev1.PodQOSClass, uid string) string {
	prefix, suffix := k.podAffixes(class)
	if k.driver() == Systemd {
		uid = strings.ReplaceAll(uid, "-", "_")
	}
	name := prefix + uid + suffix
	if class == corev1.PodQOSGuaranteed {
		return name
	}
	return path.Join(k.qos(class), name)
}

// podUID is the reverse of pod for the name alone. It takes any UID, since the
// manifest of a static pod may set one of any form.
func (k kubepodsDir) podUID(class corev1.PodQOSClass, name string) (string, bool) {
	prefix, suffix := k.podAffixes(class)
	uid, hasPrefix := strings.CutPrefix(name, prefix)
	uid, hasSuffix := strings.CutSuffix(uid, suffix)
	if !hasPrefix || !hasSuffix || uid == "" {
		return "", false
	}
	if k.driver() == Cgroupfs {
		return uid, !strings.Contains(uid, "_")
	}
	// A "-" would be one more level of slices.
	return strings.ReplaceAll(uid, "_", "-"), !strings.Contains(uid, "-")
}
