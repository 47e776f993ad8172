package snapshot

import (
	"errors"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestNodeNames(t *testing.T) {
	s := bundleOf(t, map[string]string{
		"cluster/nodes.json":    `{"kind":"List","items":[{"metadata":{"name":"n2"}},{"metadata":{"name":"api-only"}},{"metadata":{"name":""}},{"metadata":{"name":"../x"}},{"metadata":{"name":"n2"}}]}`,
		"nodes/n2/kernel.log":   "",
		"nodes/n1/configz.json": "{}",
		`nodes/a\b/x`:           "",
		"nodes/file":            "",
	})
	want := []string{"../x", "api-only", "n1", "n2"}
	got := s.NodeNames()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	got[0] = "changed"
	if diff := cmp.Diff(want, s.NodeNames()); diff != "" {
		t.Error("the caller's change is kept", diff)
	}
	broken := bundleOf(t, map[string]string{"cluster/nodes.json": "{", "nodes/n1/x": ""})
	if diff := cmp.Diff([]string{"n1"}, broken.NodeNames()); diff != "" {
		t.Error(diff)
	}
	if got := bundleOf(t, nil).NodeNames(); len(got) != 0 {
		t.Errorf("of nothing: %q", got)
	}
}

func TestNodeThatIsNone(t *testing.T) {
	files := map[string]string{"nodes/n/kernel.log": "log", "nodes/n/root/x": "x", "root/x": "x", `nodes/a\b/root/x`: "x"}
	for _, gaps := range []string{"", "[]"} {
		want := "not collected"
		if gaps != "" {
			files[gapsName] = gaps
			want = "not exist"
		}
		s := bundleOf(t, files)
		for _, name := range []string{"", ".", "..", "../n", "n/", "/n", "n/root", "n/../n", "nodes/n", `a\b`, "n\xff", "none", "\x00"} {
			n := s.Node(name)
			if n.Name() != name {
				t.Errorf("Node(%q) is called %q", name, n.Name())
			}
			_, err := n.File("kernel.log")
			if got := kind(t, err); got != want {
				t.Errorf("%q: File: %s, want %s", name, got, want)
			}
			_, err = n.Files().Open("x")
			if got := kind(t, err); got != want {
				t.Errorf("%q: Files: %s, want %s", name, got, want)
			}
			_, err = fs.ReadDir(n.Files(), ".")
			if got := kind(t, err); got != want {
				t.Errorf("%q: ReadDir: %s, want %s", name, got, want)
			}
			if got := n.Samples(); got != nil {
				t.Errorf("%q: samples %v", name, got)
			}
			if got := n.Source("x"); got != "node:/x" {
				t.Errorf("%q: source %s", name, got)
			}
		}
	}
	n := bundleOf(t, files).Node("n")
	for _, file := range []string{"../n/kernel.log", "/kernel.log", ""} {
		if _, err := n.File(file); !errors.Is(err, fs.ErrInvalid) {
			t.Errorf("File(%q): %v", file, err)
		}
	}
	if data, err := n.File("kernel.log"); err != nil || string(data) != "log" {
		t.Errorf("File: %q, %v", data, err)
	}
}

// sampled is a node whose files stand in samples 0, 9, 10 and in root/.
func sampled(t *testing.T, more map[string]string) *Node {
	files := map[string]string{
		"nodes/n/root/only-root":     "r",
		"nodes/n/root/everywhere":    "r",
		"nodes/n/root/cg/root-file":  "r",
		"nodes/n/root/mixed/below":   "r",
		"nodes/n/samples/0/at.json":  `{"time":"2026-03-04T10:00:00.5Z","uptimeSeconds":4083.029}`,
		"nodes/n/samples/9/at.json":  `{"time":"2026-03-04T10:00:10Z","uptimeSeconds":4093.53}`,
		"nodes/n/samples/10/at.json": `{"time":"2026-03-04T10:00:20Z"}`,
	}
	for _, k := range []string{"0", "9", "10"} {
		files["nodes/n/samples/"+k+"/root/everywhere"] = k
		files["nodes/n/samples/"+k+"/root/cg/s"+k] = k
		if k != "10" {
			files["nodes/n/samples/"+k+"/root/until-9"] = k
			files["nodes/n/samples/"+k+"/root/cg/gone/x"] = k
		}
	}
	files["nodes/n/samples/10/root/empty"] = ""
	files["nodes/n/samples/9/root/empty"] = "9"
	files["nodes/n/samples/10/root/mixed"] = "a file here"
	files["nodes/n/root/cg/gone"] = "a file here"
	for name, data := range more {
		files[name] = data
	}
	return bundleOf(t, files).Node("n")
}

func TestNodeFilesPrecedence(t *testing.T) {
	n := sampled(t, nil)
	tests := []struct{ file, data, source string }{
		{"only-root", "r", "node:/only-root"},
		{"everywhere", "10", "node:/everywhere@10"},
		{"until-9", "9", "node:/until-9@9"},
		{"empty", "", "node:/empty@10"},
		{"cg/s0", "0", "node:/cg/s0@0"},
		{"mixed", "a file here", "node:/mixed@10"},
	}
	for _, test := range tests {
		data, err := fs.ReadFile(n.Files(), test.file)
		if err != nil || string(data) != test.data {
			t.Errorf("%s: %q, %v; want %q", test.file, data, err, test.data)
		}
		if got := n.Source(test.file); got != test.source {
			t.Errorf("source %s, want %s", got, test.source)
		}
		info, err := fs.Stat(n.Files(), test.file)
		if err != nil || info.Size() != int64(len(test.data)) {
			t.Errorf("Stat(%s): %v, %v", test.file, info, err)
		}
	}
	for file, want := range map[string]string{"nowhere": "node:/nowhere", "../x": "node:/../x", "": "node:/", "cg": "node:/cg@10", "cg/gone": "node:/cg/gone@9"} {
		if got := n.Source(file); got != want {
			t.Errorf("source %s, want %s", got, want)
		}
	}

	dirs := map[string]string{
		".":       "cg/ empty everywhere mixed only-root until-9",
		"cg":      "gone/ root-file s0 s10 s9",
		"cg/gone": "x",
	}
	for dir, want := range dirs {
		entries, err := fs.ReadDir(n.Files(), dir)
		var names []string
		for _, e := range entries {
			name := e.Name()
			if e.IsDir() {
				name += "/"
			}
			names = append(names, name)
		}
		if got := strings.Join(names, " "); got != want || err != nil {
			t.Errorf("ReadDir(%s) = %s, %v; want %s", dir, got, err, want)
		}
	}
	if _, err := fs.ReadDir(n.Files(), "mixed"); err == nil {
		t.Error("a file is listed as a folder")
	}
	if _, err := fs.ReadFile(n.Files(), "cg"); err == nil {
		t.Error("a folder is read as a file")
	}
}

func TestNodeFilesIsAFileSystem(t *testing.T) {
	n := bundleOf(t, map[string]string{
		"nodes/n/root/proc/meminfo":              "m",
		"nodes/n/samples/0/root/cg/cpu.stat":     "0",
		"nodes/n/samples/1/root/cg/cpu.stat":     "01",
		"nodes/n/samples/1/root/cg/pod/cpu.stat": "01",
	}).Node("n")
	if err := fstest.TestFS(n.Files(), "proc/meminfo", "cg/cpu.stat", "cg/pod/cpu.stat"); err != nil {
		t.Error(err)
	}
	if err := fstest.TestFS(n.Samples()[0].Files, "cg/cpu.stat"); err != nil {
		t.Error(err)
	}
	for _, files := range []fs.FS{n.Files(), n.Samples()[0].Files} {
		_, file := files.(fs.ReadFileFS)
		_, dir := files.(fs.ReadDirFS)
		_, stat := files.(fs.StatFS)
		if !file || !dir || !stat {
			t.Error("not all of fs.ReadFileFS, fs.ReadDirFS, fs.StatFS")
		}
	}
}

func TestSamples(t *testing.T) {
	n := sampled(t, map[string]string{
		"nodes/n/samples/01/root/x":                   "",
		"nodes/n/samples/-1/root/x":                   "",
		"nodes/n/samples/+2/root/x":                   "",
		"nodes/n/samples/1e1/root/x":                  "",
		"nodes/n/samples/99999999999999999999/root/x": "",
		"nodes/n/samples/x/root/x":                    "",
		"nodes/n/samples/11":                          "a file",
	})
	var got []Sample
	for _, s := range n.Samples() {
		if _, err := fs.Stat(s.Files, "everywhere"); err != nil {
			t.Error(err)
		}
		s.Files = nil
		got = append(got, s)
	}
	at := func(sec, ms int) time.Time { return time.Date(2026, 3, 4, 10, 0, sec, ms*1e6, time.UTC) }
	want := []Sample{
		{Index: 0, Time: at(0, 500), Uptime: 4083029 * time.Millisecond, HasTime: true},
		{Index: 9, Time: at(10, 0), Uptime: 4093530 * time.Millisecond, HasTime: true},
		{Index: 10},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if _, err := fs.Stat(n.Files(), "x"); err == nil {
		t.Error("a folder that is no sample is one of Files")
	}
}

func TestSampleAbsence(t *testing.T) {
	const gaps = `[
		{"path":"nodes/n/samples/9/root/until-9","reason":"Timeout"},
		{"path":"nodes/n/samples/0/root/refused","reason":"Refused"},
		{"path":"nodes/n/samples/10/root/refused","reason":"NotFound"},
		{"path":"nodes/n/samples/10/root/only-root","reason":"NotFound"},
		{"path":"nodes/n/samples/7","reason":"Unreadable"},
		{"path":"nodes/n/samples/7/at.json","reason":"Unreadable"},
		{"path":"nodes/n/root/in-root","reason":"Forbidden"}
	]`
	tests := []struct {
		file                      string
		none, complete, partial   string // in sample 10
		allComplete, allOfPartial string // in Files
	}{
		{"everywhere", "there", "there", "there", "there", "there"},
		{"empty", "there", "there", "there", "there", "there"},
		{"until-9", "not collected", "not exist", "not exist", "there", "there"},
		{"only-root", "not collected", "not collected", "not exist", "there", "there"},
		{"refused", "not collected", "not exist", "not exist", "not exist", "gap Refused"},
		{"in-root", "not collected", "not exist", "gap Forbidden", "not exist", "gap Forbidden"},
		// Sample 7 has left nothing but a gap, and might have had it.
		{"nowhere", "not collected", "not exist", "not exist", "not exist", "gap Unreadable"},
	}
	none := sampled(t, nil)
	complete := sampled(t, map[string]string{gapsName: "[]"})
	partial := sampled(t, map[string]string{gapsName: gaps})
	for _, test := range tests {
		for _, c := range []struct {
			name, want string
			files      fs.FS
		}{
			{"no gaps.json, sample", test.none, none.Samples()[2].Files},
			{"no gaps, sample", test.complete, complete.Samples()[2].Files},
			{"gaps, sample", test.partial, partial.Samples()[2].Files},
			{"no gaps, all", test.allComplete, complete.Files()},
			{"gaps, all", test.allOfPartial, partial.Files()},
		} {
			_, err := fs.ReadFile(c.files, test.file)
			if got := kind(t, err); got != c.want {
				t.Errorf("%s: %s: %s, want %s", c.name, test.file, got, c.want)
			}
		}
	}
}

// A node that did not answer has no folder at all.
func TestNodeWithoutSamples(t *testing.T) {
	for gap, want := range map[string]string{
		"nodes/n":                      "gap Timeout",
		"nodes/n/root":                 "gap Timeout",
		"nodes/n/root/sys":             "gap Timeout",
		"nodes/n/samples":              "gap Timeout",
		"nodes/n/samples/1":            "gap Timeout",
		"nodes/n/samples/1/root":       "gap Timeout",
		"nodes/n/samples/1/root/sys":   "gap Timeout",
		"nodes/n/samples/1/root/proc":  "not exist",
		"nodes/n/samples/1/at.json":    "not exist",
		"nodes/n/samples/1/root/sys/x": "not exist",
		"nodes/n2/samples":             "not exist",
		"cluster/n/samples":            "not exist",
	} {
		n := bundleOf(t, map[string]string{gapsName: `[{"path":"` + gap + `","reason":"Timeout"}]`}).Node("n")
		_, err := fs.ReadFile(n.Files(), "sys/fs/cgroup/cpu.stat")
		if got := kind(t, err); got != want {
			t.Errorf("gap on %s: %s, want %s", gap, got, want)
		}
	}
	n := bundleOf(t, map[string]string{gapsName: `[{"path":"nodes/n/samples/1/root/sys","reason":"NotFound"}]`}).Node("n")
	if _, err := fs.ReadFile(n.Files(), "sys/x"); kind(t, err) != "not exist" {
		t.Errorf("not found in a sample: %v", err)
	}
}

func TestParseAt(t *testing.T) {
	tests := map[string]bool{
		`{"time":"2026-03-04T10:00:00Z","uptimeSeconds":0}`:                true,
		`{"time":"2026-03-04T10:00:00.123456789+09:00","uptimeSeconds":1}`: true,
		`{"time":"2026-03-04T10:00:00Z","uptimeSeconds":1,"more":[]}`:      true,
		`{"time":"2026-03-04T10:00:00Z","uptimeSeconds":-1}`:               false,
		`{"time":"2026-03-04T10:00:00Z","uptimeSeconds":1e300}`:            false,
		`{"time":"2026-03-04T10:00:00Z","uptimeSeconds":1e400}`:            false,
		`{"time":"2026-03-04T10:00:00Z","uptimeSeconds":9223372037}`:       false,
		`{"time":"2026-03-04T10:00:00Z","uptimeSeconds":"1"}`:              false,
		`{"time":"2026-03-04T10:00:00Z","uptimeSeconds":null}`:             false,
		`{"time":"2026-03-04T10:00:00Z","uptimeseconds":1}`:                false,
		`{"time":"2026-03-04","uptimeSeconds":1}`:                          false,
		`{"uptimeSeconds":1}`: false,
		`{}`:                  false,
		``:                    false,
		`null`:                false,
	}
	for text, ok := range tests {
		if at, uptime, err := parseAt([]byte(text)); (err == nil) != ok {
			t.Errorf("%s: %v, %v, %v", text, at, uptime, err)
		}
	}
}
