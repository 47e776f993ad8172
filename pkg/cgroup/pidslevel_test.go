package cgroup

import (
	"errors"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// pidsGroup takes "limit current peak events local"; "-" is not known.
func pidsGroup(t *testing.T, text string) PIDs {
	t.Helper()
	fields := strings.Fields(text)
	files := fstest.MapFS{}
	for i, name := range []string{"pids.max", "pids.current", "pids.peak", "pids.events", "pids.events.local"} {
		if fields[i] == "-" {
			continue
		}
		content := fields[i]
		if i > 2 {
			content = "max " + content
		}
		files["sys/fs/cgroup/g/"+name] = &fstest.MapFile{Data: []byte(content + "\n")}
	}
	p, errs := Group{FS: files, Path: "/g"}.PIDs()
	for name, err := range errs {
		if !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if len(errs) != 5-len(files) {
		t.Errorf("%s: errors for %v", text, slices.Collect(maps.Keys(errs)))
	}
	return p
}

func TestRefusingPIDs(t *testing.T) {
	for _, tc := range []struct {
		name   string
		groups []string // container, pod, kubepods
		index  int
		sure   bool
		ok     bool
	}{
		{"6.12: the pod's limit", []string{"7119 90 96 0 0", "100 100 100 12 12", "47466 210 300 12 0"}, 1, true, true},
		{"6.12: the container's limit", []string{"50 50 50 3 3", "100 60 60 3 0", "47466 210 300 3 0"}, 0, true, true},
		{"6.12: both, the pod's more", []string{"50 50 50 1 1", "100 60 100 41 40", "max 210 300 41 0"}, 1, true, true},
		{"6.12: a group that is gone", []string{"7119 5 5 0 0", "max 12 60 9 0"}, 0, false, false},
		{"6.12: nothing refused", []string{"7119 5 5 0 0", "100 12 100 0 0"}, 0, false, false},
		{"6.12, pids_localevents: the pod's limit", []string{"7119 90 96 12 0", "100 100 100 0 0", "47466 210 300 0 0"}, 1, true, true},
		{"6.1: the pod's limit, counted at the container", []string{"7119 97 99 5 -", "100 98 100 0 -", "47466 210 300 0 -"}, 1, true, true},
		{"6.1: the container's limit", []string{"50 20 50 5 -", "100 25 60 0 -", "47466 210 300 0 -"}, 0, true, true},
		{"6.1: two were full", []string{"50 20 50 5 -", "100 25 100 0 -", "47466 210 300 0 -"}, 0, false, true},
		{"5.10, without a peak: full now", []string{"max 99 - 5 -", "100 100 - 0 -", "47466 210 - 0 -"}, 1, false, true},
		{"5.10, without a peak: one limit only", []string{"max 9 - 5 -", "100 12 - 0 -", "max 210 - 0 -"}, 1, true, true},
		{"5.10, without a peak: the least limit", []string{"7119 9 - 5 -", "100 12 - 0 -", "47466 210 - 0 -"}, 1, false, true},
		{"6.1: no limit at all was read", []string{"- 9 9 5 -", "- 12 - 0 -"}, 0, false, false},
		{"6.1: nothing refused", []string{"7119 9 9 0 -", "100 12 100 0 -"}, 0, false, false},
		{"nothing read", []string{"- - - - -"}, 0, false, false},
		{"no groups", nil, 0, false, false},
	} {
		var groups []PIDs
		for _, text := range tc.groups {
			groups = append(groups, pidsGroup(t, text))
		}
		index, sure, ok := RefusingPIDs(groups)
		if ok != tc.ok || ok && (index != tc.index || sure != tc.sure) {
			t.Errorf("%s: %d, %t, %t", tc.name, index, sure, ok)
		}
	}
}

func TestPIDsFull(t *testing.T) {
	for text, want := range map[string][2]bool{
		"100 100 100 0 0": {true, true},
		"100 120 120 0 0": {true, true}, // a limit lowered below what is there
		"100 20 100 0 0":  {false, true},
		"100 20 99 0 0":   {false, false},
		"max 20 99 0 0":   {false, false},
		"- 20 99 0 0":     {false, false},
		"100 - - 0 0":     {false, false},
		"100 100 - 0 0":   {true, true},
	} {
		p := pidsGroup(t, text)
		if got := [2]bool{p.Full(), p.WasFull()}; got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
}
