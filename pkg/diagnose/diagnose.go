// Package diagnose compares what should be with what is, and writes findings:
// one rule, one cause, one file. It knows what the replay packages compute and
// puts their answers side by side with what the snapshot holds; it reads
// nothing else and prints nothing.
//
// Start at Pod and podCase; the rules are registered in rules.go.
package diagnose

import (
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/noderes/kubectl-noderes/pkg/diagnose/shrink"
	"github.com/noderes/kubectl-noderes/pkg/report"
	"github.com/noderes/kubectl-noderes/pkg/snapshot"
	"github.com/noderes/kubectl-noderes/pkg/workload"
)

// Options narrow a question.
type Options struct {
	// At is the moment to answer for; zero is the snapshot's own. It moves
	// only what depends on the clock, never the data.
	At time.Time
	// Container keeps only the findings about this container and about its
	// pod as a whole.
	Container string
	// Set supposes other settings of the kubelet, or another version. It is for
	// nodes: what the kubelet's start with them would do.
	Set Settings
	// Shrink is what is supposed of Karpenter and the Cluster Autoscaler.
	Shrink shrink.Options
}

// Pod explains one pod. Without a namespace the only pod of that name is
// meant. Errors: *NotFoundError, *AmbiguousError, or pods that the snapshot
// cannot give.
func Pod(s *snapshot.Snapshot, namespace, name string, o Options) (report.Report, error) {
	pods, err := s.Pods()
	if err != nil {
		return report.Report{}, fmt.Errorf("pods of the snapshot: %w", err)
	}
	pod, err := findPod(pods, namespace, name)
	if err != nil {
		return report.Report{}, err
	}
	if o.Container != "" && !hasContainer(pod, o.Container) {
		return report.Report{}, &NotFoundError{What: "containers", Name: o.Container, In: "pod " + pod.Namespace + "/" + pod.Name, Known: containerNames(pod)}
	}
	n := newNodeCase(s, pod.Spec.NodeName, o.At)
	c := newPodCase(n, pod)
	findings := apply(podRules, c)
	findings = append(findings, evidenceMissing(c, findings)...)
	if o.Container != "" {
		if findings = onlyContainer(findings, o.Container); len(findings) == 0 {
			findings = evidenceMissing(c, nil)
		}
	}
	order(findings)
	return report.Report{
		APIVersion: report.APIVersion,
		Kind:       report.PodReport,
		Metadata:   report.Metadata{Namespace: pod.Namespace, Name: pod.Name, UID: string(pod.UID), Node: pod.Spec.NodeName},
		ObservedAt: metav1.NewTime(n.at),
		Versions:   n.versions(),
		Findings:   findings,
		Placement:  c.placement(),
		Resources:  c.resources(),
		Gaps:       n.gaps.List(),
	}, nil
}

// Node explains one node. Errors: *NotFoundError.
func Node(s *snapshot.Snapshot, name string, o Options) (report.Report, error) {
	known := s.NodeNames()
	found := false
	for _, k := range known {
		found = found || k == name
	}
	if !found {
		return report.Report{}, &NotFoundError{What: "nodes", Name: name, Known: known}
	}
	n := newNodeCase(s, name, o.At)
	findings := apply(nodeRules, n)
	versions := n.versions()
	if len(o.Set) > 0 {
		supposed, c, err := n.suppose(o.Set, findings)
		if err != nil {
			return report.Report{}, err
		}
		findings, versions.Replay = supposed, c.versions().Replay
	}
	findings = append(findings, nodeHealthy(n, findings)...)
	removal := shrink.Read(s, n.at, n.gaps, o.Shrink)
	findings = append(findings, removal.Node(name)...)
	versions.Karpenter = removal.Version()
	if removal.Managed(name) {
		versions.Replay += "; " + removal.RulesName()
	}
	order(findings)
	uid := ""
	if n.object != nil {
		uid = string(n.object.UID)
	}
	return report.Report{
		APIVersion: report.APIVersion,
		Kind:       report.NodeReport,
		Metadata:   report.Metadata{Name: name, UID: uid},
		ObservedAt: metav1.NewTime(n.at),
		Versions:   versions,
		Findings:   findings,
		Placement:  n.placement(n.pods),
		Gaps:       n.gaps.List(),
	}, nil
}

// NotFoundError says that the snapshot has no such object, and what it has.
type NotFoundError struct {
	What, Name, In string
	Known          []string
}

func (e *NotFoundError) Error() string {
	in := e.In
	if in == "" {
		in = "the bundle"
	}
	msg := fmt.Sprintf("%s %q not found in %s", e.What, e.Name, in)
	const most = 8
	switch {
	case len(e.Known) == 0:
		msg += ", which has none"
	case len(e.Known) <= most:
		msg += "; it has " + strings.Join(e.Known, ", ")
	default:
		some := e.Known[:most]
		if near := nearest(e.Known, e.Name); len(near) > 0 {
			some = near
		}
		msg += fmt.Sprintf("; it has %d, among them %s", len(e.Known), strings.Join(some, ", "))
	}
	return msg
}

// nearest are those of the known that are most like a name; a namespace before
// them does not count.
func nearest(known []string, name string) []string {
	full := map[string]string{}
	var names []string
	for _, k := range known {
		plain := k[strings.LastIndex(k, "/")+1:]
		if _, there := full[plain]; !there {
			full[plain] = k
			names = append(names, plain)
		}
	}
	var out []string
	for _, n := range workload.Nearest(names, name) {
		out = append(out, full[n])
	}
	return out
}

// AmbiguousError says that several objects have the name.
type AmbiguousError struct {
	What, Name string
	Namespaces []string
}

func (e *AmbiguousError) Error() string {
	return fmt.Sprintf("%s %q exist in several namespaces: %s; choose one with -n", e.What, e.Name, strings.Join(e.Namespaces, ", "))
}

func findPod(pods []corev1.Pod, namespace, name string) (*corev1.Pod, error) {
	var found []*corev1.Pod
	var known, elsewhere []string
	for i := range pods {
		p := &pods[i]
		if p.Name == name && (namespace == "" || p.Namespace == namespace) {
			found = append(found, p)
		}
		if p.Name == name {
			elsewhere = append(elsewhere, p.Namespace)
		}
		if namespace == "" || p.Namespace == namespace {
			known = append(known, p.Namespace+"/"+p.Name)
		}
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1 && namespace == "":
		return nil, &AmbiguousError{What: "pods", Name: name, Namespaces: elsewhere}
	case len(found) > 1:
		return nil, fmt.Errorf("pods %q stands %d times in namespace %q of the bundle", name, len(found), namespace)
	case len(elsewhere) > 0:
		return nil, &NotFoundError{What: "pods", Name: name, In: fmt.Sprintf("namespace %q of the bundle", namespace), Known: prefixed("namespace ", elsewhere)}
	default:
		return nil, &NotFoundError{What: "pods", Name: name, Known: known}
	}
}

func prefixed(prefix string, names []string) []string {
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = prefix + n
	}
	return out
}

// onlyContainer keeps what is said of one container and of the pod as a whole.
func onlyContainer(findings []report.Finding, container string) []report.Finding {
	var out []report.Finding
	for _, f := range findings {
		if f.Subject.Container == "" || f.Subject.Container == container {
			out = append(out, f)
		}
	}
	return out
}

var errNoNode = errors.New("the pod is on no node")
