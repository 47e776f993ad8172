package diagnose

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/noderes/kubectl-noderes/pkg/alloc/kubeletconfig"
	"github.com/noderes/kubectl-noderes/pkg/report"
)

// reservedMemoryMismatch speaks of reservedMemory whose sum over the NUMA nodes
// is not what the node keeps back of that type: the kubelet then does not start
// with the Memory Manager's Static policy.
func reservedMemoryMismatch(n *nodeCase) []report.Finding {
	faults := n.startFaults()
	i := slices.IndexFunc(faults, func(f startFault) bool { return f.code == report.ReservedMemoryMismatch })
	if i < 0 {
		return nil
	}
	fault := faults[i]
	reservation, err := n.config.Reservation(n.capacity())
	if err != nil {
		return nil
	}
	f := report.NewFinding(report.ReservedMemoryMismatch, n.startConfidence(), n.subject(), "")
	var texts, sums []string
	wrong := unequalReservations(n.config.ReservedMemory, reservation)
	for _, u := range wrong {
		texts = append(texts, fmt.Sprintf("reservedMemory sums up to %s of %s where the node keeps back %s", u.given.String(), u.name, u.want.String()))
		sums = append(sums, u.arithmetic())
		f.Because = append(f.Because, n.reservationEvidence(u)...)
	}
	if len(wrong) == 0 { // a reservation of nothing at all
		texts = append(texts, "reservedMemory and the node's reservation of memory are both nothing, and the Static policy needs some")
	}
	f.Summary = fmt.Sprintf("The kubelet %s: %s.", n.startVerb(), join(texts))
	f.Arithmetic = strings.Join(sums, "; ")
	f.Because = append([]report.Evidence{n.configEvidence("reservedMemory", fault.value, "the kubelet's words: "+fault.message)}, f.Because...)
	f.Because = append(f.Because, n.configEvidence("memoryManagerPolicy", n.config.MemoryManagerPolicy, "compares the sums at its start"))
	f.Because = append(f.Because, n.logEvidence(fault.message)...)
	f.Because = append(f.Because, n.readyEvidence()...)
	f.Remedies = n.reservedMemoryRemedies(wrong)
	return []report.Finding{f}
}

// memorySum is what reservedMemory and the node's reservation keep back of a type
// of memory.
type memorySum struct {
	name        corev1.ResourceName
	given, want resource.Quantity
	reserved    kubeletconfig.Reserved
	terms       []string // of given
}

func (u memorySum) arithmetic() string {
	given := "0"
	if len(u.terms) > 0 {
		given = strings.Join(u.terms, " + ") + " = " + u.given.String()
	}
	want := "0"
	if len(u.reserved.Terms) > 0 {
		want = u.reserved.Arithmetic()
	}
	return fmt.Sprintf("%s: reservedMemory %s; %s", u.name, given, want)
}

func unequalReservations(given []kubeletconfig.MemoryReservation, reserved map[corev1.ResourceName]kubeletconfig.Reserved) []memorySum {
	return slices.DeleteFunc(memorySums(given, reserved), func(u memorySum) bool { return u.given.Cmp(u.want) == 0 })
}

// memorySums are the two sums of each type of memory that has one.
func memorySums(given []kubeletconfig.MemoryReservation, reserved map[corev1.ResourceName]kubeletconfig.Reserved) []memorySum {
	sums := map[corev1.ResourceName]*memorySum{}
	at := func(name corev1.ResourceName) *memorySum {
		if sums[name] == nil {
			sums[name] = &memorySum{name: name, want: *resource.NewQuantity(0, resource.BinarySI), given: *resource.NewQuantity(0, resource.BinarySI)}
		}
		return sums[name]
	}
	for _, r := range given {
		for name, q := range r.Limits {
			u := at(name)
			u.given.Add(q)
			u.terms = append(u.terms, fmt.Sprintf("%s (NUMA node %d)", q.String(), r.NUMANode))
		}
	}
	if r, ok := reserved[corev1.ResourceMemory]; ok {
		u := at(corev1.ResourceMemory)
		u.want, u.reserved = r.Quantity, r
	}
	var out []memorySum
	for _, name := range slices.Sorted(maps.Keys(sums)) {
		out = append(out, *sums[name])
	}
	return out
}

func (n *nodeCase) reservationEvidence(u memorySum) []report.Evidence {
	var out []report.Evidence
	for _, t := range u.reserved.Terms {
		means := "kept back of memory"
		if t.Text != t.Quantity.String() {
			means = "kept back of memory: " + t.Quantity.String()
		}
		field := t.Field
		if !strings.Contains(field, "[") {
			field += "." + string(u.name)
		}
		out = append(out, n.configEvidence(field, t.Text, means))
	}
	return out
}

// reservedMemoryRemedies give the list that would do: the entries as they are,
// and what lacks on the first NUMA node that holds it.
func (n *nodeCase) reservedMemoryRemedies(wrong []memorySum) []report.Remedy {
	fixed := map[int]corev1.ResourceList{}
	for _, r := range n.config.ReservedMemory {
		if !n.hasNUMANode(r.NUMANode) {
			continue
		}
		if fixed[r.NUMANode] == nil {
			fixed[r.NUMANode] = corev1.ResourceList{}
		}
		for name, q := range r.Limits {
			fixed[r.NUMANode][name] = q.DeepCopy()
		}
	}
	for _, u := range wrong {
		n.mendReservation(fixed, u)
	}
	if len(wrong) == 0 {
		return []report.Remedy{{Summary: "Keep back memory in systemReserved or kubeReserved, and name the same amount in reservedMemory."}}
	}
	var patch strings.Builder
	patch.WriteString("reservedMemory:\n")
	for _, id := range slices.Sorted(maps.Keys(fixed)) {
		if len(fixed[id]) == 0 {
			continue
		}
		fmt.Fprintf(&patch, "- numaNode: %d\n  limits:\n", id)
		for _, name := range slices.Sorted(maps.Keys(fixed[id])) {
			q := fixed[id][name]
			fmt.Fprintf(&patch, "    %s: %s\n", name, q.String())
		}
	}
	r := report.Remedy{Summary: "Make reservedMemory sum up to the node's reservation (kubeReserved + systemReserved + evictionHard), then restart the kubelet.",
		Patch: patch.String(), Effect: "The sums agree, and the Memory Manager starts."}
	if topo, err := n.topo(); err == nil && len(topo.NUMANodes) > 1 {
		r.Caution = "How the amount is spread over the NUMA nodes decides how much pods can get on each; any spread with this sum starts."
	}
	return []report.Remedy{r}
}

// mendReservation makes the amounts of one type sum up to what the node keeps
// back.
func (n *nodeCase) mendReservation(fixed map[int]corev1.ResourceList, u memorySum) {
	missing := u.want.DeepCopy()
	missing.Sub(u.given)
	if u.want.IsZero() {
		for id := range fixed {
			delete(fixed[id], u.name)
		}
		return
	}
	ids := slices.Sorted(maps.Keys(fixed))
	if missing.Sign() > 0 {
		to := 0
		if topo, err := n.topo(); err == nil && len(topo.NUMANodes) > 0 {
			to = topo.NUMANodes[0].ID
		}
		for _, id := range ids {
			if _, ok := fixed[id][u.name]; ok {
				to = id
				break
			}
		}
		if fixed[to] == nil {
			fixed[to] = corev1.ResourceList{}
		}
		q := fixed[to][u.name]
		missing.Add(q)
		fixed[to][u.name] = missing
		return
	}
	excess := u.given.DeepCopy()
	excess.Sub(u.want)
	slices.Reverse(ids)
	for _, id := range ids {
		q, ok := fixed[id][u.name]
		switch {
		case !ok || excess.Sign() <= 0:
		case q.Cmp(excess) > 0:
			q.Sub(excess)
			fixed[id][u.name], excess = q, resource.Quantity{}
		default:
			excess.Sub(q)
			delete(fixed[id], u.name)
		}
	}
}

// hasNUMANode says whether the machine has that NUMA node, as far as it is known.
func (n *nodeCase) hasNUMANode(id int) bool {
	topo, err := n.topo()
	if err != nil {
		return true
	}
	_, ok := topo.NUMANode(id)
	return ok
}
