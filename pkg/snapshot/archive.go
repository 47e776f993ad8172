package snapshot

import (
	"archive/tar"
	"compress/flate"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"
)

// ReadArchive unpacks a .tar.gz into memory. Its root is the folder that holds
// bundle.json, at the top or one folder down; what lies beside that folder is no
// part of the bundle.
//
// It refuses what no bundle needs, each with an error of its own (ErrPath,
// ErrLink, …), stops reading where a limit is passed, and takes an archive for
// whole only if both the tar and the gzip end are there: a file cut off would
// otherwise pass for one that did not exist.
func ReadArchive(r io.Reader) (*Snapshot, error) {
	return readArchive(r, standardLimits())
}

func readArchive(r io.Reader, lim limits) (*Snapshot, error) {
	t, err := unpack(r, lim)
	if err != nil {
		return nil, err
	}
	return newSnapshot(t, lim)
}

func unpack(r io.Reader, lim limits) (*memTree, error) {
	zr, err := gzip.NewReader(r)
	if err != nil {
		return nil, archiveError(err)
	}
	stream := &meteredReader{r: zr, left: streamOverhead}
	tr := tar.NewReader(stream)
	b := newMemTreeBuilder(lim)
	var total int64
	for entries := 0; ; entries++ {
		stream.left += entryOverhead
		hdr, err := tr.Next()
		if err == io.EOF {
			break
		}
		if err != nil && !errors.Is(err, tar.ErrInsecurePath) { // entryPath judges paths
			return nil, archiveError(err)
		}
		if entries == lim.entries {
			return nil, ErrTooManyEntries
		}
		if err := add(b, tr, hdr, lim, stream, &total); err != nil {
			return nil, fmt.Errorf("archive entry %s: %w", quote(hdr.Name), archiveError(err))
		}
	}
	if err := stream.finish(); err != nil {
		return nil, archiveError(err)
	}
	root, err := findRoot(b.tree)
	if err != nil {
		return nil, err
	}
	return b.build(root), nil
}

func add(b *memTreeBuilder, tr *tar.Reader, hdr *tar.Header, lim limits, stream *meteredReader, total *int64) error {
	switch hdr.Typeflag {
	case tar.TypeReg, tar.TypeDir:
	case tar.TypeXGlobalHeader: // a comment, as git writes one
		return nil
	case tar.TypeSymlink, tar.TypeLink:
		return ErrLink
	default:
		return ErrSpecialFile
	}
	name, err := entryPath(hdr)
	if err != nil {
		return err
	}
	if hdr.Typeflag == tar.TypeDir {
		if name == "." {
			return nil
		}
		return b.addFolder(name)
	}
	if hdr.Size > lim.fileBytes {
		return ErrFileTooLarge
	}
	if *total += hdr.Size; *total > lim.totalBytes {
		return ErrTooManyBytes
	}
	stream.left += hdr.Size
	data, err := readEntry(tr, hdr.Size)
	if err != nil {
		return err
	}
	return b.addFile(name, data)
}

// entryPath is an entry's bundle path. Archives name their folders with a slash
// at the end, and often everything below "./".
func entryPath(hdr *tar.Header) (string, error) {
	name := hdr.Name
	if hdr.Typeflag == tar.TypeDir {
		name = strings.TrimSuffix(name, "/")
	}
	for strings.HasPrefix(name, "./") {
		name = strings.TrimPrefix(name, "./")
	}
	if name == "" && hdr.Typeflag == tar.TypeDir && strings.HasPrefix(hdr.Name, ".") {
		name = "."
	}
	if name == "." && hdr.Typeflag != tar.TypeDir {
		return "", ErrPath
	}
	return name, checkPath(name)
}

// checkPath holds for every path of an archive. A backslash is part of a name:
// systemd escapes with it (system-serial\x2dgetty.slice), and nothing is
// unpacked to where it could separate folders.
func checkPath(name string) error {
	if !fs.ValidPath(name) || len(name) > maxPathBytes || hasByte(name, 0) {
		return ErrPath
	}
	return nil
}

// readEntry reads a file of a claimed size, without believing it: memory grows
// with what is there.
func readEntry(r io.Reader, size int64) ([]byte, error) {
	const believed = 1 << 20
	if size <= believed {
		data := make([]byte, size)
		_, err := io.ReadFull(r, data)
		return data, err
	}
	data, err := io.ReadAll(r)
	if err == nil && int64(len(data)) != size {
		err = io.ErrUnexpectedEOF
	}
	return data, err
}

// findRoot is the folder that holds bundle.json.
func findRoot(t *memTree) (string, error) {
	if _, ok := t.files[manifestName]; ok {
		return ".", nil
	}
	root := ""
	for _, name := range t.folders["."] {
		if _, ok := t.files[path.Join(name, manifestName)]; !ok {
			continue
		}
		if root != "" {
			return "", ErrTwoRoots
		}
		root = name
	}
	if root == "" {
		return "", ErrNoManifest
	}
	return root, nil
}

// meteredReader passes on a stream until more was taken from it than left
// allows, and remembers whether its end was reached.
type meteredReader struct {
	r     io.Reader
	left  int64
	err   error // what r gave together with its last bytes
	ended bool
}

func (m *meteredReader) Read(p []byte) (int, error) {
	if m.err != nil {
		m.ended = m.err == io.EOF
		return 0, m.err
	}
	if m.left <= 0 {
		return 0, ErrOverhead
	}
	n, err := m.r.Read(p[:min(int64(len(p)), m.left)])
	m.left -= int64(n)
	m.err = err
	if n > 0 {
		return n, nil
	}
	m.ended = err == io.EOF
	return 0, err
}

// finish is called when the tar reader has seen the end. It takes the end of the
// stream for one, too, but only two blocks of zeros are.
func (m *meteredReader) finish() error {
	if m.ended {
		return io.ErrUnexpectedEOF
	}
	buf := make([]byte, 4096)
	for {
		n, err := m.Read(buf)
		for _, c := range buf[:n] {
			if c != 0 {
				return ErrTrailingData
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// archiveError sorts the errors of the decoders into cut off and damaged. Those
// of this package and of the reader itself stay as they are.
func archiveError(err error) error {
	var corrupt flate.CorruptInputError
	switch {
	case err == io.EOF, errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("%w (%w)", ErrTruncated, io.ErrUnexpectedEOF)
	case errors.Is(err, gzip.ErrHeader), errors.Is(err, gzip.ErrChecksum), errors.Is(err, tar.ErrHeader), errors.As(err, &corrupt):
		return fmt.Errorf("%w (%w)", ErrDamaged, err)
	}
	return err
}
