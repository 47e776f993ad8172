package kubeletconfig

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/noderes/kubectl-noderes/pkg/alloc/internal/cut"
)

// EvictionThreshold is one threshold in force.
type EvictionThreshold struct {
	Signal string
	Field  string // evictionHard[memory.available]
	Text   string // as configured: "600Mi", "10%"
	// Soft thresholds have to be met for Grace before the kubelet evicts.
	Soft  bool
	Grace time.Duration
	// MinReclaim is evictionMinimumReclaim of the signal, "" if none: once the
	// threshold was met it stays so until that much more is free.
	MinReclaim string

	value, reclaim threshold
}

// Of is the threshold in bytes, inodes or processes for a capacity, as the
// kubelet computes it (evictionapi.GetThresholdQuantity).
func (t EvictionThreshold) Of(capacity int64) int64 {
	q := t.value.of(*resource.NewQuantity(capacity, resource.BinarySI))
	return q.Value()
}

// Quantity is Of as the kubelet writes it in events and status.
func (t EvictionThreshold) Quantity(capacity int64) string {
	q := t.value.of(*resource.NewQuantity(capacity, resource.BinarySI))
	return q.String()
}

// Until is what has to be available again before a threshold that was met no
// longer is.
func (t EvictionThreshold) Until(capacity int64) int64 {
	sum := t.Of(capacity)
	if t.MinReclaim != "" {
		extra := t.reclaim.of(*resource.NewQuantity(capacity, resource.BinarySI))
		if v := extra.Value(); v > 0 && sum <= sum+v {
			sum += v
		}
	}
	return sum
}

// EvictionThresholds are the thresholds in force, hard before soft and in the
// order of their signals. Each hard memory.available counts a second time as
// allocatableMemory.available, for the cgroup of all pods (kubelet 1.37,
// ParseThresholdConfig, addAllocatableThresholds). The error names settings that
// cannot be read.
func (c Config) EvictionThresholds() ([]EvictionThreshold, error) {
	var out []EvictionThreshold
	var errs []error
	read := func(field string, texts map[string]string, soft bool) {
		for _, signal := range slices.Sorted(maps.Keys(texts)) {
			value, err := parseThreshold(signal, texts[signal])
			if err != nil {
				errs = appendBounded(errs, fmt.Errorf("%s[%s]: %w", field, cut.Quote(signal), err))
				continue
			}
			if value.ignored {
				continue
			}
			t := EvictionThreshold{Signal: signal, Field: field + "[" + signal + "]", Text: texts[signal], Soft: soft, value: value}
			if soft {
				if t.Grace, err = time.ParseDuration(c.EvictionSoftGracePeriod[signal]); err != nil {
					errs = appendBounded(errs, fmt.Errorf("evictionSoftGracePeriod[%s]: not a duration: %s", cut.Quote(signal), cut.Quote(c.EvictionSoftGracePeriod[signal])))
				}
			}
			if text, ok := c.EvictionMinimumReclaim[signal]; ok {
				if reclaim, err := parseThreshold(signal, text); err == nil && !reclaim.ignored {
					t.MinReclaim, t.reclaim = text, reclaim
				}
			}
			out = append(out, t)
			if signal == "memory.available" && !soft {
				t.Signal = "allocatableMemory.available"
				out = append(out, t)
			}
		}
	}
	read("evictionHard", c.EvictionHard, false)
	read("evictionSoft", c.EvictionSoft, true)
	return out, errors.Join(errs...)
}
