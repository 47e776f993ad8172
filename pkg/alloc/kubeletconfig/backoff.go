package kubeletconfig

import (
	"fmt"
	"time"
)

// RestartBackOff is how long the kubelet lets a container that ended wait before
// it starts it again.
type RestartBackOff struct {
	Initial, Max time.Duration
	// Why names the gates and the setting that decide, "" for the default.
	Why string
}

const (
	defaultBackOff    = 10 * time.Second
	defaultMaxBackOff = 300 * time.Second
	reducedBackOff    = time.Second
	reducedMaxBackOff = 60 * time.Second
)

// RestartBackOffReset is how long a container must have run since its last
// restart for the delays to begin anew, whatever their maximum.
const RestartBackOffReset = 10 * time.Minute

// RestartBackOff returns the bounds for a kubelet of 1.minor (kubelet 1.34 to
// 1.37, newCrashLoopBackOff). Where KubeletCrashLoopBackOffMax is on, its setting
// has precedence over the maximum that ReduceDefaultCrashLoopBackOffDecay lowers,
// and the kubelet fills in 5 minutes for one that is not there.
func (c Config) RestartBackOff(minor int) RestartBackOff {
	b := RestartBackOff{Initial: defaultBackOff, Max: defaultMaxBackOff}
	if on, _ := c.Gate("ReduceDefaultCrashLoopBackOffDecay", minor); on {
		b = RestartBackOff{Initial: reducedBackOff, Max: reducedMaxBackOff, Why: "gate ReduceDefaultCrashLoopBackOffDecay"}
	}
	if on, _ := c.Gate("KubeletCrashLoopBackOffMax", minor); !on {
		return b
	}
	b.Max = defaultMaxBackOff
	text := "crashLoopBackOff.maxContainerRestartPeriod, not set"
	if p := c.MaxContainerRestartPeriod; p != nil && *p > 0 {
		b.Max = min(*p, defaultMaxBackOff) // a kubelet refuses more
		text = fmt.Sprintf("crashLoopBackOff.maxContainerRestartPeriod %s", *p)
	}
	text += " (gate KubeletCrashLoopBackOffMax)"
	if b.Initial > b.Max {
		b.Initial = b.Max
	}
	if b.Why != "" {
		text = b.Why + ", " + text
	}
	b.Why = text
	return b
}

// Delay is the wait before the given restart in a row, from 1 on: the first
// comes at once, then the delay doubles from Initial to Max.
func (b RestartBackOff) Delay(restart int) time.Duration {
	if restart <= 1 {
		return 0
	}
	d := b.Initial
	for range restart - 2 {
		if d >= b.Max {
			break
		}
		d *= 2
	}
	return min(d, b.Max)
}

// Has says whether a delay is one of the sequence.
func (b RestartBackOff) Has(delay time.Duration) bool {
	for d := b.Initial; d > 0 && d < b.Max; d *= 2 {
		if d == delay {
			return true
		}
	}
	return delay == b.Max || delay == b.Initial
}
