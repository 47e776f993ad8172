// Package workload says which pods a workload has, by who controls them, and
// which of several pods look worst to the API server. It reads no snapshot and
// asks no server.
package workload

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Kind is a kind of workload as the API has it.
type Kind struct {
	Kind     string // "Deployment"
	Group    string // "apps"
	Resource string // "deployments"
	short    []string
}

// APIVersion is that of its objects.
func (k Kind) APIVersion() string { return k.Group + "/v1" }

// QualifiedResource is its resource as kubectl's errors and RBAC name it, such as
// "deployments.apps".
func (k Kind) QualifiedResource() string { return k.Resource + "." + k.Group }

// The kinds whose pods can be asked for. A Deployment has its pods by way of
// ReplicaSets, the others control them.
var (
	Deployment  = Kind{"Deployment", "apps", "deployments", []string{"deploy", "deployment"}}
	StatefulSet = Kind{"StatefulSet", "apps", "statefulsets", []string{"sts", "statefulset"}}
	DaemonSet   = Kind{"DaemonSet", "apps", "daemonsets", []string{"ds", "daemonset"}}
	Job         = Kind{"Job", "batch", "jobs", []string{"job"}}
	ReplicaSet  = Kind{"ReplicaSet", "apps", "replicasets", []string{"rs", "replicaset"}}
)

// Kinds are all of them.
func Kinds() []Kind { return []Kind{Deployment, StatefulSet, DaemonSet, Job, ReplicaSet} }

// KindOf knows the names and short names the API has for a kind of workload.
func KindOf(name string) (Kind, bool) {
	name = strings.ToLower(name)
	for _, k := range Kinds() {
		plain := strings.TrimSuffix(strings.TrimSuffix(name, ".v1."+k.Group), "."+k.Group)
		if plain == k.Resource || slices.Contains(k.short, plain) {
			return k, true
		}
	}
	return Kind{}, false
}

// Ref names a workload. Without a namespace the only one of that name is meant.
type Ref struct {
	Kind      Kind
	Namespace string
	Name      string
}

// Argument is how a command names it, such as "deploy/web".
func (r Ref) Argument() string { return r.Kind.short[0] + "/" + r.Name }

// String is as a person writes it, such as "deployment shop/web".
func (r Ref) String() string {
	name := r.Name
	if r.Namespace != "" {
		name = r.Namespace + "/" + name
	}
	return strings.ToLower(r.Kind.Kind) + " " + name
}

// Owner tells the pods of one workload.
type Owner struct {
	Ref Ref
	// UID is the workload's; "" where its object is not known, and its name has to
	// do: a pod of a workload of that name which is gone counts too.
	UID types.UID
	// Sets are the UIDs of a Deployment's ReplicaSets; nil where they are not
	// known, and their names have to do.
	Sets map[types.UID]bool
}

// Owns says whether the workload has a pod. Labels alone decide nothing: two
// workloads may select the same ones.
//
// The Deployment controller calls a ReplicaSet by the Deployment's name and the
// hash that it labels the pods with (kubernetes 1.37,
// pkg/controller/deployment/sync.go: getNewReplicaSet).
func (o Owner) Owns(pod *metav1.ObjectMeta) bool {
	c := metav1.GetControllerOfNoCopy(pod)
	if c == nil || o.Ref.Namespace != "" && pod.Namespace != o.Ref.Namespace {
		return false
	}
	if o.Ref.Kind.Kind != Deployment.Kind {
		return o.controls(c)
	}
	if !isKind(c, ReplicaSet) {
		return false
	}
	if o.Sets != nil {
		return o.Sets[c.UID]
	}
	hash := pod.Labels["pod-template-hash"]
	return hash != "" && c.Name == o.Ref.Name+"-"+hash
}

// OwnsSet says whether the workload, a Deployment, controls a ReplicaSet.
func (o Owner) OwnsSet(set *metav1.ObjectMeta) bool {
	c := metav1.GetControllerOfNoCopy(set)
	return c != nil && (o.Ref.Namespace == "" || set.Namespace == o.Ref.Namespace) && o.controls(c)
}

func (o Owner) controls(c *metav1.OwnerReference) bool {
	return isKind(c, o.Ref.Kind) && c.Name == o.Ref.Name && (o.UID == "" || c.UID == o.UID)
}

// isKind compares without the version, as the controllers do.
func isKind(c *metav1.OwnerReference, k Kind) bool {
	group, _, _ := strings.Cut(c.APIVersion, "/")
	return c.Kind == k.Kind && group == k.Group
}

// Of is the workload that a pod names as its own: its controller or, of a
// ReplicaSet that a Deployment made, by the names the Deployment. False for a pod
// that belongs to none of the kinds.
func Of(pod *metav1.ObjectMeta) (Ref, bool) {
	c := metav1.GetControllerOfNoCopy(pod)
	if c == nil {
		return Ref{}, false
	}
	if hash := pod.Labels["pod-template-hash"]; isKind(c, ReplicaSet) && hash != "" {
		if name, ok := strings.CutSuffix(c.Name, "-"+hash); ok && name != "" {
			return Ref{Deployment, pod.Namespace, name}, true
		}
	}
	for _, k := range Kinds() {
		if isKind(c, k) {
			return Ref{k, pod.Namespace, c.Name}, true
		}
	}
	return Ref{}, false
}

// NotFoundError says that there is no such workload, and what there is like it.
type NotFoundError struct {
	Ref Ref
	// In is where it was looked for, if not in a namespace of a cluster.
	In      string
	Nearest []string
}

func (e *NotFoundError) Error() string {
	text := fmt.Sprintf("%s %q not found", e.Ref.Kind.QualifiedResource(), e.Ref.Name)
	switch {
	case e.Ref.Namespace != "" && e.In != "":
		text += fmt.Sprintf(" in namespace %q of %s", e.Ref.Namespace, e.In)
	case e.Ref.Namespace != "":
		text += fmt.Sprintf(" in namespace %q", e.Ref.Namespace)
	case e.In != "":
		text += " in " + e.In
	}
	if len(e.Nearest) > 0 {
		text += "; nearest: " + strings.Join(e.Nearest, ", ")
	}
	return text
}
