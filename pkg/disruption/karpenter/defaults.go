package karpenter

import (
	"encoding/json"
	"fmt"

	kjson "sigs.k8s.io/json"
)

// WithDefaults returns a NodePool in JSON with the defaults that the API server writes when it stores one, for a file that has not
// been applied yet (default: entries of the CRD karpenter.sh_nodepools). A field that is null counts as absent.
func WithDefaults(data []byte, rules Rules) ([]byte, error) {
	var object any
	if err := kjson.UnmarshalCaseSensitivePreserveInts(data, &object); err != nil {
		return nil, fmt.Errorf("NodePool: %w", err)
	}
	spec := member(object, "spec")
	if spec != nil {
		setDefault(spec, "disruption", map[string]any{"consolidateAfter": "0s"})
		if disruption := member(spec, "disruption"); disruption != nil {
			if rules.ConsolidateAfterDefault {
				setDefault(disruption, "consolidateAfter", "0s")
			}
			setDefault(disruption, "consolidationPolicy", string(WhenEmptyOrUnderutilized))
			setDefault(disruption, "budgets", []any{map[string]any{"nodes": defaultNodes}})
			budgets, _ := disruption["budgets"].([]any)
			for _, item := range budgets {
				if budget, ok := item.(map[string]any); ok {
					setDefault(budget, "nodes", defaultNodes)
				}
			}
		}
		if template := member(member(spec, "template"), "spec"); template != nil {
			setDefault(template, "expireAfter", "720h")
		}
	}
	return json.Marshal(object)
}

const defaultNodes = "10%"

// member returns the object that stands under key, nil where there is none.
func member(object any, key string) map[string]any {
	fields, ok := object.(map[string]any)
	if !ok {
		return nil
	}
	value, _ := fields[key].(map[string]any)
	return value
}

func setDefault(object map[string]any, key string, value any) {
	if object[key] == nil {
		object[key] = value
	}
}
