package main

import (
	"encoding/json"
	"fmt"
	"io"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/noderes/kubectl-noderes/pkg/disruption/budget"
	"github.com/noderes/kubectl-noderes/pkg/disruption/karpenter"
)

const (
	benchPools = 1000
	benchNodes = 20
	benchDays  = 7
)

// benchSpecs are the disruption blocks of the pools that are timed, in turn.
var benchSpecs = []string{
	`{"consolidateAfter":"0s","budgets":[{"nodes":"10%"}]}`,
	`{"consolidateAfter":"0s","budgets":[{"nodes":"10%"},{"nodes":"0","schedule":"0 1 * * MON-FRI","duration":"4h"},{"nodes":"0","schedule":"0 8 * * MON-FRI","duration":"4h"}]}`,
	`{"consolidateAfter":"0s","budgets":[{"nodes":"2"},{"nodes":"0","reasons":["Underutilized","Drifted"],"schedule":"@daily","duration":"8h"}]}`,
	`{"consolidateAfter":"0s","budgets":[{"nodes":"50%"},{"nodes":"1","reasons":["Drifted"],"schedule":"*/30 9-17 * * *","duration":"20m"}]}`,
}

// bench times a week of every reason of many pools, at exact edges, against the real code asked each minute, and one evaluation against
// one. The real code is timed on a few of the pools and minutes of a day, which cost it the same as any.
func bench(out io.Writer) error {
	now := time.Date(2026, 3, 4, 9, 30, 0, 0, time.UTC)
	var real []*v1.NodePool
	var own []karpenter.Disruption
	for i := range benchPools {
		raw := `{"metadata":{"name":"p"},"spec":{"disruption":` + benchSpecs[i%len(benchSpecs)] + `}}`
		pool := &v1.NodePool{}
		if err := json.Unmarshal([]byte(raw), pool); err != nil {
			return err
		}
		decoded, err := karpenter.DecodeNodePool([]byte(raw))
		if err != nil {
			return err
		}
		real, own = append(real, pool), append(own, decoded.Disruption())
	}

	start := time.Now()
	segments := 0
	for _, d := range own {
		pool := budget.NewPool(d)
		for _, reason := range reasons {
			segments += len(pool.Timeline(karpenter.Reason(reason), benchNodes, now, now.Add(benchDays*24*time.Hour)))
		}
	}
	ours := time.Since(start)

	const samplePools, sampleMinutes = 40, 24 * 60
	start = time.Now()
	clock := clocktesting.NewFakeClock(now)
	for minute := range sampleMinutes {
		clock.SetTime(now.Add(time.Duration(minute) * time.Minute))
		for _, pool := range real[:samplePools] {
			for _, reason := range reasons {
				pool.MustGetAllowedDisruptions(clock, benchNodes, reason)
			}
		}
	}
	theirs := time.Since(start) * benchPools / samplePools * benchDays
	fmt.Fprintf(out, "%d pools, %d days: %v at edges (%d segments, schedules parsed each time), %v each minute by the real code (from %d pools and one day): %.0f times\n",
		benchPools, benchDays, ours.Round(time.Microsecond), segments, theirs.Round(time.Millisecond), samplePools, float64(theirs)/float64(ours))

	// In turns, so that what else the machine does strikes both.
	const rounds = 50
	clock.SetTime(now)
	ours, theirs = 0, 0
	for range rounds {
		start = time.Now()
		for _, d := range own {
			values := budget.NewPool(d).At(benchNodes, now)
			for _, reason := range reasons {
				values.Allowed(karpenter.Reason(reason))
			}
		}
		ours += time.Since(start)
		start = time.Now()
		for _, pool := range real {
			for _, reason := range reasons {
				pool.MustGetAllowedDisruptions(clock, benchNodes, reason)
			}
		}
		theirs += time.Since(start)
	}
	ours, theirs = ours/(rounds*benchPools), theirs/(rounds*benchPools)
	fmt.Fprintf(out, "one evaluation of a pool, three reasons: %v, real code %v: %.1f times\n", ours, theirs, float64(theirs)/float64(ours))
	return nil
}
