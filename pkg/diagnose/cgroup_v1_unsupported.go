package diagnose

import (
	"fmt"

	"github.com/noderes/kubectl-noderes/pkg/cgroup"
	"github.com/noderes/kubectl-noderes/pkg/report"
)

// podCgroupV1 and nodeCgroupV1 name a node whose controllers are on cgroup v1
// (or hybrid): none of its figures are read, what the API says still holds.
// Kubelets refuse to start there by default since 1.35 (failCgroupV1).
func podCgroupV1(c *podCase) []report.Finding { return c.cgroupV1(c.subject("")) }

func nodeCgroupV1(n *nodeCase) []report.Finding { return n.cgroupV1(n.subject()) }

func (n *nodeCase) cgroupV1(subject report.Subject) []report.Finding {
	if n.treeErr != nil || n.mode != cgroup.V1 && n.mode != cgroup.Hybrid {
		return nil
	}
	what := "cgroup v1"
	if n.mode == cgroup.Hybrid {
		what = "the hybrid of cgroup v1 and v2"
	}
	f := report.NewFinding(report.CgroupV1Unsupported, report.Proven, subject,
		fmt.Sprintf("Node %s runs %s: its files have other names, units and meanings, and no figure is read from them.", n.name, what),
		n.fileEvidence("sys/fs/cgroup", "", what, "no cgroup.controllers at the root of the hierarchy"))
	f.Remedies = []report.Remedy{{
		Summary: "Boot the node with the unified hierarchy (systemd.unified_cgroup_hierarchy=1).",
		Effect:  "Kubelets from 1.35 on refuse to start on cgroup v1 unless failCgroupV1 is false.",
	}}
	return []report.Finding{f}
}
