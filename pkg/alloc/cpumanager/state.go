// Package cpumanager replays the kubelet's CPU manager with its static policy (kubelet 1.37, pkg/kubelet/cm/cpumanager): which CPUs
// a container gets, and what the state file holds after it.
package cpumanager

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/noderes/kubectl-noderes/pkg/alloc/checkpoint"
	"github.com/noderes/kubectl-noderes/pkg/alloc/cpuset"
)

// State is what the CPU manager keeps in its state file.
type State struct {
	Default    cpuset.Set                       // the shared pool
	Entries    map[string]map[string]cpuset.Set // by pod UID and container name
	PodEntries map[string]cpuset.Set            // by pod UID; only with PodLevelResourceManagers
}

// StateOf returns the state that a checkpoint has. Only form 1 has entries that are lost in this.
func StateOf(c checkpoint.CPUState) State {
	s := State{Default: c.Default, PodEntries: maps.Clone(c.PodEntries), Entries: map[string]map[string]cpuset.Set{}}
	for uid, containers := range c.Entries {
		s.Entries[uid] = maps.Clone(containers)
	}
	return s
}

// Clone returns a state that shares nothing with s.
func (s State) Clone() State {
	return StateOf(checkpoint.CPUState{Default: s.Default, Entries: s.Entries, PodEntries: s.PodEntries})
}

func (s *State) get(uid, container string) (cpuset.Set, bool) {
	set, ok := s.Entries[uid][container]
	return set, ok
}

func (s *State) set(uid, container string, set cpuset.Set) {
	containers := s.Entries[uid]
	if containers == nil {
		if s.Entries == nil {
			s.Entries = map[string]map[string]cpuset.Set{}
		}
		containers = map[string]cpuset.Set{}
		s.Entries[uid] = containers
	}
	containers[container] = set
}

func (s *State) delete(uid, container string) {
	delete(s.Entries[uid], container)
	if len(s.Entries[uid]) == 0 {
		delete(s.Entries, uid)
	}
}

// validate checks a state that was read at kubelet start, and fills in an empty one (policy_static.go, validateState). The errors are
// the possible ones: which of several overlaps the kubelet names hangs on the order of a map.
func (m *Manager) validate() []error {
	s := &m.State
	all := m.machine.all
	if m.options.strict {
		all = all.Difference(m.Reserved)
	}
	if s.Default.IsEmpty() {
		if len(s.Entries) != 0 {
			return []error{errors.New("default cpuset cannot be empty")}
		}
		s.Default = all
		return nil
	}
	if shared := m.Reserved.Intersection(s.Default); m.options.strict {
		if !shared.IsEmpty() {
			return []error{fmt.Errorf("some of strictly reserved cpus: %q are present in defaultCpuSet: %q", shared, s.Default)}
		}
	} else if shared != m.Reserved {
		return []error{fmt.Errorf("not all reserved cpus: %q are present in defaultCpuSet: %q", m.Reserved, s.Default)}
	}
	var overlaps []error
	known := s.Default
	for _, uid := range slices.Sorted(maps.Keys(s.Entries)) {
		for _, name := range slices.Sorted(maps.Keys(s.Entries[uid])) {
			set := s.Entries[uid][name]
			known = known.Union(set)
			if !set.Intersection(s.Default).IsEmpty() {
				overlaps = append(overlaps, fmt.Errorf("pod: %s, container: %s cpuset: %q overlaps with default cpuset %q", uid, name, set, s.Default))
			}
		}
	}
	if len(overlaps) > 0 {
		return overlaps
	}
	if m.rules.PodLevelResourceManagers {
		for _, set := range s.PodEntries {
			known = known.Union(set)
		}
	}
	if known != all {
		return []error{fmt.Errorf("current set of available CPUs %q doesn't match with CPUs in state %q", all, known)}
	}
	return nil
}
