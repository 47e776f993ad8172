package diagnose

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/noderes/kubectl-noderes/pkg/report"
	"github.com/noderes/kubectl-noderes/pkg/snapshot"
	"github.com/noderes/kubectl-noderes/pkg/workload"
)

// podsFile is where a bundle has its pods.
const podsFile = "cluster/pods.json"

// Selected are the pods of a selection that the snapshot has.
type Selected struct {
	// Of is what was asked about, workloads with the namespace they are in.
	Of string
	// Pods stand in the order of how they look to the API server, the worst first.
	Pods []corev1.Pod
	// Partial says that there may be more in the cluster.
	Partial bool
	// Gaps are those that were too many to be kept.
	Gaps []report.Gap
}

// Select finds the pods of a selection. Errors about single workloads
// (*workload.NotFoundError, *workload.NoPodsError, *AmbiguousError, joined) come
// with the pods of the others.
func Select(s *snapshot.Snapshot, sel workload.Selection) (Selected, error) {
	pods, err := s.Pods()
	if err != nil {
		return Selected{}, fmt.Errorf("pods of the snapshot: %w", err)
	}
	partial, gaps := podGaps(s)
	sel.Workloads = slices.Clone(sel.Workloads)
	out := Selected{Partial: partial && len(sel.Workloads) == 0, Gaps: gaps}
	wanted := make([]bool, len(pods))
	var errs []error
	if len(sel.Workloads) == 0 {
		var there []labels.Set
		found := false
		for i := range pods {
			p := &pods[i]
			if sel.Namespace != "" && p.Namespace != sel.Namespace {
				continue
			}
			there = append(there, p.Labels)
			wanted[i] = sel.Labels == nil || sel.Labels.Matches(labels.Set(p.Labels))
			found = found || wanted[i]
		}
		if !found {
			return out, &workload.NoPodsError{Selection: &sel, Why: workload.OtherValues(sel.Labels, there)}
		}
	}
	for i := range sel.Workloads {
		all, err := selectOf(s, pods, wanted, &sel.Workloads[i])
		if err != nil {
			errs = append(errs, err)
		} else if !all {
			out.Partial = out.Partial || partial
		}
	}
	out.Of = sel.String()
	for i := range pods {
		if wanted[i] {
			out.Pods = append(out.Pods, pods[i])
		}
	}
	slices.SortStableFunc(out.Pods, func(a, b corev1.Pod) int { return workload.LookAt(&a).Compare(workload.LookAt(&b)) })
	return out, errors.Join(errs...)
}

// selectOf marks the pods of one workload and sets its namespace. All says that they are as many as its
// controller counts.
func selectOf(s *snapshot.Snapshot, pods []corev1.Pod, wanted []bool, at *workload.Ref) (all bool, err error) {
	ref := *at
	objects, err := workloads(s, ref.Kind)
	complete := err == nil && s.Partial(listFile(ref.Kind)) == nil
	if err != nil && !absent(err) {
		return false, err
	}
	owner := workload.Owner{}
	var object *workload.Object
	var names, namespaces, others []string
	for i := range objects {
		o := &objects[i]
		if ref.Namespace == "" || o.Namespace == ref.Namespace {
			names = append(names, o.Name)
		}
		if o.Name == ref.Name && (ref.Namespace == "" || o.Namespace == ref.Namespace) {
			object = o
			namespaces = append(namespaces, o.Namespace)
		}
	}
	for i := range pods {
		// Pods tell of workloads whose objects are not there.
		of, ok := workload.Of(&pods[i].ObjectMeta)
		if !ok || ref.Namespace != "" && of.Namespace != ref.Namespace {
			continue
		}
		if of.Name == ref.Name && of.Kind.Kind != ref.Kind.Kind && !slices.Contains(others, of.Argument()) {
			others = append(others, of.Argument())
		}
		if !complete && of.Kind.Kind == ref.Kind.Kind {
			names = append(names, of.Name)
			if object == nil && of.Name == ref.Name && !slices.Contains(namespaces, of.Namespace) {
				namespaces = append(namespaces, of.Namespace)
			}
		}
	}
	switch {
	case len(namespaces) == 0:
		return false, &workload.NotFoundError{Ref: ref, In: "the bundle", Nearest: append(others, workload.Nearest(names, ref.Name)...)}
	case len(namespaces) > 1:
		return false, &AmbiguousError{What: ref.Kind.QualifiedResource(), Name: ref.Name, Namespaces: namespaces}
	}
	at.Namespace = namespaces[0]
	owner.Ref = *at
	if object != nil {
		owner.UID = object.UID
	}
	if ref.Kind.Kind == workload.Deployment.Kind {
		if owner.Sets, err = ownSets(s, owner); err != nil {
			return false, err
		}
	}
	found := int64(0)
	for i := range pods {
		if owner.Owns(&pods[i].ObjectMeta) {
			wanted[i] = true
			found++
		}
	}
	if found > 0 {
		if object == nil {
			return false, nil
		}
		counted, ok := object.Count()
		return ok && found >= counted, nil
	}
	none := &workload.NoPodsError{Workload: owner.Ref}
	if object != nil {
		none.Why = object.WhyNoPods()
	}
	if none.Why == "" && s.Partial(podsFile) != nil {
		none.Why = "the bundle holds a part of the pods"
	}
	return false, none
}

// ownSets are the UIDs of the ReplicaSets of a Deployment. Nil where the snapshot
// does not tell them.
func ownSets(s *snapshot.Snapshot, owner workload.Owner) (map[types.UID]bool, error) {
	sets, err := workloads(s, workload.ReplicaSet)
	if err != nil {
		if absent(err) {
			return nil, nil
		}
		return nil, err
	}
	own := map[types.UID]bool{}
	for i := range sets {
		if owner.OwnsSet(&sets[i].ObjectMeta) {
			own[sets[i].UID] = true
		}
	}
	if len(own) == 0 && s.Partial(listFile(workload.ReplicaSet)) != nil {
		return nil, nil
	}
	return own, nil
}

func listFile(k workload.Kind) string { return "cluster/" + k.Resource + ".json" }

// absent says of an error that a file is not there, whatever the reason.
func absent(err error) bool {
	var gap *snapshot.GapError
	return errors.Is(err, snapshot.ErrNotCollected) || errors.Is(err, fs.ErrNotExist) || errors.As(err, &gap)
}

// workloads are the objects of one kind.
func workloads(s *snapshot.Snapshot, k workload.Kind) ([]workload.Object, error) {
	data, err := s.CustomList(k.Resource)
	if err != nil {
		return nil, err
	}
	var list struct {
		Kind  string `json:"kind"`
		Items []struct {
			Kind string `json:"kind"`
			workload.Object
		} `json:"items"`
	}
	if err := json.Unmarshal(data, &list); err != nil {
		return nil, fmt.Errorf("%s is no list of objects", listFile(k))
	}
	out := []workload.Object{}
	for _, item := range list.Items {
		if item.Kind == k.Kind || item.Kind == "" && strings.HasSuffix(list.Kind, "List") {
			out = append(out, item.Object)
		}
	}
	return out, nil
}

// podGaps are what the snapshot says of its cluster's pods: whether it holds a
// part of them, and those of a selection that were too many to be kept.
func podGaps(s *snapshot.Snapshot) (partial bool, gaps []report.Gap) {
	all, _ := s.Gaps()
	for _, g := range all {
		if g.Path != podsFile {
			continue
		}
		partial = true
		if g.Reason == snapshot.ReasonTooLarge {
			err := &snapshot.GapError{Gap: g}
			gaps = append(gaps, report.Gap{Wanted: g.Path, Reason: err.Error(), Costs: "how the others look, and how many there are of each", Fix: "a narrower question: -n, -l or a workload"})
		}
	}
	return partial, gaps
}
