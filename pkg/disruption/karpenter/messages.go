package karpenter

import (
	"fmt"
	"strings"
)

// This file holds what Karpenter says, word for word.

// InvalidCron is the error of a budget's schedule; the text names the parsed schedule, which is none, and never the expression.
func InvalidCron(err error) error {
	return fmt.Errorf("invariant violated, invalid cron, %w (cron=<nil>)", err)
}

// JoinErrors puts the errors of several budgets into one, as go.uber.org/multierr prints them.
func JoinErrors(errs []error) error {
	if len(errs) == 1 {
		return errs[0]
	}
	texts := make([]string, 0, len(errs))
	for _, err := range errs {
		texts = append(texts, err.Error())
	}
	return fmt.Errorf("%s", strings.Join(texts, "; "))
}
