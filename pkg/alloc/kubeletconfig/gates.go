package kubeletconfig

// The minor versions whose feature gates are known here.
const (
	MinMinor = 34
	MaxMinor = 37
)

// stage is how a gate stands in one version.
type stage uint8

const (
	none stage = iota // the version does not know the gate
	alphaOff
	betaOff
	betaOn
	gaOn // still to be switched off
	gaLocked
	deprecatedOn
	deprecatedLocked
)

func (s stage) on() bool { return s >= betaOn }

func (s stage) locked() bool { return s == gaLocked || s == deprecatedLocked }

// gateStages has the gates that the rules for CPUs, memory and cgroups ask for, in 1.34, 1.35, 1.36 and 1.37
// (pkg/features/kube_features.go of these versions).
var gateStages = map[string][MaxMinor - MinMinor + 1]stage{
	"CPUManagerPolicyOptions":           {gaLocked, gaLocked, gaLocked, gaLocked},
	"CPUManagerPolicyBetaOptions":       {betaOn, betaOn, betaOn, betaOn},
	"CPUManagerPolicyAlphaOptions":      {alphaOff, alphaOff, alphaOff, alphaOff},
	"TopologyManagerPolicyOptions":      {gaOn, gaOn, gaLocked, gaLocked},
	"TopologyManagerPolicyBetaOptions":  {betaOn, betaOn, betaOn, betaOn},
	"TopologyManagerPolicyAlphaOptions": {alphaOff, alphaOff, alphaOff, alphaOff},
	"MemoryManager":                     {gaLocked, gaLocked, none, none},

	"PodLevelResources":                   {betaOn, betaOn, betaOn, betaOn},
	"PodLevelResourceManagers":            {none, none, alphaOff, betaOff},
	"PodLevelResourcesFixKubeletQOSClass": {none, none, none, betaOn},
	"PodLevelResourcesFixDefaulting":      {none, none, none, betaOn},

	"InPlacePodVerticalScaling":                    {betaOn, gaLocked, gaLocked, gaLocked},
	"InPlacePodVerticalScalingExclusiveCPUs":       {alphaOff, alphaOff, alphaOff, alphaOff},
	"InPlacePodVerticalScalingExclusiveMemory":     {alphaOff, alphaOff, alphaOff, alphaOff},
	"InPlacePodVerticalScalingInitContainers":      {none, none, betaOn, gaOn},
	"InPlacePodVerticalScalingMemoryBackedVolumes": {none, none, none, alphaOff},
	"InPlacePodVerticalScalingSchedulerPreemption": {none, none, none, alphaOff},
	"InPlacePodLevelResourcesVerticalScaling":      {none, alphaOff, betaOn, betaOn},

	"DisableCPUQuotaWithExclusiveCPUs": {betaOn, betaOn, deprecatedOn, deprecatedLocked},
	"CustomCPUCFSQuotaPeriod":          {alphaOff, alphaOff, gaOn, gaOn},
	"MemoryQoS":                        {alphaOff, alphaOff, alphaOff, betaOn},
	"NodeSwap":                         {gaLocked, gaLocked, gaLocked, gaLocked},
	"QOSReserved":                      {alphaOff, alphaOff, alphaOff, alphaOff},
	"DRANodeAllocatableResources":      {none, none, alphaOff, alphaOff},

	"KubeletPodResourcesGet":               {betaOn, betaOn, gaLocked, gaLocked},
	"KubeletPSI":                           {betaOn, betaOn, gaOn, gaOn},
	"KubeletFineGrainedAuthz":              {betaOn, betaOn, gaOn, gaOn},
	"PodAndContainerStatsFromCRI":          {alphaOff, alphaOff, alphaOff, betaOff},
	"KubeletCrashLoopBackOffMax":           {alphaOff, betaOn, betaOn, betaOn},
	"ReduceDefaultCrashLoopBackOffDecay":   {alphaOff, alphaOff, alphaOff, alphaOff},
	"ContainerRestartRules":                {alphaOff, betaOn, betaOn, betaOn},
	"RestartAllContainersOnContainerExits": {none, alphaOff, betaOn, betaOn},
}

// GateListed reports whether a feature gate, or one of the names that stand for all of a stage, is among those known here. A kubelet
// does not start with a gate that it does not know; one that is not listed may still be among its own.
func GateListed(name string) bool {
	_, listed := gateStages[name]
	return listed || name == "AllAlpha" || name == "AllBeta"
}

// Gate reports whether a feature gate is on in a kubelet of 1.minor with this configuration, where minors below 34 count as 34 and
// those above 37 as 37. A gate that is locked in that version cannot be switched. Otherwise featureGates decides, then its AllAlpha
// and AllBeta for gates of that stage, then the version's default. known is false for a gate that the version does not have, or that
// is not among those listed here; on is then what featureGates says.
func (c Config) Gate(name string, minor int) (on, known bool) {
	s := gateStages[name][min(max(minor, MinMinor), MaxMinor)-MinMinor]
	if s.locked() {
		return true, true
	}
	if on, ok := c.FeatureGates[name]; ok {
		return on, s != none
	}
	switch s {
	case alphaOff:
		return c.FeatureGates["AllAlpha"], true
	case betaOff, betaOn:
		if on, ok := c.FeatureGates["AllBeta"]; ok {
			return on, true
		}
	}
	return s.on(), s != none
}
