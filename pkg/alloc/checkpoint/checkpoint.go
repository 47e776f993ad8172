// Package checkpoint reads the state files of the kubelet's CPU manager and memory manager (cpu_manager_state and
// memory_manager_state in the kubelet's root directory) in every form that kubelets have written, and recomputes their checksums.
//
// Both files are written on every change of state. In the middle of one operation a file can show a state between, for instance a
// default set already reduced and the assignment not yet there.
package checkpoint

import (
	"bytes"
	"errors"
	"fmt"
	"hash/fnv"
)

var (
	// ErrCorrupt is matched by the error for a checksum that is not that of the content. A kubelet does not start on such a file.
	ErrCorrupt = errors.New("checkpoint is corrupted")
	// ErrEmpty is matched by the error for a file without content.
	ErrEmpty = errors.New("checkpoint is empty")
)

// Checksum is one checksum of a file against its recomputation: 32 bit FNV-1a of a text made of the content.
type Checksum struct {
	Field    string // "checksum", or "dataChecksum" for the data string of CPU V4 and memory V3
	Stored   uint64 // as the kubelet's own type; one that does not fit in 32 bits is never right
	Computed uint32
	OK       bool
	// Absent0: the stored checksum is 0 or not there, which the kubelet takes for "no checksum" (not for dataChecksum).
	Absent0 bool
}

// ChecksumError says which checksum is wrong. It matches ErrCorrupt.
type ChecksumError struct{ Checksum Checksum }

func (e *ChecksumError) Error() string {
	return fmt.Sprintf("%v: %s is %d, the content gives %d", ErrCorrupt, e.Checksum.Field, e.Checksum.Stored, e.Checksum.Computed)
}

func (e *ChecksumError) Unwrap() error { return ErrCorrupt }

func hash(text string) uint32 {
	h := fnv.New32a()
	h.Write([]byte(text))
	return h.Sum32()
}

// dataChecksum checks the data string of the newest forms (kubelet 1.37, checksum.New of a string).
func dataChecksum(data string, stored uint64) Checksum {
	computed := hash("(string)" + data)
	return Checksum{Field: "dataChecksum", Stored: stored, Computed: computed, OK: stored == uint64(computed)}
}

// candidate is a text that a kubelet may have made the checksum of, with the form of the file that this would prove.
type candidate struct {
	version int
	text    string
}

// legacyChecksum checks "checksum" against the candidates and returns the form of the one that fits, or of the first.
func legacyChecksum(stored uint64, candidates []candidate) (Checksum, int) {
	sum := Checksum{Field: "checksum", Stored: stored, Computed: hash(candidates[0].text)}
	if stored == 0 {
		sum.OK, sum.Absent0 = true, true
		return sum, candidates[0].version
	}
	for _, c := range candidates {
		if h := hash(c.text); uint64(h) == stored {
			sum.OK, sum.Computed = true, h
			return sum, c.version
		}
	}
	return sum, candidates[0].version
}

func checkNotEmpty(data []byte) error {
	if len(bytes.TrimSpace(data)) == 0 {
		return ErrEmpty
	}
	return nil
}
