package diagnose

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/noderes/kubectl-noderes/pkg/report"
)

// kubeletDown makes the node one that no kubelet answers for.
func kubeletDown(b *bundle) {
	for i := range b.object().Status.Conditions {
		if c := &b.object().Status.Conditions[i]; c.Type == corev1.NodeReady {
			c.Status, c.Reason = corev1.ConditionUnknown, "NodeStatusUnknown"
		}
	}
}

func withVersion(version string) func(*bundle) {
	return func(b *bundle) { b.object().Status.NodeInfo.KubeletVersion = version }
}

// withLscpu gives the node another machine: rows of CPU, core, socket and NUMA
// node. Its files of the old one and its checkpoints go.
func withLscpu(rows ...string) func(*bundle) {
	return func(b *bundle) {
		b.forget(b.root("sys/devices/system"))
		b.forget(b.root("var/lib/kubelet"))
		b.forget(b.root("proc/cpuinfo"))
		b.files["nodes/"+b.node+"/lscpu.txt"] = "# CPU,CORE,SOCKET,NODE\n" + strings.Join(rows, "\n") + "\n"
	}
}

// nodesOf makes NUMA nodes of so many cores with one thread each.
func nodesOf(nodes int) []string {
	var rows []string
	for i := range 2 * nodes {
		rows = append(rows, fmt.Sprintf("%d,%d,%d,%d", i, i, i/2, i/2))
	}
	return rows
}

// unevenNodes are four NUMA nodes of 5, 5, 4 and 4 CPUs in two cores each.
func unevenNodes() []string {
	var rows []string
	cpu := 0
	for node, cores := range [][]int{{4, 1}, {4, 1}, {2, 2}, {2, 2}} {
		for core, threads := range cores {
			for range threads {
				rows = append(rows, fmt.Sprintf("%d,%d,%d,%d", cpu, 2*node+core, node, node))
				cpu++
			}
		}
	}
	return rows
}

func startsFamily() family {
	set := func(fields map[string]any) func(*bundle) { return func(b *bundle) { b.config(fields) } }
	numa4 := recorded("numa4-k61/bundle", "mill", "one")
	f := family{name: "kubelet start", codes: []report.Code{
		report.ReservedMemoryMismatch, report.TooManyNUMANodes, report.KubeletCheckpointInvalid, report.KubeletConfigInvalid, report.KubeletWouldHang,
	}}
	add := func(name string, on func(b *bundle), want string, text ...string) {
		c := ruleCase{name: name, on: numa4, edit: inOrder(kubeletDown, on), node: true, text: text}
		if want != "" {
			c.want = []string{want}
		}
		f.cases = append(f.cases, c)
	}
	const (
		mismatch = "reserved-memory-mismatch@ proven"
		config   = "kubelet-config-invalid@ proven"
		invalid  = "kubelet-checkpoint-invalid@ proven"
	)
	nothing := func(*bundle) {}
	memory := func(entries ...any) map[string]any {
		var list []any
		for i := 0; i+2 < len(entries); i += 3 {
			list = append(list, map[string]any{"numaNode": entries[i], "limits": map[string]any{entries[i+1].(string): entries[i+2]}})
		}
		return map[string]any{"reservedMemory": list}
	}
	add("as recorded", nothing, "")
	f.cases = append(f.cases, ruleCase{name: "as recorded, up", on: numa4, node: true}, ruleCase{name: "the other recording", on: exclusivePod, node: true})

	add("no reservedMemory", set(map[string]any{"reservedMemory": nil}), mismatch, "sums up to 0 of memory", "1Gi", "numaNode: 0\\n  limits:\\n    memory: 1Gi", "424Mi + evictionHard[memory.available] 600Mi = 1Gi")
	add("100 MiB too much", set(memory(0, "memory", "868Mi", 2, "memory", "256Mi")), mismatch, "1124Mi", "numaNode: 2\\n  limits:\\n    memory: 156Mi")
	add("too little on the last node", set(memory(0, "memory", "768Mi", 2, "memory", "56Mi")), mismatch, "824Mi", "memory: 968Mi")
	add("a checkpoint of the Static policy, and None", set(map[string]any{"memoryManagerPolicy": "None"}), invalid, "differs from state checkpoint policy")
	add("huge pages kept back", set(memory(0, "memory", "768Mi", 2, "memory", "256Mi", 1, "hugepages-2Mi", "8Mi")), mismatch, "8Mi of hugepages-2Mi where the node keeps back 0")
	add("a kubelet runs, by the same configuration", nothing, "")
	f.cases = append(f.cases, ruleCase{name: "the sums differ, and a kubelet runs with them", on: numa4, edit: set(memory(0, "memory", "1")), node: true, want: []string{"reserved-memory-mismatch@ likely"}})
	add("a threshold in percent", set(map[string]any{"evictionHard": map[string]any{"memory.available": "10%"}}), mismatch, "10%")

	add("9 NUMA nodes", inOrder(withLscpu(nodesOf(9)...), set(map[string]any{"memoryManagerPolicy": "None", "reservedSystemCPUs": "0", "topologyManagerPolicyOptions": nil})), "too-many-numa-nodes@ proven", "9 NUMA nodes", "max-allowable-numa-nodes: \\\"9\\\"", "unsupported on machines with more than 8 NUMA Nodes")
	add("8 NUMA nodes", inOrder(withLscpu(nodesOf(8)...), set(map[string]any{"memoryManagerPolicy": "None", "reservedSystemCPUs": "0", "topologyManagerPolicyOptions": nil})), "")
	add("9 NUMA nodes, and allowed", inOrder(withLscpu(nodesOf(9)...), set(map[string]any{"memoryManagerPolicy": "None", "reservedSystemCPUs": "0", "topologyManagerPolicyOptions": map[string]any{"max-allowable-numa-nodes": "9"}})), "")
	add("10 NUMA nodes, 9 allowed", inOrder(withLscpu(nodesOf(10)...), set(map[string]any{"memoryManagerPolicy": "None", "reservedSystemCPUs": "0", "topologyManagerPolicyOptions": map[string]any{"max-allowable-numa-nodes": "9"}})), "too-many-numa-nodes@ proven", "takes 9")
	add("9 NUMA nodes, no Topology Manager", inOrder(withLscpu(nodesOf(9)...), set(map[string]any{"memoryManagerPolicy": "None", "reservedSystemCPUs": "0", "topologyManagerPolicy": "none"})), "")
	add("less than 8 allowed", set(map[string]any{"topologyManagerPolicyOptions": map[string]any{"max-allowable-numa-nodes": "4"}}), config, "should not be less than 8")
	add("distances that nobody collected", inOrder(withLscpu(nodesOf(4)...), set(map[string]any{"memoryManagerPolicy": "None", "reservedSystemCPUs": "0"})), "")

	hang := map[string]any{"memoryManagerPolicy": "None", "reservedSystemCPUs": nil, "kubeReserved": map[string]any{"cpu": "14"}, "systemReserved": nil, "topologyManagerPolicy": "none", "topologyManagerPolicyOptions": nil}
	options := func(names ...string) map[string]any {
		o := map[string]any{}
		for _, name := range names {
			o[name] = "true"
		}
		return map[string]any{"cpuManagerPolicyOptions": o}
	}
	add("reserved CPUs that are spread for ever", inOrder(withLscpu(unevenNodes()...), set(hang), set(options("full-pcpus-only", "distribute-cpus-across-numa"))), "kubelet-would-hang@ proven", "kubeReserved 14")
	add("reserved CPUs that are packed", inOrder(withLscpu(unevenNodes()...), set(hang), set(options("full-pcpus-only"))), "")

	add("options that exclude each other", set(options("full-pcpus-only", "distribute-cpus-across-cores")), config, "Alpha-level Options not enabled")
	add("options that exclude each other, and are allowed", inOrder(set(options("full-pcpus-only", "distribute-cpus-across-cores")), set(map[string]any{"featureGates": map[string]bool{"CPUManagerPolicyAlphaOptions": true}})), config, "can not be used at the same time")
	add("a misspelt option", set(options("full-cpus-only")), config, `unknown CPU Manager Policy option: \"full-cpus-only\"`)
	add("a value that is no bool", set(map[string]any{"cpuManagerPolicyOptions": map[string]any{"full-pcpus-only": "yes"}}), config, "bad value for option")
	add("align-by-socket with single-numa-node", inOrder(set(options("align-by-socket")), set(map[string]any{"featureGates": map[string]bool{"CPUManagerPolicyAlphaOptions": true}, "topologyManagerPolicy": "single-numa-node", "topologyManagerPolicyOptions": nil})), config, "Topolgy manager single-numa-node policy is incompatible")
	add("options without the static policy", func(b *bundle) {
		b.config(map[string]any{"cpuManagerPolicy": "none"})
		b.files[b.root("var/lib/kubelet/cpu_manager_state")] = `{"policyName":"none","defaultCpuSet":"","checksum":1353318690}`
	}, config, "unsupported options")
	add("no CPU reserved", set(map[string]any{"reservedSystemCPUs": nil, "kubeReserved": map[string]any{"memory": "424Mi"}, "systemReserved": nil}), config, "unable to determine reserved CPU resources for static policy")
	add("reserved CPUs that are not there", set(map[string]any{"reservedSystemCPUs": "0,8"}), config, "reserved-cpus: 0,8 is not a subset of online-cpus: 0-7")
	add("a NUMA node that is not there", set(memory(0, "memory", "768Mi", 7, "memory", "256Mi")), config, "references a NUMA node 7 that does not exist")
	add("reservedMemory of 0", set(memory(0, "memory", "0", 2, "memory", "1Gi")), config, "reserved memory may not be zero")
	add("reservedMemory twice", set(memory(0, "memory", "512Mi", 0, "memory", "512Mi")), config, "duplicate value")
	add("an amount that is none", set(map[string]any{"kubeReserved": map[string]any{"cpu": "1", "memory": "1 GB"}}), config, "--kube-reserved value failed to parse")
	add("a threshold that is none", set(map[string]any{"evictionHard": map[string]any{"memory.availible": "100Mi"}}), config, "unsupported eviction signal")
	add("a list of CPUs that is none", set(map[string]any{"reservedSystemCPUs": "0-"}), "kubelet-config-invalid@ proven", "reservedSystemCPUs")
	add("an unknown policy", set(map[string]any{"topologyManagerPolicy": "Restricted"}), config, "must be one of")
	f.cases = append(f.cases, ruleCase{name: "a policy of Windows, and another than before", on: numa4, edit: inOrder(kubeletDown, set(map[string]any{"memoryManagerPolicy": "BestEffort"})), node: true, want: []string{config, invalid}, text: []string{"is not available for platform"}})
	add("a gate that is locked", set(map[string]any{"featureGates": map[string]bool{"DisableCPUQuotaWithExclusiveCPUs": false}}), config, "feature is locked to true")
	add("that gate in 1.36", inOrder(withVersion("v1.36.3"), set(map[string]any{"featureGates": map[string]bool{"DisableCPUQuotaWithExclusiveCPUs": false}})), "")
	add("a gate that is gone", set(map[string]any{"featureGates": map[string]bool{"MemoryManager": true}}), config, "unrecognized feature gate: MemoryManager")
	add("a gate that another needs", set(map[string]any{"featureGates": map[string]bool{"PodLevelResources": false, "PodLevelResourceManagers": true, "InPlacePodLevelResourcesVerticalScaling": false, "PodLevelResourcesFixDefaulting": false, "PodLevelResourcesFixKubeletQOSClass": false}}), config, "depends on features that are disabled: [PodLevelResources]")

	cpus := func(text string) func(*bundle) {
		return func(b *bundle) { b.files[b.root("var/lib/kubelet/cpu_manager_state")] = text }
	}
	add("CPUs of a smaller machine", cpus(`{"policyName":"static","defaultCpuSet":"0-5"}`), invalid, "current set of available CPUs", "0-7 − 0-5 = 6-7")
	f.cases = append(f.cases, ruleCase{name: "CPUs of a smaller machine, and a kubelet runs", on: numa4, edit: cpus(`{"policyName":"static","defaultCpuSet":"0-5"}`), node: true, want: []string{"kubelet-checkpoint-invalid@ likely"}})
	add("CPUs of a larger machine", cpus(`{"policyName":"static","defaultCpuSet":"0-15"}`), invalid, "0-15 − 0-7 = 8-15")
	add("a reserved CPU that is given away", cpus(`{"policyName":"static","defaultCpuSet":"0-3,5-7","entries":{"u":{"c":"4"}}}`), invalid, "not all reserved cpus")
	add("reserved CPUs in the pool, strict", inOrder(cpus(`{"policyName":"static","defaultCpuSet":"0-7"}`), set(options("strict-cpu-reservation"))), invalid, "some of strictly reserved cpus")
	add("a set that is in the pool as well", cpus(`{"policyName":"static","defaultCpuSet":"0-7","entries":{"u":{"c":"2-3"}}}`), invalid, "overlaps with default cpuset")
	add("an empty pool beside assignments", cpus(`{"policyName":"static","defaultCpuSet":"","entries":{"u":{"c":"0-7"}}}`), invalid, "default cpuset cannot be empty")
	add("entries by container id", cpus(`{"policyName":"static","defaultCpuSet":"0-3,5-7","entries":{"0123456789abcdef":"4"}}`), invalid, "before 1.18")
	add("other reservations, the same sum", set(memory(0, "memory", "512Mi", 1, "memory", "512Mi")), invalid, "the expected machine state is different from the real one", "reservedMemory now says 536870912 bytes")
	add("more memory than before", func(b *bundle) {
		file := b.root("sys/devices/system/node/node3/meminfo")
		b.files[file] = "Node 3 MemTotal:        2097152 kB\n"
	}, invalid, "the machine has 2147483648 bytes of it there")
	add("memory that nobody collected", func(b *bundle) {
		for i := range 4 {
			b.forget(b.root(fmt.Sprintf("sys/devices/system/node/node%d/meminfo", i)))
			b.forget(b.root(fmt.Sprintf("sys/devices/system/node/node%d/hugepages", i)))
		}
	}, "")
	f.cases = append(f.cases,
		ruleCase{name: "no reservedMemory, asked about a pod", on: numa4, edit: inOrder(kubeletDown, set(map[string]any{"reservedMemory": nil})), want: []string{mismatch}},
		ruleCase{name: "no reservedMemory, asked about a pod whose kubelet runs", on: numa4, edit: set(map[string]any{"reservedMemory": nil}), want: nil},
		ruleCase{name: "prefer-closest-numa-nodes, and ids with holes", node: true, on: sparse("0", "2"), want: []string{"kubelet-would-hang@ proven"}, text: []string{"the ids have holes", "index out of range"}},
		ruleCase{name: "prefer-closest-numa-nodes, and ids without", node: true, on: sparse("0", "1"), want: nil})
	add("1.36 reads what 1.37 wrote", withVersion("v1.36.3"), "")
	return f
}

// sparse is a machine with NUMA nodes of those ids, whose distances are known, a
// pod that fits either, and prefer-closest-numa-nodes.
func sparse(ids ...string) func(testing.TB) *bundle {
	config := map[string]any{"topologyManagerPolicy": "best-effort", "topologyManagerPolicyOptions": map[string]string{"prefer-closest-numa-nodes": "true"}}
	rows := adjacent(4*len(ids), 2, 4, 4)
	waiting := whole("a", 1, "2")
	waiting.Status = corev1.PodStatus{Phase: corev1.PodPending}
	return func(t testing.TB) *bundle {
		b := onMachine(rows, config, "0-7", nil, waiting)(t)
		b.forget("nodes/n1/lscpu.txt")
		for i, id := range ids {
			dir := b.root("sys/devices/system/node/node" + id + "/")
			b.files[dir+"cpulist"] = fmt.Sprintf("%d-%d\n", 4*i, 4*i+3)
			b.files[dir+"distance"] = "10 21\n"
			b.files[dir+"meminfo"] = "Node " + id + " MemTotal: 4194304 kB\n"
		}
		for cpu, r := range rows {
			dir := b.root(fmt.Sprintf("sys/devices/system/cpu/cpu%d/topology/", cpu))
			b.files[dir+"core_id"], b.files[dir+"physical_package_id"] = fmt.Sprintln(r.core), fmt.Sprintln(r.node)
		}
		b.files[b.root("sys/devices/system/cpu/online")] = fmt.Sprintf("0-%d\n", len(rows)-1)
		b.files[b.root("sys/devices/system/node/online")] = strings.Join(ids, ",") + "\n"
		return b
	}
}
