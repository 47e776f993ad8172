package nodepod

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

var update = flag.Bool("update", false, "rewrite the golden files")

var plain = Options{Namespace: "default", Image: DefaultImage}

func TestPod(t *testing.T) {
	for name, pod := range map[string]*corev1.Pod{
		"plain": Pod(plain, Run{Node: "worker-1", ID: "abcd1234", Life: 40 * time.Second}),
		"all": Pod(Options{Namespace: "node-debug", Image: "mirror.example/busybox@sha256:00", PullSecret: "mirror", PullPolicy: corev1.PullIfNotPresent,
			PriorityClass: "system-node-critical", Privileged: true},
			Run{Node: "ip-10-0-0-1.eu-central-1.compute.internal." + strings.Repeat("long.", 30), ID: "abcd1234", Life: time.Hour, Without: Optional()}),
	} {
		got, err := yaml.Marshal(pod)
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join("testdata", name+".yaml")
		if *update {
			if err := os.WriteFile(file, got, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != string(want) {
			t.Errorf("%s:\n%s", name, got)
		}
	}
}

// What holds whatever the options.
func TestPodIsHarmless(t *testing.T) {
	for _, privileged := range []bool{false, true} {
		o := plain
		o.Privileged = privileged
		for _, life := range []time.Duration{-time.Second, 0, time.Minute, 24 * time.Hour} {
			pod := Pod(o, Run{Node: "n", ID: "x1", Life: life})
			spec := pod.Spec
			if d := *spec.ActiveDeadlineSeconds; d < 1 || d > 300 {
				t.Errorf("lives for %d s", d)
			}
			if spec.HostNetwork || spec.HostPID || spec.HostIPC || *spec.AutomountServiceAccountToken || spec.RestartPolicy != corev1.RestartPolicyNever {
				t.Errorf("%+v", spec)
			}
			c := spec.Containers[0]
			if !*c.SecurityContext.ReadOnlyRootFilesystem || len(spec.Containers) != 1 {
				t.Errorf("%+v", c.SecurityContext)
			}
			for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
				if r, l := c.Resources.Requests[name], c.Resources.Limits[name]; r.Cmp(l) != 0 || r.IsZero() {
					t.Errorf("%s: not Guaranteed", name)
				}
			}
			if cpu := c.Resources.Limits.Cpu(); cpu.MilliValue()%1000 == 0 {
				t.Errorf("%s whole CPUs would be pinned", cpu)
			}
			hosts := map[string]bool{}
			for _, v := range spec.Volumes {
				if v.HostPath != nil {
					hosts[v.Name] = true
				}
			}
			for _, m := range c.VolumeMounts {
				if hosts[m.Name] && !m.ReadOnly {
					t.Errorf("%s can be written", m.MountPath)
				}
			}
			if len(hosts) != len(mounts) {
				t.Errorf("mounts %v", hosts)
			}
			if len(pod.Name) > 63 || !Ours(pod) {
				t.Errorf("%s is not known again", pod.Name)
			}
		}
	}
}

func TestOurs(t *testing.T) {
	for name, change := range map[string]func(*corev1.Pod){
		"name":       func(p *corev1.Pod) { p.Name = "web-0" },
		"run":        func(p *corev1.Pod) { p.Labels[RunID] = "other" },
		"no run":     func(p *corev1.Pod) { delete(p.Labels, RunID) },
		"manager":    func(p *corev1.Pod) { p.Labels[ManagedBy] = "kubectl-debug" },
		"component":  func(p *corev1.Pod) { p.Labels[Component] = "web" },
		"annotation": func(p *corev1.Pod) { p.Annotations = nil },
		"owner":      func(p *corev1.Pod) { p.OwnerReferences = []metav1.OwnerReference{{Name: "x"}} },
	} {
		pod := Pod(plain, Run{Node: "n", ID: "x1"})
		if !Ours(pod) {
			t.Fatal("its own pod is not known")
		}
		change(pod)
		if Ours(pod) {
			t.Errorf("with another %s it is still ours", name)
		}
	}
}

func TestRefusal(t *testing.T) {
	for message, want := range map[string]string{
		`pods "noderes-n" is forbidden: violates PodSecurity "restricted:latest": hostPath volumes (volumes "proc")`: "kubectl label namespace default pod-security",
		`pods "noderes-n" is forbidden: exceeded quota: small, requested: pods=1, used: pods=5, limited: pods=5`:     "ResourceQuota of namespace default",
		`pods "x" is forbidden: [minimum cpu usage per Container is 1, but request is 200m]`:                         "LimitRange",
		`admission webhook "validate.kyverno.svc-fail" denied the request: host-path: no`:                            "admission policy",
		`pods "x" is forbidden: ValidatingAdmissionPolicy 'no-host' with binding 'b' denied request: no`:             "admission policy",
		`pods "noderes-n" is forbidden: no PriorityClass with name gold was found`:                                   "--node-pod-priority-class",
		`namespaces "gone" not found`: "--node-pod-namespace",
		`pods "x" is forbidden: error looking up service account default/default: serviceaccount "default" not found`: "no service account",
		`pods is forbidden: User "jane" cannot create resource "pods" in API group "" in the namespace "default"`:     "needs create pods in namespace default",
	} {
		if got := Refusal(plain, 403, message); !strings.Contains(got, want) || strings.Contains(got, "jane") {
			t.Errorf("%s: %s", message, got)
		}
	}
	if got := Refusal(plain, 422, strings.Repeat("x\n\x00", 5000)); len(got) > 400 || strings.Contains(got, "\n") {
		t.Errorf("%q", got)
	}
}

func waiting(reason string) *corev1.Pod {
	return &corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodPending, ContainerStatuses: []corev1.ContainerStatus{
		{Name: Container, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: "because"}}},
	}}}
}

func TestWaits(t *testing.T) {
	event := func(reason, message string) []corev1.Event { return []corev1.Event{{Reason: reason, Message: message}} }
	ended := func(reason string) *corev1.Pod {
		return &corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodFailed, Reason: reason, Message: "because"}}
	}
	for _, c := range []struct {
		pod    *corev1.Pod
		events []corev1.Event
		want   string
		final  bool
	}{
		{waiting("ContainerCreating"), nil, "", false},
		{waiting("ImagePullBackOff"), nil, "cannot pull the image registry.k8s.io/e2e-test-images/busybox:1.37.0-2 (ImagePullBackOff: because); name one that it can with --node-pod-image", true},
		{waiting("ErrImageNeverPull"), nil, "--node-pod-pull-policy", true},
		{waiting("CreateContainerError"), nil, "cannot start the container", true},
		{ended("OutOfcpu"), nil, "no room", true},
		{ended("Evicted"), nil, "evicted the node pod (Evicted: because)", true},
		{ended("DeadlineExceeded"), nil, "time is over", true},
		{ended("PodOSNotSupported"), nil, "Linux", true},
		{ended("TopologyAffinityError"), nil, "refused or ended", true},
		{ended(""), nil, "ended", true},
		{waiting("ContainerCreating"), event("FailedCreatePodSandBox", "no network"), "cannot start the pod (FailedCreatePodSandBox: no network)", false},
		{waiting("ContainerCreating"), event("Scheduled", "x"), "", false},
	} {
		got, final := Waits(plain, c.pod, c.events)
		if !strings.Contains(got, c.want) || c.want == "" && got != "" || final != c.final {
			t.Errorf("%+v: %q, %v", c.pod.Status, got, final)
		}
	}
	got := Lacks(event("FailedMount", `MountVolume.SetUp failed for volume "x" : hostPath type check failed: /var/lib/kubelet/memory_manager_state is not a file`))
	if len(got) != 1 || got[0] != "/var/lib/kubelet/memory_manager_state" {
		t.Errorf("lacks %v", got)
	}
	if got := Lacks(event("Pulled", "hostPath type check failed: /var/lib/kubelet/memory_manager_state is not a file")); got != nil {
		t.Errorf("lacks %v", got)
	}
}
