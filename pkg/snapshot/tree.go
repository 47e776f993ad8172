package snapshot

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"slices"
	"time"
)

// tree is how a bundle's files are read, whole. Paths are slash-separated bundle
// paths; what is absent is fs.ErrNotExist, without judgement of what that means.
type tree interface {
	fs.ReadFileFS
	fs.ReadDirFS
	fs.StatFS
}

// anyTree bounds what is read from a tree of somebody else.
type anyTree struct {
	fsys   fs.FS
	limits limits
}

func (t anyTree) Open(name string) (fs.File, error)     { return openIn(t, name) }
func (t anyTree) Stat(name string) (fs.FileInfo, error) { return fs.Stat(t.fsys, name) }
func (t anyTree) ReadDir(name string) ([]fs.DirEntry, error) {
	info, err := t.Stat(name)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return nil, pathError("readdir", name, errNotFolder)
	}
	entries, err := fs.ReadDir(t.fsys, name)
	if err == nil && len(entries) > t.limits.entries {
		return nil, pathError("readdir", name, ErrTooManyEntries)
	}
	return entries, err
}

func (t anyTree) ReadFile(name string) ([]byte, error) {
	f, err := t.fsys.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := readAll(f, t.limits.fileBytes)
	if err != nil {
		return nil, pathError("open", name, err)
	}
	return data, nil
}

// readAll reads an open regular file to its end, whatever size it claims.
func readAll(f fs.File, most int64) ([]byte, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if err := regular(info.Mode()); err != nil {
		return nil, err
	}
	if info.Size() > most {
		return nil, ErrFileTooLarge
	}
	const chunk = 1 << 20
	buf := make([]byte, 0, min(max(info.Size(), 0), chunk)+1)
	for {
		n, err := f.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		switch {
		case int64(len(buf)) > most:
			return nil, ErrFileTooLarge
		case errors.Is(err, io.EOF):
			return buf, nil
		case err != nil:
			return nil, err
		case len(buf) == cap(buf):
			buf = slices.Grow(buf, len(buf))
		}
	}
}

// regular is the error of opening a file of this mode as a regular one.
func regular(mode fs.FileMode) error {
	switch {
	case mode.IsRegular():
		return nil
	case mode.IsDir():
		return errFolder
	case mode&fs.ModeSymlink != 0:
		return ErrLink
	}
	return ErrSpecialFile
}

// openIn is fs.FS's Open for trees that read whole files.
func openIn(t tree, name string) (fs.File, error) {
	if !fs.ValidPath(name) {
		return nil, pathError("open", name, fs.ErrInvalid)
	}
	info, err := t.Stat(name)
	if err != nil {
		return nil, pathError("open", name, err)
	}
	if info.IsDir() {
		entries, err := t.ReadDir(name)
		if err != nil {
			return nil, pathError("open", name, err)
		}
		return &openFolder{info: info, entries: entries}, nil
	}
	data, err := t.ReadFile(name)
	if err != nil {
		return nil, pathError("open", name, err)
	}
	return &openFile{info: info, Reader: bytes.NewReader(data)}, nil
}

type openFile struct {
	info fs.FileInfo
	*bytes.Reader
}

func (f *openFile) Stat() (fs.FileInfo, error) { return f.info, nil }
func (f *openFile) Close() error               { return nil }

type openFolder struct {
	info    fs.FileInfo
	entries []fs.DirEntry
}

func (f *openFolder) Stat() (fs.FileInfo, error) { return f.info, nil }
func (f *openFolder) Close() error               { return nil }
func (f *openFolder) Read([]byte) (int, error) {
	return 0, pathError("read", f.info.Name(), errFolder)
}

func (f *openFolder) ReadDir(n int) ([]fs.DirEntry, error) {
	if n > 0 && len(f.entries) == 0 {
		return nil, io.EOF
	}
	if n <= 0 || n > len(f.entries) {
		n = len(f.entries)
	}
	page := f.entries[:n:n]
	f.entries = f.entries[n:]
	return page, nil
}

type fileInfo struct {
	name string
	size int64
	mode fs.FileMode
}

func (i fileInfo) Name() string       { return i.name }
func (i fileInfo) Size() int64        { return i.size }
func (i fileInfo) Mode() fs.FileMode  { return i.mode }
func (i fileInfo) ModTime() time.Time { return time.Time{} }
func (i fileInfo) IsDir() bool        { return i.mode.IsDir() }
func (i fileInfo) Sys() any           { return nil }
