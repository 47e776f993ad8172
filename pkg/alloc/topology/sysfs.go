package topology

import (
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strings"

	"github.com/noderes/kubectl-noderes/pkg/alloc/cpuset"
)

// FromSysfs reads the machine from a tree that is rooted at the node's "/": sys/devices/system/{cpu,node} and proc/{cpuinfo,meminfo}.
// It follows cadvisor (GetNodesInfo, getCoresInfo, addCacheInfo, GetSockets) and the kubelet's topology.Discover of 1.37, with two
// allowances for trees that were copied without links: where a node folder has no cpuN entries, its cpulist tells its CPUs, and where
// a cache has no shared_cpu_map, its shared_cpu_list is counted.
//
// A file that does not exist is treated as the kubelet treats it. A file that exists and cannot be read or parsed is an error, also
// where the kubelet would go on, because its answer cannot then be told. Without CPU folders the error matches fs.ErrNotExist.
func FromSysfs(fsys fs.FS) (*Topology, error) {
	t := &Topology{Source: Sysfs}
	cpus, err := readNumbered(fsys, cpuDir, "cpu")
	if err != nil {
		return nil, err
	}
	if len(cpus) == 0 {
		return nil, fmt.Errorf("%s: no cpu folders: %w", cpuDir, fs.ErrNotExist)
	}
	online, err := readOnline(fsys)
	if err != nil {
		return nil, err
	}
	if err := t.readLists(fsys); err != nil {
		return nil, err
	}
	keys, err := t.readCPUs(fsys, cpus, online)
	if err != nil {
		return nil, err
	}
	caches, err := t.readCaches(fsys, cpus, online)
	if err != nil {
		return nil, err
	}

	nodes, err := readNumbered(fsys, nodeDir, "node")
	if err != nil {
		return nil, err
	}
	var threads []thread
	if len(nodes) == 0 {
		t.note(nodeDir, "no NUMA node folders: each package stands for a node, without memory")
		for _, c := range cpus {
			if key, ok := keys[c.id]; ok {
				key.numa = key.pkg
				threads = append(threads, thread{c.id, key})
			}
		}
	}
	for _, n := range nodes {
		members, err := readNodeCPUs(fsys, n)
		if err != nil {
			return nil, err
		}
		for _, id := range members {
			if key, ok := keys[id]; ok {
				key.numa = n.id
				threads = append(threads, thread{id, key})
			}
		}
	}
	for _, th := range threads {
		if th.cpu >= cpuset.MaxCPUs {
			return nil, fmt.Errorf("%s/cpu%d: %w", cpuDir, th.cpu, cpuset.ErrRange)
		}
	}
	t.noteLeftOut(threads, online)
	err = t.assemble(threads, func(cpu int) ([]levelCache, error) {
		c := caches[cpu]
		return c.list, c.err
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", cpuDir, err)
	}
	if len(nodes) == 0 {
		t.NumCPUs = len(cpus)
	}
	for _, n := range nodes {
		if err := t.readNode(fsys, n); err != nil {
			return nil, err
		}
	}
	return t, t.readProc(fsys)
}

// onlineCPUs is cpu/online; without that file the kernel cannot take CPUs offline and all are online.
type onlineCPUs struct {
	set cpuset.Set
	all bool
}

func (o onlineCPUs) has(id int) bool { return o.all || o.set.Contains(id) }

func readOnline(fsys fs.FS) (onlineCPUs, error) {
	path := cpuDir + "/online"
	text, ok, err := readFile(fsys, path)
	if err != nil {
		return onlineCPUs{}, err
	}
	if !ok {
		return onlineCPUs{all: true}, nil
	}
	if text == "" {
		return onlineCPUs{}, fmt.Errorf("%s: empty, so that no cpu counts as online", path)
	}
	set, err := cpuset.Parse(text)
	if err != nil {
		return onlineCPUs{}, fmt.Errorf("%s: %w", path, err)
	}
	return onlineCPUs{set: set}, nil
}

// readLists reads the CPU lists of the kernel's view. They decide nothing here, so a list that a set cannot hold (offline lists
// can name every id that the kernel was built for) is a note.
func (t *Topology) readLists(fsys fs.FS) error {
	for _, f := range []struct {
		name string
		list *List
	}{
		{"online", &t.Kernel.Online}, {"offline", &t.Kernel.Offline},
		{"isolated", &t.Kernel.Isolated}, {"nohz_full", &t.Kernel.NohzFull},
	} {
		path := cpuDir + "/" + f.name
		text, ok, err := readFile(fsys, path)
		if err != nil {
			return err
		}
		if !ok {
			continue
		}
		set, err := parseList(text)
		if err != nil {
			t.note(path, err.Error())
			continue
		}
		*f.list = List{set, true}
	}
	return nil
}

// noteLeftOut says which online CPUs the kubelet does not see: without core_id or package, or in no NUMA node.
func (t *Topology) noteLeftOut(threads []thread, online onlineCPUs) {
	seen := map[int]bool{}
	for _, th := range threads {
		seen[th.cpu] = true
	}
	known := map[int]bool{}
	for _, k := range t.Kernel.CPUs {
		known[k.ID] = true
		if online.has(k.ID) && !seen[k.ID] {
			why := "in no NUMA node"
			if !k.HasIDs {
				why = "without core_id or physical_package_id"
			}
			t.note(fmt.Sprintf("%s/cpu%d", cpuDir, k.ID), "online, but "+why+": the kubelet leaves it out")
		}
	}
	for id := range online.set.All() {
		if !known[id] {
			t.note(fmt.Sprintf("%s/cpu%d", cpuDir, id), "online, but has no folder here")
		}
	}
}

// readCPUs reads the ids of every CPU folder and returns those of the online CPUs that have both ids.
func (t *Topology) readCPUs(fsys fs.FS, cpus []numbered, online onlineCPUs) (map[int]coreKey, error) {
	keys := map[int]coreKey{}
	for _, c := range cpus {
		dir := cpuDir + "/" + c.name + "/topology/"
		var key coreKey
		var hasCore, hasPackage bool
		var err error
		if key.id, hasCore, err = readInt(fsys, dir+"core_id"); err != nil {
			return nil, err
		}
		if key.pkg, hasPackage, err = readInt(fsys, dir+"physical_package_id"); err != nil {
			return nil, err
		}
		if key.book, _, err = readFile(fsys, dir+"book_id"); err != nil {
			return nil, err
		}
		if key.drawer, _, err = readFile(fsys, dir+"drawer_id"); err != nil {
			return nil, err
		}
		kernel := KernelCPU{ID: c.id, CoreID: key.id, PackageID: key.pkg, HasIDs: hasCore && hasPackage}
		if kernel.Siblings, err = t.readSiblings(fsys, dir); err != nil {
			return nil, err
		}
		t.Kernel.CPUs = append(t.Kernel.CPUs, kernel)
		if kernel.HasIDs && online.has(c.id) {
			keys[c.id] = key
		}
	}
	slices.SortFunc(t.Kernel.CPUs, func(a, b KernelCPU) int { return a.ID - b.ID })
	return keys, nil
}

func (t *Topology) readSiblings(fsys fs.FS, dir string) (cpuset.Set, error) {
	for _, name := range []string{"core_cpus_list", "thread_siblings_list"} {
		text, ok, err := readFile(fsys, dir+name)
		if err != nil {
			return cpuset.Set{}, err
		}
		if !ok {
			continue
		}
		set, err := parseList(text)
		if err != nil {
			t.note(dir+name, err.Error())
		}
		return set, nil
	}
	return cpuset.Set{}, nil
}

// physicalID is a line of proc/cpuinfo that counts as a socket (cadvisor, GetSockets).
var physicalID = regexp.MustCompile(`^physical id\s*:\s*[0-9]+$`)

// readProc reads the socket count, which the kubelet takes from proc/cpuinfo where that names packages, and the machine's memory.
func (t *Topology) readProc(fsys fs.FS) error {
	cpuinfo, _, err := readFile(fsys, "proc/cpuinfo")
	if err != nil {
		return err
	}
	sockets := map[string]bool{}
	for line := range strings.SplitSeq(cpuinfo, "\n") {
		if strings.HasPrefix(line, "physical id") && physicalID.MatchString(line) {
			sockets[line] = true
		}
	}
	if len(sockets) > 0 {
		t.NumSockets = len(sockets)
	}

	meminfo, ok, err := readFile(fsys, "proc/meminfo")
	if err != nil || !ok {
		return err
	}
	t.MemTotal, err = parseMemTotal(meminfo)
	if err != nil {
		return fmt.Errorf("proc/meminfo: %w", err)
	}
	t.HasMemTotal = true
	return nil
}
