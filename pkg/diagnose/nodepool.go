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

// NodePool explains what keeps one of Karpenter's NodePools from shrinking.
// Errors: *NotFoundError, or NodePools that the snapshot cannot give.
func NodePool(s *snapshot.Snapshot, name string, o Options) (report.Report, error) {
	return poolReport(s, report.NodePoolReport, name, o, (*shrink.Cluster).NodePool)
}

// Budgets tells what the budgets of one NodePool allow. Errors as of NodePool.
func Budgets(s *snapshot.Snapshot, name string, o Options) (report.Report, error) {
	return poolReport(s, report.BudgetReport, name, o, (*shrink.Cluster).Budgets)
}

// NodePools are the names of all NodePools, sorted.
func NodePools(s *snapshot.Snapshot) ([]string, error) {
	c := shrink.Read(s, s.Manifest().CapturedAt, &gap.Log{}, shrink.Options{})
	names := c.NodePools()
	if err := c.NodePoolsError(); err != nil && len(names) == 0 {
		return nil, unread(s, err)
	}
	return names, nil
}

func poolReport(s *snapshot.Snapshot, kind report.Kind, name string, o Options, ask func(*shrink.Cluster, string) (shrink.Answer, bool)) (report.Report, error) {
	at := moment(s, o)
	gaps := &gap.Log{}
	c := shrink.Read(s, at, gaps, o.Shrink)
	answer, ok := ask(c, name)
	if !ok {
		if err := c.NodePoolsError(); err != nil {
			return report.Report{}, unread(s, err)
		}
		return report.Report{}, &NotFoundError{What: "nodepools.karpenter.sh", Name: name, In: "what was read", Known: c.NodePools()}
	}
	order(answer.Findings)
	return report.Report{
		APIVersion: report.APIVersion,
		Kind:       kind,
		Metadata:   report.Metadata{Name: name, UID: answer.UID},
		ObservedAt: metav1.NewTime(at),
		Versions:   report.Versions{Karpenter: c.Version(), Replay: c.RulesName()},
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
