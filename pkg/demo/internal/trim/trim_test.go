package main

import (
	"encoding/json"
	"io/fs"
	"slices"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

func TestTrim(t *testing.T) {
	const group = "root/sys/fs/cgroup/kubepods.slice/kubepods-pod1.slice/"
	keptFiles := []string{
		"bundle.json",
		"cluster/pods.json",
		"nodes/n/kernel.log",
		"nodes/n/root/proc/7/status",
		"nodes/n/root/sys/devices/system/cpu/cpu0/topology/core_id",
		"nodes/n/samples/0/at.json",
		"nodes/n/samples/0/" + group + "cpu.stat",
		"nodes/n/samples/1/" + group + "cpu.weight",
		"nodes/n/samples/1/root/sys/fs/cgroup/cpu.stat",
		"nodes/n/samples/1/root/sys/fs/cgroup/system.slice/cpu.stat",
	}
	leftOut := []string{
		"cluster/replicasets.json",
		"nodes/n/kubelet.log",
		"nodes/n/root/proc/7/schedstat",
		"nodes/n/root/sys/kernel/mm/transparent_hugepage/enabled",
		"nodes/n/samples/0/" + group + "cpu.weight",
		"nodes/n/samples/1/" + group + "io.stat",
		"nodes/n/samples/1/root/sys/fs/cgroup/system.slice/kubelet.service/cpu.stat",
		"nodes/n/samples/1/root/sys/fs/cgroup/system.slice/kubelet.service/a/cpu.stat",
	}
	recording := fstest.MapFS{"gaps.json": {Data: []byte(`[{"path":"nodes/n/metrics.txt","reason":"Timeout","detail":"too slow"}]`)}}
	for _, name := range slices.Concat(keptFiles, leftOut) {
		recording[name] = &fstest.MapFile{Data: []byte(name)}
	}

	got, err := trim(recording)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range keptFiles {
		if data, err := fs.ReadFile(got, name); err != nil || string(data) != name {
			t.Errorf("%s: %q, %v", name, data, err)
		}
	}
	if len(got) != len(keptFiles)+1 {
		t.Errorf("%d files, want %d and gaps.json", len(got), len(keptFiles))
	}
	var gaps []gap
	if err := json.Unmarshal(got["gaps.json"].Data, &gaps); err != nil {
		t.Fatal(err)
	}
	reasons := map[string]string{}
	for _, g := range gaps {
		reasons[g.Path] = g.Reason
	}
	want := map[string]string{
		"nodes/n/metrics.txt":                                               "Timeout",
		"cluster/replicasets.json":                                          "TooLarge",
		"nodes/n/kubelet.log":                                               "TooLarge",
		"nodes/n/root/proc/7/schedstat":                                     "TooLarge",
		"nodes/n/root/sys/kernel":                                           "TooLarge",
		"nodes/n/samples/0/" + group + "cpu.weight":                         "TooLarge",
		"nodes/n/samples/1/" + group + "io.stat":                            "TooLarge",
		"nodes/n/samples/1/root/sys/fs/cgroup/system.slice/kubelet.service": "TooLarge",
	}
	if diff := cmp.Diff(want, reasons); diff != "" {
		t.Errorf("gaps (-want +got):\n%s", diff)
	}
}

func TestTrimWithoutGaps(t *testing.T) {
	if _, err := trim(fstest.MapFS{"bundle.json": {}}); err == nil {
		t.Error("a bundle that does not say what it lacks cannot be cut")
	}
}
