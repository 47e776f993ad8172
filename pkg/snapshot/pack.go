package snapshot

import (
	"archive/tar"
	"compress/gzip"
	"fmt"
	"io"
	"slices"
	"strings"
)

// WriteArchive writes the whole bundle, also what this version does not know,
// as a .tar.gz that [ReadArchive] takes. Equal bundles give equal bytes. What an
// archive cannot hold, such as a link, is an error and not left out.
func (s *Snapshot) WriteArchive(w io.Writer) error {
	paths, err := s.list()
	if err != nil {
		return err
	}
	zw := gzip.NewWriter(w)
	tw := tar.NewWriter(zw)
	var total int64
	for _, name := range paths {
		if strings.HasSuffix(name, "/") {
			if err := tw.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: name, Mode: 0o755}); err != nil {
				return fmt.Errorf("%s: %w", printable(name), err)
			}
			continue
		}
		data, err := s.tree.ReadFile(name)
		if err != nil {
			return pathError("open", name, err)
		}
		if total += int64(len(data)); total > s.limits.totalBytes {
			return ErrTooManyBytes
		}
		if err := tw.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644, Size: int64(len(data))}); err != nil {
			return fmt.Errorf("%s: %w", printable(name), err)
		}
		if _, err := tw.Write(data); err != nil {
			return err
		}
	}
	if err := tw.Close(); err != nil {
		return err
	}
	return zw.Close()
}

// list is every file of the bundle and, with a slash at the end, every empty
// folder; the others are implied. Sorted.
func (s *Snapshot) list() ([]string, error) {
	var paths []string
	folders := 0
	var walk func(folder string) error
	walk = func(folder string) error {
		contents, err := s.tree.ReadDir(folder)
		if err != nil {
			return pathError("readdir", folder, err)
		}
		if len(contents) == 0 {
			paths = append(paths, folder+"/")
		}
		for _, e := range contents {
			name := e.Name()
			if folder != "." {
				name = folder + "/" + name
			}
			if err := checkPath(name); err != nil {
				return pathError("archive", name, err)
			}
			if e.IsDir() {
				folders++
				err = walk(name)
			} else {
				paths = append(paths, name)
				if err = regular(e.Type()); err != nil {
					err = pathError("archive", name, err)
				}
			}
			if err == nil && max(len(paths), folders) > s.limits.entries {
				err = ErrTooManyEntries
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
	if err := walk("."); err != nil {
		return nil, err
	}
	slices.Sort(paths)
	return paths, nil
}
