// Package nodepod is the pod that reads the files of a node: what it looks like,
// which rights it takes, how to know one again, and what its failures mean. It
// asks nothing of a cluster; package collect does.
package nodepod

import (
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/noderes/kubectl-noderes/pkg/collect/reader"
)

const (
	// DefaultImage is the busybox that the end-to-end tests of Kubernetes 1.37
	// run (test/utils/image/manifest.go). A tag: no public source states its digest.
	DefaultImage = "registry.k8s.io/e2e-test-images/busybox:1.37.0-2"
	// DefaultNamespace is that of kubectl's own debugging pods where a kubeconfig
	// names none.
	DefaultNamespace = "default"
	// Container is the name of the pod's only container.
	Container = "reader"

	// MaxLife is the longest that a node pod may live, whatever becomes of who
	// made it.
	MaxLife = 300 * time.Second

	hostFolder    = "/host"
	scratchFolder = "/scratch"
)

// Options are what a user may say of node pods.
type Options struct {
	Namespace     string
	Image         string
	PullSecret    string            // name of a Secret in Namespace, "" for none
	PullPolicy    corev1.PullPolicy // "" for the API server's default
	PriorityClass string            // "" for the API server's default
	// Privileged gives the container all capabilities and no confinement, for
	// nodes whose security module keeps the kernel log or the kubelet's state
	// from any other.
	Privileged bool
}

// Run is one node pod to be.
type Run struct {
	Node string
	// ID is new for each run: letters and digits, at most 16.
	ID string
	// Life is how long the pod may live, at most MaxLife.
	Life time.Duration
	// Without are paths that the node does not have, so that they are not mounted.
	Without []string
}

// mount is a path of the node that is mounted.
type mount struct {
	path string
	kind corev1.HostPathType
}

// mounts are all that a node pod sees of its node. Of the kubelet's folder, which
// holds Secrets, it sees the two files.
var mounts = []mount{
	{"/proc", corev1.HostPathDirectory},
	{"/sys/devices/system", corev1.HostPathDirectory},
	{"/sys/fs/cgroup", corev1.HostPathDirectory},
	{"/sys/kernel/mm", corev1.HostPathDirectory},
	{"/var/lib/kubelet/cpu_manager_state", corev1.HostPathFile},
	{"/var/lib/kubelet/memory_manager_state", corev1.HostPathFile},
}

// Optional are the mounted paths that a node may lack.
func Optional() []string {
	var paths []string
	for _, m := range mounts {
		if m.kind == corev1.HostPathFile {
			paths = append(paths, m.path)
		}
	}
	return paths
}

// Pod is the node pod of a run. It sleeps until its reader is started in it, and
// for no longer than it may live.
func Pod(o Options, r Run) *corev1.Pod {
	life := int64(min(max(r.Life, time.Second), MaxLife) / time.Second)
	pod := &corev1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{
			Name:        name(r),
			Namespace:   o.Namespace,
			Labels:      map[string]string{ManagedBy: managedBy, Component: component, RunID: r.ID},
			Annotations: map[string]string{Purpose: purpose},
		},
		Spec: corev1.PodSpec{
			NodeName:                      r.Node,
			RestartPolicy:                 corev1.RestartPolicyNever,
			ActiveDeadlineSeconds:         ptr.To(life),
			TerminationGracePeriodSeconds: ptr.To[int64](0),
			AutomountServiceAccountToken:  ptr.To(false),
			EnableServiceLinks:            ptr.To(false),
			DNSPolicy:                     corev1.DNSDefault,
			OS:                            &corev1.PodOS{Name: corev1.Linux},
			Tolerations:                   []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
			PriorityClassName:             o.PriorityClass,
			SecurityContext: &corev1.PodSecurityContext{
				RunAsUser: ptr.To[int64](0), RunAsGroup: ptr.To[int64](0), // the kubelet's state files are root's alone
				SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
			},
		},
	}
	if o.PullSecret != "" {
		pod.Spec.ImagePullSecrets = []corev1.LocalObjectReference{{Name: o.PullSecret}}
	}
	container := corev1.Container{
		Name:            Container,
		Image:           o.Image,
		ImagePullPolicy: o.PullPolicy,
		Command:         []string{"sleep", strconv.FormatInt(life, 10)},
		// Equal to the limits: Guaranteed, so that it is not the first victim of
		// a node without memory. Not a whole CPU: that would be pinned.
		Resources: corev1.ResourceRequirements{Requests: resources(), Limits: resources()},
		SecurityContext: &corev1.SecurityContext{
			ReadOnlyRootFilesystem:   ptr.To(true),
			AllowPrivilegeEscalation: ptr.To(false),
			Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}, Add: []corev1.Capability{"SYSLOG"}}, // the kernel log
		},
	}
	if o.Privileged {
		container.SecurityContext = &corev1.SecurityContext{ReadOnlyRootFilesystem: ptr.To(true), Privileged: ptr.To(true)}
		pod.Spec.SecurityContext.SeccompProfile.Type = corev1.SeccompProfileTypeUnconfined
	}
	for _, m := range mounts {
		if slices.Contains(r.Without, m.path) {
			continue
		}
		volume := strings.NewReplacer("/", "-", "_", "-").Replace(strings.TrimPrefix(m.path, "/"))
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: volume, VolumeSource: corev1.VolumeSource{
			HostPath: &corev1.HostPathVolumeSource{Path: m.path, Type: ptr.To(m.kind)},
		}})
		container.VolumeMounts = append(container.VolumeMounts, corev1.VolumeMount{
			Name: volume, MountPath: path.Join(hostFolder, m.path), ReadOnly: true,
			RecursiveReadOnly: ptr.To(corev1.RecursiveReadOnlyIfPossible),
		})
	}
	pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: "scratch", VolumeSource: corev1.VolumeSource{
		EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory, SizeLimit: ptr.To(resource.MustParse("64Ki"))},
	}})
	container.VolumeMounts = append(container.VolumeMounts, corev1.VolumeMount{Name: "scratch", MountPath: scratchFolder})
	pod.Spec.Containers = []corev1.Container{container}
	return pod
}

func resources() corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("200m"), corev1.ResourceMemory: resource.MustParse("64Mi")}
}

// Reader is what the reader in a node pod is told. UID is the pod's own, whose
// cgroup is none of the node's business.
func Reader(uid string, sample time.Duration) reader.Options {
	return reader.Options{Root: hostFolder, Sample: sample, SkipPod: uid, Scratch: scratchFolder}
}

// name fits into a label, so that it is the host's name too.
func name(r Run) string {
	node := strings.ReplaceAll(r.Node, ".", "-")
	node = strings.Trim(node[:min(len(node), 63-len(NamePrefix)-1-len(r.ID))], "-")
	return NamePrefix + node + "-" + r.ID
}
