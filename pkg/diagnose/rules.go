package diagnose

import (
	"cmp"
	"slices"

	"github.com/noderes/kubectl-noderes/pkg/report"
)

// rule is one cause: the codes it can give and what it looks for. S is the
// subject it can speak of.
type rule[S any] struct {
	codes []report.Code
	find  func(S) []report.Finding
}

// podRules and nodeRules register every rule for the subjects it can speak of.
// Their order does not matter: findings are sorted by the catalogue.
var podRules = []rule[*podCase]{
	{codes: []report.Code{report.CgroupV1Unsupported}, find: podCgroupV1},
	{codes: []report.Code{report.CPUQuotaOnExclusiveCPUs}, find: cpuQuotaOnExclusiveCPUs},
	{codes: []report.Code{report.CPUFilesDifferFromSpec}, find: cpuFilesDifferFromSpec},
	{codes: []report.Code{report.KernelQuotaBug}, find: kernelQuotaBug},
	{codes: []report.Code{report.CPUQuotaThrottled, report.CPUQuotaBurstThrottled}, find: cpuQuotaThrottled},
	{codes: []report.Code{report.CPUParentThrottled}, find: cpuParentThrottled},
	{codes: []report.Code{report.CPUInitThrottled}, find: cpuInitThrottled},
	{codes: []report.Code{report.CPULimitBelowFloor}, find: cpuLimitBelowFloor},
	{codes: []report.Code{report.CPUStarvedByWeight}, find: cpuStarvedByWeight},
	{codes: []report.Code{report.CPUSharedPoolCrowded}, find: cpuSharedPoolCrowded},
	{codes: []report.Code{report.CPUWeightFormulasDiffer}, find: cpuWeightFormulasDiffer},
	{codes: []report.Code{report.CPUNotThrottled}, find: cpuNotThrottled},
	{codes: []report.Code{report.CPUThrottleHistoryOnly}, find: cpuThrottleHistoryOnly},
	{codes: []report.Code{report.CPULimitBelowNodeCPUs}, find: cpuLimitBelowNodeCPUs},
	{codes: []report.Code{report.ContainerMemoryLimitOOM, report.PodMemoryLimitOOM, report.NodeAllocatableOOM, report.NodeOOM,
		report.NUMAConstrainedOOM, report.InitContainerOOM, report.OOMCauseUnproven}, find: oomKilled},
	{codes: []report.Code{report.SystemdOOMDKill}, find: systemdOOMDKill},
	{codes: []report.Code{report.NestedCgroupOOM}, find: nestedCgroupOOM},
	{codes: []report.Code{report.OOMVictimChild}, find: oomVictimChild},
	{codes: []report.Code{report.OOMScoreAdjDiffers}, find: oomScoreAdjDiffers},
	{codes: []report.Code{report.NodeOOMNext}, find: podOOMNext},
	{codes: []report.Code{report.OOMGroupKill}, find: oomGroupKill},
	{codes: []report.Code{report.ContainerStartOOM}, find: containerStartOOM},
	{codes: []report.Code{report.OOMReasonStale}, find: oomReasonStale},
	{codes: []report.Code{report.Exit137NotOOM}, find: exit137NotOOM},
	{codes: []report.Code{report.MemoryFilledByAnon, report.MemoryFilledByTmpfs, report.MemoryFilledByPageCache, report.MemoryFilledByKernel}, find: memoryFilledBy},
	{codes: []report.Code{report.MemoryFilesDifferFromSpec}, find: memoryFilesDifferFromSpec},
	{codes: []report.Code{report.MemoryReclaimThrash}, find: memoryReclaimThrash},
	{codes: []report.Code{report.MemoryHighThrottled}, find: memoryHighThrottled},
	{codes: []report.Code{report.MemoryNearLimit}, find: memoryNearLimit},
	{codes: []report.Code{report.SwapLimited}, find: swapLimited},
	{codes: []report.Code{report.EvictedNodePressure}, find: evictedNodePressure},
	{codes: []report.Code{report.EvictedLocalStorage}, find: evictedLocalStorage},
	{codes: []report.Code{report.EvictionUnfinished}, find: evictionUnfinished},
	{codes: []report.Code{report.EvictionNext}, find: podEvictionNext},
	{codes: []report.Code{report.CrashLoopBackOff}, find: crashLoopBackOff},
	{codes: []report.Code{report.PIDsLimitReached}, find: pidsLimitReached},
	{codes: []report.Code{report.UnitMistake}, find: unitMistake},
	{codes: []report.Code{report.MemoryHealthy}, find: memoryHealthy},
	{codes: []report.Code{report.ExclusiveCPUs}, find: exclusiveCPUs},
	{codes: []report.Code{report.SharedNotGuaranteed, report.SharedFractionalCPU, report.SharedNoLimit, report.SharedPodLevel, report.SharedPolicyNone}, find: sharedPool},
	{codes: []report.Code{report.SidecarBreaksGuaranteed}, find: sidecarBreaksGuaranteed},
	{codes: []report.Code{report.SMTSiblingShared}, find: smtSiblingShared},
	{codes: []report.Code{report.IsolatedCPUsInSet}, find: isolatedCPUsInSet},
	{codes: []report.Code{report.NUMASplit}, find: numaSplit},
	{codes: []report.Code{report.UncoreCacheSplit}, find: uncoreCacheSplit},
	{codes: []report.Code{report.NUMAAligned}, find: numaAligned},
	{codes: []report.Code{report.MemoryRemote}, find: memoryRemote},
	{codes: []report.Code{report.DeviceNUMAMismatch}, find: deviceNUMAMismatch},
	{codes: []report.Code{report.PlacementReplayed, report.PlacementNeedsGonePods, report.PlacementDiffers}, find: podReplayed},
	{codes: []report.Code{report.InitContainerHoldsCPUs}, find: podInitHolds},
	{codes: []report.Code{report.CPUSetDrift}, find: podCPUSetDrift},
	{codes: []report.Code{report.ReservedInSharedPool}, find: podReservedInSharedPool},
	{codes: []report.Code{report.KubeletCheckpointInvalid}, find: podCheckpointInvalid},
	{codes: []report.Code{report.ReservedMemoryMismatch, report.TooManyNUMANodes, report.KubeletConfigInvalid}, find: podStartFaults},
	{codes: []report.Code{report.SMTAlignmentRefused, report.TopologyAffinityRefused, report.CPUsExhausted, report.MemoryGroupConflict, report.PodPoolEmpty, report.MemoryExhausted,
		report.InitContainerNUMATrap, report.FitCheckRefused, report.KubeletWouldHang, report.RefusalUnexplained}, find: refusedPod},
	{codes: []report.Code{report.ReadmissionRefused}, find: readmissionRefused},
	{codes: []report.Code{report.AdmissionLoop}, find: podAdmissionLoop},
	{codes: []report.Code{report.WouldBeRefusedNow}, find: podRestartRefuses},
	{codes: []report.Code{report.ResizeInfeasible, report.ResizePending}, find: resizeStates},
}

var nodeRules = []rule[*nodeCase]{
	{codes: []report.Code{report.CgroupV1Unsupported}, find: nodeCgroupV1},
	{codes: []report.Code{report.CPUFilesDifferFromSpec}, find: nodeCPUFilesDiffer},
	{codes: []report.Code{report.CPUSharedPoolCrowded}, find: nodePoolCrowded},
	{codes: []report.Code{report.MemoryFilesDifferFromSpec}, find: nodeMemoryFilesDiffer},
	{codes: []report.Code{report.NodeReservationByWeight}, find: nodeReservationByWeight},
	{codes: []report.Code{report.PIDsLimitReached}, find: nodePIDsLimitReached},
	{codes: []report.Code{report.NodeOOM, report.NodeAllocatableOOM}, find: nodeOOM},
	{codes: []report.Code{report.NodeOOMNext}, find: nodeOOMNext},
	{codes: []report.Code{report.EvictedNodePressure}, find: nodeEvictions},
	{codes: []report.Code{report.EvictionUnfinished}, find: nodeEvictionUnfinished},
	{codes: []report.Code{report.EvictionNext}, find: nodeEvictionNext},
	{codes: []report.Code{report.ReservedSplitsCore}, find: reservedSplitsCore},
	{codes: []report.Code{report.PlacementDiffers}, find: nodeDiffers},
	{codes: []report.Code{report.InitContainerHoldsCPUs}, find: nodeInitHolds},
	{codes: []report.Code{report.UnevenCoreAverages}, find: unevenCoreAverages},
	{codes: []report.Code{report.CPUSetDrift}, find: nodeCPUSetDrift},
	{codes: []report.Code{report.ReservedInSharedPool}, find: nodeReservedInSharedPool},
	{codes: []report.Code{report.ReservedMemoryMismatch}, find: reservedMemoryMismatch},
	{codes: []report.Code{report.TooManyNUMANodes}, find: tooManyNUMANodes},
	{codes: []report.Code{report.KubeletCheckpointInvalid}, find: checkpointInvalid},
	{codes: []report.Code{report.KubeletConfigInvalid}, find: kubeletConfigInvalid},
	{codes: []report.Code{report.KubeletWouldHang}, find: nodeWouldHang},
	{codes: []report.Code{report.AdmissionLoop}, find: admissionLoop},
	{codes: []report.Code{report.WouldBeRefusedNow}, find: restartRefuses},
}

// apply runs the rules in their order of registration.
func apply[S any](rules []rule[S], subject S) []report.Finding {
	var out []report.Finding
	for _, r := range rules {
		out = append(out, r.find(subject)...)
	}
	return out
}

// order sorts findings as every report does: severity, confidence, catalogue,
// subject.
func order(findings []report.Finding) {
	place := make(map[report.Code]int)
	for i, e := range report.Catalogue() {
		place[e.Code] = 2 * i
	}
	// A refusal by the Topology Manager stands behind what makes it refuse, a
	// checkpoint behind a setting that the kubelet refuses before it reads one.
	behind := make(map[report.Subject]int)
	config := 0
	for _, f := range findings {
		if f.Code == report.KubeletConfigInvalid {
			config = place[f.Code] + 1
		}
		if f.Code == report.InitContainerNUMATrap || f.Code == report.PodPoolEmpty {
			s := f.Subject
			s.Container = ""
			behind[s] = max(behind[s], place[f.Code]+1)
		}
	}
	placeOf := func(f report.Finding) int {
		s := f.Subject
		s.Container = ""
		if f.Code == report.TopologyAffinityRefused {
			return max(place[f.Code], behind[s])
		}
		if f.Code == report.KubeletCheckpointInvalid {
			return max(place[f.Code], config)
		}
		return place[f.Code]
	}
	slices.SortStableFunc(findings, func(a, b report.Finding) int {
		return cmp.Or(
			cmp.Compare(a.Severity.Rank(), b.Severity.Rank()),
			cmp.Compare(nothingSaid(a), nothingSaid(b)),
			cmp.Compare(a.Confidence.Rank(), b.Confidence.Rank()),
			cmp.Compare(placeOf(a), placeOf(b)),
			cmp.Compare(a.Subject.Kind, b.Subject.Kind),
			cmp.Compare(a.Subject.Namespace, b.Subject.Namespace),
			cmp.Compare(a.Subject.Name, b.Subject.Name),
			cmp.Compare(a.Subject.Container, b.Subject.Container),
		)
	})
}

// nothingSaid puts evidence-missing behind what was found: it answers nothing.
func nothingSaid(f report.Finding) int {
	if f.Code == report.EvidenceMissing {
		return 1
	}
	return 0
}
