package kubeletconfig

import (
	"strings"
	"testing"
)

func TestInvalid(t *testing.T) {
	for _, tc := range []struct {
		config string
		minor  int
		want   string // "" is none
	}{
		{`{}`, 37, ""},
		{`{"enforceNodeAllocatable":["pods","none"]}`, 37, "may not contain additional enforcements"},
		{`{"enforceNodeAllocatable":["pods","pods"]}`, 37, "duplicated enforcements"},
		{`{"enforceNodeAllocatable":["pod"]}`, 37, `option "pod" specified`},
		{`{"enforceNodeAllocatable":["pods"],"cgroupsPerQOS":false}`, 37, "must be set to true"},
		{`{"enforceNodeAllocatable":["none"],"cgroupsPerQOS":false}`, 37, ""},
		{`{"enforceNodeAllocatable":["kube-reserved"]}`, 37, "kubeReservedCgroup (--kube-reserved-cgroup) must be specified"},
		{`{"enforceNodeAllocatable":["kube-reserved","kube-reserved-compressible"],"kubeReservedCgroup":"/kube"}`, 37, "cannot be specified together"},
		{`{"reservedSystemCPUs":"0","systemReservedCgroup":"/system.slice"}`, 37, "can't use reservedSystemCPUs"},
		{`{"systemReservedCgroup":"/system.slice"}`, 37, ""},
		{`{"cpuCFSQuotaPeriod":"10ms"}`, 35, "requires feature gate CustomCPUCFSQuotaPeriod"},
		{`{"cpuCFSQuotaPeriod":"10ms"}`, 36, ""},
		{`{"cpuCFSQuotaPeriod":"2s"}`, 36, "must be between 1ms and 1sec"},
		{`{"memorySwap":{"swapBehavior":"UnlimitedSwap"}}`, 37, "must be one of"},
		{`{"memoryThrottlingFactor":0.8,"featureGates":{"MemoryQoS":false}}`, 37, "must not be set"},
		{`{"memoryThrottlingFactor":0.9,"featureGates":{"MemoryQoS":false}}`, 37, ""},
		{`{"memoryThrottlingFactor":0.8}`, 36, ""},
		{`{"memoryThrottlingFactor":1.5}`, 36, "less than or equal to 1.0"},
		{`{"memoryReservationPolicy":"TieredReservation"}`, 36, "requires MemoryQoS"},
		{`{"memoryReservationPolicy":"TieredReservation"}`, 37, ""},
		{`{"memoryReservationPolicy":"Tiered"}`, 37, "Valid options are"},
		{`{"maxPods":-1}`, 37, "maxPods (--max-pods) -1"},
		{`{"topologyManagerScope":"node"}`, 37, `must be one of: "container", or "pod"`},
		{`{"reservedMemory":[{"numaNode":0,"limits":{"cpu":"1"}}]}`, 37, "limit type"},
		{`{"reservedMemory":[{"numaNode":0,"limits":{"hugepages-1Gi":"1Gi"}}]}`, 37, ""},
		{`{"featureGates":{"PodLevelResources":false}}`, 37, "depends on features that are disabled"},
		{`{"featureGates":{"PodLevelResources":false}}`, 34, ""},
		{`{"featureGates":{"PodLevelResourceManagers":true}}`, 35, "unrecognized feature gate"},
		{`{"featureGates":{"PodLevelResourceManagers":true}}`, 36, ""},
		{`{"featureGates":{"NobodyKnowsIt":true}}`, 37, ""},
		{`{"featureGates":{"CPUManagerPolicyOptions":false}}`, 0, ""},
	} {
		c, err := Decode([]byte(tc.config))
		if err != nil {
			t.Fatalf("%s: %v", tc.config, err)
		}
		var got []string
		for _, i := range c.Invalid(tc.minor) {
			got = append(got, i.Message)
		}
		text := strings.Join(got, "\n")
		if tc.want == "" && text != "" || !strings.Contains(text, tc.want) {
			t.Errorf("%s in 1.%d: %q, want %q", tc.config, tc.minor, got, tc.want)
		}
	}
}
