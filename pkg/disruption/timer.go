package disruption

import (
	"time"

	"github.com/noderes/kubectl-noderes/pkg/disruption/karpenter"
)

// Timer is the clock of consolidateAfter on one node.
type Timer struct {
	State TimerState
	// Start is what the clock counts from, by LastPodEvent or else by when the node was initialized.
	Start        time.Time
	LastPodEvent bool
	// Ends is when the node becomes consolidatable, or became it.
	Ends time.Time
}

// TimerState is where the clock stands.
type TimerState string

// States of a timer.
const (
	TimerStatic         TimerState = "Static"         // a static pool has no such clock
	TimerOff            TimerState = "Off"            // consolidateAfter is Never, or absent
	TimerNotInitialized TimerState = "NotInitialized" // it has not begun
	TimerRunning        TimerState = "Running"
	TimerElapsed        TimerState = "Elapsed" // the node is consolidatable
)

// TimerOf evaluates consolidateAfter as Karpenter does before it sets the condition Consolidatable
// (pkg/controllers/nodeclaim/disruption/consolidation.go).
func TimerOf(pool *karpenter.NodePool, claim *karpenter.NodeClaim, now time.Time) Timer {
	after := pool.Disruption().ConsolidateAfter
	switch {
	case pool.IsStatic():
		return Timer{State: TimerStatic}
	case !after.Set:
		return Timer{State: TimerOff}
	case !claim.IsTrue(karpenter.ConditionInitialized):
		return Timer{State: TimerNotInitialized}
	}
	timer := Timer{State: TimerElapsed, Start: claim.Condition(karpenter.ConditionInitialized).LastTransitionTime.Time}
	if last := claim.Status.LastPodEventTime; !last.IsZero() {
		timer.Start, timer.LastPodEvent = last.Time, true
	}
	timer.Ends = timer.Start.Add(after.Duration)
	if after.Duration != 0 && now.Before(timer.Ends) {
		timer.State = TimerRunning
	}
	return timer
}

// Remaining is the time until a running timer ends, else 0.
func (t Timer) Remaining(now time.Time) time.Duration {
	if t.State != TimerRunning {
		return 0
	}
	return t.Ends.Sub(now)
}

// podEventPeriod is how often at most Karpenter writes down a pod event on a NodeClaim (pkg/controllers/nodeclaim/podevents).
const podEventPeriod = 10 * time.Second

// Unrecorded reports whether a pod event was too close to the recorded one to be written down; such an event restarts no clock.
func Unrecorded(recorded, event time.Time) bool {
	return event.After(recorded) && event.Sub(recorded) < podEventPeriod
}
