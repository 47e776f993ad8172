package report

// Code names the cause a finding speaks of. Codes are stable: documented in
// docs/findings, never renamed.
type Code string

// Group is what a code belongs to; every report says at least one thing about
// each group that was asked about.
type Group string

// Groups of the catalogue.
const (
	GroupCPU       Group = "CPU time"
	GroupMemory    Group = "Memory"
	GroupPlacement Group = "Placement"
	GroupAdmission Group = "Admission"
	GroupShrinking Group = "Shrinking"
	GroupNode      Group = "Node"
	GroupEvidence  Group = "Evidence"
)

// Codes of CPU time.
const (
	CPUQuotaOnExclusiveCPUs Code = "cpu-quota-on-exclusive-cpus"
	CPUFilesDifferFromSpec  Code = "cpu-files-differ-from-spec"
	KernelQuotaBug          Code = "kernel-quota-bug"
	CPUQuotaThrottled       Code = "cpu-quota-throttled"
	CPUQuotaBurstThrottled  Code = "cpu-quota-burst-throttled"
	CPUParentThrottled      Code = "cpu-parent-throttled"
	CPUInitThrottled        Code = "cpu-init-throttled"
	CPULimitBelowFloor      Code = "cpu-limit-below-floor"
	CPUStarvedByWeight      Code = "cpu-starved-by-weight"
	CPUSharedPoolCrowded    Code = "cpu-shared-pool-crowded"
	CPUWeightFormulasDiffer Code = "cpu-weight-formulas-differ"
	CPUNotThrottled         Code = "cpu-not-throttled"
	CPUThrottleHistoryOnly  Code = "cpu-throttle-history-only"
	CPULimitBelowNodeCPUs   Code = "cpu-limit-below-node-cpus"
	NodeReservationByWeight Code = "node-reservation-weight-only"
	CgroupV1Unsupported     Code = "cgroup-v1-unsupported"
)

// Codes of memory.
const (
	ContainerMemoryLimitOOM   Code = "container-memory-limit-oom"
	PodMemoryLimitOOM         Code = "pod-memory-limit-oom"
	NodeAllocatableOOM        Code = "node-allocatable-oom"
	NodeOOM                   Code = "node-oom"
	NUMAConstrainedOOM        Code = "numa-constrained-oom"
	SystemdOOMDKill           Code = "systemd-oomd-kill"
	NestedCgroupOOM           Code = "nested-cgroup-oom"
	OOMVictimChild            Code = "oom-victim-child"
	OOMScoreAdjDiffers        Code = "oom-score-adj-differs"
	NodeOOMNext               Code = "node-oom-next"
	OOMGroupKill              Code = "oom-group-kill"
	InitContainerOOM          Code = "init-container-oom"
	ContainerStartOOM         Code = "container-start-oom"
	OOMReasonStale            Code = "oom-reason-stale"
	Exit137NotOOM             Code = "exit-137-not-oom"
	OOMCauseUnproven          Code = "oom-cause-unproven"
	MemoryFilledByAnon        Code = "memory-filled-by-anon"
	MemoryFilledByTmpfs       Code = "memory-filled-by-tmpfs"
	MemoryFilledByPageCache   Code = "memory-filled-by-page-cache"
	MemoryFilledByKernel      Code = "memory-filled-by-kernel"
	MemoryFilesDifferFromSpec Code = "memory-files-differ-from-spec"
	MemoryReclaimThrash       Code = "memory-reclaim-thrash"
	MemoryHighThrottled       Code = "memory-high-throttled"
	MemoryNearLimit           Code = "memory-near-limit"
	SwapLimited               Code = "swap-limited"
	EvictedNodePressure       Code = "evicted-node-pressure"
	EvictedLocalStorage       Code = "evicted-local-storage"
	EvictionUnfinished        Code = "eviction-unfinished"
	EvictionNext              Code = "eviction-next"
	CrashLoopBackOff          Code = "crash-loop-backoff"
	PIDsLimitReached          Code = "pids-limit-reached"
	UnitMistake               Code = "unit-mistake"
	MemoryHealthy             Code = "memory-healthy"
)

// Codes of placement.
const (
	ExclusiveCPUs           Code = "exclusive-cpus"
	SharedNotGuaranteed     Code = "shared-pool-not-guaranteed"
	SharedFractionalCPU     Code = "shared-pool-fractional-cpu"
	SharedNoLimit           Code = "shared-pool-no-limit"
	SharedPodLevel          Code = "shared-pool-pod-level"
	SharedPolicyNone        Code = "shared-pool-policy-none"
	SidecarBreaksGuaranteed Code = "sidecar-breaks-guaranteed"
	SMTSiblingShared        Code = "smt-sibling-shared"
	ReservedSplitsCore      Code = "reserved-splits-core"
	IsolatedCPUsInSet       Code = "isolated-cpus-in-set"
	NUMASplit               Code = "numa-split"
	UncoreCacheSplit        Code = "uncore-cache-split"
	NUMAAligned             Code = "numa-aligned"
	MemoryRemote            Code = "memory-remote"
	DeviceNUMAMismatch      Code = "device-numa-mismatch"
	PlacementReplayed       Code = "placement-replayed"
	PlacementNeedsGonePods  Code = "placement-needs-gone-pods"
	PlacementDiffers        Code = "placement-differs-from-replay"
	CPUSetDrift             Code = "cpuset-drift"
	ReservedInSharedPool    Code = "reserved-cpus-in-shared-pool"
	InitContainerHoldsCPUs  Code = "init-container-holds-cpus"
	UnevenCoreAverages      Code = "uneven-core-averages"
)

// Codes of admission.
const (
	SMTAlignmentRefused      Code = "smt-alignment-refused"
	TopologyAffinityRefused  Code = "topology-affinity-refused"
	CPUsExhausted            Code = "cpus-exhausted"
	MemoryGroupConflict      Code = "memory-group-conflict"
	PodPoolEmpty             Code = "pod-pool-empty"
	MemoryExhausted          Code = "memory-exhausted"
	InitContainerNUMATrap    Code = "init-container-numa-trap"
	FitCheckRefused          Code = "fit-check-refused"
	WouldBeRefusedNow        Code = "would-be-refused-now"
	WouldBeAdmittedNow       Code = "would-be-admitted-now"
	ReservedMemoryMismatch   Code = "reserved-memory-mismatch"
	TooManyNUMANodes         Code = "too-many-numa-nodes"
	KubeletCheckpointInvalid Code = "kubelet-checkpoint-invalid"
	KubeletConfigInvalid     Code = "kubelet-config-invalid"
	ReadmissionRefused       Code = "readmission-refused"
	RefusalUnexplained       Code = "refusal-unexplained"
	AdmissionLoop            Code = "admission-loop"
	ResizeInfeasible         Code = "resize-infeasible"
	ResizePending            Code = "resize-pending"
	KubeletWouldHang         Code = "kubelet-would-hang"
)

// Codes of shrinking: budgets, what keeps Karpenter or the Cluster Autoscaler
// from removing a node, and what goes on all the same.
const (
	NotManaged                  Code = "not-managed"
	AlreadyDisrupting           Code = "already-disrupting"
	StaticNodePool              Code = "static-nodepool"
	ConsolidationNever          Code = "consolidation-never"
	PolicyWhenEmpty             Code = "policy-when-empty"
	NodeClaimNotInitialized     Code = "nodeclaim-not-initialized"
	NodeNominated               Code = "node-nominated"
	NodePoolNotFound            Code = "nodepool-not-found"
	MissingPriceLabels          Code = "missing-price-labels"
	NodeDoNotDisrupt            Code = "node-do-not-disrupt"
	PodDoNotDisrupt             Code = "pod-do-not-disrupt"
	PDBBlocks                   Code = "pdb-blocks"
	SeveralPDBs                 Code = "several-pdbs"
	ConsolidateAfterRunning     Code = "consolidate-after-running"
	DestinationConsolidateAfter Code = "destination-consolidate-after"
	BudgetZeroNow               Code = "budget-zero-now"
	BudgetUsedUp                Code = "budget-used-up"
	BudgetZeroAlways            Code = "budget-zero-always"
	BudgetInvalid               Code = "budget-invalid"
	BudgetNeverFires            Code = "budget-never-fires"
	BudgetInert                 Code = "budget-inert"
	BudgetWithoutReasons        Code = "budget-without-reasons"
	BudgetDefaultReplaced       Code = "budget-default-replaced"
	BudgetOneBarsMultiNode      Code = "budget-one-bars-multi-node"
	BudgetLocalTime             Code = "budget-local-time"
	BalancedScoreBelow          Code = "balanced-score-below"
	NoCheaperReplacement        Code = "no-cheaper-replacement"
	SpotToSpotBarred            Code = "spot-to-spot-barred"
	PodsFitNowhere              Code = "pods-fit-nowhere"
	TopologySpreadFloor         Code = "topology-spread-floor"
	AntiAffinityFloor           Code = "anti-affinity-floor"
	VolumeZone                  Code = "volume-zone"
	PriceUnknown                Code = "price-unknown"
	DriftQueued                 Code = "drift-queued"
	ExpiryIgnoresBudget         Code = "expiry-ignores-budget"
	RepairIgnoresBudget         Code = "repair-ignores-budget"
	DrainStuck                  Code = "drain-stuck"
	NodePoolLimitReached        Code = "nodepool-limit-reached"
	PodEventNotRecorded         Code = "pod-event-not-recorded"
	DoNotDisruptIgnored         Code = "do-not-disrupt-ignored"
	BarePodLost                 Code = "bare-pod-lost"
	NeedsSeveralReplacements    Code = "needs-several-replacements"
	ConsolidationRecheckDue     Code = "consolidation-recheck-due"
	KarpenterUnsynced           Code = "karpenter-unsynced"
	ProbablyRemovable           Code = "probably-removable"
	ShrinkBlockerUnknown        Code = "shrink-blocker-unknown"
	BudgetsOpen                 Code = "budgets-open"
	CAScaleDownDisabled         Code = "ca-scale-down-disabled"
	CAPodNotSafeToEvict         Code = "ca-pod-not-safe-to-evict"
	CAPodWithoutController      Code = "ca-pod-without-controller"
	CALocalStorage              Code = "ca-local-storage"
	CASystemPodWithoutPDB       Code = "ca-system-pod-without-pdb"
	CANotUnderutilized          Code = "ca-not-underutilized"
	CAMinSize                   Code = "ca-min-size"
	CACooldown                  Code = "ca-cooldown"
	CAUnready                   Code = "ca-unready"
)

// Codes of no other group.
const (
	NodeHealthy     Code = "node-healthy"
	EvidenceMissing Code = "evidence-missing"
)

// Entry is one code's place in the catalogue.
type Entry struct {
	Code     Code
	Group    Group
	Severity Severity
	// Title says the cause in a few words, without figures.
	Title string
}

// Catalogue lists every code that a rule can produce, causes before their
// symptoms: the order that findings of equal severity and confidence stand in.
func Catalogue() []Entry { return catalogue }

var catalogue = []Entry{
	{CgroupV1Unsupported, GroupCPU, Warning, "cgroup v1 or hybrid: no figures are read from it"},
	{CPUQuotaOnExclusiveCPUs, GroupCPU, Warning, "a CFS quota is left on exclusively pinned CPUs"},
	{CPUFilesDifferFromSpec, GroupCPU, Warning, "the cgroup's CPU files are not what the pod's spec asks for"},
	{KernelQuotaBug, GroupCPU, Warning, "an old kernel lets unused quota expire: throttled below the limit"},
	{CPUQuotaThrottled, GroupCPU, Warning, "use reaches the CPU limit, period after period"},
	{CPUQuotaBurstThrottled, GroupCPU, Warning, "parallel threads exhaust the quota although average use is below the limit"},
	{CPUParentThrottled, GroupCPU, Warning, "a cgroup above the container throttles it"},
	{CPUInitThrottled, GroupCPU, Info, "throttled only while it started"},
	{CPULimitBelowFloor, GroupCPU, Info, "the limit is below the least quota, which is in force instead"},
	{CPUStarvedByWeight, GroupCPU, Warning, "waits for CPUs that siblings of more weight use, not for a quota"},
	{CPUSharedPoolCrowded, GroupCPU, Warning, "exclusive CPUs leave the shared pool too small"},
	{CPUWeightFormulasDiffer, GroupCPU, Info, "siblings got their cpu.weight by different formulas"},
	{CPUNotThrottled, GroupCPU, Info, "no CPU quota holds the container back"},
	{CPUThrottleHistoryOnly, GroupCPU, Info, "throttled in the past, not in the sample"},
	{CPULimitBelowNodeCPUs, GroupCPU, Info, "the limit is below the CPUs that a runtime may count"},
	{NodeReservationByWeight, GroupNode, Info, "reserved CPU is kept by weight, not by a quota"},
	{ContainerMemoryLimitOOM, GroupMemory, Critical, "killed at the container's own memory limit"},
	{PodMemoryLimitOOM, GroupMemory, Critical, "killed at the pod's memory limit"},
	{NodeAllocatableOOM, GroupMemory, Critical, "killed at the limit of all pods (node allocatable) or of a QoS class"},
	{NodeOOM, GroupMemory, Critical, "the node ran out of memory"},
	{NUMAConstrainedOOM, GroupMemory, Critical, "the allowed NUMA nodes ran out of memory"},
	{SystemdOOMDKill, GroupMemory, Critical, "systemd-oomd killed the cgroup for pressure or swap"},
	{NestedCgroupOOM, GroupMemory, Warning, "a cgroup inside the container hit its own limit"},
	{OOMVictimChild, GroupMemory, Warning, "a process was OOM-killed, the container lives on"},
	{OOMScoreAdjDiffers, GroupMemory, Warning, "a process has another oom_score_adj than the kubelet gave it"},
	{NodeOOMNext, GroupMemory, Info, "whom the kernel would kill first if the node ran out of memory"},
	{OOMGroupKill, GroupMemory, Info, "memory.oom.group killed the whole container"},
	{InitContainerOOM, GroupMemory, Critical, "an init container was OOM-killed"},
	{ContainerStartOOM, GroupMemory, Critical, "the container cannot start: memory outlives it"},
	{OOMReasonStale, GroupMemory, Warning, "the reason OOMKilled does not belong to this exit"},
	{Exit137NotOOM, GroupMemory, Warning, "SIGKILL that was no OOM"},
	{OOMCauseUnproven, GroupMemory, Warning, "OOMKilled, and nothing left shows which limit"},
	{MemoryFilledByAnon, GroupMemory, Info, "anonymous memory fills it: heap and stacks"},
	{MemoryFilledByTmpfs, GroupMemory, Info, "tmpfs and shared memory fill it"},
	{MemoryFilledByPageCache, GroupMemory, Info, "page cache fills it, which the kernel can take back"},
	{MemoryFilledByKernel, GroupMemory, Info, "kernel memory fills it: slab, page tables, sockets"},
	{MemoryFilesDifferFromSpec, GroupMemory, Warning, "the cgroup's memory files are not what the pod's spec asks for"},
	{MemoryReclaimThrash, GroupMemory, Warning, "the limit makes it read the same pages again and again"},
	{MemoryHighThrottled, GroupMemory, Warning, "memory.high makes it reclaim and wait"},
	{MemoryNearLimit, GroupMemory, Warning, "what cannot be taken back is close to the limit"},
	{SwapLimited, GroupMemory, Info, "swap is limited in proportion to the memory request"},
	{EvictedNodePressure, GroupMemory, Critical, "evicted: the node was short of memory, disk or processes"},
	{EvictedLocalStorage, GroupMemory, Critical, "evicted: the pod exceeded a limit of its own for local storage"},
	{EvictionUnfinished, GroupMemory, Critical, "an eviction was attempted, and the pod runs on"},
	{EvictionNext, GroupMemory, Warning, "the kubelet would evict this pod next"},
	{CrashLoopBackOff, GroupMemory, Info, "waiting for the next restart"},
	{PIDsLimitReached, GroupMemory, Critical, "forks are refused: a limit of processes is met"},
	{UnitMistake, GroupMemory, Info, "a quantity looks as if it had the wrong unit"},
	{MemoryHealthy, GroupMemory, Info, "no sign of memory trouble"},
	{ExclusiveCPUs, GroupPlacement, Info, "the container owns its CPUs"},
	{SharedNotGuaranteed, GroupPlacement, Info, "shared CPUs: the pod is not Guaranteed"},
	{SharedFractionalCPU, GroupPlacement, Info, "shared CPUs: the request is not a whole number"},
	{SharedNoLimit, GroupPlacement, Info, "shared CPUs: no CPU request"},
	{SharedPodLevel, GroupPlacement, Info, "shared CPUs: pod-level resources"},
	{SharedPolicyNone, GroupPlacement, Info, "shared CPUs: the CPU Manager's policy is none"},
	{SidecarBreaksGuaranteed, GroupPlacement, Warning, "another container of the pod costs it its exclusive CPUs"},
	{SMTSiblingShared, GroupPlacement, Warning, "a sibling thread of an owned CPU is another's"},
	{ReservedSplitsCore, GroupPlacement, Warning, "siblings of reserved CPUs can never be pinned"},
	{IsolatedCPUsInSet, GroupPlacement, Warning, "the kernel balances no load on CPUs of the set"},
	{NUMASplit, GroupPlacement, Warning, "a container's own CPUs lie on several NUMA nodes"},
	{UncoreCacheSplit, GroupPlacement, Warning, "a container's own CPUs lie under more caches than need be"},
	{NUMAAligned, GroupPlacement, Info, "CPUs and memory lie on one NUMA node"},
	{MemoryRemote, GroupPlacement, Warning, "memory is on other NUMA nodes than the CPUs"},
	{DeviceNUMAMismatch, GroupPlacement, Warning, "a device is on another NUMA node than the CPUs"},
	{PlacementReplayed, GroupPlacement, Info, "the kubelet's rules give exactly what is recorded"},
	{PlacementNeedsGonePods, GroupPlacement, Info, "the record does not follow from the present pods; it does if others held more"},
	{PlacementDiffers, GroupPlacement, Warning, "the kubelet's rules do not give what is recorded"},
	{CPUSetDrift, GroupPlacement, Warning, "the cgroup's cpuset is not the checkpoint's"},
	{ReservedInSharedPool, GroupPlacement, Info, "the reserved CPUs are part of the shared pool, by design"},
	{InitContainerHoldsCPUs, GroupPlacement, Info, "CPUs stay booked for an init container that is done"},
	{UnevenCoreAverages, GroupPlacement, Warning, "cores of unlike size: the kubelet's average is no core's size"},
	{SMTAlignmentRefused, GroupAdmission, Critical, "full-pcpus-only: no whole cores for the request"},
	{TopologyAffinityRefused, GroupAdmission, Critical, "no set of NUMA nodes that the Topology Manager's policy admits"},
	{CPUsExhausted, GroupAdmission, Critical, "fewer CPUs are free on the whole node than asked for"},
	{MemoryGroupConflict, GroupAdmission, Critical, "NUMA nodes with the memory cannot be joined to a group"},
	{ReservedMemoryMismatch, GroupAdmission, Critical, "reservedMemory does not sum up to the node's reservation"},
	{PodPoolEmpty, GroupAdmission, Critical, "exclusive containers leave nothing of the pod's resources to the others"},
	{TooManyNUMANodes, GroupAdmission, Critical, "more NUMA nodes than the Topology Manager takes"},
	{KubeletCheckpointInvalid, GroupAdmission, Critical, "the kubelet refuses its checkpoint file"},
	{KubeletConfigInvalid, GroupAdmission, Critical, "the kubelet refuses a setting at its start"},
	{MemoryExhausted, GroupAdmission, Critical, "no set of NUMA nodes has the memory free"},
	{InitContainerNUMATrap, GroupAdmission, Critical, "CPUs of an init container tie the pod to a NUMA node that is too small"},
	{FitCheckRefused, GroupAdmission, Critical, "the kubelet's own fit check refuses the pod"},
	{ReadmissionRefused, GroupAdmission, Critical, "a restart of the kubelet refused a pod that ran"},
	{RefusalUnexplained, GroupAdmission, Critical, "the kubelet refused the pod"},
	{AdmissionLoop, GroupAdmission, Critical, "a controller keeps creating pods that the kubelet refuses"},
	{WouldBeRefusedNow, GroupAdmission, Info, "the kubelet would refuse the pod"},
	{WouldBeAdmittedNow, GroupAdmission, Info, "the kubelet would admit the pod"},
	{ResizeInfeasible, GroupAdmission, Warning, "the kubelet will not resize the pod in place"},
	{ResizePending, GroupAdmission, Info, "an in-place resize is not done yet"},
	{KubeletWouldHang, GroupAdmission, Critical, "the kubelet would never come to an end"},
	{NotManaged, GroupShrinking, Info, "neither Karpenter nor the Cluster Autoscaler removes the node"},
	{AlreadyDisrupting, GroupShrinking, Info, "the node is on its way out already"},
	{StaticNodePool, GroupShrinking, Warning, "the pool keeps a fixed number of nodes"},
	{ConsolidationNever, GroupShrinking, Warning, "consolidateAfter has no duration: the pool never consolidates"},
	{PolicyWhenEmpty, GroupShrinking, Info, "the pool gives up only empty nodes"},
	{NodeClaimNotInitialized, GroupShrinking, Warning, "Karpenter does not take the node for ready"},
	{NodeNominated, GroupShrinking, Info, "a pending pod is planned onto the node"},
	{NodePoolNotFound, GroupShrinking, Warning, "Karpenter finds no NodePool for the node"},
	{MissingPriceLabels, GroupShrinking, Warning, "labels that a node's price is looked up by are missing"},
	{NodeDoNotDisrupt, GroupShrinking, Warning, "an annotation on the node stops every voluntary disruption"},
	{PodDoNotDisrupt, GroupShrinking, Warning, "an annotation on a pod keeps its node"},
	{PDBBlocks, GroupShrinking, Warning, "a PodDisruptionBudget allows no eviction now"},
	{SeveralPDBs, GroupShrinking, Warning, "several PodDisruptionBudgets select one pod, which bars its eviction"},
	{ConsolidateAfterRunning, GroupShrinking, Info, "the node has not been quiet for long enough"},
	{DestinationConsolidateAfter, GroupShrinking, Info, "the nodes that the pods would fit on are inside their own consolidateAfter"},
	{BudgetZeroNow, GroupShrinking, Warning, "the budgets of the NodePool allow no disruption until a window ends"},
	{BudgetUsedUp, GroupShrinking, Warning, "nodes under way or not ready use up what the budgets allow"},
	{BudgetZeroAlways, GroupShrinking, Warning, "the budgets of the NodePool never allow a disruption for a reason"},
	{BudgetInvalid, GroupShrinking, Warning, "a budget that cannot be evaluated closes every reason"},
	{BudgetNeverFires, GroupShrinking, Warning, "a schedule without any hit makes its budget always active"},
	{BudgetInert, GroupShrinking, Warning, "a budget limits nothing"},
	{BudgetWithoutReasons, GroupShrinking, Warning, "a window without reasons stops the removal of empty nodes too"},
	{BudgetDefaultReplaced, GroupShrinking, Warning, "nothing limits disruption outside the windows"},
	{BudgetOneBarsMultiNode, GroupShrinking, Warning, "a budget of 1 bars merging several nodes at once"},
	{BudgetLocalTime, GroupShrinking, Warning, "windows in UTC move with daylight saving"},
	{BalancedScoreBelow, GroupShrinking, Info, "the policy Balanced finds the move too disruptive for what it saves"},
	{NoCheaperReplacement, GroupShrinking, Info, "Karpenter found no cheaper node for the pods"},
	{SpotToSpotBarred, GroupShrinking, Info, "one spot node is not replaced by another"},
	{PodsFitNowhere, GroupShrinking, Warning, "a pod of the node fits on no other node, and no new one can be made for it"},
	{TopologySpreadFloor, GroupShrinking, Warning, "a topology spread keeps a pod off every other node"},
	{AntiAffinityFloor, GroupShrinking, Warning, "an anti-affinity keeps a pod off every other node"},
	{VolumeZone, GroupShrinking, Warning, "a volume keeps a pod in a zone where no other node takes it"},
	{PriceUnknown, GroupShrinking, Info, "what the node costs is not known"},
	{DriftQueued, GroupShrinking, Info, "the node is drifted and waits to be replaced"},
	{ExpiryIgnoresBudget, GroupShrinking, Info, "the node goes at its age limit, whatever the budgets say"},
	{RepairIgnoresBudget, GroupShrinking, Info, "an unhealthy node is replaced without asking budgets"},
	{DrainStuck, GroupShrinking, Critical, "pods that may not be evicted hold a node that is being deleted"},
	{NodePoolLimitReached, GroupShrinking, Warning, "the pool has used up its limits: no new node"},
	{PodEventNotRecorded, GroupShrinking, Info, "a pod event restarted no clock: the node counts as quiet too early"},
	{DoNotDisruptIgnored, GroupShrinking, Warning, "the value of an annotation protects nothing"},
	{BarePodLost, GroupShrinking, Warning, "a pod without a controller goes with its node for good"},
	{NeedsSeveralReplacements, GroupShrinking, Info, "the pods would need several new nodes"},
	{ConsolidationRecheckDue, GroupShrinking, Info, "nothing keeps the node, but consolidation rests until something changes"},
	{KarpenterUnsynced, GroupShrinking, Critical, "a NodeClaim without an instance stops all disruption"},
	{ProbablyRemovable, GroupShrinking, Info, "nothing known keeps the node, and its pods have places elsewhere"},
	{ShrinkBlockerUnknown, GroupShrinking, Info, "whether the node can go is not known"},
	{BudgetsOpen, GroupShrinking, Info, "the budgets stand in the way of no reason"},
	{CAScaleDownDisabled, GroupShrinking, Warning, "the Cluster Autoscaler is told to leave the node"},
	{CAPodNotSafeToEvict, GroupShrinking, Warning, "an annotation on a pod keeps the Cluster Autoscaler from its node"},
	{CAPodWithoutController, GroupShrinking, Warning, "a pod that nothing makes again keeps its node"},
	{CALocalStorage, GroupShrinking, Warning, "a pod with local storage keeps its node"},
	{CASystemPodWithoutPDB, GroupShrinking, Warning, "a pod of kube-system without a PodDisruptionBudget keeps its node"},
	{CANotUnderutilized, GroupShrinking, Info, "the pods request too much of the node"},
	{CAMinSize, GroupShrinking, Warning, "the node group is at its minimum size"},
	{CACooldown, GroupShrinking, Info, "the Cluster Autoscaler waits before it removes nodes"},
	{CAUnready, GroupShrinking, Warning, "a node, or too many of them, are not ready"},
	{NodeHealthy, GroupNode, Info, "nothing wrong with what was checked of the node"},
	{EvidenceMissing, GroupEvidence, Info, "the data show neither health nor illness"},
}

// Lookup finds a code's entry.
func Lookup(code Code) (Entry, bool) {
	for _, e := range catalogue {
		if e.Code == code {
			return e, true
		}
	}
	return Entry{}, false
}

// NewFinding makes a finding of the severity that the catalogue gives the code.
func NewFinding(code Code, confidence Confidence, subject Subject, summary string, because ...Evidence) Finding {
	entry, _ := Lookup(code)
	return Finding{Code: code, Severity: entry.Severity, Confidence: confidence, Subject: subject, Summary: summary, Because: because}
}
