package checkpoint

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/noderes/kubectl-noderes/pkg/alloc/cpuset"
	"github.com/noderes/kubectl-noderes/pkg/alloc/internal/cut"
)

// differences collects where the repeated fields and data disagree.
type differences struct {
	lines []string
	more  int
}

func (d *differences) add(path, legacy, data string) {
	if len(d.lines) == maxProblems {
		d.more++
		return
	}
	d.lines = append(d.lines, fmt.Sprintf("%s: %s, but data has %s", path, legacy, data))
}

func (d *differences) compare(path, legacy, data string) {
	if legacy != data {
		d.add(path, cut.Quote(legacy), cut.Quote(data))
	}
}

func (d *differences) compareLists(path, legacy, data string) {
	a, errA := cpuset.Parse(legacy)
	b, errB := cpuset.Parse(data)
	if errA != nil || errB != nil || a != b {
		d.compare(path, legacy, data)
	}
}

func (d *differences) list() []string {
	if d.more > 0 {
		return append(d.lines, fmt.Sprintf("and %d more", d.more))
	}
	return d.lines
}

// comparePart compares texts of structured parts; "" stands for a part that is not there.
func (d *differences) comparePart(path, legacy, data string) {
	if legacy != data {
		d.add(path, presence(legacy, legacy != ""), presence(data, data != ""))
	}
}

func presence(text string, ok bool) string {
	if !ok {
		return "none"
	}
	return cut.Quote(text)
}

func sortedKeys[V any](a, b map[string]V) []string {
	keys := slices.AppendSeq(slices.Collect(maps.Keys(a)), maps.Keys(b))
	slices.Sort(keys)
	return slices.Compact(keys)
}

// differences compares the repeated fields of form 4 with those of data.
func (c *rawCPU) differences(data rawCPU) []string {
	var d differences
	d.compare("policyName", c.policyName, data.policyName)
	d.compareLists("defaultCpuSet", c.defaultCPUSet, data.defaultCPUSet)
	for _, uid := range sortedKeys(c.entries, data.entries) {
		for _, name := range sortedKeys(c.entries[uid], data.entries[uid]) {
			path := "entries[" + cut.Quote(uid) + "][" + cut.Quote(name) + "]"
			legacy, hasLegacy := c.entries[uid][name]
			list, has := data.entries[uid][name]
			if hasLegacy != has {
				d.add(path, presence(legacy, hasLegacy), presence(list, has))
			} else {
				d.compareLists(path, legacy, list)
			}
		}
	}
	// Kubelet 1.37 repeats no pod entries; where they are repeated they have to agree.
	for _, uid := range sortedKeys(c.podEntries, nil) {
		list, has := data.podEntries[uid]
		path := "podEntries[" + cut.Quote(uid) + "]"
		if !has {
			d.add(path, presence(c.podEntries[uid], true), presence("", false))
		} else {
			d.compareLists(path, c.podEntries[uid], list)
		}
	}
	return d.list()
}

// differences compares the repeated fields of form 3 with those of data, where they are written as the checksum sees them.
func (m *rawMemory) differences(data rawMemory) []string {
	var d differences
	d.compare("policyName", m.policyName, data.policyName)
	for _, id := range slices.Sorted(maps.Keys(m.machineState)) {
		other, has := data.machineState[id]
		d.comparePart("machineState["+strconv.Quote(strconv.Itoa(id))+"]", nodeText(m.machineState[id], true), nodeText(other, has))
	}
	for _, id := range slices.Sorted(maps.Keys(data.machineState)) {
		if _, has := m.machineState[id]; !has {
			d.comparePart("machineState["+strconv.Quote(strconv.Itoa(id))+"]", "", nodeText(data.machineState[id], true))
		}
	}
	for _, uid := range sortedKeys(m.entries, data.entries) {
		for _, name := range sortedKeys(m.entries[uid], data.entries[uid]) {
			legacy, hasLegacy := m.entries[uid][name]
			blocks, has := data.entries[uid][name]
			d.comparePart("entries["+cut.Quote(uid)+"]["+cut.Quote(name)+"]", blocksText(legacy, hasLegacy), blocksText(blocks, has))
		}
	}
	return d.list()
}

func nodeText(n rawNode, has bool) string {
	var b strings.Builder
	if has {
		writeNode(&b, n)
	}
	return b.String()
}

func blocksText(blocks []Block, has bool) string {
	var b strings.Builder
	if has {
		writeBlocks(&b, blocks)
	}
	return b.String()
}
