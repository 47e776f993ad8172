package report

// Selection is what a list says of a question about the pods of workloads or of a
// selector.
type Selection struct {
	// Of is what was asked about, such as "deployment shop/web".
	Of string `json:"of"`
	// Pods are how many it has there; Explained how many of them are items of the
	// list, those that look worst to the API server.
	Pods      int `json:"pods"`
	Explained int `json:"explained"`
	// Partial says that the data hold a part of the pods of their cluster, so that
	// there may be more.
	Partial bool `json:"partial,omitempty"`
	// Verdicts are groups of items with the same findings, the worst first, in the
	// order of the items.
	Verdicts []Verdict `json:"verdicts"`
	// NotExplained are the others by what the API server says of them.
	NotExplained []PodState `json:"notExplained,omitempty"`
	// Gaps are pods that were too many to be read.
	Gaps []Gap `json:"gaps,omitempty"`
}

// Verdict is the codes of findings that several pods have in common.
type Verdict struct {
	Codes []Code     `json:"codes"`
	Pods  []Metadata `json:"pods"`
}

// PodState counts pods that look the same to the API server.
type PodState struct {
	State string `json:"state"`
	Pods  int    `json:"pods"`
}
