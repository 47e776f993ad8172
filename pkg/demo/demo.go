// Package demo holds recordings of real nodes, so that the plugin can be tried
// without a cluster.
package demo

import (
	"bytes"
	"embed"
	"fmt"
	"strings"

	"github.com/noderes/kubectl-noderes/pkg/snapshot"
)

// The archives are cut from the recordings, two folders of bundles below
// $RECORDINGS.
//
//go:generate go run ./internal/trim -o smt2.tar.gz $RECORDINGS/smt2-k612/bundle
//go:generate go run ./internal/trim -o numa4.tar.gz $RECORDINGS/numa4-k61/bundle

//go:embed *.tar.gz
var archives embed.FS

// Recording is one embedded recording and what there is to see in it.
type Recording struct {
	Name string
	// About says what machine and kubelet was recorded.
	About string
	Node  string
	// Pods lists every pod; the one to explain when none is named comes first.
	Pods []Pod
}

// Pod is one pod of a recording and what it shows.
type Pod struct {
	Namespace, Name string
	Shows           string
}

// Default is the name of the recording that is meant when none is named.
const Default = "smt2"

// Open reads an embedded recording.
func Open(name string) (*snapshot.Snapshot, error) {
	if _, err := Find(name); err != nil {
		return nil, err
	}
	data, err := archives.ReadFile(name + ".tar.gz")
	if err != nil {
		return nil, err
	}
	return snapshot.ReadArchive(bytes.NewReader(data))
}

// Find returns what is known of an embedded recording.
func Find(name string) (Recording, error) {
	var names []string
	for _, r := range recordings {
		if r.Name == name {
			return r, nil
		}
		names = append(names, r.Name)
	}
	return Recording{}, fmt.Errorf("no recording is called %q, there are: %s", name, strings.Join(names, ", "))
}

// List returns the embedded recordings, the default one first.
func List() []Recording { return recordings }
