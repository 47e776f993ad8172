package topology

import (
	"fmt"
	"io/fs"

	"github.com/noderes/kubectl-noderes/pkg/alloc/cpuset"
)

// Read reads the machine from sysfs where there are CPU folders, else from lscpu, which is nil if there is none. In the second case
// the node folders and CPU lists that fsys has still count: memory, huge pages, distances and nodes without CPUs are taken from
// them, and so is the NUMA node of each CPU if lscpu does not tell it. fsys can be nil. With neither source the error matches
// fs.ErrNotExist.
func Read(fsys fs.FS, lscpu []byte) (*Topology, error) {
	if fsys == nil {
		if lscpu == nil {
			return nil, fmt.Errorf("no sysfs and no lscpu table: %w", fs.ErrNotExist)
		}
		return FromLscpu(lscpu)
	}
	cpus, err := readNumbered(fsys, cpuDir, "cpu")
	if err != nil {
		return nil, err
	}
	if len(cpus) > 0 || lscpu == nil {
		return FromSysfs(fsys)
	}
	return readLscpuBesideNodes(fsys, lscpu)
}

// readLscpuBesideNodes joins the table of lscpu with what fsys holds of the nodes and of the kernel's CPU lists.
func readLscpuBesideNodes(fsys fs.FS, lscpu []byte) (*Topology, error) {
	nodes, err := readNodeLists(fsys)
	if err != nil {
		return nil, err
	}
	t, err := fromLscpu(lscpu, nodes.of)
	if err != nil {
		return nil, err
	}
	listed := t.Kernel.Online
	if err := t.readLists(fsys); err != nil {
		return nil, err
	}
	if t.Kernel.Online != listed {
		t.note(cpuDir+"/online", fmt.Sprintf("%q, but lscpu lists %q", t.Kernel.Online.CPUs, listed.CPUs))
	}
	for _, n := range nodes.folders {
		have, _ := t.NUMANode(n.id)
		if want, ok := nodes.cpus[n.id]; ok && have.CPUs != want {
			t.note(nodeDir+"/"+n.name, fmt.Sprintf("has the cpus %q, but lscpu puts %q there", want, have.CPUs))
		}
		if err := t.readNode(fsys, n); err != nil {
			return nil, err
		}
	}
	return t, t.readProc(fsys)
}

// nodeLists is what the node folders say about CPUs.
type nodeLists struct {
	folders []numbered
	cpus    map[int]cpuset.Set // by node; without nodes whose folder has neither cpuN entries nor a cpulist
}

func readNodeLists(fsys fs.FS) (nodeLists, error) {
	folders, err := readNumbered(fsys, nodeDir, "node")
	lists := nodeLists{folders, map[int]cpuset.Set{}}
	for _, n := range folders {
		ids, err := readNodeCPUs(fsys, n)
		if err != nil {
			return lists, err
		}
		if ids != nil {
			lists.cpus[n.id] = cpuset.Of(ids...)
		}
	}
	return lists, err
}

// of returns the node of a CPU for which lscpu names none. Without node folders each socket stands for a node, as for the kubelet.
func (l nodeLists) of(row lscpuRow) (int, error) {
	if len(l.folders) == 0 {
		return row.socket.n, nil
	}
	for _, n := range l.folders {
		if l.cpus[n.id].Contains(row.cpu) {
			return n.id, nil
		}
	}
	if len(l.folders) == 1 && len(l.cpus) == 0 {
		return l.folders[0].id, nil
	}
	return 0, fmt.Errorf("no NUMA node named for cpu %d, and no folder of %s lists it", row.cpu, nodeDir)
}
