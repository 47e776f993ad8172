package topology

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"

	"github.com/noderes/kubectl-noderes/pkg/alloc/cpuset"
	"github.com/noderes/kubectl-noderes/pkg/alloc/internal/cut"
)

const (
	cpuDir  = "sys/devices/system/cpu"
	nodeDir = "sys/devices/system/node"
)

// readFile returns the text of a file without white space around it. ok is false where the file does not exist; every other
// trouble is an error, because a file that cannot be read says nothing about the machine.
func readFile(fsys fs.FS, path string) (text string, ok bool, err error) {
	data, err := fs.ReadFile(fsys, path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", false, nil
	case err != nil:
		return "", false, fmt.Errorf("%s: %w", path, err)
	}
	return string(bytes.TrimSpace(data)), true, nil
}

func readInt(fsys fs.FS, path string) (n int, ok bool, err error) {
	text, ok, err := readFile(fsys, path)
	if err != nil || !ok {
		return 0, false, err
	}
	n, err = strconv.Atoi(text)
	if err != nil {
		return 0, false, fmt.Errorf("%s: not a number: %s", path, cut.Quote(text))
	}
	return n, true, nil
}

// readDir returns the names in a folder, ascending; none if it does not exist.
func readDir(fsys fs.FS, path string) ([]string, error) {
	entries, err := fs.ReadDir(fsys, path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	return names, nil
}

// numbered returns the names that are prefix and a decimal number, with the number, in the order of the names.
type numbered struct {
	name string
	id   int
}

func readNumbered(fsys fs.FS, path, prefix string) ([]numbered, error) {
	names, err := readDir(fsys, path)
	if err != nil {
		return nil, err
	}
	var found []numbered
	seen := map[int]string{}
	for _, name := range names {
		digits, ok := strings.CutPrefix(name, prefix)
		if !ok || digits == "" || strings.Trim(digits, "0123456789") != "" {
			continue
		}
		id, err := strconv.Atoi(digits)
		if err != nil {
			return nil, fmt.Errorf("%s: folder %s: number out of range", path, cut.Quote(name))
		}
		if other, twice := seen[id]; twice {
			return nil, fmt.Errorf("%s: folders %s and %s have the same number", path, cut.Quote(other), cut.Quote(name))
		}
		seen[id] = name
		found = append(found, numbered{name, id})
	}
	return found, nil
}

// parseList reads a CPU list of the kernel without white space around it. An unset nohz_full reads "(null)".
func parseList(text string) (cpuset.Set, error) {
	if text == "(null)" {
		return cpuset.Set{}, nil
	}
	return cpuset.Parse(text)
}
