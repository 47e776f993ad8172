package snapshot

import (
	"io/fs"
	"path"
	"slices"
	"strings"
)

// memTree holds a bundle in memory.
type memTree struct {
	files   map[string][]byte
	folders map[string][]string // names of what is in each, sorted once built
}

func (t *memTree) Open(name string) (fs.File, error) { return openIn(t, name) }

func (t *memTree) Stat(name string) (fs.FileInfo, error) {
	if data, ok := t.files[name]; ok {
		return fileInfo{path.Base(name), int64(len(data)), 0o444}, nil
	}
	if _, ok := t.folders[name]; ok {
		return fileInfo{path.Base(name), 0, fs.ModeDir | 0o555}, nil
	}
	return nil, pathError("stat", name, absent(name))
}

func (t *memTree) ReadFile(name string) ([]byte, error) {
	if data, ok := t.files[name]; ok {
		return append([]byte{}, data...), nil
	}
	if _, ok := t.folders[name]; ok {
		return nil, pathError("open", name, errFolder)
	}
	return nil, pathError("open", name, absent(name))
}

func (t *memTree) ReadDir(name string) ([]fs.DirEntry, error) {
	names, ok := t.folders[name]
	if !ok {
		if _, ok := t.files[name]; ok {
			return nil, pathError("readdir", name, errNotFolder)
		}
		return nil, pathError("readdir", name, absent(name))
	}
	entries := make([]fs.DirEntry, len(names))
	for i, base := range names {
		info, err := t.Stat(path.Join(name, base))
		if err != nil {
			return nil, err
		}
		entries[i] = fs.FileInfoToDirEntry(info)
	}
	return entries, nil
}

func absent(name string) error {
	if !fs.ValidPath(name) {
		return fs.ErrInvalid
	}
	return fs.ErrNotExist
}

// memTreeBuilder puts a memTree together, and finds paths that contradict each
// other.
type memTreeBuilder struct {
	tree    *memTree
	limits  limits
	folders map[string]bool // added as such, not only implied
}

func newMemTreeBuilder(lim limits) *memTreeBuilder {
	t := &memTree{files: map[string][]byte{}, folders: map[string][]string{".": nil}}
	return &memTreeBuilder{tree: t, limits: lim, folders: map[string]bool{}}
}

func (b *memTreeBuilder) addFile(name string, data []byte) error {
	if err := b.vacant(name); err != nil {
		return err
	}
	if _, ok := b.tree.folders[name]; ok {
		return ErrDuplicate
	}
	if err := b.imply(path.Dir(name)); err != nil {
		return err
	}
	b.tree.files[name] = data
	b.enter(name)
	return nil
}

func (b *memTreeBuilder) addFolder(name string) error {
	if err := b.vacant(name); err != nil {
		return err
	}
	b.folders[name] = true
	return b.imply(name)
}

func (b *memTreeBuilder) vacant(name string) error {
	if _, ok := b.tree.files[name]; ok || b.folders[name] {
		return ErrDuplicate
	}
	return nil
}

// imply makes a folder and those above it.
func (b *memTreeBuilder) imply(name string) error {
	if _, ok := b.tree.folders[name]; ok {
		return nil
	}
	if _, ok := b.tree.files[name]; ok {
		return ErrDuplicate
	}
	if err := b.imply(path.Dir(name)); err != nil {
		return err
	}
	if len(b.tree.folders) > b.limits.entries { // the top is none of them
		return ErrTooManyEntries
	}
	b.tree.folders[name] = nil
	b.enter(name)
	return nil
}

// enter writes a path down in the folder it is in.
func (b *memTreeBuilder) enter(name string) {
	dir, base := path.Dir(name), path.Base(name)
	b.tree.folders[dir] = append(b.tree.folders[dir], base)
}

// build is the finished tree below a folder.
func (b *memTreeBuilder) build(root string) *memTree {
	t := b.tree
	if root != "." {
		t = &memTree{files: map[string][]byte{}, folders: map[string][]string{".": b.tree.folders[root]}}
		for name, data := range b.tree.files {
			if name, ok := strings.CutPrefix(name, root+"/"); ok {
				t.files[name] = data
			}
		}
		for name, names := range b.tree.folders {
			if name, ok := strings.CutPrefix(name, root+"/"); ok {
				t.folders[name] = names
			}
		}
	}
	for _, names := range t.folders {
		slices.Sort(names)
	}
	return t
}
