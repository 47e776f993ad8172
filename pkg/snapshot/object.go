package snapshot

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kjson "sigs.k8s.io/json"
)

// Pods are the items of cluster/pods.json, Nodes, Events and ReplicaSets those
// of their own files: decoded once, in the file's order. Items of another kind
// are left out, a broken one is an error that gives its index. An absent file
// is an error like that of any other file, never an empty list.
func (s *Snapshot) Pods() ([]corev1.Pod, error) { return s.pods() }

// Nodes are the items of cluster/nodes.json, see [Snapshot.Pods].
func (s *Snapshot) Nodes() ([]corev1.Node, error) { return s.nodeObjects() }

// Events are the items of cluster/events.json, see [Snapshot.Pods].
func (s *Snapshot) Events() ([]corev1.Event, error) { return s.events() }

// ReplicaSets are the items of cluster/replicasets.json, see [Snapshot.Pods].
func (s *Snapshot) ReplicaSets() ([]appsv1.ReplicaSet, error) { return s.replicaSets() }

// Deployments are the items of cluster/deployments.json, see [Snapshot.Pods].
func (s *Snapshot) Deployments() ([]appsv1.Deployment, error) { return s.deployments() }

// DaemonSets are the items of cluster/daemonsets.json, see [Snapshot.Pods].
func (s *Snapshot) DaemonSets() ([]appsv1.DaemonSet, error) { return s.daemonSets() }

// PodDisruptionBudgets are the items of cluster/poddisruptionbudgets.json, see
// [Snapshot.Pods].
func (s *Snapshot) PodDisruptionBudgets() ([]policyv1.PodDisruptionBudget, error) { return s.pdbs() }

// PersistentVolumes are the items of cluster/persistentvolumes.json, see
// [Snapshot.Pods].
func (s *Snapshot) PersistentVolumes() ([]corev1.PersistentVolume, error) { return s.volumes() }

// PersistentVolumeClaims are the items of cluster/persistentvolumeclaims.json,
// see [Snapshot.Pods].
func (s *Snapshot) PersistentVolumeClaims() ([]corev1.PersistentVolumeClaim, error) {
	return s.claims()
}

// CustomList is the file of a custom resource, such as
// "nodepools.karpenter.sh": a List whose items are for the caller to decode.
// It is bounded like every other list, and no quantity in it is endless.
func (s *Snapshot) CustomList(resource string) ([]byte, error) {
	name := "cluster/" + resource + ".json"
	data, err := s.File(name)
	if err != nil {
		return nil, err
	}
	if n := bytes.Count(data, []byte(",")); n > maxListCommas {
		return nil, fmt.Errorf("%s: a list of %d values: %w", name, n, ErrTooManyEntries)
	}
	if err := CheckQuantities(data); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return data, nil
}

// object is a pointer to an API type.
type object[T any] interface {
	*T
	runtime.Object
}

func objects[T any, P object[T]](s *Snapshot, resource string, gv schema.GroupVersion, kind string) func() ([]T, error) {
	return sync.OnceValues(func() ([]T, error) {
		name := "cluster/" + resource + ".json"
		data, err := s.File(name)
		if err != nil {
			return nil, err
		}
		items, err := decodeList[T, P](data, gv.WithKind(kind))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		return items, nil
	})
}

// decodeList reads the items of one kind from a v1 List, or from the typed list
// of a raw API answer, whose items do not name their kind.
func decodeList[T any, P object[T]](data []byte, want schema.GroupVersionKind) ([]T, error) {
	if n := bytes.Count(data, []byte(",")); n > maxListCommas {
		return nil, fmt.Errorf("a list of %d values: %w", n, ErrTooManyEntries)
	}
	var list struct {
		Kind  string          `json:"kind"`
		Items json.RawMessage `json:"items"`
	}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(data, &list); err != nil {
		return nil, harmless(err)
	}
	if list.Kind != "" && !strings.HasSuffix(list.Kind, "List") {
		return nil, fmt.Errorf("a %s, not a List", quote(list.Kind))
	}
	switch {
	case list.Items == nil:
		return nil, errors.New("no items")
	case string(list.Items) == "null": // the API's empty typed list
		return []T{}, nil
	}

	var raws []json.RawMessage
	if err := kjson.UnmarshalCaseSensitivePreserveInts(list.Items, &raws); err != nil {
		return nil, fmt.Errorf("items are no list: %s", quote(list.Items))
	}
	if len(raws) > maxListItems {
		return nil, fmt.Errorf("%d items: %w", len(raws), ErrTooManyEntries)
	}
	items := []T{}
	for i, raw := range raws {
		item, err := decodeItem[T, P](raw, want)
		switch {
		case errors.Is(err, errOtherKind):
		case err != nil:
			return nil, fmt.Errorf("items[%d]: %w", i, err)
		default:
			items = append(items, *item)
		}
	}
	return items, nil
}

var errOtherKind = errors.New("another kind")

func decodeItem[T any, P object[T]](raw []byte, want schema.GroupVersionKind) (*T, error) {
	if !bytes.HasPrefix(raw, []byte("{")) {
		return nil, fmt.Errorf("not an object: %s", quote(raw))
	}
	if err := CheckQuantities(raw); err != nil {
		return nil, err
	}
	item := new(T)
	err := kjson.UnmarshalCaseSensitivePreserveInts(raw, item)
	if err != nil {
		// An object of another kind may well not fit this type. If it does not
		// fit even this one the kind is broken too, and err says so.
		var meta struct {
			Kind       string `json:"kind"`
			APIVersion string `json:"apiVersion"`
		}
		if kjson.UnmarshalCaseSensitivePreserveInts(raw, &meta) == nil && isOther(meta.APIVersion, meta.Kind, want) {
			return nil, errOtherKind
		}
		return nil, harmless(err)
	}
	apiVersion, kind := P(item).GetObjectKind().GroupVersionKind().ToAPIVersionAndKind()
	if isOther(apiVersion, kind, want) {
		return nil, errOtherKind
	}
	return item, nil
}

// isOther reports whether an item names a kind or version that is not want's.
// One that names neither is what the file's name promises.
func isOther(apiVersion, kind string, want schema.GroupVersionKind) bool {
	return kind != "" && kind != want.Kind || apiVersion != "" && apiVersion != want.GroupVersion().String()
}
