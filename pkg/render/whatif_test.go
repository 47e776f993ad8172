package render

import (
	"bytes"
	"testing"

	"github.com/noderes/kubectl-noderes/pkg/report"
)

// A pod asked about on three nodes: refused, admitted, not known; the last with
// settings that the kubelet would not take its state file with.
func whatIfReport() report.Report {
	refused, admitted := false, true
	return report.Report{
		APIVersion: report.APIVersion, Kind: report.WhatIfReport, Metadata: report.Metadata{Namespace: "shop", Name: "web"}, ObservedAt: at("07:07:47"),
		Findings: []report.Finding{{Code: report.WouldBeAdmittedNow, Severity: report.Info, Confidence: report.Proven,
			Subject: report.Subject{Kind: "Pod", Namespace: "shop", Name: "web"}, Summary: "The kubelet of n2 would admit the pod now."}},
		WhatIf: []report.WhatIf{
			{Node: "n1", Admitted: &refused, Reason: "TopologyAffinityError", Message: "Resources cannot be allocated with Topology locality",
				Nearest: []report.Nearest{{Change: "cpu 4 instead of 5 for container app", CPUs: ptr("24-27"), NUMANodes: []int{1}}, {Change: "the end of pod shop/x-1"}}},
			{Node: "n2", Admitted: &admitted, Containers: []report.WhatIfContainer{
				{Name: "setup", Init: true, CPUs: ptr("2-3"), Exclusive: true, NUMANodes: []int{0}},
				{Name: "app", CPUs: ptr("0-1,6-7"), NUMANodes: []int{1}, Memory: []report.MemoryBlock{{Type: "memory", NUMANodes: []int{1}, Size: 2200 << 20}}}}},
			{Node: "n3", Settings: []string{"reservedSystemCPUs=0,2", "kubeletVersion=1.36"}, Readmitted: &report.Readmitted{
				CheckpointsRemoved: []string{"/var/lib/kubelet/cpu_manager_state"}, Admitted: 17,
				Refused: []report.ReadmitRefusal{{Namespace: "shop", Pod: "excl-a", Reason: "SMTAlignmentError", Message: "SMT Alignment Error: requested 1 cpus not multiple cpus per core = 2"}}}},
		},
	}
}

func TestWhatIfText(t *testing.T) {
	for name, style := range map[string]Style{"whatif-80": {Width: 80, Unicode: true}, "whatif-unlimited": {}} {
		var out bytes.Buffer
		if err := Text(&out, []report.Report{whatIfReport()}, style); err != nil {
			t.Fatal(err)
		}
		golden(t, name+".txt", out.Bytes())
	}
}
