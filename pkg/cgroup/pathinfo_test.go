package cgroup

import (
	"path"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"
)

func TestParsePath(t *testing.T) {
	id, inner := testID("a"), testID("b")
	pod := "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" + testUID_ + ".slice"
	scope := pod + "/cri-containerd-" + id + ".scope"
	container := func(qos corev1.PodQOSClass, nested string) PathInfo {
		return PathInfo{Level: Container, PodUID: testUID, ContainerID: id, QOS: qos, Nested: nested}
	}
	burstable := container(corev1.PodQOSBurstable, "")
	for in, want := range map[string]PathInfo{
		"/":                          {Level: Root},
		"//":                         {Level: Root},
		"/ (deleted)":                {Level: Root, Deleted: true},
		"":                           {Level: Other},
		"/..":                        {Level: Other},
		"/system.slice/sshd.service": {Level: Other},
		"/system.slice/crio-conmon-" + id + ".scope": {Level: Other},
		"/system.slice/docker-" + id + ".scope":      {Level: Other},
		"/kubepods.slice":                            {Level: Kubepods},
		"/kubepods":                                  {Level: Kubepods},
		"/kubepods.slice/init.scope":                 {Level: Kubepods, Nested: "init.scope"},
		"/kubepodsx/pod" + testUID:                   {Level: Other},
		"/kubepods.slice/kubepods-burstable.slice":   {Level: QOS, QOS: corev1.PodQOSBurstable},
		"/kubepods/besteffort":                       {Level: QOS, QOS: corev1.PodQOSBestEffort},
		"/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-besteffort.slice": {Level: QOS, QOS: corev1.PodQOSBestEffort},
		pod:                                   {Level: Pod, PodUID: testUID, QOS: corev1.PodQOSBurstable},
		pod + "/crio-conmon-" + id + ".scope": {Level: Pod, PodUID: testUID, QOS: corev1.PodQOSBurstable, Nested: "crio-conmon-" + id + ".scope"},
		scope:                                 burstable,
		scope + "/":                           burstable,
		scope[1:]:                             burstable,
		scope + "/container":                  container(corev1.PodQOSBurstable, "container"),
		scope + "/init.scope":                 container(corev1.PodQOSBurstable, "init.scope"),
		scope + "/system.slice/a b":           container(corev1.PodQOSBurstable, "system.slice/a b"),
		"/../.." + scope:                      burstable,
		"/docker/" + inner + scope:            burstable,
		"/a/../.." + scope + "/x/..":          burstable,
		scope + " (deleted)":                  {Level: Container, PodUID: testUID, ContainerID: id, QOS: corev1.PodQOSBurstable, Deleted: true},

		"/kubepods/pod" + testUID + "/" + id:                                         container(corev1.PodQOSGuaranteed, ""),
		"/kubepods/burstable/pod" + testUID + "/crio-" + id:                          burstable,
		"/kubepods.slice/kubepods-pod" + testUID_ + ".slice/docker-" + id + ".scope": container(corev1.PodQOSGuaranteed, ""),
		// A kind node in a docker container of the host, both drivers.
		"/docker/" + inner + "/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-besteffort.slice/kubelet-kubepods-besteffort-pod" +
			testUID_ + ".slice/cri-containerd-" + id + ".scope": container(corev1.PodQOSBestEffort, ""),
		"/system.slice/docker-" + inner + ".scope/kubelet/kubepods/besteffort/pod" + testUID + "/" + id: container(corev1.PodQOSBestEffort, ""),
		// A kind node in a pod: the outer pod counts, the rest can be parsed again.
		scope + "/kubelet.slice/kubelet-kubepods.slice": container(corev1.PodQOSBurstable, "kubelet.slice/kubelet-kubepods.slice"),
		// A static pod whose manifest sets its UID.
		"/kubepods.slice/kubepods-podmy_static.slice": {Level: Pod, PodUID: "my-static", QOS: corev1.PodQOSGuaranteed},
		"/kubepods/podmy-static":                      {Level: Pod, PodUID: "my-static", QOS: corev1.PodQOSGuaranteed},
		// Names that only look like a pod's.
		"/kubepods.slice/kubepods-pod.slice":      {Level: Kubepods, Nested: "kubepods-pod.slice"},
		"/kubepods.slice/kubepods-podman-a.slice": {Level: Kubepods, Nested: "kubepods-podman-a.slice"},
		"/kubepods.slice/pod" + testUID:           {Level: Kubepods, Nested: "pod" + testUID},
		"/kubepods/poda_b":                        {Level: Kubepods, Nested: "poda_b"},
		// A pod of another QoS class than the slice it stands in.
		"/kubepods.slice/kubepods-burstable.slice/kubepods-pod" + testUID_ + ".slice": {
			Level: QOS, QOS: corev1.PodQOSBurstable, Nested: "kubepods-pod" + testUID_ + ".slice"},
		// Names cut short in documents.
		"/kubepods.slice/kubepods-pod9.slice/cri-containerd-a9.scope": {
			Level: Pod, PodUID: "9", QOS: corev1.PodQOSGuaranteed, Nested: "cri-containerd-a9.scope"},
	} {
		if diff := cmp.Diff(want, ParsePath(in)); diff != "" {
			t.Errorf("ParsePath(%q) (-want +got):\n%s", in, diff)
		}
	}

	again := ParsePath(ParsePath(scope + "/kubelet.slice/kubelet-kubepods.slice").Nested)
	if again != (PathInfo{Level: Kubepods}) {
		t.Errorf("inner kubepods: %+v", again)
	}
}

// What PodPath makes, with a host's prefix and a runtime's scope around it,
// ParsePath takes apart.
func TestPathRoundTrip(t *testing.T) {
	uids := rapid.StringMatching(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|[0-9a-f]{32}|[a-z0-9.-]{1,20}`)
	classes := []corev1.PodQOSClass{corev1.PodQOSGuaranteed, corev1.PodQOSBurstable, corev1.PodQOSBestEffort}
	rapid.Check(t, func(t *rapid.T) {
		driver := rapid.SampledFrom([]Driver{Systemd, Cgroupfs}).Draw(t, "driver")
		root := rapid.SampledFrom([]string{"", "/", "/kubelet", "/a/b"}).Draw(t, "root")
		want := PathInfo{
			Level:       Container,
			PodUID:      uids.Draw(t, "uid"),
			ContainerID: rapid.StringMatching(`[0-9a-f]{64}`).Draw(t, "id"),
			QOS:         rapid.SampledFrom(classes).Draw(t, "qos"),
			Nested:      rapid.SampledFrom([]string{"", "container", "init.scope", "a/b"}).Draw(t, "nested"),
			Deleted:     rapid.Bool().Draw(t, "deleted"),
		}
		pod, err := PodPath(driver, root, want.QOS, want.PodUID)
		if err != nil {
			t.Fatal(err)
		}
		prefix := rapid.SampledFrom([]string{"", "/docker/" + testID("c"), "/..", "/system.slice/docker-" + testID("c") + ".scope"}).Draw(t, "prefix")
		name := rapid.SampledFrom([]string{"cri-containerd-%.scope", "crio-%.scope", "docker-%.scope", "%", "crio-%"}).Draw(t, "name")
		p := prefix + path.Join(pod, strings.ReplaceAll(name, "%", want.ContainerID), want.Nested)
		if want.Deleted {
			p += " (deleted)"
		}
		if diff := cmp.Diff(want, ParsePath(p)); diff != "" {
			t.Fatalf("%s (-want +got):\n%s", p, diff)
		}
	})
}

func FuzzParsePath(f *testing.F) {
	for _, seed := range []string{
		"/", "", "/..", "/kubepods.slice", "/kubepods/burstable/pod" + testUID + "/" + testID("a"),
		"/docker/" + testID("a") + "/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-pod" + testUID_ + ".slice",
		"/kubepods.slice/kubepods-podx.slice (deleted)", "kubepods/kubepods/../pod\x00", "/-kubepods.slice/-kubepods-pod.slice",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, p string) {
		info := ParsePath(p)
		hasPod := info.Level == Pod || info.Level == Container
		switch {
		case hasPod != (info.PodUID != ""),
			(info.Level == Container) != (info.ContainerID != ""),
			(hasPod || info.Level == QOS) != (info.QOS != ""),
			(info.Level == Other || info.Level == Root) && info.Nested != "",
			strings.HasPrefix(info.Nested, "/"):
			t.Fatalf("%q: %+v", p, info)
		}
		if !hasPod || strings.Contains(info.PodUID, "_") {
			return
		}
		// The part that was understood can be built again.
		built := false
		for _, driver := range []Driver{Systemd, Cgroupfs} {
			dir, err := PodPath(driver, "", info.QOS, info.PodUID)
			if err == nil && ParsePath(dir) == (PathInfo{Level: Pod, PodUID: info.PodUID, QOS: info.QOS}) {
				built = true
			}
		}
		if !built && isPrintable(info.PodUID) {
			t.Fatalf("%q: no path of %+v", p, info)
		}
	})
}
