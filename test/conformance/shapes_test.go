package conformance

import (
	"slices"
	"testing"

	"github.com/noderes/kubectl-noderes/pkg/alloc/node"
	"github.com/noderes/kubectl-noderes/test/scenario"
)

// A comparison of times says little if most of the pods are refused or get nothing of their own.
func TestShapes(t *testing.T) {
	for _, shape := range append(shapes(), shape{name: "512 CPUs", scenario: bigNode()}) {
		out := scenario.Run(&shape.scenario)
		if out.Error != "" || !out.Setup.OK {
			t.Fatalf("%s: %s, %+v", shape.name, out.Error, out.Setup)
		}
		added, pinned := 0, 0
		for _, step := range out.Steps {
			if step.Op == "add" {
				added++
			}
			if slices.ContainsFunc(step.Containers, func(c scenario.ContainerResult) bool { return c.Assigned }) {
				pinned++
			}
		}
		if pinned < added/2 {
			t.Errorf("%s: %d of %d pods have CPUs of their own", shape.name, pinned, added)
		}
	}
}

func BenchmarkReplay(b *testing.B) {
	list := append(shapes(), shape{name: "512 CPUs on 8 NUMA nodes", scenario: bigNode()})
	for _, shape := range list {
		b.Run(shape.name, func(b *testing.B) {
			s := &shape.scenario
			config, err := s.NodeConfig()
			if err != nil {
				b.Fatal(err)
			}
			pods := make([]node.Pod, len(s.Steps))
			for i := range s.Steps {
				if s.Steps[i].Pod != nil {
					if pods[i], err = s.Steps[i].Pod.NodePod(); err != nil {
						b.Fatal(err)
					}
				}
			}
			admissions := 0
			for b.Loop() {
				n, err := node.Start(config, node.State{})
				if err != nil {
					b.Fatal(err)
				}
				for i := range s.Steps {
					if pods[i].Pod == nil {
						n.Remove(s.Steps[i].UID)
						continue
					}
					admissions++
					if _, err := n.Admit(pods[i], nil); err != nil {
						b.Fatal(err)
					}
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(admissions), "ns/admission")
		})
	}
}
