package alloc

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	kubectlqos "k8s.io/kubectl/pkg/util/qos"
	"pgregory.net/rapid"

	"github.com/noderes/kubectl-noderes/pkg/alloc/kubeletconfig"
)

func rules(t testing.TB, version string) Rules {
	t.Helper()
	r, _, err := RulesFor(version)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// resources reads "cpu=2 memory=1Gi / cpu=2 memory=1Gi": requests, then limits. A "=" at the end stands for the same limits.
func resources(text string) corev1.ResourceRequirements {
	if same, ok := strings.CutSuffix(text, " ="); ok {
		return corev1.ResourceRequirements{Requests: list(same), Limits: list(same)}
	}
	requests, limits, _ := strings.Cut(text, " / ")
	return corev1.ResourceRequirements{Requests: list(requests), Limits: list(limits)}
}

func list(text string) corev1.ResourceList {
	var l corev1.ResourceList
	for _, part := range strings.Fields(text) {
		name, value, _ := strings.Cut(part, "=")
		if l == nil {
			l = corev1.ResourceList{}
		}
		l[corev1.ResourceName(name)] = resource.MustParse(value)
	}
	return l
}

// pod makes a pod of app containers named a, b, c ...
func pod(containers ...string) *corev1.Pod {
	p := &corev1.Pod{}
	for i, text := range containers {
		p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: string(rune('a' + i)), Resources: resources(text)})
	}
	return p
}

func withPodLevel(p *corev1.Pod, text string) *corev1.Pod {
	rr := resources(text)
	p.Spec.Resources = &rr
	return p
}

func withInit(p *corev1.Pod, name, text string, sidecar bool) *corev1.Pod {
	c := corev1.Container{Name: name, Resources: resources(text)}
	if sidecar {
		always := corev1.ContainerRestartPolicyAlways
		c.RestartPolicy = &always
	}
	p.Spec.InitContainers = append(p.Spec.InitContainers, c)
	return p
}

func withClass(p *corev1.Pod, class corev1.PodQOSClass) *corev1.Pod {
	p.Status.QOSClass = class
	return p
}

func withAllocated(p *corev1.Pod, name, text string, init bool) *corev1.Pod {
	s := corev1.ContainerStatus{Name: name, AllocatedResources: list(text)}
	if init {
		p.Status.InitContainerStatuses = append(p.Status.InitContainerStatuses, s)
	} else {
		p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, s)
	}
	return p
}

func TestGuaranteedCPUs(t *testing.T) {
	const one = "cpu=2 memory=1Gi ="
	ephemeral := pod(one)
	ephemeral.Spec.EphemeralContainers = []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "debug"}}}
	for _, tc := range []struct {
		name      string
		pod       *corev1.Pod
		container string
		n         int64
		why       NoExclusive
	}{
		{"whole", pod(one), "a", 2, ""},
		{"whole in millis", pod("cpu=3000m memory=1Gi ="), "a", 3, ""},
		{"fractional", pod("cpu=1500m memory=1Gi ="), "a", 0, Fractional},
		{"less than a milli", pod("cpu=2000000001n memory=1Gi ="), "a", 0, Fractional},
		{"one of two", pod("cpu=500m memory=1Gi =", one), "b", 2, ""},
		{"burstable", pod("cpu=2 memory=1Gi / cpu=4 memory=1Gi"), "a", 0, NotGuaranteed},
		{"best effort", pod(""), "a", 0, NotGuaranteed},
		{"class of the status wins", withClass(pod("cpu=2 memory=1Gi / cpu=4 memory=1Gi"), "Guaranteed"), "a", 2, ""},
		{"class of the status wins downwards", withClass(pod(one), "Burstable"), "a", 0, NotGuaranteed},
		{"no request", withClass(pod("memory=1Gi ="), "Guaranteed"), "a", 0, NoRequest},
		{"request of zero", withClass(pod("cpu=0 memory=1Gi ="), "Guaranteed"), "a", 0, NoRequest},
		{"negative", withClass(pod("cpu=-2 memory=1Gi ="), "Guaranteed"), "a", 0, NoRequest},
		{"beyond int64 in thousandths", pod("cpu=1E memory=1Gi ="), "a", 0, Uncountable},
		{"far beyond int64", pod("cpu=1e30 memory=1Gi ="), "a", 0, Uncountable},
		{"immense", withClass(pod("cpu=1e999999999 memory=1Gi ="), "Guaranteed"), "a", 0, Uncountable},
		{"the most of int64", pod("cpu=9223372036854775 memory=1Gi ="), "a", 9223372036854775, ""},
		{"init", withInit(pod(one), "i", "cpu=4 memory=1Gi =", false), "i", 4, ""},
		{"sidecar", withInit(pod(one), "s", "cpu=1 memory=1Gi =", true), "s", 1, ""},
		{"sidecar without limits", withInit(pod(one), "s", "cpu=100m memory=1Mi", true), "a", 0, NotGuaranteed},
		{"ephemeral", ephemeral, "debug", 0, Ephemeral},
		{"unknown", ephemeral, "x", 0, NoSuchContainer},
		{"allocated before a resize", withAllocated(pod("cpu=4 memory=1Gi ="), "a", "cpu=2 memory=1Gi", false), "a", 2, ""},
		{"allocated fraction", withAllocated(pod("cpu=4 memory=1Gi ="), "a", "cpu=1500m", false), "a", 0, Fractional},
		{"status of another", withAllocated(pod("cpu=4 memory=1Gi ="), "b", "cpu=2", false), "a", 4, ""},
		{"status without cpu", withAllocated(pod("cpu=4 memory=1Gi ="), "a", "memory=1Gi", false), "a", 4, ""},
		{"sidecar's allocated", withAllocated(withInit(pod(one), "s", "cpu=3 memory=1Gi =", true), "s", "cpu=1", true), "s", 1, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for _, version := range []string{"v1.34.4", "v1.35.4", "v1.36.3", "v1.37.2"} {
				if n, why := GuaranteedCPUs(tc.pod, tc.container, rules(t, version)); n != tc.n || why != tc.why {
					t.Errorf("%s: %d, %s; want %d, %s", version, n, why, tc.n, tc.why)
				}
			}
		})
	}

	ending := withAllocated(withInit(pod(one), "i", "cpu=3 memory=1Gi =", false), "i", "cpu=1", true)
	for version, want := range map[string]int64{"v1.34.4": 3, "v1.35.4": 1, "v1.37.2": 1} {
		if n, _ := GuaranteedCPUs(ending, "i", rules(t, version)); n != want {
			t.Errorf("%s: %d for an init container; want %d", version, n, want)
		}
	}

	off := Rules{Minor: 34}
	if n, _ := GuaranteedCPUs(withAllocated(pod("cpu=4 memory=1Gi ="), "a", "cpu=2", false), "a", off); n != 4 {
		t.Errorf("without in-place resize: %d", n)
	}
}

func TestGuaranteedCPUsWithPodLevelResources(t *testing.T) {
	gates := func(version, gates string) Rules {
		c, err := kubeletconfig.Decode([]byte(`{"featureGates":{` + gates + `}}`))
		if err != nil {
			t.Fatal(err)
		}
		return rules(t, version).With(c)
	}
	const managers, noPLR = `"PodLevelResourceManagers":true`, `"PodLevelResources":false`
	both := func() *corev1.Pod { // container b has no limits of its own
		return withPodLevel(pod("cpu=2 memory=1Gi =", "cpu=1", "cpu=500m memory=1Gi =", "cpu=2 memory=1Gi / cpu=2 memory=2Gi"), "cpu=8 memory=8Gi =")
	}
	for _, tc := range []struct {
		name, container string
		r               Rules
		n               int64
		why             NoExclusive
	}{
		{"1.34", "a", gates("v1.34.4", ""), 0, PodLevelResources},
		{"1.35", "a", gates("v1.35.4", ""), 0, PodLevelResources},
		{"1.36", "a", gates("v1.36.3", ""), 0, PodLevelResources},
		{"1.37", "a", gates("v1.37.2", ""), 0, PodLevelResources},
		{"1.37 fractional comes first", "c", gates("v1.37.2", ""), 0, Fractional},
		{"1.35 has no managers", "a", gates("v1.35.4", managers), 0, PodLevelResources},
		{"1.36 with managers", "a", gates("v1.36.3", managers), 2, ""},
		{"1.37 with managers", "a", gates("v1.37.2", managers), 2, ""},
		{"own limits missing", "b", gates("v1.37.2", managers), 0, ContainerNotGuaranteed},
		{"own fraction", "c", gates("v1.37.2", managers), 0, Fractional},
		{"own memory unequal", "d", gates("v1.37.2", managers), 0, ContainerNotGuaranteed},
	} {
		if n, why := GuaranteedCPUs(both(), tc.container, tc.r); n != tc.n || why != tc.why {
			t.Errorf("%s, container %s: %d, %s; want %d, %s", tc.name, tc.container, n, why, tc.n, tc.why)
		}
	}

	// With PodLevelResources off the containers decide about the class; 1.34 and 1.35 then pin them.
	plain := withPodLevel(pod("cpu=2 memory=1Gi ="), "cpu=8 memory=8Gi =")
	for version, want := range map[string]NoExclusive{"v1.34.4": "", "v1.35.4": "", "v1.36.3": PodLevelResources, "v1.37.2": PodLevelResources} {
		if _, why := GuaranteedCPUs(plain, "a", gates(version, noPLR)); why != want {
			t.Errorf("%s with the gate off: %s; want %s", version, why, want)
		}
	}
	// Resources that pods cannot have are none.
	if n, why := GuaranteedCPUs(withPodLevel(pod("cpu=2 memory=1Gi ="), "example.com/x=1 ="), "a", gates("v1.37.2", "")); n != 2 {
		t.Errorf("foreign pod-level resource: %d, %s", n, why)
	}
}

func TestQOSClass(t *testing.T) {
	for _, tc := range []struct {
		name   string
		pod    *corev1.Pod
		v36, v corev1.PodQOSClass // 1.36 and 1.37
	}{
		{"none", pod("", ""), "BestEffort", "BestEffort"},
		{"no containers", &corev1.Pod{}, "BestEffort", "BestEffort"},
		{"zeros", pod("cpu=0 memory=0 ="), "BestEffort", "BestEffort"},
		{"all", pod("cpu=1 memory=1Gi =", "cpu=100m memory=1Mi ="), "Guaranteed", "Guaranteed"},
		{"equal in value", pod("cpu=1000m memory=1024Mi / cpu=1 memory=1Gi"), "Guaranteed", "Guaranteed"},
		{"one without", pod("cpu=1 memory=1Gi =", ""), "Burstable", "Burstable"},
		{"only cpu", pod("cpu=1 ="), "Burstable", "Burstable"},
		{"init container counts", withInit(pod("cpu=1 memory=1Gi ="), "i", "", false), "Burstable", "Burstable"},
		{"other resources do not count", pod("cpu=1 memory=1Gi example.com/x=2 / cpu=1 memory=1Gi"), "Guaranteed", "Guaranteed"},
		{"sums that agree by chance", pod("cpu=1 memory=1Gi / cpu=2 memory=1Gi", "cpu=2 memory=1Gi / cpu=1 memory=1Gi"), "Burstable", "Burstable"},
		{"pod level alone", withPodLevel(pod("cpu=1"), "cpu=1 memory=1Gi ="), "Guaranteed", "Guaranteed"},
		{"pod level wins", withPodLevel(pod("cpu=1 memory=1Gi ="), "cpu=2 memory=2Gi / cpu=3 memory=2Gi"), "Burstable", "Burstable"},
		{"pod level empty", withPodLevel(pod("cpu=1 memory=1Gi ="), ""), "BestEffort", "Guaranteed"},
		{"pod level huge pages only", withPodLevel(pod("cpu=1 memory=1Gi ="), "hugepages-2Mi=2Mi ="), "BestEffort", "BestEffort"},
	} {
		if got := QOSClass(tc.pod, rules(t, "v1.36.3")); got != tc.v36 {
			t.Errorf("%s in 1.36: %s, want %s", tc.name, got, tc.v36)
		}
		if got := QOSClass(tc.pod, rules(t, "v1.37.2")); got != tc.v {
			t.Errorf("%s in 1.37: %s, want %s", tc.name, got, tc.v)
		}
	}
	p := withPodLevel(pod("cpu=1 memory=1Gi ="), "cpu=2 memory=2Gi / cpu=3 memory=2Gi")
	if got := QOSClass(p, Rules{Minor: 37}); got != corev1.PodQOSGuaranteed {
		t.Errorf("pod level with the gate off: %s", got)
	}
}

func somePod() *rapid.Generator[*corev1.Pod] {
	amounts := func(name string, values ...string) *rapid.Generator[string] {
		return rapid.Map(rapid.SampledFrom(append(values, "")), func(v string) string {
			if v == "" {
				return ""
			}
			return " " + name + "=" + v
		})
	}
	container := rapid.Custom(func(t *rapid.T) string {
		return amounts("cpu", "0", "1", "1000m", "1500m").Draw(t, "cpu") + amounts("memory", "0", "1Gi").Draw(t, "memory") +
			rapid.SampledFrom([]string{"", " =", " / cpu=1 memory=1Gi"}).Draw(t, "limits")
	})
	return rapid.Custom(func(t *rapid.T) *corev1.Pod {
		p := pod(rapid.SliceOfN(container, 1, 3).Draw(t, "containers")...)
		for i, text := range rapid.SliceOfN(container, 0, 2).Draw(t, "init") {
			withInit(p, fmt.Sprint("i", i), text, i == 0)
		}
		if rapid.Bool().Draw(t, "pod level") {
			withPodLevel(p, container.Draw(t, "resources"))
		}
		return p
	})
}

func TestQOSClassAsKubectl(t *testing.T) {
	r := rules(t, "v1.37.2")
	rapid.Check(t, func(t *rapid.T) {
		p := somePod().Draw(t, "pod")
		got, want := QOSClass(p, r), kubectlqos.ComputePodQOS(p)
		if got != want {
			t.Fatalf("%s, kubectl says %s", got, want)
		}
		if offenders := QOSOffenders(p, r); (len(offenders) == 0) != (got == corev1.PodQOSGuaranteed) {
			t.Fatalf("%s with offenders %+v", got, offenders)
		}
		for _, c := range p.Spec.Containers {
			n, why := GuaranteedCPUs(p, c.Name, r)
			if (n > 0) != (why == "") || n > 0 && got != corev1.PodQOSGuaranteed {
				t.Fatalf("%s: %d, %s", c.Name, n, why)
			}
		}
	})
}

func TestQOSOffenders(t *testing.T) {
	r := rules(t, "v1.37.2")
	q := func(text string) *resource.Quantity {
		v := resource.MustParse(text)
		return &v
	}
	// The sidecar's requests without limits make a pod Burstable whose other containers would do.
	p := withInit(withInit(pod("cpu=2 memory=1Gi =", "cpu=1 memory=1Gi / cpu=2 memory=1Gi", " / cpu=1 memory=0"), "setup", "cpu=1 memory=1Gi =", false), "proxy", "cpu=100m memory=64Mi", true)
	want := []Offender{
		{"proxy", true, "cpu", q("100m"), nil, NoLimit},
		{"proxy", true, "memory", q("64Mi"), nil, NoLimit},
		{"b", false, "cpu", q("1"), q("2"), RequestNotLimit},
		{"c", false, "cpu", nil, q("1"), NoRequestBesideLimit},
		{"c", false, "memory", nil, q("0"), NoLimit},
	}
	if d := cmp.Diff(want, QOSOffenders(p, r)); d != "" {
		t.Errorf("offenders (-want +got):\n%s", d)
	}
	if got := QOSOffenders(pod("cpu=2 memory=1Gi ="), r); got != nil {
		t.Errorf("a Guaranteed pod: %v", got)
	}
	withPodLevel(p, "cpu=2 / cpu=2")
	want = []Offender{{"", false, "memory", nil, nil, NoLimit}}
	if d := cmp.Diff(want, QOSOffenders(p, r)); d != "" {
		t.Errorf("pod level (-want +got):\n%s", d)
	}
}
