package checkpoint

import (
	"encoding/json"
	"errors"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"github.com/noderes/kubectl-noderes/pkg/alloc/internal/jsonobject"
)

// rawMemory is the file's fields, with nil for JSON's null, which the checksum tells from the empty value.
type rawMemory struct {
	policyName   string
	machineState map[int]rawNode
	entries      map[string]map[string][]Block
	podEntries   map[string][]Block
	checksum     uint64
	data         string
	dataChecksum uint64
	whole        bool // every field had the right type, so that the checksum can be recomputed
}

type rawNode struct {
	assignments int
	memoryMap   map[string]MemoryTable
	cells       []int
}

func (m *rawMemory) read(r *reader, path string, data []byte) {
	problems := r.problems()
	m.machineState = map[int]rawNode{}
	m.entries = map[string]map[string][]Block{}
	m.podEntries = map[string][]Block{}
	known := map[string]func(string, json.RawMessage){
		"policyName":   func(p string, v json.RawMessage) { r.text(p, v, &m.policyName) },
		"machineState": func(p string, v json.RawMessage) { m.readMachine(r, p, v) },
		"entries":      func(p string, v json.RawMessage) { m.readEntries(r, p, v) },
		"podEntries":   func(p string, v json.RawMessage) { m.readPodEntries(r, p, v) },
	}
	if path == "" {
		known["checksum"] = func(p string, v json.RawMessage) { r.unsigned(p, v, &m.checksum) }
		known["data"] = func(p string, v json.RawMessage) { r.text(p, v, &m.data) }
		known["dataChecksum"] = func(p string, v json.RawMessage) { r.unsigned(p, v, &m.dataChecksum) }
	}
	r.fields(path, data, known)
	m.whole = r.problems() == problems
}

func (m *rawMemory) readMachine(r *reader, path string, raw json.RawMessage) {
	if jsonobject.IsNull(raw) {
		m.machineState = nil
		return
	}
	if m.machineState == nil {
		m.machineState = map[int]rawNode{}
	}
	r.entries(path, raw, func(path, key string, value json.RawMessage) {
		id, err := strconv.Atoi(key)
		if err != nil {
			r.fail(path, errors.New("not the id of a NUMA node"))
			return
		}
		problems := r.problems()
		var node rawNode
		r.fields(path, value, map[string]func(string, json.RawMessage){
			"numberOfAssignments": func(p string, v json.RawMessage) { r.integer(p, v, &node.assignments) },
			"memoryMap":           func(p string, v json.RawMessage) { node.memoryMap = readTables(r, p, v) },
			"cells":               func(p string, v json.RawMessage) { r.integers(p, v, &node.cells) },
		})
		if r.problems() == problems {
			m.machineState[id] = node
		}
	})
}

func readTables(r *reader, path string, raw json.RawMessage) map[string]MemoryTable {
	if jsonobject.IsNull(raw) {
		return nil
	}
	tables := map[string]MemoryTable{}
	r.entries(path, raw, func(path, key string, value json.RawMessage) {
		var table MemoryTable
		r.fields(path, value, map[string]func(string, json.RawMessage){
			"total":          func(p string, v json.RawMessage) { r.unsigned(p, v, &table.Total) },
			"systemReserved": func(p string, v json.RawMessage) { r.unsigned(p, v, &table.SystemReserved) },
			"allocatable":    func(p string, v json.RawMessage) { r.unsigned(p, v, &table.Allocatable) },
			"reserved":       func(p string, v json.RawMessage) { r.unsigned(p, v, &table.Reserved) },
			"free":           func(p string, v json.RawMessage) { r.unsigned(p, v, &table.Free) },
		})
		tables[key] = table
	})
	return tables
}

func (m *rawMemory) readEntries(r *reader, path string, raw json.RawMessage) {
	if jsonobject.IsNull(raw) {
		m.entries = nil
		return
	}
	if m.entries == nil {
		m.entries = map[string]map[string][]Block{}
	}
	r.entries(path, raw, func(path, uid string, value json.RawMessage) {
		m.entries[uid] = nil
		if jsonobject.IsNull(value) {
			return
		}
		containers := map[string][]Block{}
		m.entries[uid] = containers
		r.entries(path, value, func(path, name string, value json.RawMessage) {
			if blocks, ok := readBlocks(r, path, value); ok {
				containers[name] = blocks
			}
		})
	})
}

func (m *rawMemory) readPodEntries(r *reader, path string, raw json.RawMessage) {
	if jsonobject.IsNull(raw) {
		m.podEntries = nil
		return
	}
	if m.podEntries == nil {
		m.podEntries = map[string][]Block{}
	}
	r.entries(path, raw, func(path, uid string, value json.RawMessage) {
		problems := r.problems()
		var blocks []Block
		if !jsonobject.IsNull(value) {
			r.fields(path, value, map[string]func(string, json.RawMessage){
				"memoryBlocks": func(p string, v json.RawMessage) { blocks, _ = readBlocks(r, p, v) },
			})
		}
		if r.problems() == problems {
			m.podEntries[uid] = blocks
		}
	})
}

// readBlocks reads a list of blocks; ok is false if any of it could not be read.
func readBlocks(r *reader, path string, raw json.RawMessage) (blocks []Block, ok bool) {
	if jsonobject.IsNull(raw) {
		return nil, true
	}
	problems := r.problems()
	blocks = []Block{}
	for i, item := range r.list(path, raw) {
		var block Block
		var typ string
		if !jsonobject.IsNull(item) {
			r.fields(path+"["+strconv.Itoa(i)+"]", item, map[string]func(string, json.RawMessage){
				"numaAffinity": func(p string, v json.RawMessage) { r.integers(p, v, &block.NUMAAffinity) },
				"type":         func(p string, v json.RawMessage) { r.text(p, v, &typ) },
				"size":         func(p string, v json.RawMessage) { r.unsigned(p, v, &block.Size) },
			})
		}
		block.Type = corev1.ResourceName(typ)
		blocks = append(blocks, block)
	}
	return blocks, r.problems() == problems
}

func (m *rawMemory) state() MemoryState {
	state := MemoryState{PolicyName: m.policyName, MachineState: map[int]NUMANodeState{}}
	for id, node := range m.machineState {
		tables := map[corev1.ResourceName]MemoryTable{}
		for typ, table := range node.memoryMap {
			tables[corev1.ResourceName(typ)] = table
		}
		state.MachineState[id] = NUMANodeState{node.assignments, tables, node.cells}
	}
	if len(m.entries) > 0 {
		state.Entries = m.entries
	}
	if len(m.podEntries) > 0 {
		state.PodEntries = m.podEntries
	}
	return state
}
