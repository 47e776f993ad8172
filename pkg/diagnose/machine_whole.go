package diagnose

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/noderes/kubectl-noderes/pkg/alloc/cpuset"
	"github.com/noderes/kubectl-noderes/pkg/alloc/topology"
	"github.com/noderes/kubectl-noderes/pkg/snapshot"
)

const (
	sysCPU  = "sys/devices/system/cpu"
	sysNode = "sys/devices/system/node"
)

// partialError says that what was read of the machine is not all of it, or
// contradicts itself: the kubelet, which reads its own files, may see another
// machine, and nothing of its managers follows from this one.
type partialError struct {
	path  string // in the node's file system, or lscpu.txt
	why   string
	cause error // why the file was not read; nil where the data contradict
}

func (e partialError) Error() string { return e.path + ": " + e.why }

func (e partialError) Unwrap() error { return e.cause }

// machineDoubt is why a topology is no basis for a verdict; nil if nothing
// speaks against it. A file that the node is known not to have is no doubt,
// unless another file shows what it would list.
func (n *nodeCase) machineDoubt(t *topology.Topology, lscpu []byte) error {
	for _, doubt := range []func(*topology.Topology) error{n.cpusDoubt, n.nodesDoubt, n.hugePagesDoubt} {
		if err := doubt(t); err != nil {
			return err
		}
	}
	return lscpuDoubt(t, lscpu)
}

// lacking is the doubt about a file that is not there; shows says what another
// one tells of it.
func (n *nodeCase) lacking(path, shows string) error {
	_, err := fs.Stat(n.fsys, path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return partialError{path, unreadWord(err) + ", but " + shows, err}
	}
	return partialError{path, "contradictory: absent, but " + shows, nil}
}

func unreadWord(err error) string {
	if errors.Is(err, snapshot.ErrNotCollected) {
		return snapshot.ErrNotCollected.Error()
	}
	return snapshot.Reason(err)
}

func (n *nodeCase) exists(path string) bool {
	_, err := fs.Stat(n.fsys, path)
	return err == nil
}

// cpusDoubt: every CPU that is online has ids and, where there are NUMA nodes,
// a node.
func (n *nodeCase) cpusDoubt(t *topology.Topology) error {
	if t.Source != topology.Sysfs {
		return nil
	}
	var folders cpuset.Set
	for _, k := range t.Kernel.CPUs {
		if k.ID < cpuset.MaxCPUs {
			folders.Add(k.ID)
		}
		if _, seen := t.CPU(k.ID); seen || t.Kernel.Online.Known && !t.Kernel.Online.CPUs.Contains(k.ID) {
			continue
		}
		dir := fmt.Sprintf("%s/cpu%d/topology", sysCPU, k.ID)
		shows := fmt.Sprintf("CPU %d is online", k.ID)
		switch {
		case k.HasIDs:
			return n.lacking(n.unlistedNode(t), shows+" and on no NUMA node that was read")
		case !t.Kernel.Online.Known && !n.exists(dir):
			continue // an offline CPU has none
		case !n.exists(dir + "/core_id"):
			return n.lacking(dir+"/core_id", shows)
		case !n.exists(dir + "/physical_package_id"):
			return n.lacking(dir+"/physical_package_id", shows)
		}
	}
	if missing := t.Kernel.Online.CPUs.Difference(folders); t.Kernel.Online.Known && !missing.IsEmpty() {
		first, _ := missing.First()
		return n.lacking(fmt.Sprintf("%s/cpu%d", sysCPU, first), fmt.Sprintf("%s is online", cpusText(missing)))
	}
	return nil
}

func cpusText(set cpuset.Set) string { return noun(set.Size(), "CPU") + " " + set.String() }

// unlistedNode is the file that would name the node of a CPU that has none.
func (n *nodeCase) unlistedNode(t *topology.Topology) string {
	for _, node := range t.NUMANodes {
		path := fmt.Sprintf("%s/node%d/cpulist", sysNode, node.ID)
		if node.CPUs.IsEmpty() && !n.exists(path) {
			return path
		}
	}
	if missing := n.missingNodes(t); !missing.IsEmpty() {
		first, _ := missing.First()
		return fmt.Sprintf("%s/node%d", sysNode, first)
	}
	return sysNode + "/node*/cpulist"
}

// missingNodes are NUMA nodes that the kernel lists and whose folder is not there.
func (n *nodeCase) missingNodes(t *topology.Topology) cpuset.Set {
	text, err := fs.ReadFile(n.fsys, sysNode+"/online")
	if err != nil {
		return cpuset.Set{}
	}
	listed, err := cpuset.Parse(strings.TrimSpace(string(text)))
	if err != nil {
		return cpuset.Set{}
	}
	for _, node := range t.NUMANodes {
		if node.ID < cpuset.MaxCPUs {
			listed = listed.Difference(cpuset.Of(node.ID))
		}
	}
	return listed
}

// nodesDoubt: the folders are those of all NUMA nodes, as each row of distances
// counts them.
func (n *nodeCase) nodesDoubt(t *topology.Topology) error {
	if t.Source != topology.Sysfs {
		return nil
	}
	if missing := n.missingNodes(t); !missing.IsEmpty() {
		first, _ := missing.First()
		return n.lacking(fmt.Sprintf("%s/node%d", sysNode, first), sysNode+"/online lists the node")
	}
	memory := slices.ContainsFunc(t.NUMANodes, func(node topology.NUMANode) bool { return node.HasMemTotal })
	distances := slices.ContainsFunc(t.NUMANodes, func(node topology.NUMANode) bool { return node.HasDistances })
	for _, node := range t.NUMANodes {
		dir := fmt.Sprintf("%s/node%d", sysNode, node.ID)
		_, meminfo := fs.Stat(n.fsys, dir+"/meminfo")
		_, distance := fs.Stat(n.fsys, dir+"/distance")
		switch {
		case node.HasDistances && len(node.Distances) != len(t.NUMANodes):
			return partialError{dir + "/distance", fmt.Sprintf("contradictory: it has distances to %s, but %s read", plural(len(node.Distances), "NUMA node"), plural(len(t.NUMANodes), "folder")+wasWere(len(t.NUMANodes))), nil}
		case memory && !node.HasMemTotal && errors.Is(meminfo, fs.ErrNotExist):
			return partialError{dir + "/meminfo", "contradictory: absent, but other NUMA nodes have it", nil}
		case distances && !node.HasDistances && errors.Is(distance, fs.ErrNotExist):
			return partialError{dir + "/distance", "contradictory: absent, but other NUMA nodes have it", nil}
		}
	}
	return nil
}

func wasWere(n int) string { return " " + verb(n, "was", "were") }

// hugePagesDoubt: a pool has a number of pages, and every node the same sizes.
// They are of the Memory Manager alone.
func (n *nodeCase) hugePagesDoubt(t *topology.Topology) error {
	if n.configErr != nil || n.config.MemoryManagerPolicy != "Static" {
		return nil
	}
	sizes := map[uint64]bool{}
	var order []uint64
	for _, node := range t.NUMANodes {
		for _, pages := range node.HugePages {
			if !pages.HasCount {
				return n.lacking(fmt.Sprintf("%s/node%d/hugepages/hugepages-%dkB/nr_hugepages", sysNode, node.ID, pages.SizeKiB), "the node has pages of the size")
			}
			if !sizes[pages.SizeKiB] {
				sizes[pages.SizeKiB], order = true, append(order, pages.SizeKiB)
			}
		}
	}
	for _, node := range t.NUMANodes {
		dir := fmt.Sprintf("%s/node%d/hugepages", sysNode, node.ID)
		if _, err := fs.Stat(n.fsys, dir); !node.HasMemTotal || len(node.HugePages) == 0 && !errors.Is(err, fs.ErrNotExist) {
			continue // what the Memory Manager's checkpoint notes stands in for it
		}
		for _, size := range order {
			if !slices.ContainsFunc(node.HugePages, func(p topology.HugePages) bool { return p.SizeKiB == size }) {
				return n.lacking(fmt.Sprintf("%s/hugepages-%dkB", dir, size), "other NUMA nodes have pages of the size")
			}
		}
	}
	return nil
}

// lscpuDoubt: lscpu lists the CPUs that are online, and may name their nodes.
func lscpuDoubt(t *topology.Topology, lscpu []byte) error {
	if t.Source == topology.Lscpu {
		for _, note := range t.Notes {
			if note.Path == sysCPU+"/online" || strings.HasPrefix(note.Path, sysNode+"/") && strings.Contains(note.Text, "lscpu puts") {
				return partialError{note.Path, "contradictory: " + note.Text, nil}
			}
		}
		return nil
	}
	if lscpu == nil {
		return nil
	}
	table, err := topology.FromLscpu(lscpu)
	if err != nil {
		return nil
	}
	if here, there := t.AllCPUs(), table.AllCPUs(); here != there {
		return partialError{"lscpu.txt", fmt.Sprintf("contradictory: it lists the CPUs %s, sysfs has %s", there, here), nil}
	}
	header, _, _ := strings.Cut(strings.ToUpper(string(lscpu)), "\n0,")
	if !strings.Contains(header, "NODE") {
		return nil
	}
	for _, cpu := range table.CPUs {
		if mine, _ := t.CPU(cpu.ID); mine.NUMANode != cpu.NUMANode {
			return partialError{"lscpu.txt", fmt.Sprintf("contradictory: it has CPU %d on NUMA node %d, sysfs on node %d", cpu.ID, cpu.NUMANode, mine.NUMANode), nil}
		}
	}
	return nil
}

// distancesDoubt: prefer-closest-numa-nodes needs a row of distances from every
// NUMA node. What nobody collected is not absent.
func (n *nodeCase) distancesDoubt(t *topology.Topology) error {
	if n.config.TopologyManagerPolicyOptions["prefer-closest-numa-nodes"] != "true" || n.config.TopologyManagerPolicy == "none" {
		return nil
	}
	for _, node := range t.NUMANodes {
		path := fmt.Sprintf("%s/node%d/distance", sysNode, node.ID)
		if _, err := fs.Stat(n.fsys, path); !node.HasDistances && err != nil && !errors.Is(err, fs.ErrNotExist) {
			return partialError{path, unreadWord(err) + ", but prefer-closest-numa-nodes needs it", err}
		}
	}
	return nil
}

// lackMachine notes a doubt as a gap.
func (n *nodeCase) lackMachine(e partialError, costs string) {
	wanted := n.filePath(e.path)
	if e.path == "lscpu.txt" {
		wanted = "nodes/" + n.name + "/" + e.path
	}
	n.gaps.Lack(wanted, e.why, costs, "the node pod")
}
