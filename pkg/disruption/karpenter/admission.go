package karpenter

import (
	"fmt"
	"regexp"
	"slices"

	kjson "sigs.k8s.io/json"
)

// Violation is a rule of the CRD that a disruption block breaks, so that the API server would not store it.
type Violation struct {
	Field   string // such as spec.disruption.budgets[2].duration
	Message string
}

func (v Violation) String() string { return v.Field + ": " + v.Message }

// The patterns of the CRD karpenter.sh_nodepools. That of schedules is anchored loosely and lets through much that is no schedule.
var (
	consolidateAfterPattern = regexp.MustCompile(`^(([0-9]+(s|m|h))+|Never)$`)
	nodesPattern            = regexp.MustCompile(`^((100|[0-9]{1,2})%|[0-9]+)$`)
	schedulePattern         = regexp.MustCompile(`^(@(annually|yearly|monthly|weekly|daily|midnight|hourly))|((.+)\s(.+)\s(.+)\s(.+)\s(.+))$`)
	durationPattern         = regexp.MustCompile(`^((([0-9]+(h|m))|([0-9]+h[0-9]+m))(0s)?)$`)
)

const maxItems = 50 // of budgets, and of a budget's reasons

// DisruptionViolations checks spec.disruption of a NodePool in JSON, after WithDefaults, against the CRD of a version.
func DisruptionViolations(data []byte, rules Rules) ([]Violation, error) {
	var object any
	if err := kjson.UnmarshalCaseSensitivePreserveInts(data, &object); err != nil {
		return nil, fmt.Errorf("NodePool: %w", err)
	}
	disruption, ok := member(object, "spec")["disruption"]
	if !ok {
		return nil, nil
	}
	check := violations{rules: rules}
	fields, ok := disruption.(map[string]any)
	if !ok {
		check.add("spec.disruption", "must be an object")
		return check.found, nil
	}
	check.disruption(fields)
	return check.found, nil
}

type violations struct {
	rules Rules
	found []Violation
}

func (v *violations) add(field, format string, args ...any) {
	v.found = append(v.found, Violation{field, fmt.Sprintf(format, args...)})
}

func (v *violations) disruption(fields map[string]any) {
	const path = "spec.disruption"
	if fields["consolidateAfter"] == nil {
		v.add(path+".consolidateAfter", "required where the block is present")
	}
	v.text(fields, path, "consolidateAfter", consolidateAfterPattern)
	if policy, ok := v.text(fields, path, "consolidationPolicy", nil); ok && (policy == "" || !v.rules.KnowsPolicy(ConsolidationPolicy(policy))) {
		v.add(path+".consolidationPolicy", "%.80q is no policy of Karpenter 1.%d", policy, v.rules.Minor)
	}
	budgets, ok := v.list(fields, path, "budgets")
	if !ok {
		return
	}
	for i, item := range budgets {
		field := fmt.Sprintf("%s.budgets[%d]", path, i)
		budget, ok := item.(map[string]any)
		if !ok {
			v.add(field, "must be an object")
			continue
		}
		v.budget(budget, field)
	}
}

func (v *violations) budget(fields map[string]any, path string) {
	if fields["nodes"] == nil {
		v.add(path+".nodes", "required")
	}
	v.text(fields, path, "nodes", nodesPattern)
	v.text(fields, path, "schedule", schedulePattern)
	v.text(fields, path, "duration", durationPattern)
	if (fields["schedule"] == nil) != (fields["duration"] == nil) {
		v.add(path, "'schedule' must be set with 'duration'")
	}
	reasons, ok := v.list(fields, path, "reasons")
	if !ok {
		return
	}
	for i, reason := range reasons {
		field := fmt.Sprintf("%s.reasons[%d]", path, i)
		text, isText := reason.(string)
		switch {
		case !isText:
			v.add(field, "must be a string")
		case !slices.Contains(v.rules.Reasons(), Reason(text)):
			v.add(field, "%.80q is no reason of Karpenter 1.%d", text, v.rules.Minor)
		case slices.Contains(reasons[:i], reason):
			v.add(field, "%q is there twice", text)
		}
	}
}

// text checks a field that may be absent; ok is true where it is a string.
func (v *violations) text(fields map[string]any, path, key string, pattern *regexp.Regexp) (text string, ok bool) {
	value := fields[key]
	if value == nil {
		return "", false
	}
	text, ok = value.(string)
	switch {
	case !ok:
		v.add(path+"."+key, "must be a string")
	case pattern != nil && !pattern.MatchString(text):
		v.add(path+"."+key, "%.80q does not match %s", text, pattern)
	}
	return text, ok
}

func (v *violations) list(fields map[string]any, path, key string) (items []any, ok bool) {
	value := fields[key]
	if value == nil {
		return nil, false
	}
	items, ok = value.([]any)
	switch {
	case !ok:
		v.add(path+"."+key, "must be a list")
	case len(items) > maxItems:
		v.add(path+"."+key, "%d items, at most %d", len(items), maxItems)
	}
	return items, ok
}
