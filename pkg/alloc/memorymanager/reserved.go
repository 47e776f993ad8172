package memorymanager

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/noderes/kubectl-noderes/pkg/alloc/kubeletconfig"
	"github.com/noderes/kubectl-noderes/pkg/alloc/topology"
)

type reservedMemory map[int]map[corev1.ResourceName]uint64

// readReserved checks reservedMemory against the node's reservation. The errors are the possible ones: which of several types is
// named hangs on the order of a map.
func readReserved(nodes []topology.NUMANode, reservation corev1.ResourceList, config []kubeletconfig.MemoryReservation) (reservedMemory, []error) {
	known := map[int]bool{}
	for _, n := range nodes {
		known[n.ID] = true
	}
	sums := map[corev1.ResourceName]resource.Quantity{}
	for _, r := range config {
		if !known[r.NUMANode] {
			return nil, []error{fmt.Errorf("the reserved memory configuration references a NUMA node %d that does not exist on this machine", r.NUMANode)}
		}
		for name, q := range r.Limits {
			q = q.DeepCopy()
			if sum, ok := sums[name]; ok {
				q.Add(sum)
			}
			sums[name] = q
		}
	}
	types := map[corev1.ResourceName]bool{}
	for name := range sums {
		types[name] = true
	}
	for name := range reservation {
		if name == corev1.ResourceMemory || strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix) {
			types[name] = true
		}
	}
	var wrong []error
	for _, name := range slices.Sorted(maps.Keys(types)) {
		ofNode, given := resource.NewQuantity(0, resource.DecimalSI), resource.NewQuantity(0, resource.DecimalSI)
		if q, ok := reservation[name]; ok {
			ofNode.Add(q)
		}
		if q, ok := sums[name]; ok {
			given.Add(q)
		}
		if ofNode.Cmp(*given) != 0 {
			wrong = append(wrong, fmt.Errorf("the total amount %q of type %q is not equal to the value %q determined by Node Allocatable feature",
				given.String(), name, ofNode.String()))
		}
	}
	if len(wrong) > 0 {
		return nil, wrong
	}

	reserved := reservedMemory{}
	var total uint64
	for _, r := range config {
		if reserved[r.NUMANode] == nil {
			reserved[r.NUMANode] = map[corev1.ResourceName]uint64{}
		}
		for name, q := range r.Limits {
			v, ok := q.AsInt64()
			if !ok {
				return nil, []error{errors.New("could not covert a variable of type Quantity to int64")}
			}
			reserved[r.NUMANode][name] = uint64(v)
		}
	}
	for _, types := range reserved {
		total += types[corev1.ResourceMemory]
	}
	if total == 0 {
		return nil, []error{errors.New("[memorymanager] you should specify the system reserved memory")}
	}
	return reserved, nil
}

// emptyNodes returns the machine without any container. Like the kubelet it does not look for a node whose memory is less than its
// reservation: what can be allocated then wraps around to an enormous value.
func emptyNodes(nodes []topology.NUMANode, reserved reservedMemory) []Node {
	list := make([]Node, 0, len(nodes))
	for _, from := range nodes {
		n := Node{ID: from.ID}
		if uint(from.ID) < 64 {
			n.Cells = 1 << from.ID
		}
		var huge uint64
		for _, pages := range from.HugePages {
			name := hugePages(pages.SizeKiB)
			total := pages.Count * pages.SizeKiB * 1024
			huge += total
			n.add(name, total, reserved[from.ID][name], 0)
		}
		n.add(corev1.ResourceMemory, from.MemTotal, reserved[from.ID][corev1.ResourceMemory], huge)
		slices.SortFunc(n.Tables, func(a, b Table) int { return strings.Compare(string(a.Type), string(b.Type)) })
		list = append(list, n)
	}
	return list
}

func (n *Node) add(name corev1.ResourceName, total, reserved, huge uint64) {
	t := Table{Type: name}
	t.Total, t.SystemReserved = total, reserved
	t.Allocatable = total - reserved - huge
	t.Free = t.Allocatable
	if old := n.table(name); old != nil {
		*old = t
		return
	}
	n.Tables = append(n.Tables, t)
}

func hugePages(sizeKiB uint64) corev1.ResourceName {
	q := resource.NewQuantity(int64(sizeKiB)*1024, resource.BinarySI)
	return corev1.ResourceName(corev1.ResourceHugePagesPrefix + q.String())
}
