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

// Values are all budgets of a pool, evaluated at one moment.
type Values struct {
	budgets []Budget
	values  []int
	broken  []int
	err     error
}

// At evaluates the budgets over a pool of total counted nodes.
func (p Pool) At(total int, now time.Time) Values {
	v := Values{budgets: p.Budgets, values: make([]int, len(p.Budgets))}
	var errs []error
	for i := range p.Budgets {
		value, err := p.Budgets[i].Allowed(total, now)
		if err != nil {
			v.broken = append(v.broken, i)
			errs = append(errs, err)
		}
		v.values[i] = value
	}
	if len(errs) > 0 {
		v.err = karpenter.JoinErrors(errs)
	}
	return v
}

// Allowed is what the budgets allow for a reason.
func (v Values) Allowed(reason karpenter.Reason) Allowance {
	a := Allowance{Least: Unlimited}
	for i, value := range v.values {
		switch {
		case !v.budgets[i].AppliesTo(reason):
		case value < a.Least:
			a.Least, a.DecidedBy = value, append(a.DecidedBy[:0], i)
		case value == a.Least && value != Unlimited:
			a.DecidedBy = append(a.DecidedBy, i)
		}
	}
	a.Allowed = a.Least
	if v.err != nil {
		a.Allowed, a.DecidedBy, a.Err = 0, v.broken, v.err
	}
	return a
}

// Allowed evaluates the budgets for one reason over a pool of total counted nodes.
func (p Pool) Allowed(reason karpenter.Reason, total int, now time.Time) Allowance {
	return p.At(total, now).Allowed(reason)
}
