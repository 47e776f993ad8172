package diagnose

import (
	"errors"
	"io/fs"

	"github.com/noderes/kubectl-noderes/pkg/snapshot"
)

// uncollected makes a file that nobody collected look absent. It is for readers
// that describe a machine by whatever is there: a bug report holds lscpu's table
// and two files of sysfs, and the table must not be lost for the third. What
// could not be read stays an error.
type uncollected struct{ fs.FS }

func (u uncollected) Open(name string) (fs.File, error) {
	f, err := u.FS.Open(name)
	return f, asAbsent(name, err)
}

// ReadFile implements [fs.ReadFileFS].
func (u uncollected) ReadFile(name string) ([]byte, error) {
	data, err := fs.ReadFile(u.FS, name)
	return data, asAbsent(name, err)
}

// ReadDir implements [fs.ReadDirFS].
func (u uncollected) ReadDir(name string) ([]fs.DirEntry, error) {
	entries, err := fs.ReadDir(u.FS, name)
	return entries, asAbsent(name, err)
}

// Stat implements [fs.StatFS].
func (u uncollected) Stat(name string) (fs.FileInfo, error) {
	info, err := fs.Stat(u.FS, name)
	return info, asAbsent(name, err)
}

func asAbsent(name string, err error) error {
	if errors.Is(err, snapshot.ErrNotCollected) {
		return &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return err
}
