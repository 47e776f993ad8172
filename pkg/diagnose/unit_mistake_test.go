package diagnose

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/noderes/kubectl-noderes/pkg/report"
)

// asks gives container app other requests and limits in spec, status and files
// left as they are; "" takes an amount away.
func asks(name corev1.ResourceName, request, limit string) func(*bundle) {
	return func(b *bundle) {
		r := &b.container("app").Resources
		for list, text := range map[*corev1.ResourceList]string{&r.Requests: request, &r.Limits: limit} {
			if delete(*list, name); text != "" {
				(*list)[name] = resource.MustParse(text)
			}
		}
	}
}

// beside adds a container with a memory limit of its own.
func beside(b *bundle, name, limit string) {
	k := *b.container("app").DeepCopy()
	k.Name = name
	k.Resources = corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(limit)}}
	b.pod().Spec.Containers = append(b.pod().Spec.Containers, k)
}

// memoryVolume gives the pod a memory-backed volume that container app mounts.
func memoryVolume(b *bundle, size string) {
	q := resource.MustParse(size)
	b.pod().Spec.Volumes = append(b.pod().Spec.Volumes, corev1.Volume{Name: "scratch", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory, SizeLimit: &q}}})
	k := b.container("app")
	k.VolumeMounts = append(k.VolumeMounts, corev1.VolumeMount{Name: "scratch", MountPath: "/scratch"})
}

func unitsFamily() family {
	const memory, cpu = corev1.ResourceMemory, corev1.ResourceCPU
	likely, possible := []string{"unit-mistake@app likely"}, []string{"unit-mistake@app possible"}
	with := func(edits ...func(*bundle)) func(*bundle) {
		return func(b *bundle) {
			for _, e := range edits {
				e(b)
			}
		}
	}
	env := func(name, value string) func(*bundle) {
		return func(b *bundle) { b.container("app").Env = []corev1.EnvVar{{Name: name, Value: value}} }
	}
	return family{name: "units", codes: []report.Code{report.UnitMistake}, cases: []ruleCase{
		{name: "as recorded", on: cachePod, want: nil},
		{name: "m for bytes", on: cachePod, edit: asks(memory, "512m", "512m"), want: likely, text: []string{`\"512m\"`, "0.512 bytes", `\"512Mi\"`}},
		{name: "m for bytes in the request alone", on: cachePod, edit: asks(memory, "100m", "128Mi"), want: likely, text: []string{"requests.memory", "0.1 bytes"}},
		{name: "thousands of m, which the API server writes as bytes", on: cachePod, edit: asks(memory, "512000m", "512000m"), want: likely, text: []string{`\"512\"`, `\"512Mi\"`}},
		{name: "no unit at all", on: cachePod, edit: asks(memory, "2", "2"), want: likely, text: []string{`\"2Gi\"`}},
		{name: "Ki for Mi", on: cachePod, edit: asks(memory, "64Ki", "64Ki"), want: likely, text: []string{`\"64Mi\"`}},
		{name: "k for M", on: cachePod, edit: asks(memory, "200k", "200k"), want: likely, text: []string{`\"200Mi\"`}},
		{name: "a request of next to nothing", on: cachePod, edit: asks(memory, "10Ki", "128Mi"), want: nil},
		{name: "1.1Gi, which the API server writes in m", on: cachePod, edit: asks(memory, "1181116006400m", "1181116006400m"), want: nil},
		{name: "ephemeral storage in m", on: cachePod, edit: asks(corev1.ResourceEphemeralStorage, "400m", "400m"), want: likely, text: []string{"ephemeral-storage"}},
		{name: "no memory at all", on: cachePod, edit: asks(memory, "0", "0"), want: nil},

		{name: "460M alone", on: cachePod, edit: asks(memory, "460M", "460M"), want: nil},
		{name: "512M alone", on: cachePod, edit: asks(memory, "512M", "512M"), want: nil},
		{name: "460M beside Mi", on: cachePod, edit: with(asks(memory, "460M", "460M"), func(b *bundle) { beside(b, "side", "64Mi") }), want: nil},
		{name: "128M beside Mi", on: cachePod, edit: with(asks(memory, "128M", "128M"), func(b *bundle) { beside(b, "side", "64Mi") }), want: possible, text: []string{`\"128M\"`, `\"128Mi\"`, "5.93Mi less"}},
		{name: "128M beside M and Mi", on: cachePod, edit: with(asks(memory, "128M", "128M"), func(b *bundle) {
			beside(b, "side", "64Mi")
			beside(b, "other", "300M")
		}), want: nil},
		{name: "a request of 128M, a limit of 128Mi", on: cachePod, edit: asks(memory, "128M", "128Mi"), want: likely, text: []string{"not Guaranteed", `\"128Mi\"`}},
		{name: "a request of 1G, a limit of 1Gi", on: cachePod, edit: asks(memory, "1G", "1Gi"), want: likely},
		{name: "a request of 100M, a limit of 128Mi", on: cachePod, edit: asks(memory, "100M", "128Mi"), want: nil},
		{name: "a request of 256Mi, a limit of 512M", on: cachePod, edit: asks(memory, "256Mi", "512M"), want: possible},
		{name: "a heap of 512m, a limit of 512M", on: cachePod, edit: with(asks(memory, "512M", "512M"), env("JAVA_TOOL_OPTIONS", "-Xmx512m")), want: likely, text: []string{`"value":"-Xmx512m"`}},
		{name: "a heap of 384m, a limit of 512M", on: cachePod, edit: with(asks(memory, "512M", "512M"), env("JAVA_TOOL_OPTIONS", "-Xmx384m")), want: nil},
		{name: "GOMEMLIMIT of 1GiB, a limit of 1G", on: cachePod, edit: with(asks(memory, "1G", "1G"), env("GOMEMLIMIT", "1GiB")), want: likely},
		{name: "a volume of 512Mi, a limit of 512M", on: cachePod, edit: with(asks(memory, "512M", "512M"), func(b *bundle) { memoryVolume(b, "512Mi") }), want: likely, text: []string{"scratch"}},
		{name: "a volume of 256Mi, a limit of 512M", on: cachePod, edit: with(asks(memory, "512M", "512M"), func(b *bundle) { memoryVolume(b, "256Mi") }), want: nil},
		{name: "a volume in m", on: cachePod, edit: func(b *bundle) { memoryVolume(b, "500m") }, want: []string{"unit-mistake@ likely"}, text: []string{"volumes[scratch]"}},
		{name: "a small volume", on: cachePod, edit: func(b *bundle) { memoryVolume(b, "64Ki") }, want: nil},

		{name: "millicores without the m", on: cachePod, edit: asks(cpu, "500", "500"), want: likely, text: []string{"500 CPUs", `\"500m\"`, "the largest node known has 8"}},
		{name: "CPU like bytes", on: cachePod, edit: asks(cpu, "10m", "512Mi"), want: likely, text: []string{`\"512Mi\"`, "536870912 CPUs"}},
		{name: "more CPUs than any machine", on: cachePod, edit: with(asks(cpu, "5000", "5000"), func(b *bundle) { b.nodes = nil }), want: likely, text: []string{`\"5000m\"`}},
		{name: "more CPUs than this node", on: cachePod, edit: asks(cpu, "10m", "16"), want: nil},
		{name: "many CPUs of a number nobody writes as millicores", on: cachePod, edit: asks(cpu, "10m", "128"), want: nil},
		{name: "many CPUs, and no node known", on: cachePod, edit: with(asks(cpu, "500", "500"), func(b *bundle) { b.nodes = nil }), want: nil},
		{name: "pod-level memory in m", on: podLevelPod, edit: func(b *bundle) {
			b.pod().Spec.Resources.Limits[memory] = resource.MustParse("192m")
		}, want: []string{"unit-mistake@ likely"}, text: []string{"spec.resources.limits.memory"}},
		{name: "a pod that has ended", on: cachePod, edit: with(asks(memory, "512m", "512m"), func(b *bundle) { b.pod().Status.Phase = corev1.PodFailed }), want: nil},
	}}
}

// A pod on no node has its spec, and no more is needed.
func TestUnitMistakeOfAPodOnNoNode(t *testing.T) {
	b := cachePod(t)
	asks(corev1.ResourceMemory, "512m", "512m")(b)
	b.pod().Spec.NodeName = ""
	b.pod().Status = corev1.PodStatus{Phase: corev1.PodPending}
	var codes []report.Code
	for _, f := range b.explain(Options{}).Findings {
		codes = append(codes, f.Code)
	}
	if len(codes) != 2 || codes[0] != report.UnitMistake && codes[1] != report.UnitMistake {
		t.Errorf("got %q, want the unit and that the pod is on no node", codes)
	}
}
