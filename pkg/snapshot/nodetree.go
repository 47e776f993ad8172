package snapshot

import (
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// nodeTree lays folders of a bundle over each other and gives them the paths of
// the node. The first that has a path decides what it is, also where it cannot
// be read.
type nodeTree struct {
	s       *Snapshot
	layers  []string // bundle paths
	absence func(name string) error
}

func (t *nodeTree) Open(name string) (fs.File, error) { return openIn(t, name) }

func (t *nodeTree) Stat(name string) (fs.FileInfo, error) {
	return first(t, "stat", name, t.s.tree.Stat)
}

func (t *nodeTree) ReadFile(name string) ([]byte, error) {
	return first(t, "open", name, t.s.tree.ReadFile)
}

func (t *nodeTree) ReadDir(name string) ([]fs.DirEntry, error) {
	if !fs.ValidPath(name) {
		return nil, pathError("readdir", name, fs.ErrInvalid)
	}
	found := false
	seen := map[string]bool{}
	union := []fs.DirEntry{}
	for _, layer := range t.layers {
		entries, err := t.s.tree.ReadDir(path.Join(layer, name))
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case found && errors.Is(err, errNotFolder): // hidden by the folder of an earlier layer
			continue
		case err != nil:
			return nil, pathError("readdir", name, err)
		}
		found = true
		for _, e := range entries {
			if !seen[e.Name()] {
				seen[e.Name()] = true
				union = append(union, e)
			}
		}
	}
	if !found {
		return nil, pathError("readdir", name, t.absence(name))
	}
	slices.SortFunc(union, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return union, nil
}

// first asks layer after layer until one has name.
func first[T any](t *nodeTree, op, name string, ask func(bundlePath string) (T, error)) (T, error) {
	var none T
	if !fs.ValidPath(name) {
		return none, pathError(op, name, fs.ErrInvalid)
	}
	for _, layer := range t.layers {
		got, err := ask(path.Join(layer, name))
		if err == nil {
			return got, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return none, pathError(op, name, err)
		}
	}
	return none, pathError(op, name, t.absence(name))
}
