package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// testPod has containers named a, b, ... with the given IDs.
func testPod(qos corev1.PodQOSClass, uid string, ids ...string) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: types.UID(uid)}}
	pod.Status.QOSClass = qos
	for i, id := range ids {
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses,
			corev1.ContainerStatus{Name: string(rune('a' + i)), ContainerID: id})
	}
	return pod
}

// layout is a PodGroups as paths below the pod's group.
type layout struct {
	Pod        string
	QOS        corev1.PodQOSClass
	Containers []string // "name runtime dir [subgroup] nested..."
	Unknown    []string
	Ancestors  []string
}

func layoutOf(g PodGroups) layout {
	below := func(base, x Group) string { return strings.TrimPrefix(x.Path, base.Path+"/") }
	l := layout{Pod: g.Pod.Path, QOS: g.QOS}
	for _, c := range g.Containers {
		words := []string{c.Name, c.Runtime, strings.ReplaceAll(below(g.Pod, c.Group), c.ID, "ID")}
		if c.Subgroup != "" {
			words = append(words, "["+c.Subgroup+"]")
		}
		for _, nested := range c.Nested {
			words = append(words, below(c.Group, nested))
		}
		l.Containers = append(l.Containers, strings.Join(words, " "))
	}
	for _, u := range g.Unknown {
		l.Unknown = append(l.Unknown, below(g.Pod, u))
	}
	for _, a := range g.Ancestors {
		l.Ancestors = append(l.Ancestors, a.Path)
	}
	return l
}

func TestTreePod(t *testing.T) {
	const hash = "0123456789abcdef0123456789abcdef"
	idA, idB, idC := testID("a"), testID("b"), testID("c")
	burstable := "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" + testUID_ + ".slice"
	burstableUp := []string{"/kubepods.slice/kubepods-burstable.slice", "/kubepods.slice", "/"}
	static := testPod(corev1.PodQOSBurstable, testUID, "containerd://"+idA)
	static.Annotations = map[string]string{"kubernetes.io/config.mirror": hash, "kubernetes.io/config.hash": hash}
	withInit := testPod(corev1.PodQOSBurstable, testUID, "containerd://"+idA)
	withInit.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "proxy", ContainerID: "containerd://" + idB}}
	withInit.Status.EphemeralContainerStatuses = []corev1.ContainerStatus{{Name: "debug", ContainerID: "containerd://" + idC}}

	for name, tc := range map[string]struct {
		groups []string
		pod    *corev1.Pod
		want   layout
	}{
		"containerd, systemd": {
			[]string{burstable + "/cri-containerd-" + idA + ".scope", burstable + "/cri-containerd-" + idB + ".scope"},
			testPod(corev1.PodQOSBurstable, testUID, "containerd://"+idB),
			layout{burstable, corev1.PodQOSBurstable, []string{"a cri-containerd cri-containerd-ID.scope"},
				[]string{"cri-containerd-" + idA + ".scope"}, burstableUp},
		},
		"containerd, cgroupfs, Guaranteed": {
			[]string{"/kubepods/pod" + testUID + "/" + idA, "/kubepods/pod" + testUID + "/" + idB},
			testPod(corev1.PodQOSGuaranteed, testUID, "containerd://"+idA),
			layout{"/kubepods/pod" + testUID, corev1.PodQOSGuaranteed, []string{"a  ID"}, []string{idB}, []string{"/kubepods", "/"}},
		},
		"init, sidecar and ephemeral containers": {
			[]string{burstable + "/cri-containerd-" + idA + ".scope", burstable + "/cri-containerd-" + idB + ".scope",
				burstable + "/cri-containerd-" + idC + ".scope"},
			withInit,
			layout{burstable, corev1.PodQOSBurstable, []string{"proxy cri-containerd cri-containerd-ID.scope",
				"a cri-containerd cri-containerd-ID.scope", "debug cri-containerd cri-containerd-ID.scope"}, nil, burstableUp},
		},
		"CRI-O with conmon, no sandbox": {
			[]string{burstable + "/crio-" + idA + ".scope", burstable + "/crio-conmon-" + idA + ".scope"},
			testPod(corev1.PodQOSBurstable, testUID, "cri-o://"+idA),
			layout{burstable, corev1.PodQOSBurstable, []string{"a crio crio-ID.scope"}, nil, burstableUp},
		},
		"CRI-O, cgroupfs": {
			[]string{"/kubepods/besteffort/pod" + testUID + "/crio-" + idA, "/kubepods/besteffort/pod" + testUID + "/crio-conmon-" + idA},
			testPod(corev1.PodQOSBestEffort, testUID, "cri-o://"+idA),
			layout{"/kubepods/besteffort/pod" + testUID, corev1.PodQOSBestEffort, []string{"a crio crio-ID"}, nil,
				[]string{"/kubepods/besteffort", "/kubepods", "/"}},
		},
		"cri-dockerd": {
			[]string{burstable + "/docker-" + idA + ".scope", burstable + "/docker-" + idB + ".scope"},
			testPod(corev1.PodQOSBurstable, testUID, "docker://"+idA),
			layout{burstable, corev1.PodQOSBurstable, []string{"a docker docker-ID.scope"}, []string{"docker-" + idB + ".scope"}, burstableUp},
		},
		"crun": {
			[]string{burstable + "/crio-" + idA + ".scope/container"},
			testPod(corev1.PodQOSBurstable, testUID, "cri-o://"+idA),
			layout{burstable, corev1.PodQOSBurstable, []string{"a crio crio-ID.scope [container]"}, nil, burstableUp},
		},
		"crun with systemd inside": {
			[]string{burstable + "/crio-" + idA + ".scope/container/init.scope", burstable + "/crio-" + idA + ".scope/container/system.slice/a.service"},
			testPod(corev1.PodQOSBurstable, testUID, "cri-o://"+idA),
			layout{burstable, corev1.PodQOSBurstable, []string{"a crio crio-ID.scope [container] container/init.scope container/system.slice container/system.slice/a.service"},
				nil, burstableUp},
		},
		"groups of the application": {
			[]string{burstable + "/cri-containerd-" + idA + ".scope/jobs/1", burstable + "/cri-containerd-" + idA + ".scope/jobs/2"},
			testPod(corev1.PodQOSBurstable, testUID, "containerd://"+idA),
			layout{burstable, corev1.PodQOSBurstable, []string{"a cri-containerd cri-containerd-ID.scope jobs jobs/1 jobs/2"}, nil, burstableUp},
		},
		"static pod": {
			[]string{"/kubepods/burstable/pod" + hash + "/" + idA},
			static,
			layout{"/kubepods/burstable/pod" + hash, corev1.PodQOSBurstable, []string{"a  ID"}, nil, []string{"/kubepods/burstable", "/kubepods", "/"}},
		},
		"UID of a manifest": {
			[]string{"/kubepods.slice/kubepods-podmy_static.slice"},
			testPod(corev1.PodQOSGuaranteed, "my-static"),
			layout{"/kubepods.slice/kubepods-podmy_static.slice", corev1.PodQOSGuaranteed, nil, nil, []string{"/kubepods.slice", "/"}},
		},
		"kind": {
			[]string{"/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-besteffort.slice/kubelet-kubepods-besteffort-pod" + testUID_ +
				".slice/cri-containerd-" + idA + ".scope"},
			testPod(corev1.PodQOSBestEffort, testUID, "containerd://"+idA),
			layout{"/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-besteffort.slice/kubelet-kubepods-besteffort-pod" + testUID_ + ".slice",
				corev1.PodQOSBestEffort, []string{"a cri-containerd cri-containerd-ID.scope"}, nil,
				[]string{"/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-besteffort.slice", "/kubelet.slice/kubelet-kubepods.slice", "/kubelet.slice", "/"}},
		},
		"QoS class not known": {
			[]string{burstable},
			testPod("", testUID),
			layout{burstable, corev1.PodQOSBurstable, nil, nil, burstableUp},
		},
		"QoS class other than the place": {
			[]string{burstable},
			testPod(corev1.PodQOSGuaranteed, testUID),
			layout{burstable, corev1.PodQOSBurstable, nil, nil, burstableUp},
		},
		"in another tree than the first": {
			[]string{"/docker/" + idA + "/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-pod" + strings.ReplaceAll(testUID_, "8", "9") + ".slice",
				"/docker/" + idB + "/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-pod" + testUID_ + ".slice"},
			testPod(corev1.PodQOSGuaranteed, testUID),
			layout{"/docker/" + idB + "/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-pod" + testUID_ + ".slice", corev1.PodQOSGuaranteed, nil, nil,
				[]string{"/docker/" + idB + "/kubelet.slice/kubelet-kubepods.slice", "/docker/" + idB + "/kubelet.slice", "/docker/" + idB, "/docker", "/"}},
		},
		"one ID twice": {
			[]string{burstable + "/cri-containerd-" + idA + ".scope", burstable + "/crio-" + idA + ".scope"},
			testPod(corev1.PodQOSBurstable, testUID, "containerd://"+idA, "containerd://"+idA),
			layout{burstable, corev1.PodQOSBurstable, []string{"a cri-containerd cri-containerd-ID.scope"},
				[]string{"crio-" + idA + ".scope"}, burstableUp},
		},
		"containers without group": {
			[]string{burstable + "/not-a-container", burstable + "/cri-containerd-" + idB + ".scope"},
			testPod(corev1.PodQOSBurstable, testUID, "", "containerd://"+idA, "containerd://../../x"),
			layout{burstable, corev1.PodQOSBurstable, nil, []string{"cri-containerd-" + idB + ".scope"}, burstableUp},
		},
	} {
		t.Run(name, func(t *testing.T) {
			tree, err := FindTree(groupTree(tc.groups...))
			if err != nil {
				t.Fatal(err)
			}
			got, err := tree.Pod(tc.pod)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, layoutOf(got)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if got.UID != PodUID(tc.pod) {
				t.Errorf("UID %q", got.UID)
			}
			for _, c := range got.Containers {
				if c.NestedErr != nil {
					t.Error(c.NestedErr)
				}
				if _, err := c.Group.Controllers(); err != nil {
					t.Errorf("%s cannot be read: %v", c.Name, err)
				}
			}
		})
	}
}

func TestRecordedPods(t *testing.T) {
	for _, tc := range []struct {
		tree string
		pod  *corev1.Pod
		want layout
	}{
		{"k612", testPod(corev1.PodQOSGuaranteed, "903e64c4-db59-4bbd-8a04-1f321f872b9c",
			"containerd://fd9ff228091566eb2ac745062f5c9f2815e874550618ddf3664dfa7c0d1bf282",
			"containerd://d2ab9bf96d6e9dc60fabfd8454f20f842c226b218bf3d73637505221b75ae119"),
			layout{k612Pod, corev1.PodQOSGuaranteed,
				[]string{"a cri-containerd cri-containerd-ID.scope", "b cri-containerd cri-containerd-ID.scope"},
				[]string{"cri-containerd-750050279203f19247116b6ba0855195a767f02fa97a30377e209571f7904bb0.scope"},
				[]string{"/kubepods.slice", "/"}}},
		// The second container is waiting in CrashLoopBackOff: no group.
		{"k612", testPod(corev1.PodQOSBurstable, "4e520831-a148-4f1a-8238-43c4f91d646a",
			"containerd://372af87849fb47d0d9c5710f3dbe76f07deb59913af4c246c0a5bd9d7aeab262",
			"containerd://e4506a9b6f4c3420674f45c095077d4d94c7f1addd47ea516402919fff59e839"),
			layout{"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod4e520831_a148_4f1a_8238_43c4f91d646a.slice",
				corev1.PodQOSBurstable, []string{"a cri-containerd cri-containerd-ID.scope"},
				[]string{"cri-containerd-7a8a33be0ced0255e24281f6f4bdcf900ea1639fd200363c1c22c7d18f2c36d4.scope"},
				[]string{"/kubepods.slice/kubepods-burstable.slice", "/kubepods.slice", "/"}}},
		{"k61", testPod(corev1.PodQOSBurstable, "f387ec74-06ad-427c-80f8-400e73e9069c",
			"containerd://9f80bac8a15ee510ae05c10a85200cc39e4f63974b7c97ed389bef33f61d5a42"),
			layout{"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-podf387ec74_06ad_427c_80f8_400e73e9069c.slice",
				corev1.PodQOSBurstable, []string{"a cri-containerd cri-containerd-ID.scope"},
				[]string{"cri-containerd-4420932ccac42f4f29f4d89e09883e1b04fa4a7d5f00805e49d92d0e0698c707.scope"},
				[]string{"/kubepods.slice/kubepods-burstable.slice", "/kubepods.slice", "/"}}},
	} {
		tree, err := FindTree(loadTree(t, tc.tree))
		if err != nil {
			t.Fatal(err)
		}
		got, err := tree.Pod(tc.pod)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tc.want, layoutOf(got)); diff != "" {
			t.Errorf("%s %s (-want +got):\n%s", tc.tree, tc.pod.UID, diff)
		}
		first := tc.pod.Status.ContainerStatuses[0].ContainerID
		if c, ok := got.Container(first); !ok || c.Name != "a" || c.ID != ContainerID(first) {
			t.Errorf("container %s: %+v, %t", first, c, ok)
		}
		if _, ok := got.Container("containerd://" + testID("f")); ok {
			t.Error("found a container that is not there")
		}
	}
}

func TestTreePodErrors(t *testing.T) {
	tree := Tree{FS: groupTree("/kubepods.slice/kubepods-burstable.slice"), Driver: Systemd, Kubepods: "/kubepods.slice"}
	if _, err := tree.Pod(testPod(corev1.PodQOSBurstable, testUID)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("absent pod: %v", err)
	}
	// A folder of the pod's name that is not where the kubelet makes any.
	tree.FS = groupTree("/kubepods.slice/kubepods-burstable.slice", "/system.slice/pod"+testUID, "/user.slice/kubepods-pod"+testUID_+".slice")
	if _, err := tree.Pod(testPod(corev1.PodQOSBurstable, testUID)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("folder elsewhere: %v", err)
	}
	for _, pod := range []*corev1.Pod{nil, testPod("", ""), testPod("", "../../../etc"), testPod("", "a_b"), testPod("", "\xff")} {
		if got, err := tree.Pod(pod); err == nil || errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%v: %+v, %v", pod, got.Pod, err)
		}
	}

	// The reason for which a folder cannot be seen is passed on, whichever of
	// the places it concerns; a file system's own kind of absence too.
	errGap, errNotCollected := errors.New("forbidden"), errors.New("not collected")
	expected := "sys/fs/cgroup/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" + testUID_ + ".slice"
	for _, at := range []string{expected, "sys/fs/cgroup/kubepods.slice/kubepods-burstable.slice", "sys/fs/cgroup/kubepods.slice/kubepods-pod" + testUID_ + ".slice"} {
		tree.FS = faultyFS{groupTree("/kubepods.slice/kubepods-burstable.slice"), map[string]error{at: errGap}}
		if _, err := tree.Pod(testPod(corev1.PodQOSBurstable, testUID)); !errors.Is(err, errGap) || errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s unreadable: %v", at, err)
		}
	}
	tree.FS = absentFS{errNotCollected}
	if _, err := tree.Pod(testPod(corev1.PodQOSBurstable, testUID)); !errors.Is(err, errNotCollected) || !strings.Contains(err.Error(), expected) {
		t.Errorf("own absence: %v", err)
	}

	// A pod's folder that is a file.
	tree.FS = filesTree(expected)
	if _, err := tree.Pod(testPod(corev1.PodQOSBurstable, testUID)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("file in place of a folder: %v", err)
	}
}

// absentFS has nothing, for a reason of its own.
type absentFS struct{ err error }

func (f absentFS) Open(name string) (fs.File, error) {
	return nil, &fs.PathError{Op: "open", Path: name, Err: f.err}
}

// A container may make as many groups as it likes, and deep ones.
func TestTreePodHostileContainer(t *testing.T) {
	pod := "/kubepods.slice/kubepods-pod" + testUID_ + ".slice"
	scope := pod + "/cri-containerd-" + testID("a") + ".scope"
	files := groupTree(scope+"/kubepods.slice/kubepods-pod"+testUID_+".slice", scope+strings.Repeat("/d", 50), scope+"/\x1b[2J")
	tree, err := FindTree(files)
	if err != nil {
		t.Fatal(err)
	}
	got, err := tree.Pod(testPod(corev1.PodQOSGuaranteed, testUID, "containerd://"+testID("a")))
	if err != nil {
		t.Fatal(err)
	}
	if got.Pod.Path != pod || len(got.Containers) != 1 {
		t.Fatalf("%+v", layoutOf(got))
	}
	if n := len(got.Containers[0].Nested); n != maxNestedLevels+3 {
		t.Errorf("%d nested groups: %q", n, layoutOf(got).Containers)
	}

	for i := range maxNestedEntries + 1 {
		files[fmt.Sprintf("sys/fs/cgroup%s/n/%d/f", scope, i)] = &fstest.MapFile{}
	}
	got, err = tree.Pod(testPod(corev1.PodQOSGuaranteed, testUID, "containerd://"+testID("a")))
	if err != nil || len(got.Containers) != 1 || got.Containers[0].NestedErr == nil {
		t.Errorf("no bound: %v", err)
	}

	errGap := errors.New("forbidden")
	tree.FS = faultyFS{groupTree(scope), map[string]error{"sys/fs/cgroup" + scope: errGap}}
	got, err = tree.Pod(testPod(corev1.PodQOSGuaranteed, testUID, "containerd://"+testID("a")))
	if err != nil || len(got.Containers) != 1 || !errors.Is(got.Containers[0].NestedErr, errGap) {
		t.Errorf("unreadable container: %+v, %v", got.Containers, err)
	}
}

// The same tree gives the same result every time.
func TestTreePodIsDeterministic(t *testing.T) {
	pod := "/kubepods.slice/kubepods-pod" + testUID_ + ".slice"
	var groups []string
	for _, digit := range "0123456789abcdef" {
		groups = append(groups, pod+"/cri-containerd-"+testID(string(digit))+".scope/n")
	}
	var first layout
	for i := range 20 {
		slices.Reverse(groups)
		tree, err := FindTree(groupTree(groups...))
		if err != nil {
			t.Fatal(err)
		}
		got, err := tree.Pod(testPod(corev1.PodQOSGuaranteed, testUID, testID("3"), testID("1")))
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			first = layoutOf(got)
		} else if diff := cmp.Diff(first, layoutOf(got)); diff != "" {
			t.Fatalf("(-first +now):\n%s", diff)
		}
	}
	if len(first.Unknown) != 14 || !slices.IsSorted(first.Unknown) {
		t.Errorf("unknown: %q", first.Unknown)
	}
}
