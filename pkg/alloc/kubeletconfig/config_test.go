package kubeletconfig

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/noderes/kubectl-noderes/pkg/alloc/cpuset"
)

func recorded(t testing.TB, name string) Config {
	t.Helper()
	data, err := os.ReadFile("testdata/" + name + ".json")
	if err != nil {
		t.Fatal(err)
	}
	c, err := Decode(data)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestDecodeNUMA4(t *testing.T) {
	got := recorded(t, "numa4")
	yes, fiveMinutes := true, 5*time.Minute
	want := Config{
		Served:           true,
		CPUManagerPolicy: "static", CPUManagerPolicyOptions: map[string]string{"distribute-cpus-across-numa": "true"},
		CPUManagerReconcilePeriod: 10 * time.Second, ReservedSystemCPUs: cpuset.Of(0, 4),
		MemoryManagerPolicy: "Static",
		ReservedMemory: []MemoryReservation{
			{0, corev1.ResourceList{"memory": resource.MustParse("768Mi")}}, {2, corev1.ResourceList{"memory": resource.MustParse("256Mi")}},
		},
		TopologyManagerPolicy: "restricted", TopologyManagerScope: "pod",
		TopologyManagerPolicyOptions: map[string]string{"prefer-closest-numa-nodes": "true"},
		KubeReserved:                 map[string]string{"memory": "424Mi"},
		EnforceNodeAllocatable:       []string{"pods"},
		EvictionHard: map[string]string{
			"imagefs.available": "1%", "memory.available": "600Mi", "nodefs.available": "1%", "nodefs.inodesFree": "1%",
		},
		EvictionPressureTransitionPeriod: 5 * time.Minute,
		CgroupDriver:                     "systemd", CgroupsPerQOS: true, CPUCFSQuota: true, CPUCFSQuotaPeriod: 100 * time.Millisecond,
		MemoryReservationPolicy: "None", SingleProcessOOMKill: &yes, FailCgroupV1: &yes, PodPidsLimit: -1, MaxPods: 110,
		MaxContainerRestartPeriod: &fiveMinutes,
	}
	if d := cmp.Diff(want, got, cmpopts.IgnoreFields(Config{}, "Ignored"), cmpopts.IgnoreUnexported(Config{})); d != "" {
		t.Errorf("configuration (-want +got):\n%s", d)
	}
	if len(got.Ignored) < 30 || got.Ignored[0] != "address" || !got.IsSet("memorySwap") || got.IsSet("systemReserved") {
		t.Errorf("ignored %v", got.Ignored)
	}
}

// The static memory manager starts only if its reservation is the node's, and the node's allocatable is what the kubelet told.
func TestReservationOfRecordings(t *testing.T) {
	for _, tc := range []struct{ name, capacity, allocatable, hugePages, arithmetic string }{
		{"numa4", "6077656Ki", "4898008Ki", "128Mi", "kubeReserved 424Mi + evictionHard[memory.available] 600Mi = 1Gi"},
		{"smt2", "6084868Ki", "5560580Ki", "0", "kubeReserved 412Mi + evictionHard[memory.available] 100Mi = 512Mi"},
	} {
		c := recorded(t, tc.name)
		got, err := c.Reservation(corev1.ResourceList{
			"cpu": resource.MustParse("8"), "memory": resource.MustParse(tc.capacity), "hugepages-2Mi": resource.MustParse(tc.hugePages),
			"ephemeral-storage": resource.MustParse("2572599296"), "pods": resource.MustParse("110"),
		})
		if err != nil {
			t.Fatal(err)
		}
		var sum resource.Quantity
		for _, r := range c.ReservedMemory {
			sum.Add(r.Limits["memory"])
		}
		memory := got["memory"]
		left := resource.MustParse(tc.capacity)
		left.Sub(memory.Quantity)
		left.Sub(resource.MustParse(tc.hugePages))
		if memory.Quantity.Cmp(sum) != 0 || left.Cmp(resource.MustParse(tc.allocatable)) != 0 || memory.Arithmetic() != tc.arithmetic {
			t.Errorf("%s: %s; reservedMemory %v, allocatable %v", tc.name, memory.Arithmetic(), &sum, &left)
		}
		cpus := c.ReservedSystemCPUs.String()
		if s := got["cpu"].Arithmetic(); s != "reservedSystemCPUs "+cpus+" (2) = 2" {
			t.Errorf("%s: %s", tc.name, s)
		}
		storage := got["ephemeral-storage"]
		if storage.Quantity.Value() != 2572599296-2546873304 {
			t.Errorf("%s: %s", tc.name, storage.Arithmetic())
		}
		if len(got) != 3 {
			t.Errorf("%s: %v", tc.name, got)
		}
	}
}

func TestDefaults(t *testing.T) {
	want := Config{
		CPUManagerPolicy: "none", CPUManagerReconcilePeriod: 10 * time.Second, MemoryManagerPolicy: "None",
		TopologyManagerPolicy: "none", TopologyManagerScope: "container", EnforceNodeAllocatable: []string{"pods"},
		EvictionHard: map[string]string{
			"memory.available": "100Mi", "nodefs.available": "10%", "nodefs.inodesFree": "5%", "imagefs.available": "15%", "imagefs.inodesFree": "5%",
		},
		EvictionPressureTransitionPeriod: 5 * time.Minute, CgroupDriver: "cgroupfs", CgroupsPerQOS: true, CPUCFSQuota: true,
		CPUCFSQuotaPeriod: 100 * time.Millisecond, FailSwapOn: true, PodPidsLimit: -1, MaxPods: 110,
	}
	for _, text := range []string{
		"{}", `{"kubeletconfig":{}}`,
		`{"cpuManagerPolicy":null,"evictionHard":null,"cgroupsPerQOS":null,"podPidsLimit":null,"enforceNodeAllocatable":null,"featureGates":null}`,
		`{"cpuManagerPolicy":"","maxPods":0,"podPidsLimit":-7,"cpuManagerReconcilePeriod":"0s"}`,
	} {
		got, err := Decode([]byte(text))
		if d := cmp.Diff(want, got, cmpopts.IgnoreUnexported(Config{}), cmpopts.EquateEmpty()); d != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", text, err, d)
		}
		if got.IsSet("evictionHard") || got.IsSet("cpuCFSQuota") {
			t.Errorf("%s: set", text)
		}
	}

	// What is written as its own default, or as the empty value, is not absent.
	got, err := Decode([]byte(`{"cgroupsPerQOS":false,"cpuCFSQuota":true,"failSwapOn":false,"enforceNodeAllocatable":[],"evictionHard":{},"podPidsLimit":0,"memoryThrottlingFactor":0.5,"failCgroupV1":false,"kubeletconfigs":1}`))
	if err != nil || got.CgroupsPerQOS || !got.CPUCFSQuota || got.FailSwapOn || len(got.EnforceNodeAllocatable) != 0 || len(got.EvictionHard) != 0 || got.PodPidsLimit != 0 {
		t.Errorf("%+v, %v", got, err)
	}
	for _, name := range []string{"cgroupsPerQOS", "cpuCFSQuota", "evictionHard"} {
		if !got.IsSet(name) {
			t.Errorf("%s is not set", name)
		}
	}
	if f, ok := got.ThrottlingFactor(37); f != 0.5 || !ok || got.FailsOnCgroupV1(37) {
		t.Errorf("written values lost: %v, %v", f, ok)
	}
	if f, ok := (Config{}).ThrottlingFactor(36); f != 0.9 || !ok {
		t.Errorf("1.36: %v, %v", f, ok)
	}
	if _, ok := (Config{}).ThrottlingFactor(37); ok || !(Config{}).FailsOnCgroupV1(35) || (Config{}).FailsOnCgroupV1(34) {
		t.Error("defaults by version are wrong")
	}
}

// In a served configuration every default is written out, so that an absent map or list was configured empty.
func TestServed(t *testing.T) {
	got, err := Decode([]byte(`{"kubeletconfig":{"containerRuntimeEndpoint":"unix:///x"}}`))
	if err != nil || !got.Served || got.EvictionHard != nil || got.EnforceNodeAllocatable != nil {
		t.Errorf("%+v, %v", got, err)
	}
	if got, _ = Decode([]byte(`{"containerRuntimeEndpoint":"unix:///x"}`)); got.Served || got.EvictionHard == nil {
		t.Errorf("bare: %+v", got)
	}
}

func TestMergeDefaultEvictionSettings(t *testing.T) {
	got, err := Decode([]byte(`{"evictionHard":{"memory.available":"1Gi","pid.available":"5%"},"mergeDefaultEvictionSettings":true}`))
	want := map[string]string{
		"memory.available": "1Gi", "pid.available": "5%", "nodefs.available": "10%", "nodefs.inodesFree": "5%", "imagefs.available": "15%", "imagefs.inodesFree": "5%",
	}
	if d := cmp.Diff(want, got.EvictionHard); d != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, d)
	}
	if got, _ = Decode([]byte(`{"evictionHard":{"memory.available":"1Gi"}}`)); len(got.EvictionHard) != 1 {
		t.Errorf("%v", got.EvictionHard)
	}
}

func TestDecodeWrong(t *testing.T) {
	for _, tc := range []struct{ text, want string }{
		{"[]", "kubelet configuration: not a JSON object"},
		{`{"kubeletconfig":7}`, "kubelet configuration: kubeletconfig: not a JSON object"},
		{`{"maxPods":"many"}`, `maxPods: unexpected value "\"many\""`},
		{`{"podPidsLimit":99999999999999999999}`, `podPidsLimit: unexpected value "99999999999999999999"`},
		{`{"cpuManagerReconcilePeriod":5}`, `cpuManagerReconcilePeriod: not a duration: "5"`},
		{`{"cpuCFSQuotaPeriod":"5 parsecs"}`, `cpuCFSQuotaPeriod: not a duration: "\"5 parsecs\""`},
		{`{"reservedSystemCPUs":"0-"}`, `reservedSystemCPUs: cpu list "0-": a number is missing`},
		{`{"reservedSystemCPUs":[0]}`, `reservedSystemCPUs: unexpected value "[0]"`},
		{`{"featureGates":{"MemoryQoS":"true"}}`, `featureGates.MemoryQoS: unexpected value "\"true\""`},
		{`{"evictionHard":{"memory.available":5,"nodefs.available":"5%"}}`, `evictionHard.memory.available: unexpected value "5"`},
		{`{"kubeReserved":["cpu"]}`, "kubeReserved: not a JSON object"},
		{`{"kubeReserved":{"a\u001b[2Jb":1}}`, `"kubeReserved.a\x1b[2Jb": unexpected value "1"`},
		{`{"reservedMemory":{"numaNode":0}}`, `reservedMemory: not a list`},
		{`{"reservedMemory":[{"numaNode":"0"}]}`, `reservedMemory[0].numaNode: unexpected value "\"0\""`},
		{`{"reservedMemory":[{"numaNode":0,"limits":{"memory":"1e999999999"}}]}`, `reservedMemory[0].limits.memory: quantity out of range: "1e999999999"`},
		{`{"reservedMemory":[{"numaNode":0,"limits":{"memory":"lots"}}]}`, `reservedMemory[0].limits.memory: not a quantity: "lots"`},
		{`{"maxPods":5,"maxPods":6}`, "maxPods: stands twice, the last one counts"},
		{`{"crashLoopBackOff":{"maxContainerRestartPeriod":"x"}}`, "crashLoopBackOff.maxContainerRestartPeriod: not a duration"},
	} {
		got, err := Decode([]byte(tc.text))
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("Decode(%s): %v; want %s", tc.text, err, tc.want)
		}
		if got.ReservedMemory != nil || got.MaxContainerRestartPeriod != nil {
			t.Errorf("Decode(%s): %+v", tc.text, got)
		}
	}
	for _, text := range []string{"", " \n"} {
		if _, err := Decode([]byte(text)); !errors.Is(err, ErrEmpty) {
			t.Errorf("Decode(%q): %v", text, err)
		}
	}

	// The rest is read.
	got, err := Decode([]byte(`{"maxPods":"many","cpuManagerPolicy":"static","evictionHard":{"memory.available":5,"nodefs.available":"5%"},"reservedMemory":[{"numaNode":"0"},{"numaNode":1,"limits":{"memory":5}}]}`))
	if err == nil || got.MaxPods != 110 || got.CPUManagerPolicy != "static" || len(got.EvictionHard) != 1 || len(got.ReservedMemory) != 1 {
		t.Errorf("%+v, %v", got, err)
	}
	many := strings.Repeat(`"maxPods":"x",`, 1000)
	if _, err = Decode([]byte(`{` + many + `"podsPerCore":"x"}`)); err == nil || len(err.Error()) > 2000 || !strings.HasSuffix(err.Error(), "and 1984 more") {
		t.Errorf("%v", err)
	}
}

func TestReservation(t *testing.T) {
	capacity := corev1.ResourceList{
		"cpu": resource.MustParse("64"), "memory": resource.MustParse("98041856Ki"), "ephemeral-storage": resource.MustParse("100Gi"), "pid": resource.MustParse("32768"),
	}
	for _, tc := range []struct {
		name, text string
		want       map[corev1.ResourceName]string
	}{
		{"defaults", `{}`, map[corev1.ResourceName]string{
			"memory": "evictionHard[memory.available] 100Mi = 100Mi", "ephemeral-storage": "evictionHard[nodefs.available] 10% (10737418400) = 10737418400"}},
		{"sum", `{"systemReserved":{"cpu":"500m","memory":"1Gi","pid":"1000"},"kubeReserved":{"cpu":"1","memory":"10240Mi"},"evictionHard":{"memory.available":"100Mi"}}`,
			map[corev1.ResourceName]string{
				"cpu":    "systemReserved 500m + kubeReserved 1 = 1500m",
				"memory": "systemReserved 1Gi + kubeReserved 10240Mi + evictionHard[memory.available] 100Mi = 11364Mi",
				"pid":    "systemReserved 1000 = 1k"}},
		// 15% is 0.1500000059604645 as a 32 bit float.
		{"percentage", `{"evictionHard":{"memory.available":"15%"}}`, map[corev1.ResourceName]string{
			"memory": "evictionHard[memory.available] 15% (15059229680) = 15059229680"}},
		{"switched off", `{"evictionHard":{"memory.available":"0%","nodefs.available":"100%","imagefs.available":"15%"},"systemReserved":{"cpu":"0"}}`, nil},
		{"reservedSystemCPUs", `{"reservedSystemCPUs":"0-1,32-33","systemReserved":{"cpu":"1"},"kubeReserved":{"cpu":"500m","ephemeral-storage":"1Gi"},"evictionHard":{}}`,
			map[corev1.ResourceName]string{
				"cpu": "reservedSystemCPUs 0-1,32-33 (4) = 4", "ephemeral-storage": "kubeReserved 1Gi = 1Gi"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c, err := Decode([]byte(tc.text))
			if err != nil {
				t.Fatal(err)
			}
			reserved, err := c.Reservation(capacity)
			got := map[corev1.ResourceName]string{}
			for name, r := range reserved {
				got[name] = r.Arithmetic()
			}
			if d := cmp.Diff(tc.want, got, cmpopts.EquateEmpty()); d != "" || err != nil {
				t.Errorf("%v (-want +got):\n%s", err, d)
			}
			if tc.name == "reservedSystemCPUs" {
				replaced := fmt.Sprint(reserved["cpu"].Replaced)
				if replaced != "[systemReserved 1 kubeReserved 500m]" {
					t.Errorf("replaced %s", replaced)
				}
			}
		})
	}
	c, _ := Decode([]byte(`{"kubeReserved":{"cpu":"1"}}`))
	if got, err := c.Reservation(nil); len(got) != 0 || err != nil {
		t.Errorf("without capacity: %v, %v", got, err)
	}
}

func TestReservationWrong(t *testing.T) {
	for _, tc := range []struct{ text, want string }{
		{`{"kubeReserved":{"cpu":"lots","memory":"1Gi"}}`, `kubeReserved["cpu"]: not a quantity: "lots"`},
		{`{"kubeReserved":{"cpu":"-1"}}`, `kubeReserved["cpu"]: negative: "-1"`},
		{`{"systemReserved":{"hugepages-2Mi":"1Gi"}}`, `systemReserved["hugepages-2Mi"]: the kubelet cannot reserve this resource`},
		{`{"systemReserved":{"memory":"1e1234567890"}}`, `systemReserved["memory"]: quantity out of range`},
		{`{"evictionHard":{"memory.available":"101%"}}`, `evictionHard["memory.available"]: not a percentage from 0% to 100%: "101%"`},
		{`{"evictionHard":{"memory.available":"-1%"}}`, `not a percentage`},
		{`{"evictionHard":{"memory.available":"NaN%"}}`, `not a percentage`},
		{`{"evictionHard":{"memory.available":"%"}}`, `not a percentage`},
		{`{"evictionHard":{"memory.available":"0"}}`, `not above zero: "0"`},
		{`{"evictionHard":{"memory.free":"1Gi"}}`, `evictionHard["memory.free"]: unsupported eviction signal`},
	} {
		c, err := Decode([]byte(tc.text))
		if err != nil {
			t.Fatal(err)
		}
		got, err := c.Reservation(corev1.ResourceList{"cpu": resource.MustParse("4"), "memory": resource.MustParse("8Gi")})
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, %v; want %s", tc.text, got, err, tc.want)
		}
	}
	huge := corev1.ResourceList{"memory": *resource.NewQuantity(1<<63-1, resource.BinarySI)}
	c, _ := Decode([]byte(`{"evictionHard":{"memory.available":"100.0%"}}`))
	if got, err := c.Reservation(huge); err != nil || got["memory"].Terms[0].Quantity.Value() != 1<<63-1 {
		t.Errorf("%v, %v", got, err)
	}
}

func TestGate(t *testing.T) {
	for _, tc := range []struct {
		text, name string
		minor      int
		on, known  bool
	}{
		{`{}`, "MemoryQoS", 36, false, true},
		{`{}`, "MemoryQoS", 37, true, true},
		{`{}`, "MemoryQoS", 99, true, true},
		{`{}`, "MemoryQoS", 12, false, true},
		{`{"featureGates":{"MemoryQoS":false}}`, "MemoryQoS", 37, false, true},
		{`{"featureGates":{"MemoryQoS":true}}`, "MemoryQoS", 34, true, true},
		{`{"featureGates":{"InPlacePodVerticalScaling":false}}`, "InPlacePodVerticalScaling", 34, false, true},
		{`{"featureGates":{"InPlacePodVerticalScaling":false}}`, "InPlacePodVerticalScaling", 35, true, true},
		{`{"featureGates":{"DisableCPUQuotaWithExclusiveCPUs":false}}`, "DisableCPUQuotaWithExclusiveCPUs", 36, false, true},
		{`{"featureGates":{"DisableCPUQuotaWithExclusiveCPUs":false}}`, "DisableCPUQuotaWithExclusiveCPUs", 37, true, true},
		{`{}`, "PodLevelResourceManagers", 35, false, false},
		{`{}`, "PodLevelResourceManagers", 36, false, true},
		{`{"featureGates":{"PodLevelResourceManagers":true}}`, "PodLevelResourceManagers", 35, true, false},
		{`{"featureGates":{"AllAlpha":true}}`, "PodLevelResourceManagers", 36, true, true},
		{`{"featureGates":{"AllAlpha":true}}`, "PodLevelResourceManagers", 37, false, true},
		{`{"featureGates":{"AllBeta":true}}`, "PodLevelResourceManagers", 37, true, true},
		{`{"featureGates":{"AllBeta":false}}`, "PodLevelResources", 37, false, true},
		{`{"featureGates":{"AllBeta":false,"PodLevelResources":true}}`, "PodLevelResources", 37, true, true},
		{`{"featureGates":{"AllBeta":false}}`, "NodeSwap", 37, true, true},
		{`{}`, "MemoryManager", 36, false, false},
		{`{}`, "NoSuchGate", 37, false, false},
		{`{"featureGates":{"NoSuchGate":true}}`, "NoSuchGate", 37, true, false},
	} {
		c, err := Decode([]byte(tc.text))
		if err != nil {
			t.Fatal(err)
		}
		if on, known := c.Gate(tc.name, tc.minor); on != tc.on || known != tc.known {
			t.Errorf("%s, %s in 1.%d: %v, %v; want %v, %v", tc.text, tc.name, tc.minor, on, known, tc.on, tc.known)
		}
	}
}

func FuzzDecode(f *testing.F) {
	for _, name := range []string{"numa4", "smt2"} {
		data, err := os.ReadFile("testdata/" + name + ".json")
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte(`{"evictionHard":{"memory.available":"5%"},"kubeReserved":{"cpu":"1e3"},"reservedSystemCPUs":"0-3","reservedMemory":[{"numaNode":0,"limits":{"memory":"1Gi"}}]}`))
	capacity := corev1.ResourceList{"cpu": resource.MustParse("4"), "memory": resource.MustParse("8Gi"), "ephemeral-storage": resource.MustParse("100Gi")}
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := Decode(data)
		if err != nil && len(err.Error()) > 8000 {
			t.Errorf("error of %d bytes", len(err.Error()))
		}
		reserved, _ := c.Reservation(capacity)
		for _, r := range reserved {
			_ = r.Arithmetic()
		}
		for name := range c.FeatureGates {
			c.Gate(name, 37)
		}
	})
}
