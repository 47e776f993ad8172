package diagnose

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/noderes/kubectl-noderes/pkg/report"
)

var (
	sizeRemedy   = regexp.MustCompile(`^Ask for (\S+) (\S+) in container (\S+), in requests and limits\.$`)
	policyRemedy = regexp.MustCompile(`^Set (topologyManager\w+=\S+)\.$`)
	changedSize  = regexp.MustCompile(`^(\S+) (\S+) instead of \S+ for container ([^ ,]+)`)
)

func templateFile(t *testing.T, path string) Template {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	pods, err := Templates(data, "file:"+path)
	if err != nil {
		t.Fatal(err)
	}
	return pods[0]
}

// What a refusal's remedies name is admitted by the managers once it is done.
func TestRefusalRemediesAdmit(t *testing.T) {
	seen := map[string]int{}
	for _, c := range [][3]string{
		{"25-topology-error-runaway-replicaset", "rs-5.yaml", "node-a"},
		{"11-reserved-ignored-in-min-affinity", "cpu-104.yaml", "node-a"},
		{"21-numa-group-blocks-second-pod", "db-85.yaml", "node-a"},
		{"02-smt-odd-and-half-reserved-core", "p1.yaml", "node-a"},
		{"numa4-k61", "whatif-too-much-memory.yaml", "numa4"},
	} {
		dir := "testdata/cases/" + c[0]
		s := openTestBundle(t, dir+"/bundle.tar.gz")
		pod := templateFile(t, dir+"/"+c[1])
		for _, f := range ask(t, s, pod, c[2]).Findings {
			for _, r := range f.Remedies {
				again, set, kind := pod, []string(nil), ""
				if m := sizeRemedy.FindStringSubmatch(r.Summary); m != nil {
					kind = "size"
					again.Pod = requesting(defaulted(pod.Pod, newNodeCase(s, c[2], pod.Pod.CreationTimestamp.Time).rules), m[3], corev1.ResourceName(m[1]), resource.MustParse(m[2]))
				} else if m := policyRemedy.FindStringSubmatch(r.Summary); m != nil {
					kind, set = "policy", []string{m[1]}
				} else if strings.Contains(r.Summary, "above") || strings.HasPrefix(r.Summary, "Ask for") && f.Code != report.FitCheckRefused {
					t.Errorf("%v %s: %q was not run", c, f.Code, r.Summary)
				}
				if kind == "" || f.Code == report.WouldBeRefusedNow {
					continue
				}
				seen[kind]++
				if w := ask(t, s, again, c[2], set...).WhatIf[0]; !*w.Admitted && !strings.HasPrefix(w.Reason, "OutOf") {
					t.Errorf("%v %s: %q: %s %s", c, f.Code, r.Summary, w.Reason, w.Message)
				}
			}
		}
	}
	if seen["size"] == 0 || seen["policy"] == 0 {
		t.Errorf("nothing was tried: %v", seen)
	}
}

// A change's CPUs are those of the container that it is about.
func TestNearestIsOfItsContainer(t *testing.T) {
	b := recorded("smt2-k612/bundle", "shop", "excl-a")(t)
	b.object().Status.Allocatable[corev1.ResourceCPU] = resource.MustParse("100")
	pod := newPod(cpuAndMemory("4", "64Mi"))
	pod.Spec.InitContainers = []corev1.Container{{Name: "init", Resources: corev1.ResourceRequirements{Limits: cpuAndMemory("2", "64Mi")}}}
	s := b.open()
	tried := 0
	for _, near := range ask(t, s, pod, "smt2").WhatIf[0].Nearest {
		m := changedSize.FindStringSubmatch(near.Change)
		if m == nil {
			continue
		}
		tried++
		again := newPod(cpuAndMemory("4", "64Mi"))
		again.Spec.InitContainers = pod.Spec.InitContainers
		again.Pod = requesting(defaulted(again.Pod, newNodeCase(s, "smt2", b.object().CreationTimestamp.Time).rules), m[3], corev1.ResourceName(m[1]), resource.MustParse(m[2]))
		for _, got := range ask(t, s, again, "smt2").WhatIf[0].Containers {
			if got.Name == near.Container && (near.CPUs == nil || *near.CPUs != *got.CPUs || !slices.Equal(near.NUMANodes, got.NUMANodes)) {
				t.Errorf("%s: %s has %v %v, but it gets %s %v", near.Change, near.Container, *near.CPUs, near.NUMANodes, *got.CPUs, got.NUMANodes)
			}
		}
		if near.Container != "app" || len(near.Containers) != 2 {
			t.Errorf("%s: of %q among %d", near.Change, near.Container, len(near.Containers))
		}
	}
	if tried == 0 {
		t.Error("no change of a size")
	}
}

// Shared CPUs are on their own NUMA nodes, wherever the memory is.
func TestSharedCPUsHaveTheirNUMANodes(t *testing.T) {
	dir := "testdata/cases/numa4-k61/"
	s := openTestBundle(t, dir+"bundle.tar.gz")
	pod := templateFile(t, dir+"whatif-one.yaml")
	checked := 0
	w := ask(t, s, pod, "numa4").WhatIf[0]
	for _, near := range w.Nearest {
		if near.CPUs != nil && *near.CPUs == "0,4-5" {
			checked++
			if !slices.Equal(near.NUMANodes, []int{0, 2}) {
				t.Errorf("%s: %s on %v", near.Change, *near.CPUs, near.NUMANodes)
			}
		}
	}
	if checked == 0 {
		t.Errorf("no change shares CPUs: %+v", w.Nearest)
	}
}

// A pod that ends gives its devices back as well.
func TestEndedPodsFreeDevices(t *testing.T) {
	b := roomy(t)
	b.pod().Status.Phase = corev1.PodRunning
	limitTo(b.pod(), "example.com/nic", "1")
	b.object().Status.Allocatable["example.com/nic"] = resource.MustParse("1")
	b.files["nodes/smt2/podresources.json"] = `{"list": {"pod_resources": [{"name": "excl-a", "namespace": "shop", "containers": [{"name": "app",
		"devices": [{"resource_name": "example.com/nic", "device_ids": ["d0"], "topology": {"nodes": [{"ID": 0}]}}]}]}]},
		"allocatable": {"devices": [{"resource_name": "example.com/nic", "device_ids": ["d0"], "topology": {"nodes": [{"ID": 0}]}}]}}`
	pod := newPod(cpuAndMemory("2", "64Mi"))
	limitTo(pod.Pod, "example.com/nic", "1")
	r := ask(t, b.open(), pod, "smt2")
	if !slices.ContainsFunc(r.WhatIf[0].Nearest, func(n report.Nearest) bool { return n.Change == "the end of pod shop/excl-a" }) {
		t.Errorf("%s: %+v", r.Findings[0].Summary, r.WhatIf[0].Nearest)
	}
	if f := finding(r, report.TopologyAffinityRefused); !slices.ContainsFunc(f.Remedies, func(r report.Remedy) bool { return r.Summary == "Delete or move shop/excl-a." }) {
		t.Errorf("%+v", f.Remedies)
	}
}

// Fewer CPUs of an init container are tried too.
func TestNearestChangesInitContainers(t *testing.T) {
	pod := newPod(cpuAndMemory("4", "64Mi"))
	pod.Spec.InitContainers = []corev1.Container{{Name: "init", Resources: corev1.ResourceRequirements{Limits: cpuAndMemory("2", "64Mi")}}}
	r := ask(t, roomy(t).open(), pod, "smt2")
	if !slices.ContainsFunc(r.WhatIf[0].Nearest, func(n report.Nearest) bool {
		return strings.HasSuffix(n.Change, "for container init, which is no whole number and shares CPUs")
	}) {
		t.Errorf("%+v", r.WhatIf[0].Nearest)
	}
}
