package autoscaler

import (
	"strconv"
	"strings"
	"time"
)

// Flags that decide over removing nodes (config/flags/flags.go).
const (
	FlagScaleDownEnabled      = "scale-down-enabled"
	FlagUnreadyEnabled        = "scale-down-unready-enabled"
	FlagDelayAfterAdd         = "scale-down-delay-after-add"
	FlagDelayAfterDelete      = "scale-down-delay-after-delete"
	FlagDelayAfterFailure     = "scale-down-delay-after-failure"
	FlagUnneededTime          = "scale-down-unneeded-time"
	FlagUnreadyTime           = "scale-down-unready-time"
	FlagUtilization           = "scale-down-utilization-threshold"
	FlagGPUUtilization        = "scale-down-gpu-utilization-threshold"
	FlagIgnoreDaemonSets      = "ignore-daemonsets-utilization"
	FlagIgnoreMirrorPods      = "ignore-mirror-pods-utilization"
	FlagSkipSystemPods        = "skip-nodes-with-system-pods"
	FlagSystemPodTimeout      = "blocking-system-pod-distruption-timeout" // spelled so
	FlagSkipLocalStorage      = "skip-nodes-with-local-storage"
	FlagSkipCustomControllers = "skip-nodes-with-custom-controller-pods"
	FlagExpendablePriority    = "expendable-pods-priority-cutoff"
	FlagMaxUnreadyPercentage  = "max-total-unready-percentage"
	FlagOKUnreadyCount        = "ok-total-unready-count"
	FlagDelayTypeLocal        = "scale-down-delay-type-local"
	FlagScaleDownParallelism  = "max-scale-down-parallelism"
	FlagDrainParallelism      = "max-drain-parallelism"
)

// systemPodTimeoutSince is the minor version since which a system pod holds its node only for a time.
const systemPodTimeoutSince = 33

// Settings are the values of the flags, of the command line or by default.
type Settings struct {
	ScaleDownEnabled, UnreadyEnabled                   bool
	DelayAfterAdd, DelayAfterDelete, DelayAfterFailure time.Duration
	UnneededTime, UnreadyTime                          time.Duration
	Utilization, GPUUtilization                        float64
	IgnoreDaemonSets, IgnoreMirrorPods                 bool
	SkipSystemPods                                     bool
	// SystemPodTimeout is how long after its creation a system pod without a budget holds its node; 0 for ever, as before 1.33.
	SystemPodTimeout                        time.Duration
	SkipLocalStorage, SkipCustomControllers bool
	// ExpendablePriority: pods of a lower priority count for nothing.
	ExpendablePriority   int64
	MaxUnreadyPercentage float64
	OKUnreadyCount       int64
	DelayTypeLocal       bool
	// ScaleDownParallelism nodes go at once, DrainParallelism of them with pods that have to be evicted.
	ScaleDownParallelism, DrainParallelism int64

	// Set are the flags that the command line has, by name, with their text.
	Set map[string]string
	// Invalid are the values that cannot be read; the autoscaler would not start with them. The default stands.
	Invalid []string
}

// Defaults are the settings without any flag. minor is of the version 1.minor; 0 where it is not known, and taken for a recent one.
func Defaults(minor int) Settings {
	s := Settings{
		ScaleDownEnabled: true, UnreadyEnabled: true,
		DelayAfterAdd: 10 * time.Minute, DelayAfterFailure: 3 * time.Minute,
		UnneededTime: 10 * time.Minute, UnreadyTime: 20 * time.Minute,
		Utilization: 0.5, GPUUtilization: 0.5,
		SkipSystemPods: true, SkipLocalStorage: true, SkipCustomControllers: true,
		ExpendablePriority: -10, MaxUnreadyPercentage: 45, OKUnreadyCount: 3,
		ScaleDownParallelism: 10, DrainParallelism: 1,
		Set: map[string]string{},
	}
	if minor == 0 || minor >= systemPodTimeoutSince {
		s.SystemPodTimeout = time.Hour
	}
	return s
}

// ParseArgs reads a command line over the defaults: -flag and --flag, with "=" or, but for booleans, with the value as the next
// argument. Of a flag given twice the last value counts, as Go's flag package has it; flags that decide nothing here are passed over.
func ParseArgs(args []string, minor int) Settings {
	s := Defaults(minor)
	for i := 0; i < len(args); i++ {
		name, dashed := strings.CutPrefix(args[i], "-")
		if !dashed {
			continue
		}
		name = strings.TrimPrefix(name, "-")
		name, value, hasValue := strings.Cut(name, "=")
		set := s.setter(name)
		if set == nil {
			continue
		}
		if !hasValue {
			if s.isBool(name) {
				value = "true"
			} else if i+1 < len(args) {
				i++
				value = args[i]
			}
		}
		if err := set(value); err != nil {
			s.Invalid = append(s.Invalid, "--"+name+"="+value)
			continue
		}
		s.Set[name] = value
	}
	return s
}

func (s *Settings) isBool(name string) bool { return s.boolean(name) != nil }

func (s *Settings) boolean(name string) *bool {
	switch name {
	case FlagScaleDownEnabled:
		return &s.ScaleDownEnabled
	case FlagUnreadyEnabled:
		return &s.UnreadyEnabled
	case FlagIgnoreDaemonSets:
		return &s.IgnoreDaemonSets
	case FlagIgnoreMirrorPods:
		return &s.IgnoreMirrorPods
	case FlagSkipSystemPods:
		return &s.SkipSystemPods
	case FlagSkipLocalStorage:
		return &s.SkipLocalStorage
	case FlagSkipCustomControllers:
		return &s.SkipCustomControllers
	case FlagDelayTypeLocal:
		return &s.DelayTypeLocal
	}
	return nil
}

func (s *Settings) duration(name string) *time.Duration {
	switch name {
	case FlagDelayAfterAdd:
		return &s.DelayAfterAdd
	case FlagDelayAfterDelete:
		return &s.DelayAfterDelete
	case FlagDelayAfterFailure:
		return &s.DelayAfterFailure
	case FlagUnneededTime:
		return &s.UnneededTime
	case FlagUnreadyTime:
		return &s.UnreadyTime
	case FlagSystemPodTimeout:
		return &s.SystemPodTimeout
	}
	return nil
}

// setter is nil for flags that decide nothing here.
func (s *Settings) setter(name string) func(string) error {
	if b := s.boolean(name); b != nil {
		return func(text string) error { return parse(b, text, strconv.ParseBool) }
	}
	if d := s.duration(name); d != nil {
		return func(text string) error { return parse(d, text, time.ParseDuration) }
	}
	number := func(text string) (float64, error) { return strconv.ParseFloat(text, 64) }
	integer := func(text string) (int64, error) { return strconv.ParseInt(text, 0, 64) }
	switch name {
	case FlagUtilization:
		return func(text string) error { return parse(&s.Utilization, text, number) }
	case FlagGPUUtilization:
		return func(text string) error { return parse(&s.GPUUtilization, text, number) }
	case FlagMaxUnreadyPercentage:
		return func(text string) error { return parse(&s.MaxUnreadyPercentage, text, number) }
	case FlagExpendablePriority:
		return func(text string) error { return parse(&s.ExpendablePriority, text, integer) }
	case FlagOKUnreadyCount:
		return func(text string) error { return parse(&s.OKUnreadyCount, text, integer) }
	case FlagScaleDownParallelism:
		return func(text string) error { return parse(&s.ScaleDownParallelism, text, integer) }
	case FlagDrainParallelism:
		return func(text string) error { return parse(&s.DrainParallelism, text, integer) }
	}
	return nil
}

func parse[T any](to *T, text string, read func(string) (T, error)) error {
	v, err := read(text)
	if err == nil {
		*to = v
	}
	return err
}
