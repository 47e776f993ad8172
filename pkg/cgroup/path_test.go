package cgroup

import (
	"encoding/json"
	"os"
	"path"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
)

// Paths made by the kubelet's own code.
func TestPathVectors(t *testing.T) {
	data, err := os.ReadFile("testdata/vectors/cgroup-paths.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Reverse []struct {
			SystemdName string   `json:"systemd_name"`
			Internal    []string `json:"internal"`
		} `json:"reverse"`
		Vectors []struct {
			CgroupRoot   string             `json:"cgroup_root"`
			QOS          corev1.PodQOSClass `json:"qos"`
			PodUID       string             `json:"pod_uid"`
			SystemdPod   string             `json:"systemd_pod_path"`
			CgroupfsPod  string             `json:"cgroupfs_pod_path"`
			SystemdRoot  string             `json:"systemd_node_allocatable_root"`
			CgroupfsRoot string             `json:"cgroupfs_node_allocatable_root"`
		} `json:"vectors"`
	}
	if err := json.Unmarshal(data, &file); err != nil {
		t.Fatal(err)
	}
	if len(file.Vectors) != 36 || len(file.Reverse) != 3 {
		t.Fatalf("%d vectors, %d reverse", len(file.Vectors), len(file.Reverse))
	}
	for _, v := range file.Reverse {
		if diff := cmp.Diff(v.Internal, ParseSystemdToCgroupName(v.SystemdName)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", v.SystemdName, diff)
		}
	}
	for _, v := range file.Vectors {
		for driver, want := range map[Driver][2]string{
			Systemd:  {v.SystemdPod, v.SystemdRoot},
			Cgroupfs: {v.CgroupfsPod, v.CgroupfsRoot},
		} {
			pod, err := PodPath(driver, v.CgroupRoot, v.QOS, v.PodUID)
			if err != nil || pod != want[0] {
				t.Errorf("PodPath(%s, %q, %s, %s) = %q, %v, want %q", driver, v.CgroupRoot, v.QOS, v.PodUID, pod, err, want[0])
			}
			root, err := NodeAllocatableRoot(driver, v.CgroupRoot)
			if err != nil || root != want[1] {
				t.Errorf("NodeAllocatableRoot(%s, %q) = %q, %v, want %q", driver, v.CgroupRoot, root, err, want[1])
			}
			qos, err := QOSPath(driver, v.CgroupRoot, v.QOS)
			if err != nil || qos != path.Dir(want[0]) {
				t.Errorf("QOSPath(%s, %q, %s) = %q, %v, want %q", driver, v.CgroupRoot, v.QOS, qos, err, path.Dir(want[0]))
			}
			wantInfo := PathInfo{Level: Pod, PodUID: v.PodUID, QOS: v.QOS}
			if diff := cmp.Diff(wantInfo, ParsePath(want[0])); diff != "" {
				t.Errorf("ParsePath(%s) (-want +got):\n%s", want[0], diff)
			}
			// Only UIDs of the usual form are told from the name alone.
			uid, ok := ParsePodDir(path.Base(want[0]))
			if usual := v.PodUID != "1234-abcd-5678-efgh"; ok != usual || usual && uid != v.PodUID {
				t.Errorf("ParsePodDir(%s) = %q, %t", path.Base(want[0]), uid, ok)
			}
		}
	}
}

func TestPathErrors(t *testing.T) {
	for _, tc := range []struct {
		driver Driver
		root   string
		qos    corev1.PodQOSClass
		uid    string
		text   string
	}{
		{Systemd, "", corev1.PodQOSBurstable, "", "no UID"},
		{Systemd, "", corev1.PodQOSBurstable, "a/../b", "has no cgroup name"},
		{Cgroupfs, "", corev1.PodQOSBurstable, "../../x", "has no cgroup name"},
		{Cgroupfs, "", corev1.PodQOSBurstable, "a_b", "has no cgroup name"},
		{Cgroupfs, "", corev1.PodQOSBurstable, "a\x00", "has no cgroup name"},
		{Systemd, "", corev1.PodQOSBurstable, "a\x1b[2J", "has no cgroup name"},
		{Cgroupfs, "", "", "a", "unknown QoS class"},
		{Cgroupfs, "", "burstable", "a", "unknown QoS class"},
		{"", "", corev1.PodQOSBurstable, "a", "unknown driver"},
		{"cgroupsfs", "", corev1.PodQOSBurstable, "a", "unknown driver"},
		{Systemd, "/a//b", corev1.PodQOSBurstable, "a", "no slice"},
	} {
		got, err := PodPath(tc.driver, tc.root, tc.qos, tc.uid)
		if got != "" || err == nil || !strings.Contains(err.Error(), tc.text) {
			t.Errorf("%+v: %q, %v", tc, got, err)
		}
	}
}

func TestToSystemd(t *testing.T) {
	for want, components := range map[string][]string{
		"/":                        nil,
		"/a_b.slice":               {"a-b"},
		"/a.slice/a-b.slice":       {"a", "b"},
		"/a_b.slice/a_b-c_d.slice": {"a-b", "c-d"},
	} {
		if got, err := ToSystemd(components); err != nil || got != want {
			t.Errorf("ToSystemd(%q) = %q, %v, want %q", components, got, err, want)
		}
	}
	if got, err := ToSystemd([]string{""}); err != nil || got != "/" {
		t.Errorf("root: %q, %v", got, err)
	}
	for _, components := range [][]string{{"a", ""}, {"a/b"}} {
		if got, err := ToSystemd(components); err == nil {
			t.Errorf("ToSystemd(%q) = %q", components, got)
		}
	}
}

func TestSystemdRoundTrip(t *testing.T) {
	component := rapid.StringMatching(`[a-z0-9.-]{1,12}`)
	rapid.Check(t, func(t *rapid.T) {
		want := rapid.SliceOfN(component, 1, 5).Draw(t, "components")
		slice, err := ToSystemd(want)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, ParseSystemdToCgroupName(slice)); diff != "" {
			t.Fatalf("%s (-want +got):\n%s", slice, diff)
		}
		if strings.Count(slice, "/") != len(want) {
			t.Fatalf("%s has not %d levels", slice, len(want))
		}
	})
}

func TestPodUID(t *testing.T) {
	pod := func(uid string, annotations map[string]string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: types.UID(uid), Annotations: annotations}}
	}
	const hash = "0123456789abcdef0123456789abcdef"
	for name, tc := range map[string]struct {
		pod  *corev1.Pod
		want string
	}{
		"of the API": {pod("8dbc6577-d0e2-4706-8787-57d52c03ddf2", nil), "8dbc6577-d0e2-4706-8787-57d52c03ddf2"},
		"mirror": {pod("8dbc6577-d0e2-4706-8787-57d52c03ddf2", map[string]string{
			"kubernetes.io/config.hash": hash, "kubernetes.io/config.mirror": hash, "kubernetes.io/config.source": "file",
		}), hash},
		"hash alone is not a mirror": {pod("u", map[string]string{"kubernetes.io/config.hash": hash}), "u"},
		"mirror without hash":        {pod("u", map[string]string{"kubernetes.io/config.mirror": hash}), hash},
		"empty annotations":          {pod("u", map[string]string{"kubernetes.io/config.mirror": "", "kubernetes.io/config.hash": ""}), "u"},
		"no pod":                     {nil, ""},
	} {
		if got := PodUID(tc.pod); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}

const (
	testUID  = "8dbc6577-d0e2-4706-8787-57d52c03ddf2"
	testUID_ = "8dbc6577_d0e2_4706_8787_57d52c03ddf2"
)

func testID(digit string) string { return strings.Repeat(digit, 64) }

func TestParsePodDir(t *testing.T) {
	for name, want := range map[string]string{
		"pod" + testUID: testUID,
		"kubepods-burstable-pod" + testUID_ + ".slice":       testUID,
		"kubelet-kubepods-pod" + testUID_ + ".slice":         testUID,
		"pod0123456789abcdef0123456789abcdef":                "0123456789abcdef0123456789abcdef",
		"kubepods-pod0123456789abcdef0123456789abcdef.slice": "0123456789abcdef0123456789abcdef",
		"/kubepods/burstable/pod" + testUID:                  testUID,
		"podman":                                             "",
		"pod":                                                "",
		"kubepods.slice":                                     "",
		"pod" + testUID + ".scope":                           "",
		"xpod" + testUID:                                     "",
		"pod" + strings.ToUpper(testUID):                     "",
		"pod" + testUID + "\n":                               "",
		"pod" + testID("a"):                                  "",
	} {
		if got, ok := ParsePodDir(name); got != want || ok != (want != "") {
			t.Errorf("ParsePodDir(%q) = %q, %t", name, got, ok)
		}
	}
}

func TestParseContainerDir(t *testing.T) {
	id := testID("a")
	for name, want := range map[string][2]string{
		"cri-containerd-" + id + ".scope": {id, "cri-containerd"},
		"crio-" + id + ".scope":           {id, "crio"},
		"crio-" + id:                      {id, "crio"},
		"docker-" + id + ".scope":         {id, "docker"},
		"libpod-" + id + ".scope":         {id, "libpod"},
		id:                                {id, ""},
		"crio-conmon-" + id + ".scope":    {},
		"cri-containerd-aaaa.scope":       {},
		id + "a":                          {},
		strings.ToUpper(id):               {},
		"container":                       {},
		"init.scope":                      {},
		id + "\n":                         {},
		"":                                {},
	} {
		gotID, runtime, ok := ParseContainerDir(name)
		if gotID != want[0] || runtime != want[1] || ok != (want[0] != "") {
			t.Errorf("ParseContainerDir(%q) = %q, %q, %t", name, gotID, runtime, ok)
		}
	}
}

func TestContainerID(t *testing.T) {
	for in, want := range map[string]string{
		"containerd://abc": "abc", "cri-o://abc": "abc", "docker://abc": "abc", "abc": "abc", "": "", "x://": "",
	} {
		if got := ContainerID(in); got != want {
			t.Errorf("ContainerID(%q) = %q, want %q", in, got, want)
		}
	}
}
