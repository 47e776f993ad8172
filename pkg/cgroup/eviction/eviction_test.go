package eviction

import (
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"
)

func TestParseMessage(t *testing.T) {
	for text, want := range map[string]Message{
		"The node was low on resource: memory. Threshold quantity: 600Mi, available: 549156Ki. ": {
			Kind: NodeLow, Resource: "memory", Threshold: "600Mi", Available: "549156Ki"},
		"The node was low on resource: memory. Threshold quantity: 100Mi, available: 93Mi. Container app was using 500Mi, request is 100Mi, has larger consumption of memory. Container log-1 was using 7Mi, request is 0, has larger consumption of memory. ": {
			Kind: NodeLow, Resource: "memory", Threshold: "100Mi", Available: "93Mi",
			Consumers: []Consumer{{Name: "app", Usage: "500Mi", Request: "100Mi"}, {Name: "log-1", Usage: "7Mi", Request: "0"}}},
		"The node was low on resource: memory. Threshold quantity: 1Gi, available: 1000Mi. Pod web-0.x was using 2Gi, request is 1.5Gi, has larger consumption of memory. ": {
			Kind: NodeLow, Resource: "memory", Threshold: "1Gi", Available: "1000Mi", Consumers: []Consumer{{Pod: true, Name: "web-0.x", Usage: "2Gi", Request: "1.5Gi"}}},
		"The node was low on resource: ephemeral-storage. Threshold quantity: 2139512454, available: 2042964Ki. ": {
			Kind: NodeLow, Resource: "ephemeral-storage", Threshold: "2139512454", Available: "2042964Ki"},
		"The node was low on resource: ephemeral-storage. Container app was using 17Gi, which exceeds its request of 0. ": {
			Kind: NodeLow, Resource: "ephemeral-storage", Consumers: []Consumer{{Name: "app", Usage: "17Gi", Request: "0"}}},
		"The node was low on resource: inodes. ":                                              {Kind: NodeLow, Resource: "inodes"},
		"The node was low on resource: pids. Threshold quantity: 3276, available: 3000. ":     {Kind: NodeLow, Resource: "pids", Threshold: "3276", Available: "3000"},
		"The node had condition: [DiskPressure]. ":                                            {Kind: NodeCondition, Conditions: "DiskPressure"},
		"Pod was rejected: The node had condition: [MemoryPressure DiskPressure]. ":           {Kind: NodeCondition, Conditions: "MemoryPressure DiskPressure"},
		`Usage of EmptyDir volume "scratch" exceeds the limit "1Gi". `:                        {Kind: EmptyDirLimit, Volume: "scratch", Limit: "1Gi"},
		"Pod ephemeral local storage usage exceeds the total limit of containers 1536Mi. ":    {Kind: PodStorageLimit, Limit: "1536Mi"},
		"pod ephemeral local storage usage exceeds the total limit of containers {{2 0} {<n>": {},
		`Container app exceeded its local ephemeral storage limit "2Gi". `:                    {Kind: ContainerStorageLimit, Container: "app", Limit: "2Gi"},
		"Evicted pod: Underutilized":                                                          {},
		"Cancelling deletion of Pod mill/oom":                                                 {},
		"":                                                                                    {},
	} {
		if diff := cmp.Diff(want, ParseMessage(text)); diff != "" {
			t.Errorf("%q (-want +got)\n%s", text, diff)
		}
	}
}

func FuzzParseMessage(f *testing.F) {
	f.Add("The node was low on resource: memory. Threshold quantity: 600Mi, available: 549156Ki. Container app was using 500Mi, request is 100Mi, has larger consumption of memory. ")
	f.Add(`Usage of EmptyDir volume "scratch" exceeds the limit "1Gi". `)
	f.Fuzz(func(t *testing.T, text string) {
		m := ParseMessage(text)
		if m.Kind == NodeLow && m.Resource == "" || len(m.Consumers) > maxConsumers {
			t.Errorf("%q: %+v", text, m)
		}
	})
}

func candidate(name string, priority int32, usage, request int64) Candidate {
	return Candidate{Pod: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PodSpec{Priority: &priority}}, Known: true, Usage: usage, Request: request}
}

func names(cs []Candidate) []string {
	var out []string
	for _, c := range cs {
		out = append(out, c.Pod.Name)
	}
	return out
}

func TestRank(t *testing.T) {
	gone := candidate("no-stats", 1000, 0, 1<<40)
	gone.Known = false
	pods := []Candidate{
		candidate("below-low", -5, 10, 100),
		candidate("above-high", 100, 500, 100),
		candidate("above-less", 0, 110, 100),
		candidate("above-more", 0, 900, 100),
		candidate("at", 0, 100, 100),
		gone,
	}
	want := []string{"no-stats", "above-more", "above-less", "above-high", "below-low", "at"}
	if diff := cmp.Diff(want, names(Rank(pods, false))); diff != "" {
		t.Errorf("memory (-want +got)\n%s", diff)
	}
	// Requests do not count for processes, and priority comes first.
	want = []string{"below-low", "above-more", "above-less", "at", "above-high", "no-stats"}
	if diff := cmp.Diff(want, names(Rank(pods, true))); diff != "" {
		t.Errorf("processes (-want +got)\n%s", diff)
	}
	other := gone
	other.Pod = candidate("other", 1000, 0, 0).Pod
	other.Request = 5
	if !Tied(gone, other, false) || Tied(pods[2], pods[3], false) {
		t.Error("ties are wrong")
	}
}

// The order is a strict weak one, whatever the figures.
func TestRankProperties(t *testing.T) {
	draw := rapid.Custom(func(t *rapid.T) Candidate {
		c := candidate("p", rapid.Int32Range(-2, 2).Draw(t, "priority"), rapid.Int64Range(0, 5).Draw(t, "usage"), rapid.Int64Range(0, 5).Draw(t, "request"))
		c.Known = rapid.Bool().Draw(t, "known")
		return c
	})
	rapid.Check(t, func(t *rapid.T) {
		processes := rapid.Bool().Draw(t, "processes")
		a, b, c := draw.Draw(t, "a"), draw.Draw(t, "b"), draw.Draw(t, "c")
		if compare(a, b, processes) != -compare(b, a, processes) {
			t.Error("not antisymmetric")
		}
		if compare(a, b, processes) <= 0 && compare(b, c, processes) <= 0 && compare(a, c, processes) > 0 {
			t.Error("not transitive")
		}
	})
}

func TestCritical(t *testing.T) {
	low, high := int32(1_999_999_999), int32(2_000_000_000)
	for name, tc := range map[string]struct {
		pod  corev1.Pod
		want bool
	}{
		"none":   {corev1.Pod{}, false},
		"below":  {corev1.Pod{Spec: corev1.PodSpec{Priority: &low}}, false},
		"system": {corev1.Pod{Spec: corev1.PodSpec{Priority: &high}}, true},
		"mirror": {corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{corev1.MirrorPodAnnotationKey: "x"}}}, true},
		"static": {corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"kubernetes.io/config.source": "file"}}}, true},
		"api":    {corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"kubernetes.io/config.source": "api"}}}, false},
	} {
		if got := Critical(&tc.pod); got != tc.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestRequest(t *testing.T) {
	memory := func(s string) corev1.ResourceList {
		return corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(s)}
	}
	always := corev1.ContainerRestartPolicyAlways
	pod := corev1.Pod{Spec: corev1.PodSpec{
		InitContainers: []corev1.Container{
			{Resources: corev1.ResourceRequirements{Requests: memory("10")}, RestartPolicy: &always},
			{Resources: corev1.ResourceRequirements{Requests: memory("500")}},
		},
		Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: memory("100")}}, {}},
		Overhead:   memory("7"),
	}}
	if got := Request(&pod, corev1.ResourceMemory, true); got != 517 {
		t.Errorf("init container's peak: %d", got)
	}
	pod.Spec.Resources = &corev1.ResourceRequirements{Requests: memory("200")}
	if got := Request(&pod, corev1.ResourceMemory, true); got != 207 {
		t.Errorf("pod-level: %d", got)
	}
	if got := Request(&pod, corev1.ResourceMemory, false); got != 517 {
		t.Errorf("gate off: %d", got)
	}
	if got := Request(&corev1.Pod{Spec: corev1.PodSpec{Overhead: memory("7")}}, corev1.ResourceMemory, true); got != 0 {
		t.Errorf("overhead alone does not count: %d", got)
	}
}

// The recorded root's memory.stat and the kubelet's own figure of the same node,
// minutes apart.
func TestMemoryAvailable(t *testing.T) {
	const memTotal = 6084868 * 1024
	got := MemoryAvailable(memTotal, 832933888, 455434240, 171724800)
	if got != 6230904832-1116643328 {
		t.Errorf("%d", got)
	}
	if kubelet := int64(5128286208); got < kubelet-64<<20 || got > kubelet+64<<20 {
		t.Errorf("%d, the kubelet's is %d", got, kubelet)
	}
	if got := MemoryAvailable(100, 1<<63, 1<<63, 0); got != 0 {
		t.Errorf("overflow: %d", got)
	}
	if got := MemoryAvailable(100, 10, 5, 50); got != 100 {
		t.Errorf("inactive above all: %d", got)
	}
}

func TestSummary(t *testing.T) {
	data, err := os.ReadFile("testdata/summary.json")
	if err != nil {
		t.Fatal(err)
	}
	s, err := ParseSummary(data)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]int64{}
	var order []string
	for _, o := range s.Observations() {
		got[o.Signal] = o.Available
		order = append(order, o.Signal)
		if o.Capacity < o.Available {
			t.Errorf("%+v", o)
		}
	}
	want := map[string]int64{
		"memory.available": 5128286208, "allocatableMemory.available": 5225508864, "nodefs.available": 1753206784, "nodefs.inodesFree": 150719,
		"imagefs.available": 1753206784, "imagefs.inodesFree": 150719, "containerfs.available": 1753206784, "containerfs.inodesFree": 150719,
		"pid.available": 47466 - 583,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if order[0] != "memory.available" {
		t.Errorf("order %v", order)
	}
	if dedicated, known := s.DedicatedImageFs(); dedicated || !known {
		t.Errorf("imagefs %v %v", dedicated, known)
	}
	pod, ok := s.Pod("2f792ede-09a3-4cdf-9c2b-6e5bdeb7b023")
	if !ok {
		t.Fatal("no pod")
	}
	for signal, want := range map[string]int64{"memory.available": 7684096, "nodefs.available": 28672 + 4096, "imagefs.inodesFree": 10 + 1, "pid.available": 1} {
		if got := pod.Usage(signal, nil, false); got != want {
			t.Errorf("%s: %d, want %d", signal, got, want)
		}
	}
	if got := pod.Usage("nodefs.available", []string{"kube-api-access-qq857"}, true); got != 4096+12288 {
		t.Errorf("dedicated nodefs: %d", got)
	}
	if got := pod.Usage("imagefs.available", nil, true); got != 28672 {
		t.Errorf("dedicated imagefs: %d", got)
	}
	if _, ok := s.Pod(""); ok {
		t.Error("a pod without UID")
	}
}

func FuzzParseSummary(f *testing.F) {
	data, err := os.ReadFile("testdata/summary.json")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add([]byte(`{"node":{"rlimit":{"maxpid":-1,"curproc":9223372036854775807},"memory":{"availableBytes":18446744073709551615,"workingSetBytes":1}},"pods":[{"containers":[{"rootfs":{"usedBytes":18446744073709551615}}]}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := ParseSummary(data)
		if err != nil {
			return
		}
		s.Observations()
		s.DedicatedImageFs()
		for _, p := range s.Pods {
			if p.Usage("nodefs.available", []string{"a"}, false) < 0 {
				t.Error("negative use")
			}
		}
	})
}
