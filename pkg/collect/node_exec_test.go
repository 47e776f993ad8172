package collect

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/noderes/kubectl-noderes/pkg/cgroup"
	"github.com/noderes/kubectl-noderes/pkg/snapshot"
)

var containerID = strings.Repeat("0a", 32)

// withContainers gives web-0 a UID and running containers.
func (s *podServer) withContainers(names ...string) {
	for _, pod := range s.objects["pods"] {
		meta := pod["metadata"].(map[string]any)
		if meta["name"] != "web-0" {
			continue
		}
		meta["uid"] = "00000000-1111-2222-3333-444444444444"
		var statuses []any
		for i, name := range names {
			statuses = append(statuses, map[string]any{"name": name, "containerID": fmt.Sprintf("containerd://%s%d", containerID[:63], i), "state": map[string]any{"running": map[string]any{}}})
		}
		statuses = append(statuses, map[string]any{"name": "dead", "containerID": "containerd://" + containerID, "state": map[string]any{"terminated": map[string]any{}}})
		pod["status"] = map[string]any{"phase": "Running", "qosClass": "Burstable", "containerStatuses": statuses}
	}
}

func containerStream(own string, samples int) string {
	folder := "/sys/fs/cgroup" + strings.TrimSuffix(own, "/")
	text := "noderes 1\n"
	for k := range samples {
		text += fmt.Sprintf("S %d\nT 178403040%d 10%d\nF 12 %s/cpu.max\n5000 100000\n\nF 2 %s/deep/cpu.stat\n%d\n\nT 178403040%d 10%d\n", k, k, k, folder, folder, k, k, k)
		if k == 0 {
			text += fmt.Sprintf("S once\nF %d /proc/self/cgroup\n0::%s\n\n", len(own)+4, own)
		}
	}
	return text + "Z\n"
}

// A container's own cgroup is where it is on the node, and what is above it is a
// gap.
func TestExec(t *testing.T) {
	const kubelet = `{"kubeletconfig":{"cgroupDriver":%q,"cgroupRoot":"/"}}`
	id := containerID[:63] + "0"
	systemd := "kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod00000000_1111_2222_3333_444444444444.slice/cri-containerd-" + id + ".scope"
	cgroupfs := "kubepods/burstable/pod00000000-1111-2222-3333-444444444444/" + id
	for driver, folder := range map[string]string{"systemd": systemd, "cgroupfs": cgroupfs} {
		for _, own := range []string{"/", "/" + folder} {
			s := newPodServer(t)
			s.withContainers("app")
			s.kubelet["configz"] = fmt.Sprintf(kubelet, driver)
			s.exec = func(_ context.Context, _ execTarget, _ io.Reader, out, _ io.Writer) error {
				_, err := io.WriteString(out, containerStream(own, 2))
				return err
			}
			want := web
			want.Access, want.NodePods.Sample = AccessExec, 1e9
			snap, failed, err := Collect(t.Context(), s.client, want)
			if err != nil || len(failed) > 0 {
				t.Fatal(err, failed)
			}
			s.gone(t, 0)
			node := snap.Node("n1")
			for file, want := range map[string]string{"cpu.max": "5000 100000\n", "deep/cpu.stat": "1\n"} {
				if data, err := fs.ReadFile(node.Files(), "sys/fs/cgroup/"+folder+"/"+file); err != nil || string(data) != want {
					t.Errorf("%s, own %s: %s: %q, %v", driver, own, file, data, err)
				}
			}
			for file, want := range map[string]string{"sys/fs/cgroup/" + folder + "/memory.max": "NotFound", "sys/fs/cgroup/" + folder[:strings.LastIndex(folder, "/")] + "/cpu.max": "Refused", "proc/meminfo": "Refused"} {
				if _, err := node.Files().Open(file); snapshot.Reason(err) != want {
					t.Errorf("%s: %v", file, err)
				}
			}
			if samples := node.Samples(); len(samples) != 2 || !samples[1].HasTime {
				t.Errorf("samples %+v", samples)
			}
			tree, err := cgroup.FindTree(node.Files())
			if err != nil || string(tree.Driver) != driver {
				t.Errorf("the tree is not found: %v, %v", tree.Driver, err)
			}
			if target := s.target.Load(); target.pod != "web-0" || target.namespace != "shop" || target.container != "app" {
				t.Errorf("ran %+v", target)
			}
		}
	}
}

func TestExecFails(t *testing.T) {
	for name, c := range map[string]struct {
		change         func(*podServer)
		reason, detail string
	}{
		"denied":       {func(s *podServer) { s.denied = []string{"create pods/exec"} }, "Forbidden", "needs create pods/exec in namespace shop"},
		"no shell":     {func(s *podServer) { s.exec = failing(errors.New("exit code 127")) }, "Unreadable", "container app of pod shop/web-0: the container has no shell"},
		"other cgroup": {func(s *podServer) { s.exec = writing(containerStream("/system.slice", 1)) }, "Unreadable", "another cgroup"},
		"no cgroup v2": {func(s *podServer) {
			s.exec = writing("noderes 1\nS 0\nT 1 1\nT 1 1\nS once\nF 7 /proc/self/cgroup\n4:cpu:/\nZ\n")
		}, "Unreadable", "no cgroup v2"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newPodServer(t)
			s.withContainers("app")
			c.change(s)
			want := web
			want.Access = AccessExec
			snap, _, err := Collect(t.Context(), s.client, want)
			if err != nil {
				t.Fatal(err)
			}
			found := false
			for _, gap := range gapsOf(t, snap) {
				found = found || gap.Reason == c.reason && strings.Contains(gap.Detail, c.detail) && strings.Contains(gap.Path, "cri-containerd-")
			}
			if !found {
				t.Errorf("%v", gapsOf(t, snap))
			}
		})
	}
}

func failing(err error) execFunc {
	return func(context.Context, execTarget, io.Reader, io.Writer, io.Writer) error { return err }
}

func writing(text string) execFunc {
	return func(_ context.Context, _ execTarget, _ io.Reader, out, _ io.Writer) error {
		_, err := io.WriteString(out, text)
		return err
	}
}

// Several containers are read once each: one sample has one moment.
func TestExecSeveral(t *testing.T) {
	s := newPodServer(t)
	s.withContainers("app", "side")
	s.exec = func(_ context.Context, target execTarget, _ io.Reader, out, _ io.Writer) error {
		if target.command[4] != "0" {
			return errors.New("wants a second sample")
		}
		_, err := io.WriteString(out, containerStream("/", 1))
		return err
	}
	want := web
	want.Access, want.NodePods.Sample = AccessExec, 5e9
	snap, _, err := Collect(t.Context(), s.client, want)
	if err != nil {
		t.Fatal(err)
	}
	if samples := snap.Node("n1").Samples(); len(samples) != 1 || !samples[0].HasTime {
		t.Errorf("%+v", samples)
	}
	pods, err := fs.Glob(snap.Node("n1").Files(), "sys/fs/cgroup/kubepods.slice/*/*/*/cpu.max")
	if err != nil || len(pods) != 2 {
		t.Errorf("%v, %v", pods, err)
	}
}

// Where no node pod can be made, the containers asked for are read.
func TestExecInsteadOfNodePod(t *testing.T) {
	s := newPodServer(t)
	s.withContainers("app")
	s.denied = []string{"delete pods"}
	s.exec = writing(containerStream("/", 1))
	snap, _ := s.read(t, t.Context(), Request{Pods: []types.NamespacedName{{Namespace: "shop", Name: "web-0"}}})
	s.gone(t, 0)
	if gap := gapsOf(t, snap)["nodes/n1/root"]; gap.Reason != "Forbidden" {
		t.Errorf("%+v", gap)
	}
	if found, _ := fs.Glob(snap.Node("n1").Files(), "sys/fs/cgroup/kubepods.slice/*/*/*/cpu.max"); len(found) != 1 {
		t.Errorf("%v", found)
	}
}
