package checkpoint

import (
	"maps"
	"slices"

	"github.com/noderes/kubectl-noderes/pkg/alloc/cpuset"
)

// CPUState is the content of cpu_manager_state.
type CPUState struct {
	// Version is the form of the file: 1 (kubelet before 1.18), 2 (to 1.35, and 1.36 without PodLevelResourceManagers), 3 (1.36
	// with it) or 4 (from 1.37). Forms 1, 2 and 3 without entries look alike and are told apart by the checksum that fits; where
	// none does, 2 is assumed.
	Version    int
	PolicyName string
	Default    cpuset.Set                       // the shared pool
	Entries    map[string]map[string]cpuset.Set // by pod UID and container name
	PodEntries map[string]cpuset.Set            // by pod UID
	Baselines  map[string]map[string]cpuset.Set // by pod UID and container name; only with InPlacePodVerticalScalingExclusiveCPUs

	// ContainerIDs holds the entries of form 1, which knows containers by their runtime id only.
	ContainerIDs map[string]cpuset.Set

	// Checksums has the one that the kubelet goes by first. It is missing where the content could not be decoded far enough.
	Checksums []Checksum
	// LegacyDiffers says where the fields that form 4 repeats for older kubelets disagree with data.
	LegacyDiffers []string
	Notes         []string // unknown fields and keys that stand twice
}

// CPUAssignment is one entry of a CPUState.
type CPUAssignment struct {
	PodUID, Container string
	CPUs              cpuset.Set
}

// Assignments returns the entries in the order of pod UID and container name.
func (s CPUState) Assignments() []CPUAssignment {
	var list []CPUAssignment
	for _, uid := range slices.Sorted(maps.Keys(s.Entries)) {
		for _, name := range slices.Sorted(maps.Keys(s.Entries[uid])) {
			list = append(list, CPUAssignment{uid, name, s.Entries[uid][name]})
		}
	}
	return list
}

// AllCPUs returns every CPU that the state names: what the kubelet took for the machine when it started, less the reserved CPUs if
// the policy is static with strict-cpu-reservation.
func (s CPUState) AllCPUs() cpuset.Set {
	all := s.Default
	for _, containers := range s.Entries {
		for _, set := range containers {
			all = all.Union(set)
		}
	}
	for _, set := range s.PodEntries {
		all = all.Union(set)
	}
	for _, set := range s.ContainerIDs {
		all = all.Union(set)
	}
	return all
}

// ReadCPU reads a cpu_manager_state file. In form 4 only data counts, as for kubelet 1.37, which goes by dataChecksum and does not
// fall back; a wrong checksum of the repeated fields is told in Checksums and LegacyDiffers, but is no error.
//
// Whatever could be read is returned beside an error. The error matches ErrCorrupt for a wrong checksum and ErrEmpty for a file
// without content, and names every entry that could not be read.
func ReadCPU(data []byte) (CPUState, error) {
	if err := checkNotEmpty(data); err != nil {
		return CPUState{}, err
	}
	var r reader
	var top rawCPU
	top.read(&r, "", data)
	if top.data == "" && top.dataChecksum == 0 {
		state := top.state(&r, "")
		candidates := top.candidates()
		state.Version = candidates[0].version
		if top.whole {
			var sum Checksum
			sum, state.Version = legacyChecksum(top.checksum, candidates)
			state.addChecksum(&r, sum, true)
		}
		state.Notes = r.notes
		return state, r.err()
	}

	var inner rawCPU
	inner.read(&r, "data", []byte(top.data))
	state := inner.state(&r, "data.")
	state.Version = 4
	state.addChecksum(&r, dataChecksum(top.data, top.dataChecksum), true)
	if top.whole {
		sum, _ := legacyChecksum(top.checksum, top.candidates())
		state.addChecksum(&r, sum, false)
	}
	if top.whole && inner.whole {
		state.LegacyDiffers = top.differences(inner)
	}
	state.Notes = r.notes
	return state, r.err()
}

func (s *CPUState) addChecksum(r *reader, sum Checksum, decides bool) {
	s.Checksums = append(s.Checksums, sum)
	if decides && !sum.OK {
		r.fail("", &ChecksumError{sum})
	}
}
