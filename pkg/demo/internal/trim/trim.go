package main

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing/fstest"
)

// kept are the files of a recording that explaining its pods needs, as
// patterns of path.Match; a trailing /** takes a whole folder.
var kept = []string{
	"bundle.json",
	"cluster/pods.json",
	"cluster/nodes.json",
	"cluster/events.json",
	"nodes/*/configz.json",
	"nodes/*/lscpu.txt",
	"nodes/*/kernel.log",
	"nodes/*/root/sys/devices/system/cpu/**",
	"nodes/*/root/sys/devices/system/node/**",
	"nodes/*/root/proc/*",
	"nodes/*/root/proc/pressure/*",
	"nodes/*/root/proc/sys/vm/*",
	"nodes/*/root/proc/[1-9]*/cgroup",
	"nodes/*/root/proc/[1-9]*/oom_score_adj",
	"nodes/*/root/proc/[1-9]*/status",
	"nodes/*/root/var/lib/kubelet/*",
	"nodes/*/samples/*/at.json",
	"nodes/*/samples/*/root/proc/**",
}

// keptGroups are the cgroups whose files are kept, relative to the mount.
var keptGroups = []string{".", "system.slice", "kubepods.slice/**", "kubepods/**"}

// keptStates are the files kept of such a group in the last sample: what the
// group is set to and holds now.
var keptStates = []string{
	"cgroup.controllers",
	"cgroup.procs",
	"cpu.idle",
	"cpu.max",
	"cpu.pressure",
	"cpu.stat",
	"cpu.stat.local",
	"cpu.weight",
	"cpuset.*",
	"memory.*",
	"pids.*",
}

// keptCounters are those kept in earlier samples: what a difference of two
// samples is made of.
var keptCounters = []string{
	"cpu.max",
	"cpu.pressure",
	"cpu.stat",
	"cpu.stat.local",
	"memory.current",
	"memory.events",
	"memory.events.local",
	"memory.pressure",
	"memory.stat",
	"pids.events",
	"pids.events.local",
}

const (
	cgroupMount  = "/root/sys/fs/cgroup/"
	samplePrefix = "/samples/"
)

// keep says whether a file of a recording is kept; last is its last sample.
func keep(name string, last int) bool {
	node, inGroup, found := strings.Cut(name, cgroupMount)
	if !found {
		return matchAny(kept, name)
	}
	files := keptStates
	if _, k, ok := strings.Cut(node, samplePrefix); ok && k != strconv.Itoa(last) {
		files = keptCounters
	}
	dir, file := path.Split(inGroup)
	return matchAny(keptGroups, path.Clean(dir)) && matchAny(files, file)
}

// lastSample is the highest number of a sample in the recording, -1 without any.
func lastSample(recording fs.FS) (int, error) {
	dirs, err := fs.Glob(recording, "nodes/*"+samplePrefix+"*")
	last := -1
	for _, dir := range dirs {
		if k, err := strconv.Atoi(path.Base(dir)); err == nil {
			last = max(last, k)
		}
	}
	return last, err
}

func matchAny(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return match(p, name) })
}

func match(pattern, name string) bool {
	if p, below := strings.CutSuffix(pattern, "/**"); below {
		depth := strings.Count(p, "/") + 1
		parts := strings.SplitN(name, "/", depth+1)
		pattern, name = p, strings.Join(parts[:min(depth, len(parts))], "/")
	}
	ok, err := path.Match(pattern, name)
	return err == nil && ok
}

// gap is an entry of gaps.json.
type gap struct {
	Path   string `json:"path"`
	Reason string `json:"reason"`
	Detail string `json:"detail,omitempty"`
}

// trim copies what is kept of a recording. What is left out did exist on the
// node, so the copy's gaps.json names it, by the topmost folder of which
// nothing is kept: without that, a reader would take it for absent.
func trim(recording fs.FS) (fstest.MapFS, error) {
	last, err := lastSample(recording)
	if err != nil {
		return nil, err
	}
	out := fstest.MapFS{}
	var left []string
	hasKept := map[string]bool{}
	err = fs.WalkDir(recording, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || name == "gaps.json" {
			return err
		}
		if !keep(name, last) {
			left = append(left, name)
			return nil
		}
		data, err := fs.ReadFile(recording, name)
		if err != nil {
			return err
		}
		out[name] = &fstest.MapFile{Data: data, Mode: 0o644}
		for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
			hasKept[dir] = true
		}
		return nil
	})
	if err != nil {
		return nil, err
	}

	gaps, err := readGaps(recording)
	if err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	for _, name := range left {
		for dir := path.Dir(name); dir != "." && !hasKept[dir]; dir = path.Dir(dir) {
			name = dir
		}
		if !seen[name] {
			seen[name] = true
			gaps = append(gaps, gap{Path: name, Reason: "TooLarge", Detail: "left out to keep the embedded recording small"})
		}
	}
	slices.SortFunc(gaps, func(a, b gap) int { return strings.Compare(a.Path, b.Path) })
	data, err := json.Marshal(gaps)
	if err != nil {
		return nil, err
	}
	out["gaps.json"] = &fstest.MapFile{Data: data, Mode: 0o644}
	return out, nil
}

func readGaps(recording fs.FS) ([]gap, error) {
	data, err := fs.ReadFile(recording, "gaps.json")
	if err != nil {
		return nil, fmt.Errorf("a recording must say what it lacks: %w", err)
	}
	var gaps []gap
	if err := json.Unmarshal(data, &gaps); err != nil {
		return nil, fmt.Errorf("gaps.json: %w", err)
	}
	return gaps, nil
}
