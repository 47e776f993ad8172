package autoscaler

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v2"
)

// Status is what the autoscaler last wrote of itself into its ConfigMap (clusterstate/api/types.go). It has no reason for a single node.
type Status struct {
	Time    time.Time // zero where it cannot be read
	Running string    // Running or Initializing
	Message string

	Health    Health
	ScaleUp   Condition
	ScaleDown Condition
	Groups    []Group // by name
}

// Group is one node group.
type Group struct {
	Name string
	// Target is the size that the cloud provider was told, without nodes that are being deleted; Min and Max are its bounds.
	Target, Min, Max int64
	Health           Health
	ScaleUp          Condition
	Backoff          string // why it is not scaled up for a while
	ScaleDown        Condition
}

// Size is what Min is compared with: the target, or the nodes that are there where the status has no target.
func (g Group) Size() int64 {
	if g.Target == 0 {
		return g.Health.Total
	}
	return g.Target
}

// Room is how many nodes may go before the minimum is met.
func (g Group) Room() int64 {
	size, least := max(0, g.Size()), max(0, g.Min)
	return max(0, size-least)
}

// Health is what the nodes of the cluster or of a group are like.
type Health struct {
	Condition
	Total, Ready, NotStarted, BeingDeleted, Unready int64
	LongUnregistered, Unregistered                  int64
}

// Condition is one aspect and since when it is so.
type Condition struct {
	Status        string
	Candidates    int64 // of scaling down
	Probed, Since time.Time
}

// Words of the status.
const (
	Unhealthy         = "Unhealthy"
	CandidatesPresent = "CandidatesPresent"
	NoCandidates      = "NoCandidates"
	InProgress        = "InProgress"
)

// Errors of ParseStatus.
var (
	// ErrPlainText: the autoscaler wrote plain text before 1.30.
	ErrPlainText = errors.New("it is the plain text that the Cluster Autoscaler wrote before 1.30; only the YAML since then is read")
	ErrNotStatus = errors.New("it is no status of the Cluster Autoscaler")
)

// maxStatus is above what a ConfigMap can hold, maxGroups above what it can tell of.
const (
	maxStatus = 2 << 20
	maxGroups = 5000
)

// ParseStatus reads the text of the key status, or a whole ConfigMap with it. Fields that it does not know are passed over.
//
// The text may come from a stranger. Strings that aliases repeat are shared and never copied, and the decoder refuses aliases that
// multiply, so that neither time nor memory grow much beyond the text.
func ParseStatus(text []byte) (Status, error) {
	if len(text) > maxStatus {
		return Status{}, fmt.Errorf("%d bytes, more than a ConfigMap can hold", len(text))
	}
	if isPlainText(text) {
		return Status{}, ErrPlainText
	}
	var wrapped struct {
		Kind string            `yaml:"kind"`
		Data map[string]string `yaml:"data"`
	}
	if err := yaml.Unmarshal(text, &wrapped); err == nil && wrapped.Kind == "ConfigMap" {
		inner := []byte(wrapped.Data["status"])
		if isPlainText(inner) {
			return Status{}, ErrPlainText
		}
		text = inner
	}
	var w statusText
	if err := yaml.Unmarshal(text, &w); err != nil {
		return Status{}, fmt.Errorf("%w: %s", ErrNotStatus, firstLine(err.Error()))
	}
	if w.AutoscalerStatus == "" && w.ClusterWide.Health.Status == "" && len(w.NodeGroups) == 0 {
		return Status{}, ErrNotStatus
	}
	if len(w.NodeGroups) > maxGroups {
		return Status{}, fmt.Errorf("%w: it has %d node groups", ErrNotStatus, len(w.NodeGroups))
	}
	s := Status{Time: instant(w.Time), Running: w.AutoscalerStatus, Message: w.Message, Health: w.ClusterWide.Health.health(),
		ScaleUp: w.ClusterWide.ScaleUp.condition(), ScaleDown: w.ClusterWide.ScaleDown.condition()}
	for _, g := range w.NodeGroups {
		s.Groups = append(s.Groups, Group{Name: g.Name, Target: g.Health.CloudProviderTarget, Min: g.Health.MinSize, Max: g.Health.MaxSize,
			Health: g.Health.health(), ScaleUp: g.ScaleUp.condition(), Backoff: g.ScaleUp.BackoffInfo.text(), ScaleDown: g.ScaleDown.condition()})
	}
	slices.SortStableFunc(s.Groups, func(a, b Group) int { return cmp.Compare(a.Name, b.Name) })
	return s, nil
}

func isPlainText(text []byte) bool {
	text = bytes.TrimSpace(text)
	return bytes.HasPrefix(text, []byte("Cluster-autoscaler status at")) || bytes.Equal(text, []byte("Initializing"))
}

// firstLine bounds an error that may name every field.
func firstLine(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if r := []rune(text); len(r) > 200 {
		return string(r[:200]) + "…"
	}
	return text
}

type statusText struct {
	Time             string `yaml:"time"`
	AutoscalerStatus string `yaml:"autoscalerStatus"`
	Message          string `yaml:"message"`
	ClusterWide      struct {
		Health    healthText    `yaml:"health"`
		ScaleUp   conditionText `yaml:"scaleUp"`
		ScaleDown conditionText `yaml:"scaleDown"`
	} `yaml:"clusterWide"`
	NodeGroups []struct {
		Name    string     `yaml:"name"`
		Health  healthText `yaml:"health"`
		ScaleUp struct {
			conditionText `yaml:",inline"`
			BackoffInfo   backoffText `yaml:"backoffInfo"`
		} `yaml:"scaleUp"`
		ScaleDown conditionText `yaml:"scaleDown"`
	} `yaml:"nodeGroups"`
}

type healthText struct {
	conditionText `yaml:",inline"`
	NodeCounts    struct {
		Registered struct {
			Total        int64 `yaml:"total"`
			Ready        int64 `yaml:"ready"`
			NotStarted   int64 `yaml:"notStarted"`
			BeingDeleted int64 `yaml:"beingDeleted"`
			Unready      struct {
				Total int64 `yaml:"total"`
			} `yaml:"unready"`
		} `yaml:"registered"`
		LongUnregistered int64 `yaml:"longUnregistered"`
		Unregistered     int64 `yaml:"unregistered"`
	} `yaml:"nodeCounts"`
	CloudProviderTarget int64 `yaml:"cloudProviderTarget"`
	MinSize             int64 `yaml:"minSize"`
	MaxSize             int64 `yaml:"maxSize"`
}

func (h healthText) health() Health {
	r := h.NodeCounts.Registered
	return Health{Condition: h.condition(), Total: r.Total, Ready: r.Ready, NotStarted: r.NotStarted, BeingDeleted: r.BeingDeleted, Unready: r.Unready.Total,
		LongUnregistered: h.NodeCounts.LongUnregistered, Unregistered: h.NodeCounts.Unregistered}
}

type conditionText struct {
	Status             string `yaml:"status"`
	Candidates         int64  `yaml:"candidates"`
	LastProbeTime      string `yaml:"lastProbeTime"`
	LastTransitionTime string `yaml:"lastTransitionTime"`
}

func (c conditionText) condition() Condition {
	return Condition{Status: c.Status, Candidates: c.Candidates, Probed: instant(c.LastProbeTime), Since: instant(c.LastTransitionTime)}
}

type backoffText struct {
	ErrorCode    string `yaml:"errorCode"`
	ErrorMessage string `yaml:"errorMessage"`
}

func (b backoffText) text() string {
	return strings.TrimSpace(strings.TrimSpace(b.ErrorCode) + " " + strings.TrimSpace(b.ErrorMessage))
}

// instant reads a time in one of the two forms that the status has; zero where it is neither, or never was.
func instant(text string) time.Time {
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02 15:04:05.999999999 -0700 MST"} {
		if t, err := time.Parse(layout, text); err == nil {
			return t.UTC()
		}
	}
	return time.Time{}
}
