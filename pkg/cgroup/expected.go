package cgroup

import (
	"fmt"
	"strconv"
	"strings"
)

// Value is a content that a file may rightly have.
type Value struct {
	// Text is the content as the kernel shows it: "20000 100000", "max", "39".
	Text string
	// Rule says in a few words which rule gives it: "exact", "linear formula".
	Rule string
	// Arithmetic is the computation: "200m × 100000 µs / 1000 = 20000 µs".
	// It is empty where nothing is computed.
	Arithmetic string
}

// FileValues are the contents that a file may rightly have, the usual one
// first. Several are right where it depends on the version of a component that
// the node does not show.
type FileValues struct {
	File   string // "cpu.max"
	Accept []Value
}

// Accepts returns the value that has the given text.
func (f FileValues) Accepts(text string) (Value, bool) {
	for _, v := range f.Accept {
		if v.Text == text {
			return v, true
		}
	}
	return Value{}, false
}

// DefaultText returns what a file holds in a new cgroup as long as nothing
// writes to it; false for a file that has no such fixed content. It is what to
// expect of a file that [PodValues], [ContainerValues] and [NodeValues] do not
// name. pids.max is not among them: systemd gives the units that it makes a
// limit of its own (DefaultTasksMax).
func DefaultText(file string) (string, bool) {
	switch file {
	case "cpu.max":
		return "max 100000", true
	case "cpu.weight":
		return "100", true
	case "cpu.max.burst", "cpu.idle", "memory.min", "memory.low", "memory.oom.group":
		return "0", true
	case "memory.max", "memory.high", "memory.swap.max", "memory.swap.high":
		return "max", true
	}
	return "", false
}

const (
	ruleExact   = "exact"
	ruleLinear  = "linear formula"
	ruleSystemd = "rounded up to 1 % of a CPU by systemd"
)

// expectation collects the files of one cgroup in the order of the calls.
type expectation struct {
	settings Settings
	files    []FileValues
}

func (e *expectation) add(file string, accept ...Value) {
	e.files = append(e.files, FileValues{File: file, Accept: accept})
}

// addSliceWeight adds cpu.weight of a slice that the kubelet owns.
func (e *expectation) addSliceWeight(milli int64, request string) {
	shares := MilliCPUToShares(milli)
	e.add("cpu.weight", Value{
		Text:       strconv.FormatUint(WeightLinear(shares), 10),
		Rule:       ruleLinear,
		Arithmetic: sharesArithmetic(milli, request, shares) + "; " + linearArithmetic(shares),
	})
}

func sharesArithmetic(milli int64, request string, shares uint64) string {
	computed := fmt.Sprintf("%dm × 1024 / 1000 = %d shares", milli, shares)
	switch raw := mulDiv(uint64(max(milli, 0)), 1024, 1000); {
	case raw < minShares:
		computed = fmt.Sprintf("%dm × 1024 / 1000, at least %d shares", milli, shares)
	case raw > maxShares:
		computed = fmt.Sprintf("%dm × 1024 / 1000, at most %d shares", milli, shares)
	}
	return derivation(request, fmt.Sprintf("%dm", milli)) + computed
}

func linearArithmetic(shares uint64) string {
	return fmt.Sprintf("1 + (%d − 2) × 9999 / 262142 = %d", shares, WeightLinear(shares))
}

func quadraticArithmetic(shares uint64) string {
	return fmt.Sprintf("L = log2(%d), ceil(10^((L² + 125 L) / 612 − 7/34)) = %d", shares, WeightQuadratic(shares))
}

// quotaValues returns what cpu.max may hold for a limit: the exact quota, and
// the one rounded by systemd if that is another. libraryRounds says who writes
// the file: an opencontainers/cgroups from 0.0.2 on (true), an older one
// (false), or a runtime that cannot be told (nil).
func (e *expectation) quotaValues(milli int64, limit string, libraryRounds *bool) []Value {
	period := e.settings.periodUsec()
	quota := MilliCPUToQuota(milli, period)
	arithmetic := fmt.Sprintf("%dm × %d µs / 1000 = %d µs", milli, period, quota)
	if quota == minQuotaUsec && mulDiv(uint64(max(milli, 0)), period, 1000) < minQuotaUsec {
		arithmetic = fmt.Sprintf("%dm × %d µs / 1000, at least %d µs", milli, period, quota)
	}
	arithmetic = derivation(limit, fmt.Sprintf("%dm", milli)) + arithmetic
	exact := Value{Text: fmt.Sprintf("%d %d", quota, period), Rule: ruleExact, Arithmetic: arithmetic}

	rounded := SystemdRoundedQuota(quota, period)
	if !e.settings.Systemd || rounded == quota {
		return []Value{exact}
	}
	whole := Value{
		Text:       fmt.Sprintf("%d %d", rounded, period),
		Rule:       ruleSystemd,
		Arithmetic: arithmetic + fmt.Sprintf("; up to a whole percent of %d µs = %d µs", period, rounded),
	}
	if libraryRounds == nil || *libraryRounds {
		// A pod made by an older kubelet keeps the exact quota.
		return []Value{whole, exact}
	}
	// The file keeps the exact quota until systemd writes its own, which it
	// does on a daemon-reload.
	return []Value{exact, whole}
}

func (e *expectation) unlimitedCPU(rule string) Value {
	return Value{Text: fmt.Sprintf("max %d", e.settings.periodUsec()), Rule: rule}
}

// bytesValue is a memory limit or protection as the kernel shows it: rounded
// down to a page. A negative amount, which no API server admits, counts as 0.
func (e *expectation) bytesValue(bytes int64, amount string) Value {
	bytes = max(bytes, 0)
	page := e.settings.pageSize()
	shown := bytes - bytes%page
	arithmetic := fmt.Sprintf("%d bytes", bytes)
	if amount != "" && amount != strconv.FormatInt(bytes, 10) {
		arithmetic = amount + " = " + arithmetic
	}
	if shown == bytes {
		return Value{Text: strconv.FormatInt(shown, 10), Rule: ruleExact, Arithmetic: arithmetic}
	}
	return Value{
		Text:       strconv.FormatInt(shown, 10),
		Rule:       "rounded down to a page by the kernel",
		Arithmetic: arithmetic + fmt.Sprintf("; down to pages of %d bytes = %d", page, shown),
	}
}

// derivation is what to print before a computation that starts from amount:
// nothing where origin is no more than that amount.
func derivation(origin, amount string) string {
	switch {
	case origin == "" || origin == amount:
		return ""
	case strings.HasSuffix(origin, " "+amount) && !strings.Contains(origin, "+"):
		return origin + "; "
	}
	return origin + " = " + amount + "; "
}
