package demo

import (
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/noderes/kubectl-noderes/pkg/snapshot"
)

// maxArchiveBytes keeps the binary small and the start-up short.
const maxArchiveBytes = 200_000

func TestRecordings(t *testing.T) {
	for _, r := range List() {
		t.Run(r.Name, func(t *testing.T) {
			data, err := archives.ReadFile(r.Name + ".tar.gz")
			if err != nil {
				t.Fatal(err)
			}
			if len(data) > maxArchiveBytes {
				t.Errorf("the archive has %d bytes, at most %d are wanted", len(data), maxArchiveBytes)
			}
			s, err := Open(r.Name)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]string{r.Node}, s.NodeNames()); diff != "" {
				t.Errorf("nodes (-described +recorded):\n%s", diff)
			}
			pods, err := s.Pods()
			if err != nil {
				t.Fatal(err)
			}
			var described, recorded []string
			for _, p := range r.Pods {
				described = append(described, p.Namespace+"/"+p.Name)
				if p.Shows == "" {
					t.Errorf("%s: nothing said", p.Name)
				}
			}
			for _, p := range pods {
				recorded = append(recorded, p.Namespace+"/"+p.Name)
			}
			slices.Sort(described)
			slices.Sort(recorded)
			if diff := cmp.Diff(described, recorded); diff != "" {
				t.Errorf("pods (-described +recorded):\n%s", diff)
			}
		})
	}
}

// TestFirstPodWasOOMKilled holds what `explain pod --from demo` promises.
func TestFirstPodWasOOMKilled(t *testing.T) {
	for _, r := range List() {
		s, err := Open(r.Name)
		if err != nil {
			t.Fatal(err)
		}
		pods, err := s.Pods()
		if err != nil {
			t.Fatal(err)
		}
		killed := false
		for _, p := range pods {
			if p.Namespace != r.Pods[0].Namespace || p.Name != r.Pods[0].Name {
				continue
			}
			for _, c := range p.Status.ContainerStatuses {
				last := c.LastTerminationState.Terminated
				killed = killed || last != nil && last.Reason == "OOMKilled"
			}
		}
		if !killed {
			t.Errorf("%s: %s was not OOM-killed", r.Name, r.Pods[0].Name)
		}
	}
}

// TestLeftOutIsNotAbsent: what was cut away must not look as if the node had
// not had it, and what the node did not have must not look as if it was cut away.
func TestLeftOutIsNotAbsent(t *testing.T) {
	s, err := Open(Default)
	if err != nil {
		t.Fatal(err)
	}
	node := s.Node("smt2")
	var gap *snapshot.GapError
	if _, err := node.Files().Open("sys/fs/cgroup/kubepods.slice/io.stat"); !errors.As(err, &gap) {
		t.Errorf("io.stat was left out, but: %v", err)
	}
	if _, err := s.File("nodes/smt2/kubelet.log"); !errors.As(err, &gap) {
		t.Errorf("kubelet.log was left out, but: %v", err)
	}
	_, err = node.Files().Open("sys/fs/cgroup/kubepods.slice/cpu.idle")
	if err == nil || errors.As(err, &gap) {
		t.Errorf("the recording has no cpu.idle, but: %v", err)
	}
}

func TestOpenUnknown(t *testing.T) {
	if _, err := Open("nosuch"); err == nil {
		t.Error("no error")
	}
}
