package render

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/noderes/kubectl-noderes/pkg/report"
)

func ptr[T any](v T) *T { return &v }

func at(clock string) metav1.Time {
	t, err := time.Parse(time.RFC3339, "2026-11-30T"+clock+"Z")
	if err != nil {
		panic(err)
	}
	return metav1.NewTime(t)
}

const (
	slice = "kubepods.slice/kubepods-podc7fbac37_0a8c_4fd4_9c1a_0d1f2a5e6b77.slice"
	scope = slice + "/cri-containerd-28a9501eefc86e8e4d836bbbb3eb5d97dcd771389c3e3193ad3fcd9e70a1d5d9.scope"
)

// oomReport is a pod with something of everything.
func oomReport() report.Report {
	oom := report.Subject{Kind: "Pod", Namespace: "shop", Name: "oom", Container: "app"}
	return report.Report{
		APIVersion: report.APIVersion, Kind: report.PodReport,
		Metadata:   report.Metadata{Namespace: "shop", Name: "oom", UID: "c7fbac37-0a8c-4fd4-9c1a-0d1f2a5e6b77", Node: "smt2"},
		ObservedAt: at("07:07:47"),
		Versions: report.Versions{Kubelet: "v1.37.2", Kernel: "6.12.30-amd64", ContainerRuntime: "containerd://2.4.2",
			Replay: "kubelet 1.37 rules"},
		Findings: []report.Finding{
			{
				Code: report.ContainerMemoryLimitOOM, Severity: report.Critical, Confidence: report.Proven, Subject: oom,
				Summary: "Killed 16 times at its own memory limit of 128Mi: the pod's slice, which holds only this container and carries the same limit, was full first.",
				Because: []report.Evidence{
					{Source: "node:/sys/fs/cgroup/" + slice + "/memory.events.local@1", Field: "oom", Value: "16",
						Means: "the pod's slice met its limit 16 times; it holds only this container and the same limit", At: at("07:05:09")},
					{Source: "node:/sys/fs/cgroup/" + scope + "/memory.max@1", Value: "134217728", At: at("07:05:09")},
					{Source: "node:/sys/fs/cgroup/" + scope + "/memory.peak@1", Value: "133697536", At: at("07:05:09")},
					{Source: "kernel:log", Field: "oom-kill", Value: "constraint=CONSTRAINT_MEMCG,nodemask=(null),oom_memcg=/" + slice + ",task=python3,pid=4711",
						Means: "the kernel names the slice, not the scope", At: at("07:04:58")},
					{Source: "api:pods/shop/oom", Field: "lastState.terminated.reason", Value: "OOMKilled", At: metav1.NewTime(at("07:04:58").AddDate(0, 0, -1))},
				},
				Arithmetic: "32 oom_kill = 16 × (1 process + 1: the first victim of a group kill is counted twice)",
				Remedies: []report.Remedy{{
					Summary: "raise limits.memory of container app above what it needs; its peak is cut off by the limit, so measure once without one",
					Command: "kubectl -n shop patch pod oom --subresource resize --patch '{\"spec\":{\"containers\":[{\"name\":\"app\",\"resources\":{\"limits\":{\"memory\":\"256Mi\"}}}]}}'",
					Effect:  "no kill at 128Mi", Caution: "restarts the container unless resizePolicy says NotRequired",
				}, {
					Summary: "or let the heap follow the limit",
					Patch:   "spec:\n  containers:\n  - name: app\n    env:\n    - name: GOMEMLIMIT\n      value: 100MiB\n",
				}},
			},
			{
				Code: report.MemoryFilledByAnon, Severity: report.Info, Confidence: report.Likely, Subject: oom,
				Summary: "97.4 % of what is charged is anonymous memory.",
				Because: []report.Evidence{
					{Source: "node:/sys/fs/cgroup/" + scope + "/memory.stat@1", Field: "anon", Value: "130351104"},
					{Source: "node:/sys/fs/cgroup/" + scope + "/memory.current@1", Value: "133697536"},
				},
			},
			{
				Code: report.CPUNotThrottled, Severity: report.Info, Confidence: report.Proven,
				Subject: report.Subject{Kind: "Pod", Namespace: "shop", Name: "oom"},
				Summary: "0 of 309 periods throttled in 30.9 s.",
				Because: []report.Evidence{{Source: "node:/sys/fs/cgroup/" + scope + "/cpu.stat@1", Field: "nr_throttled", Value: "0"}},
			},
		},
		Resources: &report.Resources{QOSClass: "Guaranteed", SampleSeconds: ptr(30.9), Containers: []report.ResourceLevel{
			{Name: "app", Level: "container", Cgroup: "/" + scope, OOMScoreAdj: ptr(-997),
				CPU: &report.CPUFacts{Quota: &report.Limit{Value: 20000}, Period: ptr[uint64](100000), Weight: ptr[uint64](8),
					Throttled: ptr[int64](0), Periods: ptr[int64](309), Usage: ptr[uint64](1_002_345), Waiting: ptr[uint64](834)},
				Memory: &report.MemoryFacts{Max: &report.Limit{Value: 128 << 20}, High: &report.Limit{Unlimited: true}, Low: &report.Limit{}, Min: &report.Limit{},
					Current: ptr[uint64](133697536), Peak: ptr[uint64](128 << 20), WorkingSet: ptr[uint64](133132288),
					Anon: ptr[uint64](130351104), File: ptr[uint64](0), Shmem: ptr[uint64](0), Kernel: ptr[uint64](1458176),
					OOM: ptr[uint64](0), OOMKill: ptr[uint64](0), OOMGroupKill: ptr[uint64](0)}},
			{Name: "oom", Level: "pod", Cgroup: "/" + slice,
				CPU: &report.CPUFacts{Quota: &report.Limit{Value: 20000}, Period: ptr[uint64](100000), Weight: ptr[uint64](8),
					Throttled: ptr[int64](0), Periods: ptr[int64](311), Usage: ptr[uint64](1_203_000)},
				Memory: &report.MemoryFacts{Max: &report.Limit{Value: 128 << 20}, High: &report.Limit{Unlimited: true}, Low: &report.Limit{}, Min: &report.Limit{},
					Current: ptr[uint64](133697536), OOM: ptr[uint64](16), OOMKill: ptr[uint64](32), OOMGroupKill: ptr[uint64](16)}},
			{Name: "kubepods", Level: "kubepods", Cgroup: "/kubepods.slice",
				CPU:    &report.CPUFacts{Quota: &report.Limit{Unlimited: true}, Period: ptr[uint64](100000), Weight: ptr[uint64](240)},
				Memory: &report.MemoryFacts{Max: &report.Limit{Value: 5_905_580_032}}},
		}},
		Placement: smtPlacement(),
		Gaps: []report.Gap{{
			Wanted: "nodes/smt2/kernel.log", Reason: `Forbidden: nodes "smt2" is forbidden: User "dev" cannot get resource "nodes/proxy" in API group "" at the cluster scope`,
			Costs: "which process each OOM chose", Fix: "kubectl create clusterrole noderes-proxy --verb=get --resource=nodes/proxy",
		}},
	}
}

func smtPlacement() *report.Placement {
	return &report.Placement{
		Policy: "static", Options: map[string]string{"full-pcpus-only": "true", "distribute-cpus-across-numa": "false"},
		Scope: "container", TopologyPolicy: "single-numa-node", MemoryPolicy: "Static",
		CPUs: &report.PlacementCPUs{All: ptr("0-7"), Online: ptr("0-7"), Reserved: ptr("0-1"), Shared: ptr("0-1,6-7"), Free: ptr("6-7"), Isolated: ptr("")},
		NUMANodes: []report.NUMANode{
			{ID: 0, CPUs: "0-3", FreeCPUs: ptr(""), Distances: []uint64{10, 20}, Memory: []report.NUMAMemory{
				{Type: "memory", Total: 3 << 30, Reserved: 300 << 20, Free: 2_243_952_640}, {Type: "hugepages-2Mi", Total: 64 << 20, Free: 64 << 20}}},
			{ID: 1, CPUs: "4-7", FreeCPUs: ptr("6-7"), Distances: []uint64{20, 10}, Memory: []report.NUMAMemory{
				{Type: "memory", Total: 3 << 30, Reserved: 212 << 20, Free: 2_600_468_480}}},
		},
		Containers: []report.PlacementContainer{
			{Namespace: "shop", Pod: "excl-a", Container: "app", CPUs: ptr("2-3"), Exclusive: true, NUMANodes: []int{0}, Live: ptr("2-3"),
				Memory: []report.MemoryBlock{{Type: "memory", NUMANodes: []int{0}, Size: 64 << 20}}, Source: "node:/var/lib/kubelet/cpu_manager_state"},
			{Namespace: "shop", Pod: "sidecar", Container: "setup", Init: true, CPUs: ptr("0-1,6-7"), Source: "node:/var/lib/kubelet/cpu_manager_state"},
			{UID: "5f1c2b0e-0000-4000-8000-000000000001", CPUs: ptr("4-5"), Exclusive: true, Source: "node:/var/lib/kubelet/cpu_manager_state"},
		},
	}
}

// bareReport says almost nothing.
func bareReport() report.Report {
	return report.Report{APIVersion: report.APIVersion, Kind: report.NodeReport, Metadata: report.Metadata{Name: "n1", Node: "n1"}}
}

// unansweredReport is what a node that did not answer leaves.
func unansweredReport() report.Report {
	return report.Report{
		APIVersion: report.APIVersion, Kind: report.PodReport, Metadata: report.Metadata{Namespace: "shop", Name: "web-7d4b9c-x2x4z", Node: "n1"},
		ObservedAt: at("07:07:47"),
		Findings: []report.Finding{{Code: report.EvidenceMissing, Severity: report.Info, Confidence: report.Possible,
			Subject: report.Subject{Kind: "Pod", Namespace: "shop", Name: "web-7d4b9c-x2x4z"},
			Summary: "Nothing of the node could be read, so nothing is said about it."}},
		Resources: &report.Resources{Containers: []report.ResourceLevel{{Name: "web", Level: "container"}}},
		Gaps:      []report.Gap{{Wanted: "node:/sys/fs/cgroup", Reason: "the node pod was refused"}},
	}
}

// wideReport has two cells, none or several runes to a character.
func wideReport() report.Report {
	pod := report.Subject{Kind: "Pod", Namespace: "쇼핑", Name: "결제-서비스", Container: "앱"}
	return report.Report{
		APIVersion: report.APIVersion, Kind: report.PodReport, Metadata: report.Metadata{Namespace: "쇼핑", Name: "결제-서비스", Node: "노드-1"},
		ObservedAt: at("07:07:47"), Versions: report.Versions{Kubelet: "v1.37.2", Replay: "kubelet 1.37 rules"},
		Findings: []report.Finding{{
			Code: report.CPUQuotaThrottled, Severity: report.Warning, Confidence: report.Likely, Subject: pod,
			Summary: "컨테이너가 자신의 CPU 한도에 도달했습니다: 최근 삼십 초 동안 삼백 주기 가운데 이백구십 주기가 제한되었고 평균 사용량은 한도와 같습니다 👩‍🚀.",
			Because: []report.Evidence{
				{Source: "api:events/쇼핑/결제", Field: "메시지", Value: "제한됨", Means: "容器被限制在其自身的处理器配额之内因为在最近三十秒的三百个周期中有二百九十个周期被限制而且平均使用量与配额相同所以应当提高配额"},
				{Source: "api:pods/쇼핑/결제-서비스", Field: "e\u0301tat", Value: "bloque\u0301"},
				{Source: "api:pods/쇼핑/결제-서비스", Field: "plain", Value: "ascii"},
			},
		}},
		Resources: &report.Resources{Containers: []report.ResourceLevel{
			{Name: "앱", Level: "container", CPU: &report.CPUFacts{Weight: ptr[uint64](1)}},
			{Name: "proxy", Level: "container", CPU: &report.CPUFacts{Weight: ptr[uint64](10000)}},
		}},
	}
}

// hostile is text that would act on a terminal.
const hostile = "a\x1b[31mred\x1b]0;title\x07 \u009b2J\u0085 \u202egpj.exe\u2066\u200f\u061c nul\x00 cr\rX bs\b\b del\x7f tab\t nl\nfake  CRITICAL \xff\x85 \u2028\ufeff\U000e0041 end "

func hostileReport() report.Report {
	h := hostile
	return report.Report{
		APIVersion: report.APIVersion, Kind: report.Kind(h + "Report"),
		Metadata: report.Metadata{Namespace: h, Name: h, Node: h}, ObservedAt: at("07:07:47"),
		Versions: report.Versions{Kubelet: h, Kernel: h, ContainerRuntime: h, Karpenter: h, Replay: h},
		Findings: []report.Finding{{
			Code: report.Code(h), Severity: report.Severity(h), Confidence: report.Confidence(h),
			Subject: report.Subject{Kind: h, Namespace: h, Name: h, Container: h}, Summary: h, Arithmetic: h,
			Because:  []report.Evidence{{Source: h, Field: h, Value: h, Means: h}, {Source: "node:/" + h + h + "/x", Value: "  "}},
			Remedies: []report.Remedy{{Summary: h, Command: h, Patch: h, Effect: h, Caution: h}},
		}},
		Resources: &report.Resources{QOSClass: h, Containers: []report.ResourceLevel{{Name: h, Level: h, Cgroup: h, CPU: &report.CPUFacts{Weight: ptr[uint64](1)}}}},
		Placement: &report.Placement{Policy: h, Scope: h, Options: map[string]string{h: h}, TopologyPolicy: h, MemoryPolicy: h,
			CPUs:      &report.PlacementCPUs{All: &h, Online: &h, Reserved: &h, Shared: &h, Free: &h, Isolated: &h},
			NUMANodes: []report.NUMANode{{CPUs: h, FreeCPUs: &h, Memory: []report.NUMAMemory{{Type: h}}}},
			Containers: []report.PlacementContainer{{Namespace: h, Pod: h, Container: h, CPUs: &h, Live: &h, Source: h,
				Memory: []report.MemoryBlock{{Type: h}}}}},
		Gaps: []report.Gap{{Wanted: h, Reason: h, Costs: h, Fix: h}},
	}
}
