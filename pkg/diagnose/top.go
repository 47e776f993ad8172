package diagnose

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/noderes/kubectl-noderes/pkg/cgroup"
	"github.com/noderes/kubectl-noderes/pkg/diagnose/gap"
	"github.com/noderes/kubectl-noderes/pkg/report"
	"github.com/noderes/kubectl-noderes/pkg/snapshot"
)

// TopOptions choose the rows of a table and their order.
type TopOptions struct {
	// Names are the pods or nodes wanted; none means all. Pods that have ended
	// and left no cgroup are rows only by name.
	Names []string
	// Namespace and Node keep a table of pods to those of one; "" is all.
	Namespace, Node string
	// Containers makes a row of each container of a pod.
	Containers bool
	// Usage is what ReadUsage told of the snapshot; nil reads the snapshot alone.
	Usage Usage
	// SortBy is one of TopPodColumns or TopNodeColumns; "" is the first.
	SortBy string
}

// column is what rows can be sorted by.
type column[R any] struct {
	name string
	// value of a row: a number, one that there is none (no limit to be a share
	// of), or not known. Nil sorts by name alone.
	value func(*R) sortValue
}

// sortValue orders the largest number first, then those that have none, then
// what is not known.
type sortValue struct {
	order  int
	number float64
}

const (
	isNumber = iota
	isNone
	isUnknown
)

func (a sortValue) compare(b sortValue) int {
	return cmp.Or(cmp.Compare(a.order, b.order), cmp.Compare(b.number, a.number))
}

func sortKey[N int | uint64 | float64](v *N) sortValue {
	if v == nil {
		return sortValue{order: isUnknown}
	}
	return sortValue{number: float64(*v)}
}

// sortShare is of a share that there is none of without a limit.
func sortShare(share *float64, unlimited bool) sortValue {
	if share == nil && unlimited {
		return sortValue{order: isNone}
	}
	return sortKey(share)
}

func columnNames[R any](columns []column[R]) []string {
	var out []string
	for _, c := range columns {
		out = append(out, c.name)
	}
	return out
}

// sortRows sorts by a column, then by name. It returns the column's name.
func sortRows[R any](rows []R, columns []column[R], by string, byName func(a, b *R) int) (string, error) {
	if by == "" {
		by = columns[0].name
	}
	i := slices.IndexFunc(columns, func(c column[R]) bool { return c.name == by })
	if i < 0 {
		return "", fmt.Errorf("no column %q", by)
	}
	value := columns[i].value
	slices.SortStableFunc(rows, func(a, b R) int {
		if value == nil {
			return byName(&a, &b)
		}
		return cmp.Or(value(&a).compare(value(&b)), byName(&a, &b))
	})
	return by, nil
}

// wantedNames are the names asked for, each with whether it was found.
type wantedNames map[string]bool

func newWantedNames(names []string) wantedNames {
	w := wantedNames{}
	for _, name := range names {
		w[name] = false
	}
	return w
}

// take says whether a name is wanted.
func (w wantedNames) take(name string) bool {
	if _, named := w[name]; !named {
		return len(w) == 0
	}
	w[name] = true
	return true
}

// named says whether a name was asked for.
func (w wantedNames) named(name string) bool {
	_, ok := w[name]
	return ok
}

// missing is a *NotFoundError for each name that was not found.
func (w wantedNames) missing(what, in string, known []string) error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(w)) {
		if !w[name] {
			errs = append(errs, &NotFoundError{What: what, Name: name, In: in, Known: known})
		}
	}
	return errors.Join(errs...)
}

func newTop(s *snapshot.Snapshot) report.Top {
	return report.Top{APIVersion: report.APIVersion, Kind: report.TopReport, ObservedAt: metav1.NewTime(s.Manifest().CapturedAt)}
}

// mergeGaps are those of several nodes, each once.
func mergeGaps(nodes ...*nodeCase) []report.Gap {
	all := gap.Log{}
	for _, n := range nodes {
		for _, g := range n.gaps.List() {
			all.Lack(g.Wanted, g.Reason, g.Costs, g.Fix)
		}
	}
	return all.List()
}

// sampleSeconds is the time between the samples, nil without two.
func (n *nodeCase) sampleSeconds() *float64 {
	if n.first == nil {
		return nil
	}
	seconds := float64(n.wallUsec/1000) / 1000
	return &seconds
}

// waiting is the time that some task waited: of the sample where its total was
// read twice, else the kernel's average. A file known not to exist is no gap.
func (n *nodeCase) waiting(read func() (cgroup.Pressure, error), growth func() (uint64, bool), file, costs string) *report.TopWaiting {
	now, err := read()
	if err != nil || now.Some == nil {
		n.gaps.Miss(n.filePath(file), err, costs, "a kernel with psi=1")
		return nil
	}
	if waited, ok := growth(); ok {
		return &report.TopWaiting{Share: min(share(waited, n.wallUsec), 1), Over: report.OverSample}
	}
	return &report.TopWaiting{Share: min(now.Some.Avg10/100, 1), Over: report.OverAvg10}
}

// killed counts the processes that the kernel killed for memory in a group and
// those below. With memory.oom.group the first victim counts twice.
func (e groupEvents) killed() *uint64 {
	kills, ok := e.inTree("oom_kill")
	if !ok {
		return nil
	}
	if groups, ok := e.inTree("oom_group_kill"); ok && groups <= kills {
		kills -= groups
	}
	return &kills
}
