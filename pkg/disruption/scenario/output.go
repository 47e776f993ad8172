package scenario

// Output is what is said of a scenario. Numbers of nodes of 2147483647 mean no limit.
type Output struct {
	ID        string             `json:"id,omitempty"`
	Error     string             `json:"error,omitempty"`
	NodePools map[string]*Pool   `json:"nodePools,omitempty"`
	Nodes     map[string]*Result `json:"nodes,omitempty"`
	Methods   map[string]*Method `json:"methods,omitempty"`
	Balanced  *Balanced          `json:"balanced,omitempty"`
}

// Pool is what is said of a NodePool.
type Pool struct {
	Total     int                `json:"total"`
	Consuming int                `json:"consuming"`
	Budgets   []Budget           `json:"budgets"`
	Reasons   map[string]*Reason `json:"reasons"`
}

// Budget is one budget by itself, over the pool's total and over other numbers of nodes.
type Budget struct {
	Active      bool           `json:"active"`
	ActiveError string         `json:"activeError,omitempty"`
	Allowed     int            `json:"allowed"`
	Error       string         `json:"error,omitempty"`
	AtNodes     map[string]int `json:"atNodes,omitempty"`
}

// Reason is what all budgets allow for a reason: the least value, what holds in spite of errors, and what consumers leave of it.
type Reason struct {
	ByReason  int    `json:"byReason"`
	Error     string `json:"error,omitempty"`
	Must      int    `json:"must"`
	Remaining int    `json:"remaining"`
}

// Result is what is said of a node.
type Result struct {
	NodeError      string  `json:"nodeError,omitempty"`
	PodsError      string  `json:"podsError,omitempty"`
	Candidate      bool    `json:"candidate"`
	CandidateError string  `json:"candidateError,omitempty"`
	Eventual       bool    `json:"eventualCandidate"`
	Empty          bool    `json:"empty,omitempty"`
	Price          float64 `json:"price,omitempty"`
	Cost           float64 `json:"rescheduleDisruptionCost,omitempty"`
	OldCost        float64 `json:"disruptionCost,omitempty"`
	Consolidatable string  `json:"consolidatable,omitempty"`
	Drifted        string  `json:"drifted,omitempty"`
}

// Method lists the nodes that a method may choose.
type Method struct {
	Reason     string   `json:"reason"`
	Class      string   `json:"class"`
	Candidates []string `json:"candidates"`
}

// Balanced are the scores of every node that could be deleted, whatever its pool's policy.
type Balanced struct {
	Totals  map[string]Totals `json:"totals"`
	Deletes map[string]*Score `json:"deletes"`
}

// Totals are the sums that a pool's scores are measured against.
type Totals struct {
	Cost       float64 `json:"cost"`
	Disruption float64 `json:"disruption"`
}

// Score is that of a deletion.
type Score struct {
	Score              float64 `json:"score"`
	SavingsFraction    float64 `json:"savingsFraction"`
	DisruptionFraction float64 `json:"disruptionFraction"`
	Threshold          float64 `json:"threshold"`
	Approved           bool    `json:"approved"`
	CanPass            bool    `json:"canPassThreshold"`
}
