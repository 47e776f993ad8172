package budget

import (
	"time"

	"github.com/noderes/kubectl-noderes/pkg/disruption/karpenter"
)

// Pool is the budgets of one NodePool.
type Pool struct {
	Budgets []Budget
}

// NewPool prepares the budgets of a disruption block.
func NewPool(d karpenter.Disruption) Pool {
	p := Pool{Budgets: make([]Budget, 0, len(d.Budgets))}
	for _, spec := range d.Budgets {
		p.Budgets = append(p.Budgets, New(spec))
	}
	return p
}

// Allowance is what the budgets of a pool allow for one reason at one moment.
type Allowance struct {
	// Allowed is the number of nodes that may be disrupted at once before those under way are subtracted, or Unlimited. It is 0
	// where any budget cannot be evaluated, even one for another reason.
	Allowed int
	// Least is the smallest value of the budgets for the reason, whatever is wrong with the others.
	Least int
	// DecidedBy are the indexes of the budgets that make Allowed: those of the least value, or those that cannot be evaluated. None
	// decides where it is Unlimited.
	DecidedBy []int
	Err       error
}

// Remaining is what is left of the allowance after the nodes that consume it.
func (a Allowance) Remaining(consuming int) int { return max(0, a.Allowed-consuming) }

// Allowed evaluates the budgets for a reason over a pool of total counted nodes.
func (p Pool) Allowed(reason karpenter.Reason, total int, now time.Time) Allowance {
	a := Allowance{Least: Unlimited}
	var broken []int
	var errs []error
	for i := range p.Budgets {
		b := &p.Budgets[i]
		value, err := b.Allowed(total, now)
		if err != nil {
			broken = append(broken, i)
			errs = append(errs, err)
		}
		switch {
		case !b.AppliesTo(reason):
		case value < a.Least:
			a.Least, a.DecidedBy = value, append(a.DecidedBy[:0], i)
		case value == a.Least && value != Unlimited:
			a.DecidedBy = append(a.DecidedBy, i)
		}
	}
	a.Allowed = a.Least
	if len(errs) > 0 {
		a.Allowed, a.DecidedBy, a.Err = 0, broken, karpenter.JoinErrors(errs)
	}
	return a
}
