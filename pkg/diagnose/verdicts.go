package diagnose

import (
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/noderes/kubectl-noderes/pkg/report"
	"github.com/noderes/kubectl-noderes/pkg/workload"
)

// Verdicts sorts the reports of several pods: identical verdicts stand together,
// the worst first, each in the order that the reports had. The same findings by
// code, severity, confidence and what they are about are the same verdict,
// whatever their numbers.
func Verdicts(reports []report.Report) []report.Verdict {
	type group struct {
		weight  []int
		reports []report.Report
	}
	place := make(map[report.Code]int)
	for i, e := range report.Catalogue() {
		place[e.Code] = i
	}
	index := map[string]int{}
	var groups []group
	for _, r := range reports {
		key := verdictKey(r)
		i, known := index[key]
		if !known {
			i = len(groups)
			index[key] = i
			groups = append(groups, group{weight: weigh(r, place)})
		}
		groups[i].reports = append(groups[i].reports, r)
	}
	slices.SortStableFunc(groups, func(a, b group) int { return slices.Compare(a.weight, b.weight) })
	verdicts := make([]report.Verdict, 0, len(groups))
	n := 0
	for _, g := range groups {
		v := report.Verdict{Codes: []report.Code{}}
		for _, f := range g.reports[0].Findings {
			if !slices.Contains(v.Codes, f.Code) {
				v.Codes = append(v.Codes, f.Code)
			}
		}
		for _, r := range g.reports {
			v.Pods = append(v.Pods, report.Metadata{Namespace: r.Metadata.Namespace, Name: r.Metadata.Name, Node: r.Metadata.Node})
			reports[n] = r
			n++
		}
		verdicts = append(verdicts, v)
	}
	return verdicts
}

// weigh is what a report is compared by, the worst first: the gravity of its
// first finding, how many critical ones and how many warnings there are, how sure
// the first is and its place in the catalogue.
func weigh(r report.Report, place map[report.Code]int) []int {
	if len(r.Findings) == 0 {
		return []int{len(report.Severities())}
	}
	count := map[report.Severity]int{}
	for _, f := range r.Findings {
		count[f.Severity]++
	}
	first := r.Findings[0]
	return []int{first.Severity.Rank(), -count[report.Critical], -count[report.Warning], first.Confidence.Rank(), place[first.Code]}
}

func verdictKey(r report.Report) string {
	var b strings.Builder
	for _, f := range r.Findings {
		s := f.Subject
		switch {
		case s.Kind == "Pod" && s.Namespace == r.Metadata.Namespace && s.Name == r.Metadata.Name,
			s.Kind == "Node" && s.Name == r.Metadata.Node:
			s.Namespace, s.Name = "", ""
		}
		for _, part := range []string{string(f.Code), string(f.Severity), string(f.Confidence), s.Kind, s.Namespace, s.Name, s.Container} {
			b.WriteString(strconv.Quote(part))
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// NotExplained counts the pods of a selection that are not explained by how they
// look to the API server, the worst first.
func NotExplained(pods []corev1.Pod) []report.PodState {
	var out []report.PodState
	for i := range pods {
		state := workload.LookAt(&pods[i]).State
		j := slices.IndexFunc(out, func(s report.PodState) bool { return s.State == state })
		if j < 0 {
			j = len(out)
			out = append(out, report.PodState{State: state})
		}
		out[j].Pods++
	}
	return out
}
