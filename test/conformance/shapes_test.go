package conformance

import (
	"testing"

	"github.com/noderes/kubectl-noderes/pkg/alloc/node"
)

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
