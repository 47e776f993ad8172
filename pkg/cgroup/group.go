package cgroup

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"syscall"
)

// mountPoint is where a node mounts the hierarchy, as a path of an [fs.FS].
const mountPoint = "sys/fs/cgroup"

// maxFileBytes bounds one read. The largest real file is cgroup.procs of a
// group with hundreds of thousands of processes.
const maxFileBytes = 4 << 20

// Group is one cgroup v2 directory.
type Group struct {
	FS   fs.FS  // rooted at the node's own "/"
	Path string // absolute below sys/fs/cgroup: "/", "/kubepods.slice/..."
}

// File returns the path of a file of the group in FS, such as
// "sys/fs/cgroup/kubepods.slice/cpu.max"; the name "" gives the directory.
// A ".." in Path cannot lead out of the hierarchy.
func (g Group) File(name string) string {
	return path.Join(mountPoint, path.Clean("/"+g.Path), name)
}

// Child returns the group of that name directly below.
func (g Group) Child(name string) Group {
	return Group{FS: g.FS, Path: path.Join("/", g.Path, name)}
}

// Children returns the names of the groups directly below, sorted. Links are
// no groups.
func (g Group) Children() ([]string, error) {
	entries, err := g.entries()
	if err != nil {
		return nil, err
	}
	names := []string{}
	for _, entry := range entries {
		if entry.IsDir() {
			names = append(names, entry.Name())
		}
	}
	slices.Sort(names)
	return names, nil
}

func (g Group) entries() ([]fs.DirEntry, error) {
	if g.FS == nil {
		return nil, g.readError("", fs.ErrInvalid)
	}
	entries, err := fs.ReadDir(g.FS, g.File(""))
	if err != nil {
		return nil, g.readError("", err)
	}
	return entries, nil
}

func (g Group) read(name string) ([]byte, error) {
	if g.FS == nil {
		return nil, g.readError(name, fs.ErrInvalid)
	}
	f, err := g.FS.Open(g.File(name))
	if err != nil {
		return nil, g.readError(name, err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFileBytes+1))
	if err != nil {
		return nil, g.readError(name, err)
	}
	if len(data) > maxFileBytes {
		return nil, &ParseError{File: g.File(name), Reason: fmt.Sprintf("longer than %d bytes", maxFileBytes)}
	}
	return data, nil
}

// readError keeps err's identity and adds what its number means for a cgroup.
func (g Group) readError(name string, err error) error {
	wrapped := &fileError{file: g.File(name), err: err}
	if errors.Is(err, syscall.ENODEV) {
		return fmt.Errorf("%w: %w", ErrVanished, wrapped)
	}
	return wrapped
}

// fileError names the file as fs.PathError does, but escaped: the names below
// a container's group are the container's choice.
type fileError struct {
	file string
	err  error
}

func (e *fileError) Error() string {
	reason := e.err
	if path, ok := e.err.(*fs.PathError); ok {
		reason = path.Err
	}
	return fmt.Sprintf("cgroup: %s: %v", printable(e.file), reason)
}

func (e *fileError) Unwrap() error { return e.err }

// readFile reads one file of the group and parses it, and names the file in
// the parser's error.
func readFile[T any](g Group, name string, parse func([]byte) (T, error)) (T, error) {
	var zero T
	data, err := g.read(name)
	if err != nil {
		return zero, err
	}
	value, err := parse(data)
	if err != nil {
		if bad, ok := errors.AsType[*ParseError](err); ok {
			bad.File = g.File(name)
		}
		return zero, err
	}
	return value, nil
}
