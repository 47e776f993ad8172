package report

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// NodePoolBudgets is what the budgets of a NodePool let Karpenter disrupt at
// the report's moment. Times are UTC.
type NodePoolBudgets struct {
	NodePool string `json:"nodePool"`
	// Nodes are those that percentages are of; absent: not known.
	Nodes     *int             `json:"nodes,omitempty"`
	Budgets   []Budget         `json:"budgets"`
	Reasons   []BudgetReason   `json:"reasons"`
	Consumers []BudgetConsumer `json:"consumers,omitempty"`
}

// Budget is one entry of spec.disruption.budgets as written, and as it
// evaluates.
type Budget struct {
	Index    int    `json:"index"`
	Nodes    string `json:"nodes"`
	Schedule string `json:"schedule,omitempty"`
	Duration string `json:"duration,omitempty"`
	// Reasons that the budget limits. Nil: every reason; empty: none.
	Reasons *[]string `json:"reasons,omitempty"`
	// Active is absent where Error says that the budget cannot be evaluated.
	Active  *bool  `json:"active,omitempty"`
	Allowed *Limit `json:"allowed,omitempty"`
	Error   string `json:"error,omitempty"`
	// Opens is the next start of its window if that is closed, Closes the end
	// of it if it is open. Absent: never, or the budget has no window.
	Opens  metav1.Time `json:"opens,omitzero"`
	Closes metav1.Time `json:"closes,omitzero"`
	// Window is the open or next one by the clock, such as "01:00-05:00 UTC,
	// 10:00-14:00 Asia/Seoul"; absent where it lasts a day or more.
	Window string `json:"window,omitempty"`
}

// BudgetReason is what all budgets together allow for one disruption reason.
type BudgetReason struct {
	Reason string `json:"reason"`
	// Allowed is before, Remaining after the consumers are subtracted; absent:
	// not known, because the nodes are not.
	Allowed   *Limit `json:"allowed,omitempty"`
	Remaining *Limit `json:"remaining,omitempty"`
	// DecidedBy are the indexes of the budgets that make Allowed; none where it
	// is unlimited.
	DecidedBy []int `json:"decidedBy,omitempty"`
	// Until is when Allowed changes, for the same nodes; absent: never.
	Until metav1.Time `json:"until,omitzero"`
	// NextChange is what it changes to then.
	NextChange *Limit `json:"nextChange,omitempty"`
}

// BudgetConsumer is a node that takes one from every budget of its pool.
type BudgetConsumer struct {
	Node string   `json:"node"`
	Why  []string `json:"why"`
}

// TimelineSegment is a span in which the budgets of a NodePool allow the same
// for a reason. Its end does not belong to it.
type TimelineSegment struct {
	NodePool  string      `json:"nodePool"`
	Reason    string      `json:"reason"`
	From      metav1.Time `json:"from"`
	To        metav1.Time `json:"to"`
	Allowed   Limit       `json:"allowed"`
	DecidedBy []int       `json:"decidedBy,omitempty"`
}
