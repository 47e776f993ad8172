// Package report is the vocabulary between diagnose, which fills it, and
// render, which shows it: a report, its findings, the facts they refer to and
// the catalogue of finding codes. Types only; nothing here reads or computes.
package report

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// APIVersion of every report.
const APIVersion = "noderes.dev/v1alpha1"

// Kind says what was asked.
type Kind string

// Kinds of report; a list of one of them is the kind with "List" appended.
const (
	PodReport       Kind = "PodReport"
	NodeReport      Kind = "NodeReport"
	PlacementReport Kind = "PlacementReport"
	WhatIfReport    Kind = "WhatIfReport"
	NodePoolReport  Kind = "NodePoolReport"
	BudgetReport    Kind = "BudgetReport"
)

// Report answers one question about one subject at one moment.
type Report struct {
	APIVersion string   `json:"apiVersion"`
	Kind       Kind     `json:"kind"`
	Metadata   Metadata `json:"metadata"`
	// ObservedAt is the moment the data speak of.
	ObservedAt metav1.Time `json:"observedAt,omitzero"`
	Versions   Versions    `json:"versions"`
	// Findings stand in the order of severity, confidence, catalogue, subject.
	Findings  []Finding          `json:"findings"`
	Placement *Placement         `json:"placement,omitempty"`
	Resources *Resources         `json:"resources,omitempty"`
	WhatIf    []WhatIf           `json:"whatif,omitempty"`
	Budgets   []NodePoolBudgets  `json:"budgets,omitempty"`
	Timeline  []TimelineSegment  `json:"timeline,omitempty"`
	Capacity  []NodePoolCapacity `json:"capacity,omitempty"`
	Gaps      []Gap              `json:"gaps,omitempty"`
}

// List holds the reports of several subjects; its Kind is that of its items
// followed by "List".
type List struct {
	APIVersion string   `json:"apiVersion"`
	Kind       Kind     `json:"kind"`
	Items      []Report `json:"items"`
	// Selection is set where the pods of workloads or of a selector were asked
	// about.
	Selection *Selection `json:"selection,omitempty"`
}

// NewList wraps reports of one kind.
func NewList(kind Kind, items []Report) List {
	return List{APIVersion: APIVersion, Kind: kind + "List", Items: items}
}

// Metadata names the subject that was asked about.
type Metadata struct {
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	UID       string `json:"uid,omitempty"`
	Node      string `json:"node,omitempty"`
}

// Versions are those of the components whose rules decide the answer, as the
// API reports them; Replay names the rules that were applied.
type Versions struct {
	Kubelet          string `json:"kubelet,omitempty"`
	Kernel           string `json:"kernel,omitempty"`
	ContainerRuntime string `json:"containerRuntime,omitempty"`
	Karpenter        string `json:"karpenter,omitempty"`
	Replay           string `json:"replay,omitempty"`
}

// Severity of a finding.
type Severity string

// Severities, the gravest first.
const (
	Critical Severity = "critical"
	Warning  Severity = "warning"
	Info     Severity = "info"
)

// Severities in order of gravity.
func Severities() []Severity { return []Severity{Critical, Warning, Info} }

// Rank is 0 for the gravest severity; an unknown one ranks last.
func (s Severity) Rank() int { return rank(s, Severities()) }

// Confidence says how far the data carry a finding.
type Confidence string

// Proven: no other cause in the catalogue fits the data. Likely: the data fit
// this cause best, and the finding names what would settle it. Possible: the
// data allow it.
const (
	Proven   Confidence = "proven"
	Likely   Confidence = "likely"
	Possible Confidence = "possible"
)

// Rank is 0 for the surest confidence; an unknown one ranks last.
func (c Confidence) Rank() int { return rank(c, []Confidence{Proven, Likely, Possible}) }

func rank[T comparable](v T, order []T) int {
	for i, o := range order {
		if v == o {
			return i
		}
	}
	return len(order)
}

// Finding is one verdict with its evidence.
type Finding struct {
	Code       Code       `json:"code"`
	Severity   Severity   `json:"severity"`
	Confidence Confidence `json:"confidence"`
	Subject    Subject    `json:"subject"`
	// Summary is one sentence with the decisive numbers.
	Summary    string     `json:"summary"`
	Because    []Evidence `json:"because,omitempty"`
	Arithmetic string     `json:"arithmetic,omitempty"`
	Remedies   []Remedy   `json:"remedies,omitempty"`
}

// Subject is what a finding is about.
type Subject struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	Container string `json:"container,omitempty"`
}

// Evidence is one value as it was read. Source is "node:/abs/path",
// "node:/abs/path@1" (sample 1), "kubelet:/configz", "api:pods/NS/NAME" (other
// resources likewise), "karpenter:metrics" or "kernel:log".
type Evidence struct {
	Source string      `json:"source"`
	Field  string      `json:"field,omitempty"`
	Value  string      `json:"value"`
	Means  string      `json:"means,omitempty"`
	At     metav1.Time `json:"at,omitzero"`
}

// Remedy is what to change, and what that would do.
type Remedy struct {
	Summary string `json:"summary"`
	Command string `json:"command,omitempty"`
	Patch   string `json:"patch,omitempty"`
	Effect  string `json:"effect,omitempty"`
	Caution string `json:"caution,omitempty"`
}

// Gap is something that was wanted and could not be had.
type Gap struct {
	Wanted string `json:"wanted"`
	Reason string `json:"reason"`
	Costs  string `json:"costs,omitempty"`
	Fix    string `json:"fix,omitempty"`
}
