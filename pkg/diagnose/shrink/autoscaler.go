package shrink

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/noderes/kubectl-noderes/pkg/disruption/autoscaler"
	"github.com/noderes/kubectl-noderes/pkg/report"
)

const (
	autoscalerStatusFile   = "cluster/cluster-autoscaler-status.yaml"
	autoscalerStatusSource = "api:configmaps/kube-system/cluster-autoscaler-status"
)

// autoscalerState is what is known of the Cluster Autoscaler itself.
type autoscalerState struct {
	// status is empty where statusErr says why.
	status    autoscaler.Status
	statusErr error
	// controller is what shows that it runs; no source where nothing does.
	controller report.Evidence
	version    string // of its image; "" where that is not known
	minor      int    // of the version 1.minor; 0 where that is not known
	settings   autoscaler.Settings
	// flagsKnown: its command line was read.
	flagsKnown bool
	// perGroup are how many nodes are tied to each group, by index. Nil: not counted.
	perGroup []int64
}

// autoscaler reads what the snapshot tells of it, once.
func (c *Cluster) autoscaler() *autoscalerState {
	if c.autoscalerRead == nil {
		c.autoscalerRead = c.readAutoscaler()
	}
	return c.autoscalerRead
}

func (c *Cluster) readAutoscaler() *autoscalerState {
	s := &autoscalerState{settings: autoscaler.Defaults(0)}
	text, err := c.snap.File(autoscalerStatusFile)
	if err == nil {
		s.status, err = autoscaler.ParseStatus(text)
	}
	s.statusErr = err
	for _, k := range c.autoscalerContainers() {
		s.controller = report.Evidence{Source: k.source, Field: "image", Value: k.container.Image, Means: "the Cluster Autoscaler's controller"}
		if minor, ok := autoscaler.Minor(imageTag(k.container.Image)); ok {
			s.version, s.minor = imageTag(k.container.Image), minor
		}
		args := append(append([]string{}, k.container.Command...), k.container.Args...)
		s.flagsKnown = len(args) > 0
		s.settings = autoscaler.ParseArgs(args, s.minor)
		if s.flagsKnown {
			break
		}
	}
	s.perGroup = c.perGroup(s)
	return s
}

// autoscalerContainers are those of its controllers, of pods that run first.
func (c *Cluster) autoscalerContainers() []controller {
	var out []controller
	for i := range c.pods {
		p := &c.pods[i]
		if p.DeletionTimestamp != nil || p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed {
			continue
		}
		if k, ok := autoscaler.IsController(p.Labels, p.Spec.Containers); ok {
			out = append(out, controller{"api:pods/" + p.Namespace + "/" + p.Name, p.Spec.Containers[k]})
		}
	}
	deployments, err := c.snap.Deployments()
	if err != nil {
		return out
	}
	for i := range deployments {
		d := &deployments[i]
		if k, ok := autoscaler.IsController(d.Spec.Template.Labels, d.Spec.Template.Spec.Containers); ok && (d.Spec.Replicas == nil || *d.Spec.Replicas > 0) {
			out = append(out, controller{"api:deployments/" + d.Namespace + "/" + d.Name, d.Spec.Template.Spec.Containers[k]})
		}
	}
	return out
}

// mostTies bounds how many pairs of a node and a group are compared.
const mostTies = 1 << 22

func (c *Cluster) tooManyTies(groups []autoscaler.Group) bool {
	return len(groups)*len(c.karpenter.Nodes) > mostTies
}

func (c *Cluster) perGroup(s *autoscalerState) []int64 {
	groups := s.status.Groups
	if c.nodesErr != nil || c.tooManyTies(groups) {
		return nil
	}
	out := make([]int64, len(groups))
	for _, n := range c.karpenter.Nodes {
		if n.Node == nil {
			continue
		}
		if tie, ok := autoscaler.TieOf(n.Node, groups); ok {
			for _, i := range tie.Groups {
				out[i]++
			}
		}
	}
	return out
}

// runs: something shows that there is a Cluster Autoscaler.
func (s *autoscalerState) runs() bool {
	return s.controller.Source != "" || s.statusErr == nil || errors.Is(s.statusErr, autoscaler.ErrPlainText)
}

// shown is the evidence that it runs.
func (s *autoscalerState) shown() report.Evidence {
	if s.statusErr == nil {
		return report.Evidence{Source: autoscalerStatusSource, Field: "status.autoscalerStatus", Value: cut(s.status.Running, 60), Means: "the Cluster Autoscaler writes this status; last at " + utc(s.status.Time)}
	}
	return s.controller
}

// staleStatus is how old a status may be that tells of now. It is written every scan, 10 s by default.
const staleStatus = 10 * time.Minute

// stale: the status is too old to tell of the moment.
func (s *autoscalerState) stale(at time.Time) bool {
	return s.statusErr == nil && !s.status.Time.IsZero() && at.Sub(s.status.Time) > staleStatus
}

// noteAutoscaler leaves gaps for what is not known of it.
func (c *Cluster) noteAutoscaler() {
	s := c.autoscaler()
	c.noteStatus("which nodes are in a node group, its minimum size and its state are not known")
	if s.stale(c.at) {
		c.gaps.Lack("a present status of the Cluster Autoscaler", "it last wrote at "+utc(s.status.Time)+", "+span(c.at.Sub(s.status.Time))+" before: it may not run any more", "sizes and states of node groups may be others by now", "look whether its pod runs")
	}
	if !s.flagsKnown {
		reason := "no container of its controller is among the pods and Deployments"
		if s.controller.Source != "" {
			reason = strings.TrimPrefix(s.controller.Source, "api:") + " shows no command line"
		}
		c.gaps.Lack("flags of the Cluster Autoscaler", reason, "its defaults were assumed; what depends on a flag is at most likely", "collect its pod or Deployment with the arguments")
	}
	if invalid := s.settings.Invalid; len(invalid) > 0 {
		c.gaps.Lack("flags of the Cluster Autoscaler that cannot be read", cut(some(invalid), 200), "their defaults were assumed", "")
	}
}

// noteStatus leaves a gap where there is no status to read.
func (c *Cluster) noteStatus(costs string) {
	const fix = "get the ConfigMap cluster-autoscaler-status of kube-system"
	if err := c.autoscaler().statusErr; errors.Is(err, fs.ErrNotExist) {
		c.gaps.Lack(autoscalerStatusFile, "there is none", costs, "")
	} else {
		c.gaps.Miss(autoscalerStatusFile, err, costs, fix)
	}
}

// setting is the evidence of a flag: as given, or its default.
func (s *autoscalerState) setting(flag, value, means string) report.Evidence {
	if text, ok := s.settings.Set[flag]; ok {
		return report.Evidence{Source: s.controller.Source, Field: "--" + flag, Value: cut(text, 60), Means: means}
	}
	source := s.controller.Source
	if !s.flagsKnown {
		source = "assumed:default of the Cluster Autoscaler"
	}
	return report.Evidence{Source: source, Field: "--" + flag, Value: value, Means: means + " (the default)"}
}

// bound is the confidence that a flag leaves: its value may be another one.
func (s *autoscalerState) bound(flag string) report.Confidence {
	if flag != "" && !s.flagsKnown {
		return report.Likely
	}
	return report.Proven
}

// weaker is the less sure of some confidences.
func weaker(all ...report.Confidence) report.Confidence {
	out := report.Proven
	for _, c := range all {
		if c.Rank() > out.Rank() {
			out = c
		}
	}
	return out
}

// autoscalerEvent: the Cluster Autoscaler wrote it.
func autoscalerEvent(e corev1.Event) bool {
	return e.Source.Component == autoscaler.EventSource || e.ReportingController == autoscaler.EventSource
}

// groupText is a group with its sizes.
func groupText(g autoscaler.Group) string {
	return fmt.Sprintf("%s (%d nodes wanted, minimum %d, maximum %d)", cut(g.Name, 200), g.Size(), g.Min, g.Max)
}
