package snapshot

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestManifest(t *testing.T) {
	tests := map[string]struct {
		json string
		want Manifest
		err  string // part of it
	}{
		"whole":        {manifest, Manifest{1, time.Date(2026, 3, 4, 10, 0, 0, 0, time.UTC), "t", "v1.37.2"}, ""},
		"unknown keys": {`{"formatVersion":1,"redacted":["x"],"tool":"t"}`, Manifest{FormatVersion: 1, Tool: "t"}, ""},
		"other case":   {`{"formatVersion":1,"Tool":"t"}`, Manifest{FormatVersion: 1}, ""},
		"version 2":    {`{"formatVersion":2,"tool":{"name":"t"}}`, Manifest{}, "formatVersion 2 is not known"},
		"version text": {`{"formatVersion":"1"}`, Manifest{}, `formatVersion "1" is not known`},
		"huge version": {`{"formatVersion":1e400}`, Manifest{}, "formatVersion 1e400"},
		"long version": {`{"formatVersion":"` + strings.Repeat("v", 1000) + `"}`, Manifest{}, "…"},
		"no version":   {`{"formatversion":1}`, Manifest{}, "no formatVersion"},
		"no time":      {`{"formatVersion":1,"capturedAt":"yesterday"}`, Manifest{}, "yesterday"},
		"no object":    {`[1]`, Manifest{}, "cannot unmarshal"},
		"empty":        {``, Manifest{}, "unexpected end"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s, err := FromFS(fstest.MapFS{manifestName: {Data: []byte(test.json)}})
			if test.err != "" {
				if err == nil || !strings.Contains(err.Error(), test.err) || len(err.Error()) > 400 {
					t.Errorf("err = %v, want %q in it", err, test.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, s.Manifest()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAbsence(t *testing.T) {
	gaps := `[
		{"path":"nodes/n/kernel.log","reason":"Forbidden","detail":"nodes \"n\" is forbidden"},
		{"path":"nodes/n/stats-summary.json","reason":"NotFound"},
		{"path":"nodes/n/root/proc/","reason":"Timeout"},
		{"path":"nodes/n/root/proc/swaps","reason":"NotFound"},
		{"path":"nodes/n/root/dev","reason":"NotFound"},
		{"path":"nodes/n/root/dev/kmsg","reason":"Refused"},
		{"path":"nodes/n/root/twice","reason":"NotFound"},
		{"path":"nodes/n/root/twice","reason":"Unreadable"},
		{"path":"nodes/n/root/there","reason":"TooLarge"},
		{"path":"nodes/gone","reason":"Timeout"},
		{"path":"nodes/n/metrics.txt","reason":"Throttled"},
		{"path":"cluster/events.json","reason":"Forbidden"}
	]`
	files := map[string]string{"nodes/n/root/there": "x", "nodes/n/root/empty": ""}
	none := bundleOf(t, files)
	files[gapsName] = "[]"
	complete := bundleOf(t, files)
	files[gapsName] = gaps
	partial := bundleOf(t, files)

	tests := []struct {
		path                    string
		none, complete, partial string
	}{
		{"nodes/n/root/there", "there", "there", "there"},
		{"nodes/n/root/empty", "there", "there", "there"},
		{"nodes/n/root/there/x", "not collected", "not exist", "gap TooLarge"},
		{"cluster/pods.json", "not collected", "not exist", "not exist"},
		{"cluster/events.json", "not collected", "not exist", "gap Forbidden"},
		{"nodes/n/configz.json", "not collected", "not exist", "not exist"},
		{"nodes/n/kernel.log", "not collected", "not exist", "gap Forbidden"},
		{"nodes/n/kernel.log.1", "not collected", "not exist", "not exist"},
		{"nodes/n/stats-summary.json", "not collected", "not exist", "not exist"},
		{"nodes/n/metrics.txt", "not collected", "not exist", "gap Throttled"},
		{"nodes/n/root/proc/meminfo", "not collected", "not exist", "gap Timeout"},
		{"nodes/n/root/proc", "not collected", "not exist", "gap Timeout"},
		{"nodes/n/root/proc2", "not collected", "not exist", "not exist"},
		{"nodes/n/root/proc/swaps", "not collected", "not exist", "not exist"},
		{"nodes/n/root/dev/null", "not collected", "not exist", "not exist"},
		{"nodes/n/root/dev/kmsg", "not collected", "not exist", "gap Refused"},
		{"nodes/n/root/twice", "not collected", "not exist", "gap Unreadable"},
		{"nodes/gone/root/x/y", "not collected", "not exist", "gap Timeout"},
		{"nodes/gone2/x", "not collected", "not exist", "not exist"},
	}
	for _, test := range tests {
		for _, bundle := range []struct {
			name, want string
			s          *Snapshot
		}{{"none", test.none, none}, {"complete", test.complete, complete}, {"partial", test.partial, partial}} {
			_, err := bundle.s.File(test.path)
			if got := kind(t, err); got != bundle.want {
				t.Errorf("%s gaps, File(%q): %s, want %s", bundle.name, test.path, got, bundle.want)
			}
			if node, file, ok := strings.Cut(strings.TrimPrefix(test.path, "nodes/"), "/root/"); ok {
				_, err := fs.ReadFile(bundle.s.Node(node).Files(), file)
				if got := kind(t, err); got != bundle.want {
					t.Errorf("%s gaps, Files() of %s, %q: %s, want %s", bundle.name, node, file, got, bundle.want)
				}
			}
			if node, file, ok := strings.Cut(strings.TrimPrefix(test.path, "nodes/"), "/"); ok && strings.HasPrefix(test.path, "nodes/") {
				_, err := bundle.s.Node(node).File(file)
				if got := kind(t, err); got != bundle.want {
					t.Errorf("%s gaps, File(%q) of %s: %s, want %s", bundle.name, file, node, got, bundle.want)
				}
			}
		}
	}

	_, err := partial.File("nodes/n/kernel.log")
	if !errors.Is(err, fs.ErrPermission) {
		t.Errorf("%v does not match fs.ErrPermission", err)
	}
	if want := `open nodes/n/kernel.log: Forbidden: nodes "n" is forbidden`; err.Error() != want {
		t.Errorf("err = %s, want %s", err, want)
	}
	var gap *GapError
	if !errors.As(err, &gap) || gap.Path != "nodes/n/kernel.log" || gap.Reason != ReasonForbidden {
		t.Errorf("gap = %+v", gap)
	}
	if _, err := partial.File("nodes/n/root/proc/x"); errors.Is(err, fs.ErrPermission) {
		t.Errorf("%v matches fs.ErrPermission", err)
	}

	for _, bad := range []string{"", "/", "/cluster/pods.json", "../x", "cluster/", "cluster//x"} {
		if _, err := none.File(bad); !errors.Is(err, fs.ErrInvalid) {
			t.Errorf("File(%q): %v", bad, err)
		}
	}
	if _, err := none.File("nodes/n"); err == nil || kind(t, err) != errFolder.Error() && !strings.Contains(err.Error(), errFolder.Error()) {
		t.Errorf("a folder as a file: %v", err)
	}
}

func TestGaps(t *testing.T) {
	if got, ok := bundleOf(t, nil).Gaps(); ok || got != nil {
		t.Errorf("without gaps.json: %v, %v", got, ok)
	}
	if got, ok := bundleOf(t, map[string]string{gapsName: "[]\n"}).Gaps(); !ok || len(got) != 0 {
		t.Errorf("with none: %v, %v", got, ok)
	}
	s := bundleOf(t, map[string]string{gapsName: `[{"path":"b/","reason":"Timeout","detail":"d","more":1},{"path":"a","reason":"NotFound"}]`})
	got, ok := s.Gaps()
	if diff := cmp.Diff([]Gap{{"b", "Timeout", "d"}, {"a", "NotFound", ""}}, got); diff != "" || !ok {
		t.Error(ok, diff)
	}
	got[0].Path = "changed"
	if again, _ := s.Gaps(); again[0].Path != "b" {
		t.Error("the caller's change is kept")
	}
	if _, err := bundleOf(t, map[string]string{gapsName: `[{"path":".","reason":"Timeout"}]`}).File("x/y"); kind(t, err) != "gap Timeout" {
		t.Errorf("a gap on everything: %v", err)
	}

	// A gap that is not understood could be one on anything.
	for _, bad := range []string{"", "null", "{}", " ", `{"path":"a","reason":"Timeout"}`, `[{"reason":"Timeout"}]`, `[{"path":"","reason":"Timeout"}]`, `[{"path":"/","reason":"T"}]`,
		`[{"path":"/a","reason":"T"}]`, `[{"path":"a/../b","reason":"T"}]`, `[{"path":"a"}]`, `[{"path":1,"reason":"T"}]`, `[null]`, `[1]`, `[{"path":"a","reason":"T"}`, "[" + strings.Repeat("{},", maxListCommas+1) + "{}]"} {
		_, err := FromFS(mapFS(map[string]string{gapsName: bad}))
		if err == nil || !strings.Contains(err.Error(), gapsName) {
			t.Errorf("%.40s: err = %v", bad, err)
		}
	}
}

func TestReason(t *testing.T) {
	gap := func(reason string) error {
		return pathError("open", "x", &GapError{Gap{"x", reason, "d"}})
	}
	tests := []struct {
		err  error
		want string
	}{
		{nil, ""},
		{gap("Forbidden"), "Forbidden"},
		{gap("NotFound"), "NotFound"},
		{gap("Timeout"), "Timeout"},
		{gap("Throttled"), "Throttled"},
		{gap("\x1b[31m"), "Unreadable"},
		{gap("two words"), "Unreadable"},
		{gap(strings.Repeat("a", 33)), "Unreadable"},
		{gap(""), "Unreadable"},
		{pathError("open", "x", ErrNotCollected), "NotCollected"},
		{fmt.Errorf("pods: %w", pathError("open", "x", fs.ErrNotExist)), "NotFound"},
		{pathError("open", "x", fs.ErrPermission), "Forbidden"},
		{pathError("open", "x", ErrFileTooLarge), "TooLarge"},
		{pathError("open", "x", ErrLink), "Unreadable"},
		{errors.New("x"), "Unreadable"},
	}
	for _, test := range tests {
		if got := Reason(test.err); got != test.want {
			t.Errorf("Reason(%v) = %q, want %q", test.err, got, test.want)
		}
	}
}

func TestGapErrorIs(t *testing.T) {
	for reason, want := range map[string]error{"Forbidden": fs.ErrPermission, "NotFound": fs.ErrNotExist, "Timeout": nil} {
		err := &GapError{Gap{"x", reason, ""}}
		for _, target := range []error{fs.ErrPermission, fs.ErrNotExist, ErrNotCollected} {
			if got := errors.Is(err, target); got != (target == want) {
				t.Errorf("%s matches %v: %v", reason, target, got)
			}
		}
	}
}

func TestFilesAreTheCallers(t *testing.T) {
	s, err := ReadArchive(strings.NewReader(string(tgz(t, bundleJSON, entry{name: "x", data: "abc"}))))
	if err != nil {
		t.Fatal(err)
	}
	data, _ := s.File("x")
	clear(data)
	if again, _ := s.File("x"); string(again) != "abc" {
		t.Errorf("after a change: %q", again)
	}
}

func TestMemTreeIsAFileSystem(t *testing.T) {
	s, err := ReadArchive(strings.NewReader(string(tgz(t, bundleJSON, entry{name: "a/b/c", data: "abc"}, entry{name: "a/empty/"}, entry{name: "a.x"}))))
	if err != nil {
		t.Fatal(err)
	}
	if err := fstest.TestFS(s.tree, "a/b/c", "a/empty", "a.x", manifestName); err != nil {
		t.Error(err)
	}
}

func FuzzParseGaps(f *testing.F) {
	f.Add([]byte(`[{"path":"nodes/n/samples/1/root/x","reason":"Timeout","detail":"d"},{"path":"nodes/n/","reason":"NotFound"}]`), "nodes/n/x")
	f.Add([]byte(`[]`), "x")
	f.Fuzz(func(t *testing.T, data []byte, p string) {
		gaps, err := parseGaps(data)
		if err != nil {
			return
		}
		x := indexGaps(gaps)
		for _, g := range gaps {
			if _, ok := x.at(g.Path + "/below"); !ok {
				t.Errorf("%q is not covered", g.Path)
			}
		}
		if fs.ValidPath(p) {
			x.at(p)
			x.inSamples("n", p)
		}
	})
}
