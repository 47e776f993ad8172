package podresources

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/noderes/kubectl-noderes/pkg/alloc/hint"
)

const twoNodes = `{"list":{"pod_resources":[{"name":"a","namespace":"ns","containers":[{"name":"c","cpu_ids":["2","3"],
 "devices":[{"resource_name":"x.com/gpu","device_ids":["g0"],"topology":{"nodes":[{"ID":"0"}]}}]}]}]},
 "allocatable":{"cpu_ids":[1,2,3],"devices":[
  {"resource_name":"x.com/gpu","device_ids":["g0","g1"],"topology":{"nodes":[{"ID":0}]}},
  {"resource_name":"x.com/gpu","device_ids":["g2","g3"],"topology":{"nodes":[{"ID":1}]}},
  {"resource_name":"x.com/far","device_ids":["f0"]},
  {"resource_name":"x.com/wide","device_ids":["w0"],"topology":{"nodes":[{"ID":1}]}},
  {"resource_name":"x.com/wide","device_ids":["w0"],"topology":{"nodes":[{"ID":0}]}}]}}`

func TestRead(t *testing.T) {
	r, err := Read([]byte(twoNodes))
	if err != nil {
		t.Fatal(err)
	}
	if c, ok := r.Find("ns", "a", "c"); !ok || !cmp.Equal(c.CPUs, []int64{2, 3}) || c.Devices[0].ID != "g0" {
		t.Errorf("container a/c: %+v", c)
	}
	if last := r.Devices[len(r.Devices)-1]; !cmp.Equal(last, Device{"x.com/wide", "w0", []int{0, 1}}) {
		t.Errorf("a device on two nodes: %+v", last)
	}
	for _, bad := range []string{"", "[]", "{}", `{"allocatable":{"devices":[{"resource_name":"x","device_ids":["a"],"topology":{"nodes":[{"ID":64}]}}]}}`, `{"allocatable":{"cpu_ids":["x"]}}`} {
		if _, err := Read([]byte(bad)); err == nil {
			t.Errorf("%q: no error", bad)
		}
	}
}

func TestHints(t *testing.T) {
	r, err := Read([]byte(twoNodes))
	if err != nil {
		t.Fatal(err)
	}
	on := func(preferred bool, ids ...int) hint.Hint {
		m, _ := hint.MaskOf(ids...)
		return hint.Hint{Mask: m, Aligned: len(ids) > 0, Preferred: preferred}
	}
	all := Machine{NUMANodes: []int{0, 1, 2}}
	for _, tc := range []struct {
		name, resource, count string
		machine               Machine
		aHolds                bool
		want                  []hint.Hint
	}{
		{"one of four", "gpu", "1", Machine{[]int{0, 1, 2}, true}, false, []hint.Hint{on(true, 0), on(true, 1), on(false, 0, 1)}},
		{"two, one of node 0 in use", "gpu", "2", Machine{[]int{0, 1, 2}, true}, true, []hint.Hint{on(true, 1), on(false, 0, 1)}},
		{"three, over all nodes", "gpu", "3", all, true, []hint.Hint{on(true, 0, 1), on(false, 0, 1, 2)}},
		{"more than are free", "gpu", "4", all, true, []hint.Hint{}},
		{"no topology", "far", "1", all, false, []hint.Hint{on(true)}},
	} {
		pod := &corev1.Pod{}
		limits := corev1.ResourceList{corev1.ResourceName("x.com/" + tc.resource): resource.MustParse(tc.count), "cpu": resource.MustParse("2")}
		pod.Spec.Containers = []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{Limits: limits}}, {Name: "d"}}
		got, err := r.Hints(pod, tc.machine, func(string, string) bool { return tc.aHolds })
		want := []hint.Resource{{Name: "x.com/" + tc.resource, Hints: tc.want}}
		if err != nil || !cmp.Equal(want, got.Pod) || !cmp.Equal(map[string][]hint.Resource{"c": want}, got.Containers) {
			t.Errorf("%s: %v\n%s", tc.name, err, cmp.Diff(want, got.Pod))
		}
	}
}

// Whatever the file says, it is read or refused, and its nodes fit a mask.
func FuzzRead(f *testing.F) {
	f.Add([]byte(twoNodes))
	f.Add([]byte(`{"list":{"pod_resources":[{"containers":[{"cpu_ids":[-1,9e99]}]}]}}`))
	f.Add([]byte(`{"allocatable":{"devices":[{"topology":{"nodes":[{"ID":63},{"ID":-1}]}}]}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := Read(data)
		if err != nil {
			return
		}
		for _, d := range r.Devices {
			for _, id := range d.Nodes {
				if id < 0 || id > 63 {
					t.Errorf("device %q on NUMA node %d", d.ID, id)
				}
			}
		}
	})
}
