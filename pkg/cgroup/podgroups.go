package cgroup

import (
	"errors"
	"fmt"
	"iter"
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Bounds of what is listed below one container's group.
const (
	maxNestedLevels  = 8
	maxNestedEntries = 20_000
)

// crunSubgroup is the group below the container's in which crun puts the
// processes with the systemd driver (annotation run.oci.systemd.subgroup).
const crunSubgroup = "container"

// PodGroups is the groups of one pod as they stand in the tree.
type PodGroups struct {
	UID string             // that of PodUID
	QOS corev1.PodQOSClass // by the place where the group stands
	Pod Group
	// Containers are those of the pod's status whose group is there, in the
	// order of the status: init, regular and ephemeral containers. A container
	// without one is not running, or its status is older than the tree.
	Containers []ContainerGroup
	// Unknown are groups of containers that the status does not name, sorted by
	// name: the sandbox, a container that has just exited or just started.
	Unknown []Group
	// Ancestors are the groups above the pod's, from its parent to the root.
	Ancestors []Group
}

// ContainerGroup is one container's group, with its limits and counters.
type ContainerGroup struct {
	Name    string // of the container in the pod
	ID      string // without scheme
	Runtime string // prefix of the directory's name, see ParseContainerDir
	Group   Group
	// Subgroup is "container" when the processes are in a group of that name
	// below, as crun arranges it; else "".
	Subgroup string
	// Nested are the groups that the application made below its own, parents
	// before children.
	Nested []Group
	// NestedErr says why Nested may be incomplete; nil if it is complete.
	NestedErr error
}

// Container returns the group of a container by its ID, with or without scheme.
func (p PodGroups) Container(id string) (ContainerGroup, bool) {
	id = ContainerID(id)
	i := slices.IndexFunc(p.Containers, func(c ContainerGroup) bool { return c.ID == id })
	if i < 0 {
		return ContainerGroup{}, false
	}
	return p.Containers[i], true
}

// Pod finds the groups of a pod. When its folder is absent, the error is that
// of the file system for the folder's expected place, and so matches
// [fs.ErrNotExist] where the file system's does; a search that could not see
// everything returns the reason instead.
func (t Tree) Pod(pod *corev1.Pod) (PodGroups, error) {
	if pod == nil {
		return PodGroups{}, errors.New("cgroup: no pod given")
	}
	uid := PodUID(pod)
	if err := checkUID(uid); err != nil {
		return PodGroups{}, err
	}
	g, qos, err := t.locate(uid, pod.Status.QOSClass)
	if err != nil {
		return PodGroups{}, fmt.Errorf("pod %s: %w", cut(uid), err)
	}
	names, err := g.Children()
	if err != nil {
		return PodGroups{}, err
	}
	groups := PodGroups{UID: uid, QOS: qos, Pod: g, Ancestors: ancestors(g)}

	byID := map[string]Group{}
	for _, name := range names {
		id, _, ok := ParseContainerDir(name)
		if !ok {
			continue
		}
		if _, twice := byID[id]; twice {
			groups.Unknown = append(groups.Unknown, g.Child(name))
			continue
		}
		byID[id] = g.Child(name)
	}
	for status := range containerStatuses(pod) {
		id := ContainerID(status.ContainerID)
		child, ok := byID[id]
		if !ok {
			continue
		}
		delete(byID, id)
		groups.Containers = append(groups.Containers, containerGroup(status.Name, id, child))
	}
	for _, child := range byID {
		groups.Unknown = append(groups.Unknown, child)
	}
	slices.SortFunc(groups.Unknown, func(a, b Group) int { return strings.Compare(a.Path, b.Path) })
	return groups, nil
}

func containerGroup(name, id string, g Group) ContainerGroup {
	c := ContainerGroup{Name: name, ID: id, Group: g}
	_, c.Runtime, _ = ParseContainerDir(path.Base(g.Path))
	subgroup := g.Child(crunSubgroup).Path
	c.NestedErr = walkGroups(g, maxNestedLevels, maxNestedEntries, func(below Group) step {
		if below.Path == subgroup {
			c.Subgroup = crunSubgroup
		} else {
			c.Nested = append(c.Nested, below)
		}
		return enter
	})
	return c
}

func containerStatuses(pod *corev1.Pod) iter.Seq[corev1.ContainerStatus] {
	return func(yield func(corev1.ContainerStatus) bool) {
		for _, statuses := range [][]corev1.ContainerStatus{
			pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses, pod.Status.EphemeralContainerStatuses,
		} {
			for _, status := range statuses {
				if !yield(status) {
					return
				}
			}
		}
	}
}

func ancestors(g Group) []Group {
	var groups []Group
	for p := g.Path; p != "/"; {
		p = path.Dir(p)
		groups = append(groups, Group{FS: g.FS, Path: p})
	}
	return groups
}
