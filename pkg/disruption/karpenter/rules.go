package karpenter

import (
	"fmt"
	"strconv"
	"strings"
)

// Rules is what a Karpenter does where versions differ. What is not here (budget arithmetic, windows, time zone, the order of the
// node checks, PDB matching, timers) is the same in 1.0 to 1.15.
type Rules struct {
	Minor int // of the version 1.Minor whose rules these are

	// Which methods run, and when.
	DriftBeforeEmptiness bool // Drift, Emptiness, Multi, Single (1.0); Emptiness first from 1.6 on
	StaticPools          bool // spec.replicas and the method StaticDrift
	RepairByMethod       bool // repair is a disruption method with the reason Unhealthy
	BalancedPolicy       bool

	// What a candidate is.
	EmptyByCost               bool // no pod of positive cost; before: no reschedulable pod
	OrderBySavingsRatio       bool // price for each unit of cost, descending; before: disruption cost, ascending
	DestinationsProtected     bool // consolidateAfter also keeps pods off a node that is under it
	TimedDoNotDisrupt         bool // a pod's do-not-disrupt may be a duration
	SeveralPDBsBlock          bool // more than one budget on a pod blocks; before: the first that allows nothing
	UnknownInstanceTypeBlocks bool // an unknown instance type blocks every method; later only consolidation
	DisruptionCostAnnotation  bool // karpenter.sh/disruption-cost comes before the pod deletion cost

	// What consumes and what is told.
	UnhealthyIgnoresNotReady bool // nodes that are not ready do not consume the budget of Unhealthy
	RebootingConsumes        bool
	EventAfterConsumption    bool // the event of a pool tells of 0 after subtraction, and of empty pools too
	LowerCaseReasons         bool // reasons in metrics
	PrefixedMessages         bool // "Cannot disrupt Node: state node …"
	OldWhenEmptyText         bool
	ConsolidateAfterDefault  bool // consolidateAfter is "0s" in a block that does not name it
}

// DefaultMinor is the minor version assumed where nothing tells it.
const DefaultMinor = 14

// read lists the minor versions whose source the rules were read from; between two of them the lower one stands.
var read = []int{0, 6, 11, 13, 14, 15}

// RulesFor returns the rules of a version ("1.14.3", "v1.6.4", an image tag such as "1.14.0-eks"). exact is false where the
// minor version is not one that the rules were read from, and the next lower one stands in.
func RulesFor(version string) (rules Rules, exact bool, err error) {
	minor, err := parseMinor(version)
	if err != nil {
		return Rules{}, false, err
	}
	known := read[0]
	for _, m := range read {
		if m <= minor {
			known = m
		}
	}
	return rulesOf(known), known == minor, nil
}

// DefaultRules are those of DefaultMinor.
func DefaultRules() Rules { return rulesOf(DefaultMinor) }

func rulesOf(minor int) Rules {
	return Rules{
		Minor: minor,

		DriftBeforeEmptiness: minor < 6,
		StaticPools:          minor >= 11,
		RepairByMethod:       minor >= 15,
		BalancedPolicy:       minor >= 14,

		EmptyByCost:               minor >= 14,
		OrderBySavingsRatio:       minor >= 14,
		DestinationsProtected:     minor >= 14,
		TimedDoNotDisrupt:         minor >= 13,
		SeveralPDBsBlock:          minor >= 11,
		UnknownInstanceTypeBlocks: minor < 6,
		DisruptionCostAnnotation:  minor >= 15,

		UnhealthyIgnoresNotReady: minor >= 15,
		RebootingConsumes:        minor >= 15,
		EventAfterConsumption:    minor < 6,
		LowerCaseReasons:         minor >= 15,
		PrefixedMessages:         minor < 6,
		OldWhenEmptyText:         minor < 14,
		ConsolidateAfterDefault:  minor >= 15,
	}
}

// Reasons returns the disruption reasons of the version, in the order in which its methods first use them.
func (r Rules) Reasons() []Reason {
	switch {
	case r.RepairByMethod:
		return []Reason{Unhealthy, Empty, Drifted, Underutilized}
	case r.DriftBeforeEmptiness:
		return []Reason{Drifted, Empty, Underutilized}
	}
	return []Reason{Empty, Drifted, Underutilized}
}

// KnowsPolicy reports whether the version has the consolidation policy. An absent one is the default.
func (r Rules) KnowsPolicy(policy ConsolidationPolicy) bool {
	switch policy {
	case "", WhenEmpty, WhenEmptyOrUnderutilized:
		return true
	case Balanced:
		return r.BalancedPolicy
	}
	return false
}

// parseMinor returns the minor of a version 1.minor, whatever follows it.
func parseMinor(version string) (int, error) {
	rest, ok := strings.CutPrefix(strings.TrimPrefix(version, "v"), "1.")
	digits := len(rest) - len(strings.TrimLeft(rest, "0123456789"))
	minor, err := strconv.Atoi(rest[:digits])
	if !ok || err != nil || digits < len(rest) && !strings.ContainsRune(".-+@", rune(rest[digits])) {
		return 0, fmt.Errorf("not a Karpenter version 1.x: %.80q", version)
	}
	return minor, nil
}
