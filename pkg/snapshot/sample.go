package snapshot

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path"
	"strconv"
	"time"

	kjson "sigs.k8s.io/json"
)

// Sample is one reading of the files that change.
type Sample struct {
	Index int
	// Time and Uptime are when it was taken. Uptime is the node's, which no one
	// sets: differences of it are what rates are made of.
	Time   time.Time
	Uptime time.Duration
	// HasTime is false where at.json is absent, broken or gives only one of the
	// two; both are zero then.
	HasTime bool
	// Files are those of this sample alone, with the node's own paths. A file
	// that stands in root/ was read once and not for this sample: it is
	// ErrNotCollected here.
	Files fs.FS
}

// Samples are the node's samples in order of time.
func (n *Node) Samples() []Sample {
	var samples []Sample
	for _, k := range n.layers().samples {
		root := n.sampleRoot(k)
		sample := Sample{
			Index: k,
			Files: &nodeTree{s: n.s, layers: []string{root}, absence: func(file string) error {
				return n.sampleAbsence(root, file)
			}},
		}
		if data, err := n.s.File(path.Dir(root) + "/at.json"); err == nil {
			if at, uptime, err := parseAt(data); err == nil {
				sample.Time, sample.Uptime, sample.HasTime = at, uptime, true
			}
		}
		samples = append(samples, sample)
	}
	return samples
}

// sampleAbsence is the reason why a sample lacks a file. Where the sample itself
// gives none, what is known of the file in root/ decides whether it existed.
func (n *Node) sampleAbsence(root, file string) error {
	err := n.s.absence(path.Join(root, file))
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if _, named := n.s.gaps.at(path.Join(root, file)); named {
		return err
	}
	once := path.Join(n.folder, "root", file)
	if _, err := n.s.tree.Stat(once); !errors.Is(err, fs.ErrNotExist) {
		return ErrNotCollected
	}
	return n.s.absence(once)
}

// sampleIndex is k of the folder samples/<k>. Only one spelling of a number is
// one, so that no two folders are the same sample.
func sampleIndex(name string) (int, bool) {
	k, err := strconv.ParseInt(name, 10, 32)
	if err != nil || k < 0 || strconv.FormatInt(k, 10) != name {
		return 0, false
	}
	return int(k), true
}

// parseAt reads at.json: RFC 3339 time and seconds since boot.
func parseAt(data []byte) (time.Time, time.Duration, error) {
	var at struct {
		Time   *time.Time `json:"time"`
		Uptime *float64   `json:"uptimeSeconds"`
	}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(data, &at); err != nil {
		return time.Time{}, 0, harmless(err)
	}
	if at.Time == nil || at.Uptime == nil {
		return time.Time{}, 0, errors.New("time or uptimeSeconds missing")
	}
	ns := math.Round(*at.Uptime * float64(time.Second))
	if ns < 0 || ns >= math.MaxInt64 {
		return time.Time{}, 0, fmt.Errorf("uptimeSeconds %v is no time since boot", *at.Uptime)
	}
	return *at.Time, time.Duration(ns), nil
}
