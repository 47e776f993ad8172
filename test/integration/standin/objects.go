package standin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/util/retry"

	"github.com/noderes/kubectl-noderes/pkg/snapshot"
)

// kinds are the recorded lists in the order in which they are loaded.
var kinds = []struct {
	file, kind string
	gvr        schema.GroupVersionResource
}{
	{"nodepools.karpenter.sh", "NodePool", schema.GroupVersionResource{Group: "karpenter.sh", Version: "v1", Resource: "nodepools"}},
	{"nodeclaims.karpenter.sh", "NodeClaim", schema.GroupVersionResource{Group: "karpenter.sh", Version: "v1", Resource: "nodeclaims"}},
	{"nodes", "Node", schema.GroupVersionResource{Version: "v1", Resource: "nodes"}},
	{"daemonsets", "DaemonSet", schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "daemonsets"}},
	{"deployments", "Deployment", schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}},
	{"poddisruptionbudgets", "PodDisruptionBudget", schema.GroupVersionResource{Group: "policy", Version: "v1", Resource: "poddisruptionbudgets"}},
	{"pods", "Pod", schema.GroupVersionResource{Version: "v1", Resource: "pods"}},
	{"events", "Event", schema.GroupVersionResource{Version: "v1", Resource: "events"}},
}

// given are the fields that the API server gives.
var given = []string{"uid", "creationTimestamp", "resourceVersion", "generation"}

// LoadObjects creates what was recorded of a cluster as it is, owners and status included. It returns the files of the recording's
// cluster folder as they are on record but for what the API server gave. Nothing must run that takes pods without owner for garbage.
func LoadObjects(ctx context.Context, client dynamic.Interface, recorded *snapshot.Snapshot) (map[string][]byte, error) {
	files := map[string][]byte{}
	for _, k := range kinds {
		path := "cluster/" + k.file + ".json"
		data, err := recorded.File(path)
		if err != nil {
			return nil, err
		}
		var list struct{ Items []map[string]any }
		if err := json.Unmarshal(data, &list); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		for _, item := range list.Items {
			item["apiVersion"], item["kind"] = k.gvr.GroupVersion().String(), k.kind
			made, err := create(ctx, client.Resource(k.gvr), &unstructured.Unstructured{Object: item})
			if err != nil {
				return nil, fmt.Errorf("%s: %w", path, err)
			}
			for _, field := range given {
				value, ok, _ := unstructured.NestedFieldNoCopy(made.Object, "metadata", field)
				meta := item["metadata"].(map[string]any)
				if delete(meta, field); ok {
					meta[field] = value
				}
			}
		}
		items := list.Items
		if items == nil {
			items = []map[string]any{}
		}
		if files[path], err = json.Marshal(map[string]any{"apiVersion": "v1", "kind": "List", "items": items}); err != nil {
			return nil, err
		}
	}
	return files, nil
}

// create makes one object, and gives it its status and, as the API server taints new nodes, its taints.
func create(ctx context.Context, all dynamic.NamespaceableResourceInterface, recorded *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	want := recorded.DeepCopy()
	for _, field := range append([]string{"finalizers", "managedFields", "selfLink", "deletionTimestamp"}, given...) {
		unstructured.RemoveNestedField(want.Object, "metadata", field)
	}
	var client dynamic.ResourceInterface = all
	if ns := want.GetNamespace(); ns != "" {
		client = all.Namespace(ns)
	}
	made, err := client.Create(ctx, want, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", want.GetName(), err)
	}
	if spec, ok := want.Object["spec"]; ok && want.GetKind() == "Node" {
		made.Object["spec"] = spec
		if made, err = client.Update(ctx, made, metav1.UpdateOptions{}); err != nil {
			return nil, err
		}
	}
	if status, ok := want.Object["status"]; ok {
		err = retry.RetryOnConflict(retry.DefaultRetry, func() error {
			made.Object["status"] = status
			changed, err := client.UpdateStatus(ctx, made, metav1.UpdateOptions{})
			if apierrors.IsConflict(err) {
				made, _ = client.Get(ctx, want.GetName(), metav1.GetOptions{})
				return err
			}
			made = changed
			return err
		})
	}
	if made == nil && err == nil {
		err = errors.New("lost")
	}
	return made, err
}

// UnloadObjects removes all that LoadObjects made.
func UnloadObjects(ctx context.Context, client dynamic.Interface) error {
	var errs []error
	now := int64(0)
	for _, k := range kinds {
		list, err := client.Resource(k.gvr).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		for i := range list.Items {
			var one dynamic.ResourceInterface = client.Resource(k.gvr)
			if ns := list.Items[i].GetNamespace(); ns != "" {
				one = client.Resource(k.gvr).Namespace(ns)
			}
			errs = append(errs, one.Delete(ctx, list.Items[i].GetName(), metav1.DeleteOptions{GracePeriodSeconds: &now}))
		}
	}
	return errors.Join(errs...)
}
