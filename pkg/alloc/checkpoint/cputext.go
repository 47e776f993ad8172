package checkpoint

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/noderes/kubectl-noderes/pkg/alloc/cpuset"
)

// candidates are the texts that the legacy checksum can be made of: what k8s.io/utils/dump.ForHash makes of the kubelet's structure
// with a zero checksum. The structure was renamed when a newer form came; kubelets put the plain name back before they hash, but
// accept a sum under the new name too (cpumanager/state/checkpoint.go, VerifyChecksum).
func (c *rawCPU) candidates() []candidate {
	v1 := candidate{1, c.v1Text()}
	v2 := []candidate{{2, c.text("CPUManagerCheckpoint", false)}, {2, c.text("CPUManagerCheckpointV2", false)}}
	v3 := []candidate{{3, c.text("CPUManagerCheckpoint", true)}, {3, c.text("CPUManagerCheckpointV3", true)}}
	switch {
	case len(c.containerIDs) > 0:
		return []candidate{v1}
	case len(c.podEntries) > 0:
		return v3
	case len(c.entries) > 0:
		return append(v2, v3...)
	}
	return append(append(v2, v3...), v1)
}

func (c *rawCPU) head(b *strings.Builder, name string) {
	b.WriteString("(*state." + name + "){PolicyName:(string)" + c.policyName + " DefaultCPUSet:(string)" + c.defaultCPUSet)
}

const checksumTail = " Checksum:(checksum.Checksum)0}"

func (c *rawCPU) v1Text() string {
	var b strings.Builder
	c.head(&b, "CPUManagerCheckpoint")
	b.WriteString(" Entries:(map[string]string)")
	writeMap(&b, c.containerIDs == nil && c.entries == nil, c.containerIDs, writeString)
	b.WriteString(checksumTail)
	return b.String()
}

func (c *rawCPU) text(name string, withPods bool) string {
	var b strings.Builder
	c.head(&b, name)
	b.WriteString(" Entries:(map[string]map[string]string)")
	writeMap(&b, c.entries == nil, c.entries, func(b *strings.Builder, containers map[string]string) {
		writeMap(b, containers == nil, containers, writeString)
	})
	if withPods {
		b.WriteString(" PodEntries:(state.PodCPUAssignments)")
		writeMap(&b, c.podEntries == nil, c.podEntries, writePodCPUs)
	}
	b.WriteString(checksumTail)
	return b.String()
}

func writeString(b *strings.Builder, s string) { b.WriteString(s) }

// writePodCPUs writes a pod entry, which the kubelet holds as a parsed set.
func writePodCPUs(b *strings.Builder, list string) {
	set, _ := cpuset.Parse(list)
	b.WriteString("{CPUSet:(cpuset.CPUSet){elems:(map[int]struct {})map[")
	first := true
	for id := range set.All() {
		if !first {
			b.WriteByte(' ')
		}
		first = false
		b.WriteString(strconv.Itoa(id) + ":{}")
	}
	b.WriteString("]}}")
}

// writeMap writes a map with its keys in order; a nil map is told from an empty one.
func writeMap[K ~string | ~int, V any](b *strings.Builder, isNil bool, m map[K]V, value func(*strings.Builder, V)) {
	if isNil {
		b.WriteString("<nil>")
		return
	}
	b.WriteString("map[")
	for i, key := range slices.Sorted(maps.Keys(m)) {
		if i > 0 {
			b.WriteByte(' ')
		}
		switch k := any(key).(type) {
		case int:
			b.WriteString(strconv.Itoa(k))
		case string:
			b.WriteString(k)
		}
		b.WriteByte(':')
		value(b, m[key])
	}
	b.WriteByte(']')
}
