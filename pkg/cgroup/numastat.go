package cgroup

import (
	"fmt"
	"slices"
	"strings"
)

// NUMAStat is memory.numa_stat: memory.stat by NUMA node, descendants included.
// Its amounts are bytes, its workingset_*, pgdemote_* and pgpromote_* keys are
// counts.
type NUMAStat struct {
	keys   []string
	values map[string][]NodeValue
}

// NodeValue is one node's part.
type NodeValue struct {
	Node  int
	Value uint64
}

// Keys returns the keys in the order of the file.
func (s NUMAStat) Keys() []string { return slices.Clone(s.keys) }

// Get returns the values of a key, in the order of the file, which is that of
// the nodes; false means that the file has no such key.
func (s NUMAStat) Get(key string) ([]NodeValue, bool) {
	values, ok := s.values[key]
	return slices.Clone(values), ok
}

// Node returns the value of a key on one node; false means that the file has
// no such key or no such node.
func (s NUMAStat) Node(key string, node int) (uint64, bool) {
	for _, v := range s.values[key] {
		if v.Node == node {
			return v.Value, true
		}
	}
	return 0, false
}

// MemoryNUMAStat reads memory.numa_stat. The root has it too.
func (g Group) MemoryNUMAStat() (NUMAStat, error) {
	return readFile(g, "memory.numa_stat", parseNUMAStat)
}

// parseNUMAStat parses lines "key N0=… N1=…".
func parseNUMAStat(data []byte) (NUMAStat, error) {
	s := NUMAStat{values: map[string][]NodeValue{}}
	for number, line := range numberedLines(data) {
		key, rest, found := strings.Cut(line, " ")
		if !found || !isKey(key) || strings.Contains(key, "=") { // v1 prints "total=..."
			return NUMAStat{}, badText(number, line, `not a line "key N0=value ..."`)
		}
		if _, twice := s.values[key]; twice {
			return NUMAStat{}, badText(number, line, "duplicate key")
		}
		values, err := parseNodeValues(rest)
		if err != nil {
			return NUMAStat{}, badText(number, line, err.Error())
		}
		s.values[key] = values
		if s.keys = append(s.keys, key); len(s.keys) > maxKeys {
			return NUMAStat{}, badText(number, line, fmt.Sprintf("more than %d keys", maxKeys))
		}
	}
	if len(s.keys) == 0 {
		return NUMAStat{}, badText(0, "", reasonEmpty)
	}
	return s, nil
}

func parseNodeValues(text string) ([]NodeValue, error) {
	var values []NodeValue
	for field := range strings.SplitSeq(text, " ") {
		name, value, found := strings.Cut(field, "=")
		id, isNode := strings.CutPrefix(name, "N")
		if !found || !isNode {
			return nil, fmt.Errorf("field %q is not N0=value", cut(field))
		}
		node, err := listID(id)
		if err != nil {
			return nil, fmt.Errorf("field %q: %w", cut(field), err)
		}
		if len(values) > 0 && node <= values[len(values)-1].Node {
			return nil, fmt.Errorf("field %q: nodes are not in ascending order", cut(field))
		}
		parsed, err := kernelUint(value)
		if err != nil {
			return nil, fmt.Errorf("field %q: %w", cut(field), err)
		}
		values = append(values, NodeValue{Node: node, Value: parsed})
	}
	return values, nil
}
