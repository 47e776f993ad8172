package reader

import (
	"bytes"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/noderes/kubectl-noderes/pkg/demo"
)

// shell is a shell with the tools that the script uses.
type shell struct {
	name string
	argv []string
	path string // $PATH
}

// shells are those that this machine has. The tools of busybox and toybox are
// reached by links, as in their images.
func shells(t *testing.T) []shell {
	t.Helper()
	var found []shell
	for _, name := range []string{"dash", "bash", "mksh"} {
		if program, err := exec.LookPath(name); err == nil {
			found = append(found, shell{name, []string{program}, os.Getenv("PATH")})
		}
	}
	links := func(box string) string {
		dir := t.TempDir()
		for _, tool := range []string{"cat", "date", "sleep", "dmesg", "tail"} {
			if err := os.Symlink(box, filepath.Join(dir, tool)); err != nil {
				t.Fatal(err)
			}
		}
		return dir
	}
	if box, err := exec.LookPath("busybox"); err == nil {
		found = append(found, shell{"busybox", []string{box, "sh"}, links(box)})
	}
	if box, err := exec.LookPath("toybox"); err == nil && len(found) > 0 {
		found = append(found, shell{"toybox tools", found[0].argv, links(box)})
	}
	if len(found) == 0 {
		t.Skip("SKIPPED: neither dash, bash, mksh nor busybox is here")
	}
	return found
}

// run gives what the script writes.
func (s shell) run(t *testing.T, o Options) []byte {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), s.argv[0], append(s.argv[1:], o.Command()[1:]...)...)
	cmd.Env = []string{"PATH=" + s.path}
	cmd.Stdin = strings.NewReader(Script)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil || errs.Len() > 0 {
		t.Fatalf("%v: %s", err, errs.Bytes())
	}
	return out.Bytes()
}

func (s shell) read(t *testing.T, o Options) Reading {
	t.Helper()
	r, err := Read(bytes.NewReader(s.run(t, o)), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// tree writes files below a folder.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func texts(files []File) map[string]string {
	m := map[string]string{}
	for _, f := range files {
		if f.Path != KernelLog { // this machine's
			m[f.Path] = string(f.Data)
		}
	}
	return m
}

const (
	group = "sys/fs/cgroup/kubepods.slice/kubepods-pod00000000_aaaa_bbbb_cccc_000000000001.slice/"
	own   = "sys/fs/cgroup/kubepods.slice/kubepods-pod00000000_aaaa_bbbb_cccc_000000000002.slice/"
)

// What is read, to the byte, and what is not.
func TestScript(t *testing.T) {
	const uptime = "100.25 700.00\n"
	counters := map[string]string{
		group + "cpu.stat":                                    "usage_usec 1\n",
		group + "cri.scope/memory.events":                     "oom 0\n가\n",
		group + "cri.scope/deep er/x\\x2dy/cpu.stat":          "no newline at the end",
		group + "cri.scope/memory.current":                    "",
		group + "cri.scope/memory.stat":                       "a separator \x1e inside\n\n\n",
		"sys/fs/cgroup/cpu.stat":                              "usage_usec 9\n",
		"sys/fs/cgroup/system.slice/cpu.stat":                 "usage_usec 2\n",
		"sys/fs/cgroup/system.slice/kubelet.service/cpu.stat": "usage_usec 3\n",
		"proc/uptime":       uptime,
		"proc/stat":         "cpu 1\n",
		"proc/pressure/cpu": "some\n",
		group + "cpu.max":   "max 100000\n", // what a rate of throttling is compared with
	}
	states := map[string]string{
		"sys/fs/cgroup/cgroup.controllers": "cpu memory\n",
		group + "hugetlb.2MB.max":          "0\n",
	}
	once := map[string]string{
		"sys/devices/system/cpu/online":                          "0-1\n",
		"sys/devices/system/cpu/cpu1/topology/core_id":           "1\n",
		"sys/devices/system/cpu/cpu1/topology/core_cpus_list":    "0-1\n",
		"sys/devices/system/cpu/cpu1/cache/index3/size":          "16K\n",
		"sys/devices/system/node/node0/meminfo":                  "MemTotal\n",
		"sys/devices/system/node/node0/hugepages/h/nr_hugepages": "0\n",
		"sys/kernel/mm/transparent_hugepage/enabled":             "always\n",
		"proc/cmdline":                         "quiet\n",
		"proc/sys/kernel/pid_max":              "4194304\n",
		"proc/7/cgroup":                        "0::/../../kubepods-pod00000000_aaaa_bbbb_cccc_000000000001.slice/cri.scope\n",
		"proc/7/status":                        "Name:\tapp\n",
		"proc/8/cgroup":                        "0::/../../burstable/pod00000000-aaaa-bbbb-cccc-000000000003/1\n",
		"proc/8/oom_score_adj":                 "5\n",
		"var/lib/kubelet/cpu_manager_state":    `{"no newline":1}`,
		"var/lib/kubelet/memory_manager_state": "",
	}
	unread := map[string]string{
		own + "cpu.stat":               "own\n",
		"proc/9/cgroup":                "0::/../../kubepods-pod00000000_aaaa_bbbb_cccc_000000000002.slice/own.scope\n",
		"proc/9/status":                "own\n",
		"proc/1/cgroup":                "0::/../../../init.scope\n",
		"proc/1/status":                "Name:\tinit\n",
		"proc/7/cmdline":               "secret",
		"proc/7/environ":               "secret",
		group + "memory.reclaim":       "",
		group + "hugetlb.2MB.rsvd.max": "0\n",
		"sys/fs/cgroup/system.slice/other.service/cpu.stat": "",
		"sys/devices/system/cpu/cpu1/topology/ppin":         "1",
		"var/lib/kubelet/pki/kubelet.key":                   "secret",
		group + "new\nline/cpu.stat":                        "",
	}
	all := map[string]string{}
	for _, files := range []map[string]string{counters, states, once, unread} {
		maps.Copy(all, files)
	}
	root := tree(t, all)
	if err := os.MkdirAll(filepath.Join(root, group, "dir", "cpu.max"), 0o755); err != nil { // cannot be read
		t.Fatal(err)
	}
	last := maps.Clone(counters)
	maps.Copy(last, states)
	for _, s := range shells(t) {
		for _, scratch := range []string{t.TempDir(), "", filepath.Join(root, "not", "there")} {
			o := Options{Root: root, SkipPod: "00000000-aaaa-bbbb-cccc-000000000002", Scratch: scratch}
			t.Run(s.name+" with scratch "+fmt.Sprint(scratch != ""), func(t *testing.T) {
				r := s.read(t, o)
				same(t, "once", texts(r.Once), once)
				if len(r.Samples) != 1 {
					t.Fatalf("%d samples", len(r.Samples))
				}
				same(t, "sample", texts(r.Samples[0].Files), last)
				if begin := r.Samples[0].Begin; begin.Uptime != 100250*time.Millisecond || time.Since(begin.Node).Abs() > time.Minute {
					t.Errorf("clock %+v", begin)
				}
				failed := slices.DeleteFunc(r.Failed, func(f Failure) bool { return f.Path == KernelLog })
				if len(failed) != 1 || failed[0].Path != group+"dir/cpu.max" || !strings.Contains(failed[0].Message, "directory") {
					t.Errorf("failed: %+v", failed)
				}
			})
		}
	}
	o := Options{Root: root, SkipPod: "00000000-aaaa-bbbb-cccc-000000000002", Scratch: t.TempDir(), Sample: time.Second}
	begin := time.Now()
	r := shells(t)[0].read(t, o)
	if len(r.Samples) != 2 || time.Since(begin) < time.Second {
		t.Fatalf("%d samples after %s", len(r.Samples), time.Since(begin))
	}
	same(t, "first sample", texts(r.Samples[0].Files), counters)
	same(t, "last sample", texts(r.Samples[1].Files), last)
}

func same(t *testing.T, what string, got, want map[string]string) {
	t.Helper()
	for path, text := range want {
		if data, ok := got[path]; !ok || data != text {
			t.Errorf("%s: %s is %q, %v, want %q", what, path, data, ok, text)
		}
	}
	for path := range got {
		if _, ok := want[path]; !ok {
			t.Errorf("%s: %s was read", what, path)
		}
	}
}

// A container reads its own cgroup: what is mounted if it has a cgroup namespace,
// else the one it is in.
func TestScriptInContainer(t *testing.T) {
	for own, folder := range map[string]string{"0::/\n": "sys/fs/cgroup/", "0::/kubepods/pod1/c\n": "sys/fs/cgroup/kubepods/pod1/c/"} {
		root := tree(t, map[string]string{
			"proc/self/cgroup": own, "proc/uptime": "1.5 1\n", "proc/meminfo": "x", "proc/7/status": "x",
			folder + "cgroup.controllers": "cpu\n", folder + "cpu.max": "max 100000\n", folder + "a/cpu.stat": "usage_usec 1\n",
		})
		for _, s := range shells(t) {
			r := s.read(t, Options{Root: root, Container: true})
			same(t, "once", texts(r.Once), map[string]string{"proc/self/cgroup": own})
			same(t, "sample", texts(r.Samples[0].Files), map[string]string{
				folder + "cgroup.controllers": "cpu\n", folder + "cpu.max": "max 100000\n", folder + "a/cpu.stat": "usage_usec 1\n",
			})
		}
	}
}

// TestScriptOnRecording: of a recorded node it reads what was recorded, and
// starts a handful of processes for that.
func TestScriptOnRecording(t *testing.T) {
	snap, err := demo.Open(demo.Default)
	if err != nil {
		t.Fatal(err)
	}
	node := snap.Node(demo.Default).Files()
	root := t.TempDir()
	recorded := map[string]bool{}
	err = fs.WalkDir(node, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := fs.ReadFile(node, path)
		if err != nil {
			return err
		}
		recorded[path] = true
		if err := os.MkdirAll(filepath.Dir(filepath.Join(root, path)), 0o755); err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(root, path), data, 0o644)
	})
	if err != nil {
		t.Fatal(err)
	}
	s := shells(t)[0]
	tools := t.TempDir()
	for _, tool := range []string{"cat", "date", "dmesg", "sleep", "tail"} {
		program, err := exec.LookPath(tool)
		if err != nil {
			continue
		}
		script := fmt.Sprintf("#!/bin/sh\necho >>%s/calls\nexec %s \"$@\"\n", tools, program)
		if err := os.WriteFile(filepath.Join(tools, tool), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	s.path = tools
	r := s.read(t, Options{Root: root, Scratch: t.TempDir()})
	got := texts(append(r.Once, r.Samples[0].Files...))
	var missed []string
	for path := range recorded {
		if _, ok := got[path]; !ok && !slices.Contains(notRead, filepath.Base(path)) && !strings.HasSuffix(path, "_map") && !strings.HasSuffix(path, "_cpus") {
			missed = append(missed, path)
		}
		if data, err := fs.ReadFile(node, path); got[path] != "" && (err != nil || got[path] != string(data)) {
			t.Errorf("%s differs from what was recorded", path)
		}
	}
	slices.Sort(missed)
	if len(missed) > 0 || len(got) < 1000 {
		t.Errorf("of %d read %d, without %d: %v", len(recorded), len(got), len(missed), missed[:min(len(missed), 40)])
	}
	calls, err := os.ReadFile(filepath.Join(tools, "calls"))
	if n := len(calls); err != nil || n > len(got)/most+12 {
		t.Errorf("%d processes for %d files, %v", n, len(got), err)
	}
}

// most is that of the script.
const most = 200

// notRead are recorded files that no finding needs.
var notRead = []string{
	"cgroup.procs", "cgroup.threads", "mounts", "modalias", "crash_hotplug", "cpumap", "thread_siblings", "core_siblings", "zoneinfo",
	"actuated_pods_state", "allocated_pods_state", "dra_manager_state", "ignored", "delayed", "failed", "recovered", "total",
}
