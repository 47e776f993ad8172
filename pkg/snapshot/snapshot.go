// Package snapshot holds what is known of one moment of a cluster and its
// nodes: API objects, node files, and for whatever is missing the reason why.
// The same thing as files is a bundle, a folder or one .tar.gz.
//
// An absent file is never just absent. Its error is one of
//
//   - [fs.ErrNotExist]: it is known that there was no such file,
//   - [ErrNotCollected]: nobody wrote down whether there was one,
//   - a [*GapError]: it was wanted and could not be had.
//
// A file that is there and empty is no error at all.
package snapshot

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
)

// Snapshot is one moment, read lazily and safe for concurrent use. What it
// hands out is shared by all its readers and must not be changed, file contents
// excepted.
type Snapshot struct {
	tree     tree
	limits   limits
	manifest Manifest
	gaps     *gapIndex // nil: the bundle has no gaps.json

	pods        func() ([]corev1.Pod, error)
	nodeObjects func() ([]corev1.Node, error)
	events      func() ([]corev1.Event, error)
	replicaSets func() ([]appsv1.ReplicaSet, error)
	deployments func() ([]appsv1.Deployment, error)
	daemonSets  func() ([]appsv1.DaemonSet, error)
	pdbs        func() ([]policyv1.PodDisruptionBudget, error)
	volumes     func() ([]corev1.PersistentVolume, error)
	claims      func() ([]corev1.PersistentVolumeClaim, error)
	nodeNames   func() []string

	mu    sync.Mutex
	nodes map[string]*Node
}

// Open reads the bundle at path: a folder, which stays on disk and is read as
// it is asked for, or a .tar.gz, which is unpacked into memory. The name does
// not matter. A folder is guarded like an archive: symbolic links in it are not
// followed and nothing but regular files is opened.
func Open(path string) (*Snapshot, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, pathError("open", path, err)
	}
	if info.IsDir() {
		root, err := os.OpenRoot(path)
		if err != nil {
			return nil, pathError("open", path, err)
		}
		s, err := newSnapshot(newDirTree(root, standardLimits()), standardLimits())
		if err != nil {
			root.Close()
			return nil, fmt.Errorf("bundle %s: %w", quote(path), err)
		}
		return s, nil
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, pathError("open", path, err)
	}
	defer f.Close()
	s, err := ReadArchive(bufio.NewReaderSize(f, 1<<16))
	if err != nil {
		return nil, fmt.Errorf("bundle %s: %w", quote(path), err)
	}
	return s, nil
}

// FromFS takes any tree with bundle.json at its top. The sizes of [Open] and
// [ReadArchive] bound it too, but that it stays within itself is fsys's business.
func FromFS(fsys fs.FS) (*Snapshot, error) {
	return newSnapshot(anyTree{fsys, standardLimits()}, standardLimits())
}

func newSnapshot(t tree, lim limits) (*Snapshot, error) {
	s := &Snapshot{tree: t, limits: lim, nodes: map[string]*Node{}}

	data, err := t.ReadFile(manifestName)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, ErrNoManifest
	case err != nil:
		return nil, pathError("open", manifestName, err)
	}
	if s.manifest, err = parseManifest(data); err != nil {
		return nil, fmt.Errorf("%s: %w", manifestName, err)
	}

	data, err = t.ReadFile(gapsName)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, pathError("open", gapsName, err)
	default:
		gaps, err := parseGaps(data)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", gapsName, err)
		}
		s.gaps = indexGaps(gaps)
	}

	s.pods = objects[corev1.Pod](s, "pods", corev1.SchemeGroupVersion, "Pod")
	s.nodeObjects = objects[corev1.Node](s, "nodes", corev1.SchemeGroupVersion, "Node")
	s.events = objects[corev1.Event](s, "events", corev1.SchemeGroupVersion, "Event")
	s.replicaSets = objects[appsv1.ReplicaSet](s, "replicasets", appsv1.SchemeGroupVersion, "ReplicaSet")
	s.deployments = objects[appsv1.Deployment](s, "deployments", appsv1.SchemeGroupVersion, "Deployment")
	s.daemonSets = objects[appsv1.DaemonSet](s, "daemonsets", appsv1.SchemeGroupVersion, "DaemonSet")
	s.pdbs = objects[policyv1.PodDisruptionBudget](s, "poddisruptionbudgets", policyv1.SchemeGroupVersion, "PodDisruptionBudget")
	s.volumes = objects[corev1.PersistentVolume](s, "persistentvolumes", corev1.SchemeGroupVersion, "PersistentVolume")
	s.claims = objects[corev1.PersistentVolumeClaim](s, "persistentvolumeclaims", corev1.SchemeGroupVersion, "PersistentVolumeClaim")
	s.nodeNames = sync.OnceValue(s.listNodeNames)
	return s, nil
}

// Manifest is what the bundle says of itself.
func (s *Snapshot) Manifest() Manifest { return s.manifest }

// File reads any file by its bundle path, such as "cluster/pods.json". The
// content is the caller's.
func (s *Snapshot) File(path string) ([]byte, error) {
	if !fs.ValidPath(path) {
		return nil, pathError("open", path, fs.ErrInvalid)
	}
	data, err := s.tree.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		err = s.absence(path)
	}
	if err != nil {
		return nil, pathError("open", path, err)
	}
	return data, nil
}

// absence is the reason why there is nothing at a bundle path.
func (s *Snapshot) absence(path string) error {
	if s.gaps == nil {
		return ErrNotCollected
	}
	if gap, ok := s.gaps.at(path); ok && gap.Reason != ReasonNotFound {
		return &GapError{gap}
	}
	return fs.ErrNotExist
}

// isElement reports whether name can be a single folder of the bundle.
func isElement(name string) bool {
	return fs.ValidPath(name) && name != "." && path.Base(name) == name && !hasByte(name, '\\')
}
