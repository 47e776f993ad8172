package node

import (
	"errors"
	"maps"

	"github.com/noderes/kubectl-noderes/pkg/alloc"
	"github.com/noderes/kubectl-noderes/pkg/alloc/checkpoint"
	"github.com/noderes/kubectl-noderes/pkg/alloc/cpumanager"
	"github.com/noderes/kubectl-noderes/pkg/alloc/cpuset"
)

// cpuForm is the form that the CPU manager's state file is in. A kubelet that starts reads a file in an older form, and writes its own
// only once something changes.
type cpuForm struct {
	form, own int
	read      *cpumanager.State // what was read in another form than its own
}

// readable reports whether a kubelet can read a form. Form 3 is that of kubelet 1.36 with PodLevelResourceManagers: its checksum includes
// the pods' entries, which a kubelet without that gate does not know.
func readable(form int, r alloc.Rules) bool { return form != 3 || r.CPUCheckpoint >= 3 }

// CorruptCPUFile is why a kubelet cannot restore a CPU manager's file whose checksum is wrong. That of 1.36 takes it for form 1 then, which
// does not have the entries by pod; those before try form 1 first.
func CorruptCPUFile(s *cpumanager.State, r alloc.Rules) error {
	if r.Minor == 36 && len(s.Entries) > 0 {
		return errNotForm1
	}
	return checkpoint.ErrCorrupt
}

var errNotForm1 = errors.New("json: cannot unmarshal object into Go struct field CPUManagerCheckpointV1.entries of type string")

func found(s State, r alloc.Rules) cpuForm {
	f := cpuForm{form: r.CPUCheckpoint, own: r.CPUCheckpoint}
	if s.CPU != nil && s.CPUForm != 0 && s.CPUForm != f.own {
		read := s.CPU.Clone()
		f.form, f.read = s.CPUForm, &read
	}
	return f
}

// changed notes that the state is now the given one.
func (f *cpuForm) changed(s *cpumanager.State) {
	if f.read == nil || f.read.Default == s.Default && maps.Equal(f.read.PodEntries, s.PodEntries) &&
		maps.EqualFunc(f.read.Entries, s.Entries, maps.Equal[map[string]cpuset.Set, map[string]cpuset.Set]) {
		return
	}
	f.form, f.read = f.own, nil
}
