package diagnose

import (
	"errors"
	"fmt"
	"io/fs"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/noderes/kubectl-noderes/pkg/diagnose/gap"
	"github.com/noderes/kubectl-noderes/pkg/diagnose/shrink"
	"github.com/noderes/kubectl-noderes/pkg/report"
	"github.com/noderes/kubectl-noderes/pkg/snapshot"
)

// NodePool explains what keeps one of Karpenter's NodePools from shrinking, or
// a node group of the Cluster Autoscaler where there is no NodePool of the name.
// Errors: *NotFoundError, or NodePools that the snapshot cannot give.
func NodePool(s *snapshot.Snapshot, name string, o Options) (report.Report, error) {
	return poolReport(s, report.NodePoolReport, name, o, (*shrink.Cluster).NodePool, (*shrink.Cluster).NodeGroup)
}

// Budgets tells what the budgets of one NodePool allow, or what bounds a node
// group of the Cluster Autoscaler, which has none. Errors as of NodePool.
func Budgets(s *snapshot.Snapshot, name string, o Options) (report.Report, error) {
	return poolReport(s, report.BudgetReport, name, o, (*shrink.Cluster).Budgets, (*shrink.Cluster).GroupBudgets)
}

// NodePools are the names of all NodePools, sorted, and then those of the
// Cluster Autoscaler's node groups.
func NodePools(s *snapshot.Snapshot) ([]string, error) {
	c := shrink.Read(s, s.Manifest().CapturedAt, &gap.Log{}, shrink.Options{})
	names := append(c.NodePools(), c.NodeGroups()...)
	if len(names) > 0 {
		return names, nil
	}
	if note := c.AutoscalerNote(); note != "" {
		return nil, errors.New("there is no NodePool of Karpenter to tell of; " + note)
	}
	if err := c.NodePoolsError(); err != nil {
		return nil, unread(s, err)
	}
	return nil, nil
}

func poolReport(s *snapshot.Snapshot, kind report.Kind, name string, o Options, ask, askGroup func(*shrink.Cluster, string) (shrink.Answer, bool)) (report.Report, error) {
	at := moment(s, o)
	gaps := &gap.Log{}
	c := shrink.Read(s, at, gaps, o.Shrink)
	versions := report.Versions{Karpenter: c.Version(), Replay: c.RulesName()}
	answer, ok := ask(c, name)
	if !ok {
		if answer, ok = askGroup(c, name); ok {
			versions = report.Versions{Replay: shrink.AutoscalerRules}
		}
	}
	if !ok {
		groups := c.NodeGroups()
		if err := c.NodePoolsError(); err != nil && len(groups) == 0 {
			if note := c.AutoscalerNote(); note != "" {
				err = fmt.Errorf("%w; %s", unread(s, err), note)
				return report.Report{}, err
			}
			return report.Report{}, unread(s, err)
		}
		what := "nodepools.karpenter.sh"
		if len(groups) > 0 {
			what = "NodePool or node group"
		}
		return report.Report{}, &NotFoundError{What: what, Name: name, In: "what was read", Known: append(c.NodePools(), groups...)}
	}
	order(answer.Findings)
	return report.Report{
		APIVersion: report.APIVersion,
		Kind:       kind,
		Metadata:   report.Metadata{Name: name, UID: answer.UID},
		ObservedAt: metav1.NewTime(at),
		Versions:   versions,
		Findings:   answer.Findings,
		Budgets:    answer.Budgets,
		Timeline:   answer.Timeline,
		Capacity:   answer.Capacity,
		Gaps:       gaps.List(),
	}, nil
}

// unread says why there are no NodePools.
func unread(s *snapshot.Snapshot, err error) error {
	if gap := s.Partial("cluster/nodepools.karpenter.sh.json"); gap != nil && errors.Is(err, fs.ErrNotExist) {
		return errors.New("there are no NodePools: the API server serves no nodepools.karpenter.sh in version v1, so Karpenter is not installed, or older than 1.0")
	}
	return fmt.Errorf("NodePools: %w", err)
}

// moment is the one that a question is about.
func moment(s *snapshot.Snapshot, o Options) time.Time {
	if o.At.IsZero() {
		return s.Manifest().CapturedAt
	}
	return o.At
}
