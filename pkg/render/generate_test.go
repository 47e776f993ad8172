package render

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/noderes/kubectl-noderes/pkg/report"
)

// draw makes arbitrary reports from one kind of string.
type draw struct {
	t    *rapid.T
	text *rapid.Generator[string]
}

// anyText holds every rune, and pieces that terminals, YAML and wrapping treat
// in ways of their own.
func anyText() *rapid.Generator[string] {
	piece := rapid.OneOf(
		rapid.String(),
		rapid.StringMatching(`[a-z/.-]{0,12}`),
		rapid.SampledFrom([]string{"\x1b[31m", "\u009b2J", "\u0085", "\x7f", "\x00", "\r", "\n", "\n\n", "\t", "\b", "\u202e", "\u2066", "\u200f", "\u2028",
			"\ufeff", "\ufffe", "\uffff", "\U000e0041", "👩‍🚀", "한국어", "e\u0301", " ", "  ", "\u3000", "\u00a0", "'", `"`, `\`, `\u202e`, "- ", ": ", " #", "~", "null",
			"yes", "0x1f", "1e3", "2026-11-30", "12:30:45", "<<", "=", "escaped0z", "{", "[", "&", "*", "!", "|", ">", "%", "@", "`", "node:/sys/fs/cgroup/kubepods.slice/x/memory.max"}),
	)
	return rapid.Custom(func(t *rapid.T) string {
		s := ""
		for _, p := range rapid.SliceOfN(piece, 0, 5).Draw(t, "pieces") {
			s += p
		}
		return s
	})
}

// anyBytes adds what is no UTF-8.
func anyBytes() *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		return anyText().Draw(t, "text") + string(rapid.SliceOfN(rapid.Byte(), 0, 4).Draw(t, "bytes"))
	})
}

func (d draw) s() string    { return d.text.Draw(d.t, "s") }
func (d draw) bool() bool   { return rapid.Bool().Draw(d.t, "bool") }
func (d draw) n() int       { return rapid.IntRange(0, 3).Draw(d.t, "n") }
func (d draw) uint() uint64 { return rapid.Uint64().Draw(d.t, "uint") }
func (d draw) int() int     { return rapid.Int().Draw(d.t, "int") }
func (d draw) pick(s ...string) string {
	return rapid.OneOf(rapid.SampledFrom(s), d.text).Draw(d.t, "pick")
}

func (d draw) time() metav1.Time {
	if d.bool() {
		return metav1.Time{}
	}
	return metav1.NewTime(time.Unix(rapid.Int64Range(0, 4e9).Draw(d.t, "time"), 0))
}

func maybe[T any](d draw, make func() T) *T {
	if d.bool() {
		return nil
	}
	v := make()
	return &v
}

func some[T any](d draw, make func() T) []T {
	var list []T
	for range d.n() {
		list = append(list, make())
	}
	return list
}

func (d draw) limit() report.Limit {
	if d.bool() {
		return report.Limit{Unlimited: true}
	}
	return report.Limit{Value: d.uint()}
}

func (d draw) int64() int64 { return rapid.Int64().Draw(d.t, "int64") }

func (d draw) report() report.Report {
	return report.Report{
		APIVersion: report.APIVersion, Kind: report.Kind(d.pick(string(report.PodReport), string(report.NodeReport))),
		Metadata: report.Metadata{Namespace: d.s(), Name: d.s(), UID: d.s(), Node: d.s()}, ObservedAt: d.time(),
		Versions:  report.Versions{Kubelet: d.s(), Kernel: d.s(), ContainerRuntime: d.s(), Karpenter: d.s(), Replay: d.s()},
		Findings:  some(d, d.finding),
		Placement: maybe(d, d.placement),
		WhatIf:    some(d, d.whatIf),
		Resources: maybe(d, d.resources),
		Capacity:  some(d, d.capacity),
		Gaps:      some(d, func() report.Gap { return report.Gap{Wanted: d.s(), Reason: d.s(), Costs: d.s(), Fix: d.s()} }),
	}
}

func (d draw) finding() report.Finding {
	return report.Finding{
		Code: report.Code(d.s()), Severity: report.Severity(d.pick("critical", "warning", "info")), Confidence: report.Confidence(d.pick("proven", "likely")),
		Subject: report.Subject{Kind: d.s(), Namespace: d.s(), Name: d.s(), Container: d.s()}, Summary: d.s(), Arithmetic: d.s(),
		Because: some(d, func() report.Evidence {
			return report.Evidence{Source: d.s(), Field: d.s(), Value: d.s(), Means: d.s(), At: d.time()}
		}),
		Remedies: some(d, func() report.Remedy {
			return report.Remedy{Summary: d.s(), Command: d.s(), Patch: d.s(), Effect: d.s(), Caution: d.s()}
		}),
	}
}

func (d draw) resources() report.Resources {
	return report.Resources{QOSClass: d.s(), SampleSeconds: maybe(d, func() float64 { return rapid.Float64Range(0, 1e6).Draw(d.t, "seconds") }),
		Containers: some(d, func() report.ResourceLevel {
			return report.ResourceLevel{Name: d.s(), Level: d.pick("container", "pod"), Cgroup: d.s(), OOMScoreAdj: maybe(d, d.int),
				CPU: maybe(d, func() report.CPUFacts {
					return report.CPUFacts{Quota: maybe(d, d.limit), Period: maybe(d, d.uint), Weight: maybe(d, d.uint), Throttled: maybe(d, d.int64),
						Periods: maybe(d, d.int64), Usage: maybe(d, d.uint), Waiting: maybe(d, d.uint)}
				}),
				Memory: maybe(d, func() report.MemoryFacts {
					return report.MemoryFacts{Max: maybe(d, d.limit), High: maybe(d, d.limit), Low: maybe(d, d.limit), Min: maybe(d, d.limit), Current: maybe(d, d.uint),
						Peak: maybe(d, d.uint), WorkingSet: maybe(d, d.uint), Anon: maybe(d, d.uint), File: maybe(d, d.uint), Shmem: maybe(d, d.uint),
						Kernel: maybe(d, d.uint), OOM: maybe(d, d.uint), OOMKill: maybe(d, d.uint), OOMGroupKill: maybe(d, d.uint)}
				})}
		})}
}

func (d draw) capacity() report.NodePoolCapacity {
	return report.NodePoolCapacity{NodePool: d.s(), Nodes: d.int(), Leaving: d.int(), Starting: d.int(), Pods: d.int(), Needed: d.int(),
		Sizes: some(d, func() report.NodeSize { return report.NodeSize{InstanceType: d.s(), Nodes: d.int()} }),
		Floors: some(d, func() report.NodeFloor {
			return report.NodeFloor{Nodes: d.int(), By: d.pick("requests", "anti-affinity"), Of: d.s(), Arithmetic: d.s()}
		})}
}

func (d draw) whatIf() report.WhatIf {
	return report.WhatIf{Node: d.s(), Admitted: maybe(d, d.bool), Reason: d.s(), Message: d.s(), Settings: some(d, d.s),
		Containers: some(d, func() report.WhatIfContainer {
			return report.WhatIfContainer{Name: d.s(), Init: d.bool(), CPUs: maybe(d, d.s), Exclusive: d.bool(), NUMANodes: some(d, d.int)}
		}),
		Nearest: some(d, func() report.Nearest {
			return report.Nearest{Change: d.s(), CPUs: maybe(d, d.s), NUMANodes: some(d, d.int)}
		}),
		Readmitted: maybe(d, func() report.Readmitted {
			return report.Readmitted{CheckpointsRemoved: some(d, d.s), Admitted: d.int(), Refused: some(d, func() report.ReadmitRefusal {
				return report.ReadmitRefusal{Namespace: d.s(), Pod: d.s(), Reason: d.s(), Message: d.s()}
			})}
		})}
}

func (d draw) placement() report.Placement {
	p := report.Placement{Policy: d.s(), Scope: d.s(), TopologyPolicy: d.s(), MemoryPolicy: d.s(),
		CPUs: maybe(d, func() report.PlacementCPUs {
			return report.PlacementCPUs{All: maybe(d, d.s), Online: maybe(d, d.s), Reserved: maybe(d, d.s), Shared: maybe(d, d.s), Free: maybe(d, d.s), Isolated: maybe(d, d.s)}
		}),
		NUMANodes: some(d, func() report.NUMANode {
			return report.NUMANode{ID: d.int(), CPUs: d.s(), FreeCPUs: maybe(d, d.s), Distances: some(d, d.uint),
				Memory: some(d, func() report.NUMAMemory {
					return report.NUMAMemory{Type: d.s(), Total: d.uint(), Reserved: d.uint(), Free: d.uint()}
				})}
		}),
		Containers: some(d, func() report.PlacementContainer {
			return report.PlacementContainer{Namespace: d.s(), Pod: d.s(), Container: d.s(), UID: d.s(), Init: d.bool(), CPUs: maybe(d, d.s), Exclusive: d.bool(),
				NUMANodes: some(d, d.int), Live: maybe(d, d.s), Source: d.s(), Memory: some(d, func() report.MemoryBlock {
					return report.MemoryBlock{Type: d.s(), NUMANodes: []int{d.int()}, Size: d.uint()}
				})}
		}),
	}
	for range d.n() {
		if p.Options == nil {
			p.Options = map[string]string{}
		}
		p.Options[d.s()] = d.s()
	}
	return p
}
