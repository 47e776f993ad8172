package karpenter

// Labels, annotations, taints and the finalizer of Karpenter (pkg/apis/v1/labels.go, taints.go).
const (
	NodePoolLabel     = "karpenter.sh/nodepool"
	RegisteredLabel   = "karpenter.sh/registered"
	InitializedLabel  = "karpenter.sh/initialized"
	CapacityTypeLabel = "karpenter.sh/capacity-type"

	DoNotDisruptAnnotation         = "karpenter.sh/do-not-disrupt"
	DisruptionCostAnnotation       = "karpenter.sh/disruption-cost" // from 1.15 on
	NodePoolHashAnnotation         = "karpenter.sh/nodepool-hash"
	NodePoolHashVersionAnnotation  = "karpenter.sh/nodepool-hash-version"
	TerminationTimestampAnnotation = "karpenter.sh/nodeclaim-termination-timestamp"

	DisruptedTaint       = "karpenter.sh/disrupted"
	TerminationFinalizer = "karpenter.sh/termination"
)

// Condition types of a NodeClaim (pkg/apis/v1/nodeclaim_status.go).
const (
	ConditionLaunched            = "Launched"
	ConditionRegistered          = "Registered"
	ConditionInitialized         = "Initialized"
	ConditionConsolidatable      = "Consolidatable"
	ConditionDrifted             = "Drifted"
	ConditionDrained             = "Drained"
	ConditionVolumesDetached     = "VolumesDetached"
	ConditionInstanceTerminating = "InstanceTerminating"
	ConditionDisruptionReason    = "DisruptionReason"
)

// Reason is a disruption reason as budgets name it.
type Reason string

// The reasons of every version; Unhealthy joined in 1.15.
const (
	Empty         Reason = "Empty"
	Drifted       Reason = "Drifted"
	Underutilized Reason = "Underutilized"
	Unhealthy     Reason = "Unhealthy"
)

// ConsolidationPolicy is spec.disruption.consolidationPolicy.
type ConsolidationPolicy string

// The known policies; Balanced joined in 1.14.
const (
	WhenEmpty                ConsolidationPolicy = "WhenEmpty"
	WhenEmptyOrUnderutilized ConsolidationPolicy = "WhenEmptyOrUnderutilized"
	Balanced                 ConsolidationPolicy = "Balanced"
)
