package collect

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/noderes/kubectl-noderes/pkg/snapshot"
	"github.com/noderes/kubectl-noderes/pkg/workload"
)

// mostKept bounds the selected pods that the snapshot holds: of more those that
// look worst.
const mostKept = 500

// selectedPod is a pod of a selection as the list had it.
type selectedPod struct {
	name types.NamespacedName
	node string
	look workload.Look
	raw  json.RawMessage
}

// selected are the pods found so far.
type selected struct {
	pods  []selectedPod // the worst of them
	total int
}

// choose reads a selection and puts its pods into the snapshot. Those to read
// from their nodes are returned, the worst first. Workloads that are not there,
// or have no pods, are failed subjects by their name.
func (c *collector) choose(ctx context.Context, sel workload.Selection) ([]selectedPod, error) {
	var all selected
	if len(sel.Workloads) == 0 {
		query := url.Values{}
		if sel.Labels != nil && !sel.Labels.Empty() {
			query.Set("labelSelector", sel.Labels.String())
		}
		if err := c.selectPods(ctx, sel.Namespace, query, &all, func(*metav1.ObjectMeta) bool { return true }); err != nil {
			return nil, err
		}
		if all.total == 0 {
			return nil, &workload.NoPodsError{Selection: &sel, Why: workload.OtherValues(sel.Labels, c.labelsThere(ctx, sel))}
		}
	}
	for _, ref := range sel.Workloads {
		if err := c.workload(ctx, ref, &all); err != nil {
			c.fail(ref.String(), err)
		}
	}
	all.cut(mostKept)
	for _, pod := range all.pods {
		if err := c.keep("pods", pod.raw); err != nil {
			return nil, err
		}
	}
	if left := all.total - len(all.pods); left > 0 {
		c.builder.Gap(snapshot.Gap{Path: "cluster/pods.json", Reason: snapshot.ReasonTooLarge, Detail: fmt.Sprintf("%d of %d pods asked for are left out; none looks worse than those that are there", left, all.total)})
	}
	return all.pods[:min(len(all.pods), max(sel.Most, 1))], nil
}

// workload reads one workload with the ReplicaSets by which it has its pods, and
// the pods.
func (c *collector) workload(ctx context.Context, ref workload.Ref, all *selected) error {
	if err := segments(ref.Namespace, ref.Name); err != nil {
		return err
	}
	data, err := c.client.get(ctx, resourcePath(ref.Kind, ref.Namespace)+"/"+url.PathEscape(ref.Name), nil)
	if hasStatus(err, http.StatusNotFound) {
		return &workload.NotFoundError{Ref: ref, Nearest: workload.Nearest(c.namesThere(ctx, resourcePath(ref.Kind, ref.Namespace)), ref.Name)}
	}
	if err != nil {
		return subjectError(err, "", fmt.Sprintf("get %s in namespace %q", ref.Kind.QualifiedResource(), ref.Namespace))
	}
	var object workload.Object
	if err := json.Unmarshal(data, &object); err != nil || object.UID == "" {
		return fmt.Errorf("%s: the answer is no %s", ref, ref.Kind.Kind)
	}
	if err := c.keep(ref.Kind.Resource, data); err != nil {
		return err
	}
	// The selector only spares us the rest of the namespace: a controller lets go
	// of pods whose labels it does not select.
	query := url.Values{}
	if s := object.Selects(); s != nil {
		query.Set("labelSelector", s.String())
	}
	owner := workload.Owner{Ref: ref, UID: object.UID}
	if ref.Kind.Kind == workload.Deployment.Kind {
		if owner.Sets, err = c.replicaSets(ctx, owner, query); err != nil {
			return err
		}
	}
	before := all.total
	if err := c.selectPods(ctx, ref.Namespace, query, all, owner.Owns); err != nil {
		return err
	}
	if all.total == before {
		return &workload.NoPodsError{Workload: ref, Why: object.WhyNoPods()}
	}
	return nil
}

// replicaSets are the UIDs of those that a Deployment controls.
func (c *collector) replicaSets(ctx context.Context, owner workload.Owner, query url.Values) (map[types.UID]bool, error) {
	sets := map[types.UID]bool{}
	err := c.pages(ctx, resourcePath(workload.ReplicaSet, owner.Ref.Namespace), clone(query), func(items []json.RawMessage, _ int) error {
		for _, item := range items {
			var set metav1.PartialObjectMetadata
			if err := json.Unmarshal(item, &set); err != nil {
				return errors.New("an item is no ReplicaSet")
			}
			if !owner.OwnsSet(&set.ObjectMeta) {
				continue
			}
			sets[set.UID] = true
			if err := c.keep(workload.ReplicaSet.Resource, item); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, subjectError(err, "", fmt.Sprintf("list %s in namespace %q", workload.ReplicaSet.QualifiedResource(), owner.Ref.Namespace))
	}
	return sets, nil
}

// selectPods adds the pods of a list that are wanted. Of the list no more than a
// page is held.
func (c *collector) selectPods(ctx context.Context, namespace string, query url.Values, all *selected, wanted func(*metav1.ObjectMeta) bool) error {
	path, where := "/api/v1/pods", "of all namespaces"
	if namespace != "" {
		if err := segments(namespace); err != nil {
			return err
		}
		path, where = "/api/v1/namespaces/"+url.PathEscape(namespace)+"/pods", fmt.Sprintf("in namespace %q", namespace)
	}
	err := c.pages(ctx, path, clone(query), func(items []json.RawMessage, _ int) error {
		for _, item := range items {
			var pod corev1.Pod
			if err := json.Unmarshal(item, &pod); err != nil {
				return errors.New("an item of the list is no pod")
			}
			if !wanted(&pod.ObjectMeta) {
				continue
			}
			all.total++
			all.pods = append(all.pods, selectedPod{types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}, pod.Spec.NodeName, workload.LookAt(&pod), slices.Clone(item)})
		}
		if len(all.pods) > 2*mostKept {
			all.cut(mostKept)
		}
		return nil
	})
	return subjectError(err, "", "list pods "+where)
}

// cut leaves the worst.
func (s *selected) cut(most int) {
	slices.SortFunc(s.pods, func(a, b selectedPod) int { return a.look.Compare(b.look) })
	distinct := slices.CompactFunc(s.pods, func(a, b selectedPod) bool { return a.name == b.name })
	s.total -= len(s.pods) - len(distinct) // named by two workloads
	s.pods = slices.Clone(distinct[:min(len(distinct), most)])
}

// namesThere are the names of what is in a list, for an error: what cannot be
// had is left out.
func (c *collector) namesThere(ctx context.Context, path string) []string {
	var names []string
	c.metadata(ctx, path, func(o *metav1.ObjectMeta) { names = append(names, o.Name) })
	return names
}

// labelsThere are those of the pods where a selection found none.
func (c *collector) labelsThere(ctx context.Context, sel workload.Selection) []labels.Set {
	if sel.Labels == nil || sel.Labels.Empty() {
		return nil
	}
	path := "/api/v1/pods"
	if sel.Namespace != "" {
		path = "/api/v1/namespaces/" + url.PathEscape(sel.Namespace) + "/pods"
	}
	var sets []labels.Set
	c.metadata(ctx, path, func(o *metav1.ObjectMeta) { sets = append(sets, o.Labels) })
	return sets
}

// metadata reads the first page of a list, and of it only what every object has.
func (c *collector) metadata(ctx context.Context, path string, each func(*metav1.ObjectMeta)) {
	data, err := c.client.getAs(ctx, path, url.Values{"limit": {"500"}}, "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json")
	var list metav1.PartialObjectMetadataList
	if err != nil || json.Unmarshal(data, &list) != nil {
		return
	}
	for i := range list.Items {
		each(&list.Items[i].ObjectMeta)
	}
}

func resourcePath(k workload.Kind, namespace string) string {
	return strings.Join([]string{"/apis", k.Group, "v1/namespaces", url.PathEscape(namespace), k.Resource}, "/")
}

// clone is for a query that paging changes.
func clone(query url.Values) url.Values {
	out := url.Values{}
	for k, v := range query {
		out[k] = slices.Clone(v)
	}
	return out
}
