package snapshot

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
)

// dirTree is a bundle as a folder on disk. os.Root keeps every path within it
// but follows the links inside and opens whatever there is; so each path is
// looked up in folder listings first, and only what they show as a regular file
// below real folders is opened. Listings are kept: a snapshot is one moment.
type dirTree struct {
	root   *os.Root // closed with its last reference
	limits limits

	mu      sync.Mutex
	entries int // in all listings
	folders map[string]*listing
}

type listing struct {
	names []string // sorted
	types map[string]fs.FileMode
	err   error
}

func newDirTree(root *os.Root, lim limits) *dirTree {
	return &dirTree{root: root, limits: lim, folders: map[string]*listing{}}
}

func (t *dirTree) Open(name string) (fs.File, error) { return openIn(t, name) }

func (t *dirTree) Stat(name string) (fs.FileInfo, error) {
	mode, err := t.lookup(name)
	if err == nil && !mode.IsDir() {
		err = regular(mode)
	}
	if err != nil {
		return nil, pathError("stat", name, err)
	}
	return t.lstat(name)
}

func (t *dirTree) lstat(name string) (fs.FileInfo, error) {
	info, err := t.root.Lstat(filepath.FromSlash(name))
	if err != nil {
		return nil, pathError("stat", name, vanished(err))
	}
	return fileInfo{path.Base(name), info.Size(), info.Mode()}, nil
}

func (t *dirTree) ReadFile(name string) ([]byte, error) {
	mode, err := t.lookup(name)
	if err == nil {
		err = regular(mode)
	}
	if err != nil {
		return nil, pathError("open", name, err)
	}
	// Without O_NONBLOCK a FIFO put here since the listing would never return.
	f, err := t.root.OpenFile(filepath.FromSlash(name), os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, pathError("open", name, vanished(err))
	}
	defer f.Close()
	data, err := readAll(f, t.limits.fileBytes)
	if err != nil {
		return nil, pathError("read", name, err)
	}
	return data, nil
}

func (t *dirTree) ReadDir(name string) ([]fs.DirEntry, error) {
	mode, err := t.lookup(name)
	switch {
	case err != nil:
	case mode.IsRegular():
		err = errNotFolder
	case !mode.IsDir():
		err = regular(mode)
	}
	if err != nil {
		return nil, pathError("readdir", name, err)
	}
	t.mu.Lock()
	l := t.list(name)
	t.mu.Unlock()
	if l.err != nil {
		return nil, pathError("readdir", name, l.err)
	}
	entries := make([]fs.DirEntry, len(l.names))
	for i, base := range l.names {
		entries[i] = dirEntry{t, path.Join(name, base), l.types[base]}
	}
	return entries, nil
}

// lookup is the type of what is at a path. Links and special files stand for
// themselves, and there is no way through them.
func (t *dirTree) lookup(name string) (fs.FileMode, error) {
	if !fs.ValidPath(name) {
		return 0, fs.ErrInvalid
	}
	if name == "." {
		return fs.ModeDir, nil
	}
	if len(name) > maxPathBytes {
		return 0, fs.ErrNotExist
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	folder, start := ".", 0
	for {
		l := t.list(folder)
		if l.err != nil {
			return 0, l.err
		}
		end := len(name)
		if i := strings.IndexByte(name[start:], '/'); i >= 0 {
			end = start + i
		}
		mode, ok := l.types[name[start:end]]
		switch {
		case !ok:
			return 0, fs.ErrNotExist
		case end == len(name):
			return mode, nil
		case mode.IsRegular():
			return 0, fs.ErrNotExist
		case !mode.IsDir():
			return 0, regular(mode)
		}
		folder, start = name[:end], end+1
	}
}

// list reads a folder that was found to be one. The lock is held.
func (t *dirTree) list(folder string) *listing {
	if l, ok := t.folders[folder]; ok {
		return l
	}
	l := &listing{types: map[string]fs.FileMode{}}
	l.err = t.fill(l, folder)
	t.folders[strings.Clone(folder)] = l
	return l
}

func (t *dirTree) fill(l *listing, folder string) error {
	f, err := t.root.OpenFile(filepath.FromSlash(folder), os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return vanished(err)
	}
	defer f.Close()
	for {
		const page = 1024
		entries, err := f.ReadDir(page)
		for _, e := range entries {
			if t.entries++; t.entries > t.limits.entries {
				return ErrTooManyEntries
			}
			l.names = append(l.names, e.Name())
			l.types[e.Name()] = e.Type()
		}
		switch {
		case errors.Is(err, io.EOF):
			slices.Sort(l.names)
			return nil
		case err != nil:
			return vanished(err)
		}
	}
}

// vanished is the error of a file that was listed, so that one which has gone
// since is not taken for one that never was.
func vanished(err error) error {
	var inner *fs.PathError
	if errors.As(err, &inner) {
		err = inner.Err
	}
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("the bundle changed while it was read: %v", err)
	}
	return err
}

type dirEntry struct {
	tree *dirTree
	path string
	mode fs.FileMode
}

func (e dirEntry) Name() string               { return path.Base(e.path) }
func (e dirEntry) IsDir() bool                { return e.mode.IsDir() }
func (e dirEntry) Type() fs.FileMode          { return e.mode.Type() }
func (e dirEntry) Info() (fs.FileInfo, error) { return e.tree.lstat(e.path) }
