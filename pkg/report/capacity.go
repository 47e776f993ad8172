package report

// NodePoolCapacity is how many nodes a NodePool has, and how many of these its
// pods need at least.
type NodePoolCapacity struct {
	NodePool string `json:"nodePool"`
	// Nodes are those that have registered and stay, of which Sizes and Floors
	// speak. Leaving are on their way out, Starting have not registered yet.
	Nodes    int        `json:"nodes"`
	Leaving  int        `json:"leaving,omitempty"`
	Starting int        `json:"starting,omitempty"`
	Sizes    []NodeSize `json:"sizes,omitempty"`
	// Pods are those on Nodes that would have to go somewhere else.
	Pods int `json:"pods"`
	// Needed is the highest floor: as long as these pods stay on these nodes, no
	// fewer hold them. More may be needed.
	Needed int         `json:"needed"`
	Floors []NodeFloor `json:"floors,omitempty"`
}

// NodeSize is how many nodes there are of an instance type.
type NodeSize struct {
	InstanceType string `json:"instanceType,omitempty"`
	Nodes        int    `json:"nodes"`
}

// NodeFloor is one lower bound on the number of nodes, and what makes it.
type NodeFloor struct {
	Nodes int `json:"nodes"`
	// By is "requests", "large pods", "node selection", "topology spread" or
	// "anti-affinity"; Of the resource, label or workload that it is about.
	By         string     `json:"by"`
	Of         string     `json:"of,omitempty"`
	Arithmetic string     `json:"arithmetic"`
	Because    []Evidence `json:"because,omitempty"`
}
