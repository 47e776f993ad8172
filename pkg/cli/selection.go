package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/noderes/kubectl-noderes/pkg/collect"
	"github.com/noderes/kubectl-noderes/pkg/diagnose"
	"github.com/noderes/kubectl-noderes/pkg/render"
	"github.com/noderes/kubectl-noderes/pkg/report"
	"github.com/noderes/kubectl-noderes/pkg/workload"
)

const (
	defaultMaxPods = 10
	// mostMaxPods bounds a report; a larger one would be none, but a dump.
	mostMaxPods = 500
)

func addMaxPodsFlag(cmd *cobra.Command, most *int) {
	cmd.Flags().IntVar(most, "max-pods", defaultMaxPods, "How many pods of a workload or a selector: those that look worst to the API server")
	mustRegister(cmd, "max-pods", cobra.NoFileCompletions)
}

func validateMaxPods(most int) error {
	if most < 1 || most > mostMaxPods {
		return fmt.Errorf("--max-pods=%d is not from 1 to %d", most, mostMaxPods)
	}
	return nil
}

func isWorkload(resource string) bool {
	_, ok := workload.KindOf(resource)
	return ok
}

// workloadNames takes the WORKLOAD/NAME arguments out of others.
func workloadNames(args []string) (refs []workload.Ref, others []string, err error) {
	for _, arg := range args {
		resource, name, ok := strings.Cut(arg, "/")
		kind, known := workload.KindOf(resource)
		switch {
		case !ok || !known:
			others = append(others, arg)
		case name == "" || strings.Contains(name, "/"):
			return nil, nil, fmt.Errorf("%q is no name of a %s", arg, strings.ToLower(kind.Kind))
		default:
			refs = append(refs, workload.Ref{Kind: kind, Name: name})
		}
	}
	return refs, others, nil
}

// runSelection explains the pods that look worst of those selected.
func (o *ExplainPodOptions) runSelection(ctx context.Context) error {
	sel := *o.selection
	if o.from == "" && !o.allNamespaces {
		namespace, err := o.cluster.namespace(o.namespace)
		if err != nil {
			return err
		}
		sel.Namespace = namespace
	}
	if o.allNamespaces {
		sel.Namespace = ""
	}
	for i := range sel.Workloads {
		sel.Workloads[i].Namespace = sel.Namespace
	}
	s, failed, err := o.read(ctx, collect.Request{Select: &sel})
	if err != nil {
		return err
	}
	var errs []error
	there := sel
	there.Workloads = nil
	for _, ref := range sel.Workloads {
		if err := failed[ref.String()]; err != nil {
			errs = append(errs, err)
			continue
		}
		there.Workloads = append(there.Workloads, ref)
	}
	if len(errs) > 0 && len(there.Workloads) == 0 {
		return errors.Join(errs...)
	}
	found, err := diagnose.Select(s, there)
	if err != nil {
		errs = append(errs, err)
	}
	pods := found.Pods
	var reports []report.Report
	for i := range pods[:min(len(pods), sel.Most)] {
		if err := ctx.Err(); err != nil {
			return err
		}
		r, err := diagnose.Pod(s, pods[i].Namespace, pods[i].Name, diagnose.Options{At: o.at, Container: o.container})
		if err != nil {
			errs = append(errs, err)
			continue
		}
		reports = append(reports, r)
	}
	if len(reports) == 0 {
		return errors.Join(errs...)
	}
	list := report.NewList(report.PodReport, reports)
	list.Selection = &report.Selection{
		Of: found.Of, Pods: len(pods), Explained: len(reports),
		// What is read live is all of it.
		Partial:      o.from != "" && found.Partial,
		Verdicts:     diagnose.Verdicts(reports),
		NotExplained: diagnose.NotExplained(pods[min(len(pods), sel.Most):]),
		Gaps:         found.Gaps,
	}
	if err := o.document(o.Out, list, func(w io.Writer) error { return render.Selection(w, list, o.style(w)) }); err != nil {
		return err
	}
	if len(errs) > 0 {
		return errors.Join(errs...)
	}
	return o.checkFailOn(reports)
}
