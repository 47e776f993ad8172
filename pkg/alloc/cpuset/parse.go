package cpuset

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/noderes/kubectl-noderes/pkg/alloc/internal/cut"
)

// ErrRange says that a list names a CPU id that a Set cannot hold (below 0, or MaxCPUs and above).
var ErrRange = fmt.Errorf("cpu id is not between 0 and %d", MaxCPUs-1)

// Parse reads a list as the kubelet does (k8s.io/utils/cpuset.Parse, kubelet 1.37): numbers and ranges a-b with a ≤ b, joined
// by commas, in any order, overlapping or not; "" is the empty set. No white space anywhere: the kubelet refuses " 0-3" in its
// state file, so this does too, and who reads a kernel file trims its newline first. An error repeats the text; ErrRange if an
// id is too large.
func Parse(s string) (Set, error) {
	var set Set
	if s == "" {
		return set, nil
	}
	for part := range strings.SplitSeq(s, ",") {
		first, last, isRange := strings.Cut(part, "-")
		lo, err := parseID(first)
		hi := lo
		if err == nil && isRange {
			hi, err = parseID(last)
		}
		if err == nil && lo > hi {
			err = errors.New("range runs backwards")
		}
		if err != nil {
			if part == s {
				return Set{}, fmt.Errorf("cpu list %s: %w", cut.Quote(s), err)
			}
			return Set{}, fmt.Errorf("cpu list %s: at %s: %w", cut.Quote(s), cut.Quote(part), err)
		}
		for id := lo; id <= hi; id++ {
			set.Add(id)
		}
	}
	return set, nil
}

func parseID(s string) (int, error) {
	id, err := strconv.Atoi(s)
	switch {
	case errors.Is(err, strconv.ErrRange):
		return 0, ErrRange
	case err != nil && s == "":
		return 0, errors.New("a number is missing")
	case err != nil:
		return 0, errors.New("not a number")
	case id < 0 || id >= MaxCPUs:
		return 0, ErrRange
	}
	return id, nil
}
