package report

// WhatIf is what the kubelet of one node would answer to a pod now.
type WhatIf struct {
	Node string `json:"node"`
	// Admitted is nil where the data do not tell.
	Admitted *bool `json:"admitted,omitempty"`
	// Reason and Message are the kubelet's own where it refuses the pod.
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	// Containers is what each would get; none where the pod is refused.
	Containers []WhatIfContainer `json:"containers,omitempty"`
	// Nearest are changes with which the pod would be admitted, each found by
	// running it.
	Nearest []Nearest `json:"nearest,omitempty"`
	// Settings are those of the kubelet that were changed for the question.
	Settings []string `json:"settings,omitempty"`
	// Readmitted says how the pods of the node fare under the changed settings.
	Readmitted *Readmitted `json:"readmitted,omitempty"`
}

// WhatIfContainer is the place that a container would get. CPUs is its own set,
// or the shared pool; NUMANodes are those of these CPUs. Memory, in bytes, has
// its own.
type WhatIfContainer struct {
	Name      string        `json:"name"`
	Init      bool          `json:"init,omitempty"`
	CPUs      *string       `json:"cpus,omitempty"`
	Exclusive bool          `json:"exclusive"`
	NUMANodes []int         `json:"numaNodes,omitempty"`
	Memory    []MemoryBlock `json:"memory,omitempty"`
}

// Nearest is one change and the place that the pod would get with it.
type Nearest struct {
	Change    string  `json:"change"`
	CPUs      *string `json:"cpus,omitempty"`
	NUMANodes []int   `json:"numaNodes,omitempty"`
	// Container is the one that has CPUs and NUMANodes, and Containers are all,
	// where the pod has several.
	Container  string            `json:"container,omitempty"`
	Containers []WhatIfContainer `json:"containers,omitempty"`
}

// Readmitted is what a start of the kubelet with changed settings does to the
// pods that are on the node.
type Readmitted struct {
	// CheckpointsRemoved names the state files that the kubelet would refuse, so
	// that they have to be removed first.
	CheckpointsRemoved []string         `json:"checkpointsRemoved,omitempty"`
	Admitted           int              `json:"admitted"`
	Refused            []ReadmitRefusal `json:"refused,omitempty"`
}

// ReadmitRefusal is a pod of the node that the kubelet would refuse at that start.
type ReadmitRefusal struct {
	Namespace string `json:"namespace"`
	Pod       string `json:"pod"`
	Reason    string `json:"reason"`
	Message   string `json:"message,omitempty"`
}
