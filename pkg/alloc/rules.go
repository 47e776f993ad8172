package alloc

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/noderes/kubectl-noderes/pkg/alloc/internal/cut"
	"github.com/noderes/kubectl-noderes/pkg/alloc/kubeletconfig"
)

// Rules is what a kubelet does, where versions or feature gates differ.
type Rules struct {
	Minor int // of the version 1.Minor whose rules these are

	// Feature gates.
	PodLevelResources                   bool
	PodLevelResourceManagers            bool // needs PodLevelResources
	PodLevelResourcesFixKubeletQOSClass bool
	InPlacePodVerticalScaling           bool

	// PodLevelAlwaysShared: a pod with pod-level resources gets nothing exclusive whether or not PodLevelResources is on, unless
	// PodLevelResourceManagers is on too (from 1.36 on). Before, with the gate off, its containers were taken by their own requests.
	PodLevelAlwaysShared bool

	// CPUManagerPolicyAlphaOptions and CPUManagerPolicyBetaOptions allow the static policy's options of these stages.
	CPUManagerPolicyAlphaOptions, CPUManagerPolicyBetaOptions bool
	// StrictCPUReservationBeta and PreferAlignUncoreBeta: these options are not stable yet.
	StrictCPUReservationBeta, PreferAlignUncoreBeta bool
	// TopologyManagerPolicyBetaOptions allows the topology manager's option max-allowable-numa-nodes while it is beta.
	TopologyManagerPolicyBetaOptions, MaxAllowableNUMANodesBeta bool
	// SMTCheckFirst: full-pcpus-only is checked before it is seen that a container has its CPUs already (to 1.36).
	SMTCheckFirst bool
	// DistributeHeedsSockets: distribute-cpus-across-numa with align-by-socket prefers nodes of one socket, and DistributeClamps: no node
	// is asked for more than each of the chosen has (from 1.37 on).
	DistributeHeedsSockets, DistributeClamps bool
	// MemoryPinsNothing: a container without memory requests goes through the memory manager all the same, and is refused where no hint
	// was given (to 1.36).
	MemoryPinsNothing bool

	// CPUCheckpoint and MemoryCheckpoint are the forms in which the kubelet writes its state files.
	CPUCheckpoint, MemoryCheckpoint int
}

// RulesFor returns the rules for a kubelet version ("v1.37.2", "v1.36.3-eks-1234", "v1.30.1+k3s1") with the feature gates at their
// defaults. Known are 1.34 to 1.37; for a version outside the nearest of them stands in, and exact is false.
func RulesFor(kubeletVersion string) (r Rules, exact bool, err error) {
	minor, err := parseMinor(kubeletVersion)
	if err != nil {
		return Rules{}, false, err
	}
	known := min(max(minor, kubeletconfig.MinMinor), kubeletconfig.MaxMinor)
	return rulesOf(known, kubeletconfig.Config{}), known == minor, nil
}

// With returns the rules with the feature gates of a kubelet's configuration.
func (r Rules) With(c kubeletconfig.Config) Rules { return rulesOf(r.Minor, c) }

func rulesOf(minor int, c kubeletconfig.Config) Rules {
	gate := func(name string) bool {
		on, known := c.Gate(name, minor)
		return on && known
	}
	r := Rules{
		Minor:                               minor,
		PodLevelResources:                   gate("PodLevelResources"),
		PodLevelResourcesFixKubeletQOSClass: gate("PodLevelResourcesFixKubeletQOSClass"),
		InPlacePodVerticalScaling:           gate("InPlacePodVerticalScaling"),
		PodLevelAlwaysShared:                minor >= 36,

		CPUManagerPolicyAlphaOptions:     gate("CPUManagerPolicyAlphaOptions"),
		CPUManagerPolicyBetaOptions:      gate("CPUManagerPolicyBetaOptions"),
		TopologyManagerPolicyBetaOptions: gate("TopologyManagerPolicyBetaOptions"),
		MaxAllowableNUMANodesBeta:        minor <= 34,
		StrictCPUReservationBeta:         minor <= 34,
		PreferAlignUncoreBeta:            minor <= 35,
		SMTCheckFirst:                    minor <= 36,
		DistributeHeedsSockets:           minor >= 37,
		DistributeClamps:                 minor >= 37,
		MemoryPinsNothing:                minor <= 36,

		CPUCheckpoint:    2,
		MemoryCheckpoint: 1,
	}
	r.PodLevelResourceManagers = r.PodLevelResources && gate("PodLevelResourceManagers")
	switch {
	case minor >= 37:
		r.CPUCheckpoint, r.MemoryCheckpoint = 4, 3
	case r.PodLevelResourceManagers:
		r.CPUCheckpoint, r.MemoryCheckpoint = 3, 2
	}
	return r
}

// parseMinor returns the minor of a version 1.minor, whatever follows it.
func parseMinor(version string) (int, error) {
	rest, ok := strings.CutPrefix(strings.TrimPrefix(version, "v"), "1.")
	digits := len(rest) - len(strings.TrimLeft(rest, "0123456789"))
	minor, err := strconv.Atoi(rest[:digits])
	if !ok || err != nil || digits < len(rest) && !strings.ContainsRune(".-+", rune(rest[digits])) {
		return 0, fmt.Errorf("not a kubelet version 1.x: %s", cut.Quote(version))
	}
	return minor, nil
}
