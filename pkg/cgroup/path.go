package cgroup

import (
	"fmt"
	"path"
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Driver is the kubelet's cgroupDriver: who makes the groups, and so how they
// are named. With a runtime that answers RuntimeConfig the kubelet follows the
// runtime, whatever configz says; [FindTree] tells what is in force.
type Driver string

const (
	Systemd  Driver = "systemd"
	Cgroupfs Driver = "cgroupfs"
)

const (
	kubepodsName = "kubepods"
	sliceSuffix  = ".slice"
)

// NodeAllocatableRoot returns the path of the group above all pods, below the
// kubelet's cgroupRoot ("" or "/" by default, "/kubelet" in kind). It assumes
// cgroupsPerQOS, as all of this package does (kubelet cm.NodeAllocatableRoot).
func NodeAllocatableRoot(driver Driver, cgroupRoot string) (string, error) {
	return driver.join(append(rootComponents(cgroupRoot), kubepodsName))
}

// QOSPath returns the path of the group above the pods of a QoS class. For
// Guaranteed that is NodeAllocatableRoot: such pods have no group in between.
func QOSPath(driver Driver, cgroupRoot string, qos corev1.PodQOSClass) (string, error) {
	components, err := qosComponents(cgroupRoot, qos)
	if err != nil {
		return "", err
	}
	return driver.join(components)
}

// PodPath returns the path of a pod's group; uid is that of [PodUID]. A UID
// that the kubelet would refuse (cm.NewCgroupName) is an error.
func PodPath(driver Driver, cgroupRoot string, qos corev1.PodQOSClass, uid string) (string, error) {
	if err := checkUID(uid); err != nil {
		return "", err
	}
	components, err := qosComponents(cgroupRoot, qos)
	if err != nil {
		return "", err
	}
	return driver.join(append(components, "pod"+uid))
}

// ToSystemd returns the path of the slice for the kubelet's internal name of a
// group: every "-" within a component becomes "_", the components are joined by
// "-", and each prefix of that name is a slice above the next (kubelet
// cm.CgroupName.ToSystemd, systemd.slice(5)).
func ToSystemd(components []string) (string, error) {
	if len(components) == 0 || len(components) == 1 && components[0] == "" {
		return "/", nil
	}
	var p, name strings.Builder
	for i, component := range components {
		if component == "" || strings.Contains(component, "/") {
			return "", fmt.Errorf("cgroup: no slice for the component %q", cut(component))
		}
		if i > 0 {
			name.WriteByte('-')
		}
		name.WriteString(strings.ReplaceAll(component, "-", "_"))
		p.WriteByte('/')
		p.WriteString(name.String())
		p.WriteString(sliceSuffix)
	}
	return p.String(), nil
}

// ParseSystemdToCgroupName returns the kubelet's internal name of the group
// whose slice is the last element of name: the reverse of ToSystemd for
// components without "_".
func ParseSystemdToCgroupName(name string) []string {
	parts := strings.Split(strings.TrimSuffix(path.Base(name), sliceSuffix), "-")
	for i, part := range parts {
		parts[i] = strings.ReplaceAll(part, "_", "-")
	}
	return parts
}

// PodUID returns the UID in the name of a pod's group. For the mirror pod of a
// static pod that is the hash of its manifest, which the mirror carries in
// annotations, and not metadata.uid (kubelet config.applyDefaults).
func PodUID(pod *corev1.Pod) string {
	if pod == nil {
		return ""
	}
	if mirror, ok := pod.Annotations[corev1.MirrorPodAnnotationKey]; ok {
		if hash := pod.Annotations["kubernetes.io/config.hash"]; hash != "" {
			return hash
		}
		if mirror != "" {
			return mirror
		}
	}
	return string(pod.UID)
}

var podDirPattern = regexp.MustCompile(
	`(?:^|[-/])pod([0-9a-f]{8}[-_][0-9a-f]{4}[-_][0-9a-f]{4}[-_][0-9a-f]{4}[-_][0-9a-f]{12}|[0-9a-f]{32})(?:\.slice)?$`)

// ParsePodDir returns the UID in the name of a pod's directory, of either
// driver and below any cgroupRoot. It knows UIDs of the form that Kubernetes
// makes; a static pod's manifest may set another.
func ParsePodDir(name string) (uid string, ok bool) {
	match := podDirPattern.FindStringSubmatch(name)
	if match == nil {
		return "", false
	}
	return strings.ReplaceAll(match[1], "_", "-"), true
}

var containerDirPattern = regexp.MustCompile(
	`^(?:(cri-containerd|crio|docker|libpod)-)?([0-9a-f]{64})(?:\.scope)?$`)

// ParseContainerDir returns the container or sandbox ID in the name of a
// directory below a pod's, and the runtime's prefix: "cri-containerd", "crio",
// "docker", "libpod", or "" where the name is the ID alone. CRI-O's
// "crio-conmon-<id>.scope" is no container.
func ParseContainerDir(name string) (id, runtime string, ok bool) {
	match := containerDirPattern.FindStringSubmatch(name)
	if match == nil {
		return "", "", false
	}
	return match[2], match[1], true
}

// ContainerID strips the scheme of a container ID in a pod's status,
// "containerd://<id>".
func ContainerID(statusID string) string {
	if _, id, found := strings.Cut(statusID, "://"); found {
		return id
	}
	return statusID
}

func (d Driver) join(components []string) (string, error) {
	switch d {
	case Systemd:
		return ToSystemd(components)
	case Cgroupfs:
		return path.Join("/", path.Join(components...)), nil
	}
	return "", fmt.Errorf("cgroup: unknown driver %q", cut(string(d)))
}

// rootComponents is kubelet cm.ParseCgroupfsToCgroupName.
func rootComponents(cgroupRoot string) []string {
	root := strings.TrimPrefix(cgroupRoot, "/")
	if root == "" {
		return nil
	}
	return strings.Split(root, "/")
}

func qosComponents(cgroupRoot string, qos corev1.PodQOSClass) ([]string, error) {
	components := append(rootComponents(cgroupRoot), kubepodsName)
	switch qos {
	case corev1.PodQOSGuaranteed:
		return components, nil
	case corev1.PodQOSBurstable, corev1.PodQOSBestEffort:
		return append(components, qosName(qos)), nil
	}
	return nil, fmt.Errorf("cgroup: unknown QoS class %q", cut(string(qos)))
}

// qosName is the class in a group's name: "burstable", "besteffort".
func qosName(qos corev1.PodQOSClass) string { return strings.ToLower(string(qos)) }

func checkUID(uid string) error {
	if uid == "" {
		return fmt.Errorf("cgroup: pod has no UID")
	}
	if strings.ContainsAny(uid, "/_") || !isPrintable(uid) {
		return fmt.Errorf("cgroup: pod UID %q has no cgroup name", cut(uid))
	}
	return nil
}
