package diagnose

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/noderes/kubectl-noderes/pkg/cgroup"
	"github.com/noderes/kubectl-noderes/pkg/report"
	"github.com/noderes/kubectl-noderes/pkg/snapshot"
)

// exhaustive damages every file in every way, which takes minutes; else each is
// damaged in one way, in turn.
var exhaustive = flag.Bool("exhaustive", false, "damage every file in every way")

// damages are what a file may hold by accident or by malice.
var damages = map[string]string{
	"empty":    "",
	"garbage":  "\x1b]0;zq9\a { \"a\": [ -0x \xff\xfe",
	"max":      "max\n",
	"negative": "-1\n",
	"2^64":     "18446744073709551616\n",
	"NULs":     strings.Repeat("\x00", 64<<10),
}

// readTree notes which files are read.
type readTree struct {
	tree
	read map[string]bool
}

func (t readTree) Open(name string) (fs.File, error) {
	t.read[name] = true
	return t.tree.Open(name)
}

// One file of a pod's cgroups, or of its node, is lost or holds something else.
// Whatever that is, there is a report, nothing in it is proven by what cannot
// be understood, and with less known nothing new is proven.
func TestDamagedFile(t *testing.T) {
	for _, c := range []struct {
		name string
		on   func(testing.TB) *bundle
	}{{"oom", oomPod}, {"throttled", throttledPod}, {"excl-a", exclusivePod}, {"oom-pod", podLimitPod}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := c.on(t)
			lighten(b)
			whole := readTree{b.fsys(), map[string]bool{}}
			proven := map[string]bool{}
			for _, f := range explainTree(t, whole, b).Findings {
				proven[spelled(f)] = true
			}
			runs := 0
			for i, file := range slices.Sorted(maps.Keys(whole.MapFS)) {
				if file == "bundle.json" || strings.HasPrefix(file, "cluster/") {
					continue
				}
				// A file that nobody reads can do harm only by its absence. Of the
				// first sample only counters are read: one damage of each is enough.
				first := strings.Contains(file, "/samples/0/")
				kinds := slices.Sorted(maps.Keys(damages))
				if !*exhaustive || first {
					kinds = kinds[i%len(kinds):][:1]
				}
				switch lost := *exhaustive || i%8 == 0; {
				case !whole.read[file] && (first || !lost):
					kinds = nil
				case !whole.read[file]:
					kinds = []string{"lost"}
				case lost:
					kinds = append(kinds, "lost")
				}
				d := damage{t: t, b: b, whole: whole.tree, proven: proven, file: file}
				for _, kind := range kinds {
					d.run(kind)
					runs++
				}
			}
			if runs < 60 {
				t.Errorf("only %d runs", runs)
			}
			t.Logf("%d runs", runs)
		})
	}
}

// lighten takes away of a recording what costs time at every reading and is
// damaged elsewhere: the machine's files but one, the kernel log but its end.
func lighten(b *bundle) {
	maps.DeleteFunc(b.files, func(file, _ string) bool {
		return strings.Contains(file, "/root/sys/devices/") && !strings.HasSuffix(file, "/online")
	})
	log := "nodes/" + b.node + "/kernel.log"
	text := b.files[log]
	b.files[log] = text[max(0, len(text)-16<<10):]
}

func explainTree(t testing.TB, fsys fs.FS, b *bundle) report.Report {
	t.Helper()
	s, err := snapshot.FromFS(fsys)
	if err != nil {
		t.Fatal(err)
	}
	r, err := Pod(s, b.pod().Namespace, b.pod().Name, Options{})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

type damage struct {
	t      *testing.T
	b      *bundle
	whole  tree
	proven map[string]bool // with the file whole
	file   string
}

// run reports on the bundle with one file damaged.
func (d damage) run(kind string) {
	t := d.t
	defer func() {
		if p := recover(); p != nil {
			t.Errorf("%s of %s: panic: %v", kind, d.file, p)
		}
	}()
	fsys := tree{maps.Clone(d.whole.MapFS), d.whole.folders}
	if kind == "lost" {
		delete(fsys.MapFS, d.file)
		fsys = relisted(fsys.MapFS)
	} else {
		fsys.MapFS[d.file] = &fstest.MapFile{Data: []byte(damages[kind])}
	}
	s, err := snapshot.FromFS(fsys)
	if err != nil {
		if d.file != "gaps.json" {
			t.Errorf("%s of %s: %v", kind, d.file, err)
		}
		return
	}
	r, err := Pod(s, d.b.pod().Namespace, d.b.pod().Name, Options{})
	if err != nil {
		t.Errorf("%s of %s: %v", kind, d.file, err)
		return
	}
	if len(r.Findings) == 0 {
		t.Errorf("%s of %s: no finding", kind, d.file)
	}
	for _, w := range malformed(r) {
		t.Errorf("%s of %s: %s", kind, d.file, w)
	}
	_, inNode, _ := strings.Cut(d.file, "/root/")
	if legitimate(inNode, damages[kind]) {
		return
	}
	for _, f := range r.Findings {
		cites := kind != "lost" && slices.ContainsFunc(f.Because, func(e report.Evidence) bool { return cited(e.Source, d.file, inNode) })
		switch {
		case f.Confidence != report.Proven:
		case f.Code == report.KubeletCheckpointInvalid, f.Code == report.EvidenceMissing, f.Code == report.OOMCauseUnproven:
			// These speak of what is damaged or lost.
		case cites:
			t.Errorf("%s of %s proves %s", kind, d.file, spelled(f))
		case !d.proven[spelled(f)]:
			t.Errorf("%s of %s, and less is known: now %s", kind, d.file, spelled(f))
		}
	}
}

// relisted lists the folders of a tree that has lost a file.
func relisted(files fstest.MapFS) tree {
	t := tree{MapFS: fstest.MapFS{}, folders: map[string]fstest.MapFS{}}
	for file, f := range files {
		t.add(file, f.Data)
	}
	return t
}

// cited says whether a source of evidence is a file of the bundle.
func cited(source, file, inNode string) bool {
	for k := range 2 {
		if strings.Contains(file, fmt.Sprintf("/samples/%d/", k)) {
			return source == fmt.Sprintf("node:/%s@%d", inNode, k)
		}
	}
	return inNode != "" && source == "node:/"+inNode || strings.HasSuffix(file, "kernel.log") && source == "kernel:log"
}

// legitimate says whether the kernel could have written the text into the file.
func legitimate(file, text string) bool {
	name := path.Base(file)
	g := cgroup.Group{FS: fstest.MapFS{"sys/fs/cgroup/g/" + name: {Data: []byte(text)}}, Path: "/g"}
	var err error
	switch name {
	case "memory.max":
		_, err = g.MemoryMax()
	case "memory.high":
		_, err = g.MemoryHigh()
	case "memory.low":
		_, err = g.MemoryLow()
	case "memory.min":
		_, err = g.MemoryMin()
	case "oom_score_adj":
		_, err = strconv.Atoi(strings.TrimSpace(text))
	case "cpuset.cpus":
		_, err = g.CPUSetCPUs()
	case "cpuset.cpus.effective":
		_, err = g.CPUSetCPUsEffective()
	default:
		err = errors.ErrUnsupported
	}
	return err == nil
}
