// Package reader reads the files of a node with a shell script, and takes apart
// the stream that the script writes. Who runs the script where is not its
// business; that the stream comes from a stranger is.
package reader

import (
	_ "embed"
	"strconv"
	"time"
)

// Script is the POSIX-shell script, for the standard input of the command that
// [Options.Command] gives.
//
//go:embed reader.sh
var Script string

// MaxSample bounds the time between two samples.
const MaxSample = 4 * time.Minute

// Options say what the script reads.
type Options struct {
	// Root is where the node's file system is mounted, "" for /.
	Root string
	// Sample is the time between two samples, in whole seconds; 0 takes one sample.
	Sample time.Duration
	// SkipPod is the UID of the pod whose cgroup is left out.
	SkipPod string
	// Scratch is a folder that the script may put a file into. Without one it
	// starts a process for every file instead of every two hundred.
	Scratch string
	// Container reads the cgroup that the script runs in and nothing else.
	Container bool
}

// Command runs the script from its standard input.
func (o Options) Command() []string {
	mode := "node"
	if o.Container {
		mode = "container"
	}
	return []string{"sh", "-s", "--", o.Root, strconv.Itoa(int(o.Sample / time.Second)), o.SkipPod, o.Scratch, mode}
}
