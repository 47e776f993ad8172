package shrink

import (
	"fmt"
	"math"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"github.com/noderes/kubectl-noderes/pkg/disruption/autoscaler"
	"github.com/noderes/kubectl-noderes/pkg/report"
)

// caNotUnderutilized: the pods request as much of the node as the threshold or
// more (Cluster Autoscaler 1.36, core/scaledown/eligibility). A node group may
// have a threshold of its own, which no API object shows.
func caNotUnderutilized(a *caCase) []report.Finding {
	if err := a.ownPodsErr(); err != nil {
		a.gaps.Miss("cluster/pods.json", err, "what the pods of the node request is not known in full, so not its utilization either", "list pods of all namespaces")
		return nil
	}
	u, err := autoscaler.UtilizationOf(a.node.Node, a.node.Pods, a.settings, a.at)
	if err != nil {
		a.gaps.Lack("allocatable of node "+a.node.Name(), err.Error(), "the Cluster Autoscaler's utilization of it is not known", "")
		return nil
	}
	if !u.Stays() {
		return nil
	}
	confidence := report.Likely
	exactly := ""
	if u.Ratio == u.Threshold {
		confidence, exactly = report.Possible, "; at exactly the threshold releases differ, and newer ones let it go"
	}
	f := report.NewFinding(report.CANotUnderutilized, weaker(confidence, a.belongs), a.subject(),
		fmt.Sprintf("%s is not underutilized: its pods request %s of its %s, and it would have to be below %s to be removed%s.", a.kept(), share(u.Ratio), u.Resource, share(u.Threshold), exactly))
	for _, p := range u.Parts {
		f.Because = append(f.Because, a.field("status.allocatable."+string(p.Resource), quantity(a.node.Node.Status.Allocatable, p.Resource),
			fmt.Sprintf("%s requested by %s: %s", thousandths(p.Resource, p.Requested), plural(p.Pods, "pod"), share(p.Ratio))))
		if f.Arithmetic != "" {
			f.Arithmetic += "; "
		}
		f.Arithmetic += partArithmetic(p)
	}
	f.Because = append(f.Because, a.setting(u.ThresholdFlag, number(u.Threshold), "from this share on a node stays; a node group may have its own"), a.tie)
	f.Arithmetic += fmt.Sprintf("; the greater decides, %s ≥ %s", share(u.Ratio), share(u.Threshold))
	if u.GPULabel != "" {
		f.Because = append(f.Because, a.field("metadata.labels["+u.GPULabel+"]", cut(a.node.Node.Labels[u.GPULabel], 100), "a node with GPUs: they alone count"))
	}
	return []report.Finding{f}
}

func partArithmetic(p autoscaler.Part) string {
	of := thousandths(p.Resource, p.Allocatable)
	if p.Excluded > 0 {
		of = fmt.Sprintf("(%s - %s of DaemonSets and static pods)", of, thousandths(p.Resource, p.Excluded))
	}
	name := string(p.Resource)
	if p.Resource == corev1.ResourceCPU {
		name = "CPU"
	}
	return fmt.Sprintf("%s: %s / %s = %s", name, thousandths(p.Resource, p.Requested), of, share(p.Ratio))
}

// share is a ratio in per cent.
func share(ratio float64) string {
	percent := ratio * 100
	if math.IsNaN(percent) || percent > 1e6 || percent < -1e6 {
		return "more than all"
	}
	return strconv.FormatFloat(math.Round(percent*100)/100, 'f', -1, 64) + " %"
}

func number(f float64) string { return strconv.FormatFloat(f, 'g', -1, 64) }
