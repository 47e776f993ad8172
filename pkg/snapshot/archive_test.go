package snapshot

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
	"time"
)

var bundleJSON = entry{name: manifestName, data: manifest}

func TestReadArchiveRoot(t *testing.T) {
	tests := map[string]struct {
		entries []entry
		file    string // that it must hold
		err     error
	}{
		"top":                     {[]entry{bundleJSON, {name: "cluster/a", data: "x"}}, "cluster/a", nil},
		"top below ./":            {[]entry{{name: "./"}, {name: "./" + manifestName, data: manifest}, {name: "./cluster/"}, {name: "./cluster/a", data: "x"}}, "cluster/a", nil},
		"one down":                {[]entry{{name: "b/"}, {name: "b/" + manifestName, data: manifest}, {name: "b/cluster/a", data: "x"}}, "cluster/a", nil},
		"one down, manifest last": {[]entry{{name: "b/cluster/a", data: "x"}, {name: "b/" + manifestName, data: manifest}}, "cluster/a", nil},
		"beside the root":         {[]entry{{name: "b/" + manifestName, data: manifest}, {name: "._b"}, {name: "c/d"}, {name: "b/cluster/a", data: "x"}}, "cluster/a", nil},
		"top before one down":     {[]entry{{name: "b/" + manifestName, data: "x"}, bundleJSON}, "b/" + manifestName, nil},
		"with a comment of git":   {[]entry{{name: "pax_global_header", typ: tar.TypeXGlobalHeader}, bundleJSON, {name: "a", data: "x"}}, "a", nil},
		"a name like a folder's":  {[]entry{bundleJSON, {name: "ab/c", data: "x"}, {name: "a"}, {name: "abc"}}, "ab/c", nil},
		"two down":                {[]entry{{name: "a/b/" + manifestName, data: manifest}}, "", ErrNoManifest},
		"none":                    {[]entry{{name: "cluster/pods.json"}}, "", ErrNoManifest},
		"empty":                   {nil, "", ErrNoManifest},
		"a folder of that name":   {[]entry{{name: manifestName + "/"}}, "", ErrNoManifest},
		"two roots":               {[]entry{{name: "a/" + manifestName, data: manifest}, {name: "b/" + manifestName, data: manifest}}, "", ErrTwoRoots},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s, err := ReadArchive(bytes.NewReader(tgz(t, test.entries...)))
			if !errors.Is(err, test.err) {
				t.Fatalf("err = %v, want %v", err, test.err)
			}
			if err != nil {
				return
			}
			if data, err := s.File(test.file); err != nil || string(data) != "x" {
				t.Errorf("File(%q) = %q, %v", test.file, data, err)
			}
			if _, err := s.File("._b"); err == nil {
				t.Error("a file beside the root is in the bundle")
			}
		})
	}
}

func TestReadArchiveRefuses(t *testing.T) {
	long := strings.Repeat("d/", maxPathBytes/2) + "x"
	tests := map[string]struct {
		entry entry
		err   error
	}{
		"parent":            {entry{name: "../x"}, ErrPath},
		"parent inside":     {entry{name: "a/../x"}, ErrPath},
		"parent after dot":  {entry{name: "./../x"}, ErrPath},
		"parent folder":     {entry{name: "../"}, ErrPath},
		"absolute":          {entry{name: "/etc/x"}, ErrPath},
		"absolute folder":   {entry{name: "/"}, ErrPath},
		"dot inside":        {entry{name: "a/./x"}, ErrPath},
		"empty element":     {entry{name: "a//x"}, ErrPath},
		"only a dot":        {entry{name: ".", typ: tar.TypeReg}, ErrPath},
		"no UTF-8":          {entry{name: "a\xff"}, ErrPath},
		"too long":          {entry{name: long}, ErrPath},
		"symbolic link":     {entry{name: "x", typ: tar.TypeSymlink}, ErrLink},
		"hard link":         {entry{name: "x", typ: tar.TypeLink}, ErrLink},
		"FIFO":              {entry{name: "x", typ: tar.TypeFifo}, ErrSpecialFile},
		"character device":  {entry{name: "x", typ: tar.TypeChar}, ErrSpecialFile},
		"block device":      {entry{name: "x", typ: tar.TypeBlock}, ErrSpecialFile},
		"contiguous file":   {entry{name: "x", typ: tar.TypeCont}, ErrSpecialFile},
		"unknown type":      {entry{name: "x", typ: 'Z'}, ErrSpecialFile},
		"file twice":        {entry{name: "seen/file"}, ErrDuplicate},
		"twice by ./":       {entry{name: "./seen/file"}, ErrDuplicate},
		"folder twice":      {entry{name: "folder/"}, ErrDuplicate},
		"file as folder":    {entry{name: "seen/file/"}, ErrDuplicate},
		"file below a file": {entry{name: "seen/file/x"}, ErrDuplicate},
		"folder as file":    {entry{name: "seen"}, ErrDuplicate},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			archive := tgz(t, bundleJSON, entry{name: "folder/"}, entry{name: "seen/file"}, test.entry)
			_, err := ReadArchive(bytes.NewReader(archive))
			if !errors.Is(err, test.err) {
				t.Fatalf("err = %v, want %v", err, test.err)
			}
			if want := quote(test.entry.name); !strings.Contains(err.Error(), want) {
				t.Errorf("%q does not name %s", err, want)
			}
		})
	}
}

func TestErrorsAreFitForATerminal(t *testing.T) {
	name := "\x1b[31mred\x1b[0m\u202e\n"
	_, err := ReadArchive(bytes.NewReader(tgz(t, bundleJSON, entry{name: name, typ: tar.TypeFifo})))
	check := func(err error) {
		t.Helper()
		if err == nil {
			t.Fatal("no error")
		}
		if strings.ContainsAny(err.Error(), "\x1b\n\u202e") {
			t.Errorf("unescaped: %q", err.Error())
		}
	}
	check(err)
	s := bundleOf(t, map[string]string{
		"gaps.json":           `[{"path":"gap","reason":"\u001b[2J","detail":"\u001b[2J"}]`,
		"cluster/pods.json":   `{"items":[{"metadata":{"creationTimestamp":"\u001b[31m"}}]}`,
		"cluster/nodes.json":  `{"items":["` + "\u202e" + `"]}`,
		"cluster/events.json": "{\"items\":[\x1b]}",
	})
	for _, file := range []string{name, "gap", "gap/" + name} {
		_, err := s.File(file)
		check(err)
	}
	_, err = s.Node("n").Files().Open(name)
	check(err)
	_, err = s.Pods()
	check(err)
	_, err = s.Nodes()
	check(err)
	_, err = s.Events()
	check(err)
	_, err = Open(t.TempDir() + "/" + name)
	check(err)
	_, err = FromFS(mapFS(map[string]string{manifestName: `{"formatVersion":"` + "\u202e" + `\u001b"}`}))
	check(err)
}

func TestReadArchiveLimits(t *testing.T) {
	small := limits{entries: 4, totalBytes: 1000, fileBytes: 600}
	file := func(name string, size int) entry { return entry{name: name, data: strings.Repeat("x", size)} }
	tests := map[string]struct {
		entries []entry
		err     error
	}{
		"at every limit":  {[]entry{file("a", 600), file("b", 400-len(manifest)), {name: "c/"}}, nil},
		"one entry more":  {[]entry{file("a", 0), file("b", 0), file("c", 0), file("d", 0)}, ErrTooManyEntries},
		"one folder more": {[]entry{{name: "a/"}, {name: "b/"}, {name: "c/"}, {name: "d/"}}, ErrTooManyEntries},
		"implied folders": {[]entry{file("a/b/c/d/e/f", 0)}, ErrTooManyEntries},
		"one file":        {[]entry{file("a", 601)}, ErrFileTooLarge},
		"all files":       {[]entry{file("a", 600), file("b", 401-len(manifest))}, ErrTooManyBytes},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := readArchive(bytes.NewReader(tgz(t, append([]entry{bundleJSON}, test.entries...)...)), small)
			if !errors.Is(err, test.err) {
				t.Fatalf("err = %v, want %v", err, test.err)
			}
		})
	}
}

// endless is a tar.gz that goes on for as long as it is read.
type endless struct {
	block []byte
	zw    *gzip.Writer
	buf   bytes.Buffer
	taken int64 // of the uncompressed stream
}

func newEndless(head, block []byte) *endless {
	e := &endless{block: block}
	e.zw, _ = gzip.NewWriterLevel(&e.buf, gzip.BestCompression)
	e.zw.Write(head)
	return e
}

func (e *endless) Read(p []byte) (int, error) {
	for e.buf.Len() == 0 {
		e.zw.Write(e.block)
		e.taken += int64(len(e.block))
	}
	return e.buf.Read(p)
}

func TestReadArchiveStopsAtTheLimit(t *testing.T) {
	paxHeader := func() []byte { // a long name in an extended header, without the entry it is for
		data := tarOf(t, entry{name: strings.Repeat("n", 400)})
		return data[:1024]
	}()
	hugeFile := tarOf(t, bundleJSON, entry{name: "huge", data: strings.Repeat("x", 600)})[:2*512+512]
	end := tarOf(t, bundleJSON)
	tests := map[string]struct {
		head, block []byte
		most        int64
		err         error
	}{
		"headers without entries": {nil, paxHeader, streamOverhead, ErrOverhead},
		"entries without end":     {nil, tarOf(t, entry{name: "d/"})[:512], 1 << 16, ErrDuplicate},
		"globals without end":     {nil, tarOf(t, entry{name: "g", typ: tar.TypeXGlobalHeader})[:1024], 1 << 20, ErrTooManyEntries},
		"zeros after the end":     {end, make([]byte, 512), streamOverhead, ErrOverhead},
		"data after the end":      {end, []byte("more"), 1 << 16, ErrTrailingData},
		"a file of one byte more": {hugeFile, make([]byte, 512), 1 << 16, ErrFileTooLarge},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			r := newEndless(test.head, test.block)
			_, err := readArchive(r, limits{entries: 100, totalBytes: 1000, fileBytes: 599})
			if !errors.Is(err, test.err) {
				t.Fatalf("err = %v, want %v", err, test.err)
			}
			// The compressor holds some input back, and a reader reads ahead.
			if most := test.most + 4<<20; r.taken > most {
				t.Errorf("%d bytes of the stream were taken, want at most %d", r.taken, most)
			}
		})
	}
}

func TestReadArchiveBelievesNoSize(t *testing.T) {
	// 60 MiB are claimed, 2 KiB are there.
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	w.WriteHeader(&tar.Header{Name: "x", Typeflag: tar.TypeReg, Size: 60 << 20})
	w.Write(make([]byte, 2048))
	archive := gzipped(t, buf.Bytes())

	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := ReadArchive(bytes.NewReader(archive))
	runtime.ReadMemStats(&after)
	if !errors.Is(err, ErrTruncated) {
		t.Fatalf("err = %v", err)
	}
	if got := after.TotalAlloc - before.TotalAlloc; got > 4<<20 {
		t.Errorf("%d bytes allocated", got)
	}
}

func TestReadArchiveCutOff(t *testing.T) {
	plain := tarOf(t, bundleJSON, entry{name: "cluster/pods.json", data: strings.Repeat("pods ", 200)}, entry{name: "empty/"}, entry{name: "zeros", data: strings.Repeat("\x00", 2048)})
	t.Run("gzip", func(t *testing.T) {
		archive := gzipped(t, plain)
		for n := range archive {
			if _, err := ReadArchive(bytes.NewReader(archive[:n])); !errors.Is(err, ErrTruncated) {
				t.Errorf("first %d of %d bytes: err = %v", n, len(archive), err)
			}
		}
	})
	// The gzip stream is whole here, the tar in it is not.
	t.Run("tar", func(t *testing.T) {
		for n := range plain {
			if n%128 > 1 && n%512 != 511 {
				continue
			}
			if _, err := ReadArchive(bytes.NewReader(gzipped(t, plain[:n]))); !errors.Is(err, ErrTruncated) {
				t.Errorf("first %d of %d bytes: err = %v", n, len(plain), err)
			}
		}
	})
}

func TestReadArchiveDamaged(t *testing.T) {
	archive := tgz(t, bundleJSON)
	flipped := bytes.Clone(archive)
	flipped[len(flipped)-6] ^= 1 // checksum
	garbled := tarOf(t, bundleJSON)
	garbled[200] ^= 1
	tests := map[string]struct {
		data []byte
		err  error
	}{
		"text":                  {[]byte("apiVersion: v1\nkind: Pod\n"), ErrDamaged},
		"plain tar":             {tarOf(t, bundleJSON), ErrDamaged},
		"gzip of text":          {gzipped(t, bytes.Repeat([]byte("kind: Pod\n"), 100)), ErrDamaged},
		"checksum":              {flipped, ErrDamaged},
		"tar header":            {gzipped(t, garbled), ErrDamaged},
		"garbage after gzip":    {append(bytes.Clone(archive), "garbage, a lot"...), ErrDamaged},
		"a second tar":          {gzipped(t, append(tarOf(t, bundleJSON), tarOf(t, entry{name: "x"})...)), ErrTrailingData},
		"a second tar, gzipped": {append(bytes.Clone(archive), tgz(t, entry{name: "x"})...), ErrTrailingData},
		"empty":                 {nil, ErrTruncated},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if _, err := ReadArchive(bytes.NewReader(test.data)); !errors.Is(err, test.err) {
				t.Errorf("err = %v, want %v", err, test.err)
			}
		})
	}

	t.Run("reader", func(t *testing.T) {
		broken := errors.New("connection reset")
		r := io.MultiReader(bytes.NewReader(archive[:len(archive)/2]), errReader{broken})
		if _, err := ReadArchive(r); !errors.Is(err, broken) {
			t.Errorf("err = %v, want %v", err, broken)
		}
	})
	t.Run("members", func(t *testing.T) { // what pigz and "cat a.gz b.gz" write
		plain := tarOf(t, bundleJSON)
		joined := append(gzipped(t, plain[:700]), gzipped(t, plain[700:])...)
		if _, err := ReadArchive(bytes.NewReader(joined)); err != nil {
			t.Error(err)
		}
	})
}

type errReader struct{ err error }

func (r errReader) Read([]byte) (int, error) { return 0, r.err }

func BenchmarkReadArchive(b *testing.B) {
	entries := []entry{bundleJSON}
	for i := range 5000 {
		entries = append(entries, entry{
			name: fmt.Sprintf("nodes/n/samples/%d/root/sys/fs/cgroup/kubepods.slice/kubepods-burstable.slice/pod%d/cpu.stat", i%2, i/2),
			data: strings.Repeat(fmt.Sprintf("usage_usec %d\n", i), 20),
		})
	}
	archive := tgz(b, entries...)
	for b.Loop() {
		if _, err := ReadArchive(bytes.NewReader(archive)); err != nil {
			b.Fatal(err)
		}
	}
}

func FuzzReadArchive(f *testing.F) {
	f.Add(tarOf(f, bundleJSON, entry{name: "cluster/pods.json", data: `{"items":[]}`}), false)
	f.Add(tarOf(f, entry{name: "b/" + manifestName, data: manifest}, entry{name: "b/empty/"}, entry{name: "b/" + strings.Repeat("long/", 60)}), false)
	f.Add(tarOf(f, bundleJSON, entry{name: "l", typ: tar.TypeSymlink}), false)
	f.Add(tarOf(f, bundleJSON, entry{name: gapsName, data: `[{"path":"nodes/n/","reason":"Timeout"}]`}, entry{name: "nodes/n/samples/1/root/x"}), false)
	f.Add(tgz(f, bundleJSON), true)
	f.Fuzz(func(t *testing.T, data []byte, whole bool) {
		if !whole { // the fuzzer cannot write checksums
			data = gzipped(t, data)
		}
		start := time.Now()
		s, err := readArchive(bytes.NewReader(data), limits{entries: 100, totalBytes: 1 << 20, fileBytes: 1 << 18})
		if time.Since(start) > 5*time.Second {
			t.Error("too slow")
		}
		if err != nil {
			return
		}
		var first, second bytes.Buffer
		if err := s.WriteArchive(&first); err != nil {
			t.Fatalf("what was read cannot be written: %v", err)
		}
		again, err := readArchive(bytes.NewReader(first.Bytes()), s.limits)
		if err != nil {
			t.Fatalf("what was written cannot be read: %v", err)
		}
		if err := again.WriteArchive(&second); err != nil || !bytes.Equal(first.Bytes(), second.Bytes()) {
			t.Fatalf("not the same bytes again: %v", err)
		}
		for _, name := range s.NodeNames() {
			n := s.Node(name)
			n.Samples()
			n.File("kernel.log")
			n.Source("proc/meminfo")
			n.Files().Open("proc/meminfo")
		}
	})
}
