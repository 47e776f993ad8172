package standin

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/noderes/kubectl-noderes/pkg/alloc/checkpoint"
	"github.com/noderes/kubectl-noderes/pkg/snapshot"
)

// A Machine is the recorded node as files, with a shell that finds its tools: what a command in a container of the node sees.
type Machine struct {
	root, scratch, tools string
}

// NewMachine lays the recorded files out below a folder, each as it was last recorded. The UIDs of pods are the cluster's, in the names
// and in the files.
func NewMachine(dir string, recorded *snapshot.Node, uids map[types.UID]types.UID) (*Machine, error) {
	m := &Machine{root: filepath.Join(dir, "host"), scratch: filepath.Join(dir, "scratch"), tools: filepath.Join(dir, "bin")}
	present := renamer(uids)
	write := func(path string, data []byte, mode os.FileMode) error {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		return os.WriteFile(path, data, mode)
	}
	files := recorded.Files()
	err := fs.WalkDir(files, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := fs.ReadFile(files, path)
		if err != nil {
			return err
		}
		data = present(data)
		if strings.HasSuffix(path, "_manager_state") {
			data = signed(data)
		}
		return write(filepath.Join(m.root, string(present([]byte(path)))), data, 0o644)
	})
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(m.scratch, 0o755); err != nil {
		return nil, err
	}
	log, err := recorded.File("kernel.log")
	if err != nil {
		return nil, err
	}
	if err := write(filepath.Join(dir, "kernel.log"), present(log), 0o644); err != nil {
		return nil, err
	}
	samples := recorded.Samples()
	if len(samples) == 0 {
		return nil, fmt.Errorf("node %s has no sample", recorded.Name())
	}
	for tool, script := range map[string]string{
		"dmesg": "exec cat " + filepath.Join(dir, "kernel.log"),
		"date":  fmt.Sprintf("echo %d", samples[len(samples)-1].Time.Unix()), // the node's clock, as its uptime
	} {
		if err := write(filepath.Join(m.tools, tool), []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
			return nil, err
		}
	}
	for _, tool := range []string{"sh", "cat", "sleep", "tail"} {
		program, err := exec.LookPath(tool)
		if err != nil {
			return nil, err
		}
		if err := os.Symlink(program, filepath.Join(m.tools, tool)); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// signed gives a checkpoint of the kubelet the checksum of its content.
func signed(data []byte) []byte {
	text := string(data)
	var sums []checkpoint.Checksum
	if cpu, err := checkpoint.ReadCPU(data); err == nil || len(cpu.Checksums) > 0 {
		sums = cpu.Checksums
	} else if memory, err := checkpoint.ReadMemory(data); err == nil || len(memory.Checksums) > 0 {
		sums = memory.Checksums
	}
	for _, sum := range sums {
		text = strings.Replace(text, fmt.Sprint(sum.Stored), fmt.Sprint(sum.Computed), 1)
	}
	return []byte(text)
}

// command is one that a container of the node is asked to run. The folders that a node pod mounts are here elsewhere.
func (m *Machine) command(args []string) *exec.Cmd {
	here := make([]string, len(args))
	for i, arg := range args {
		switch arg {
		case "/host":
			arg = m.root
		case "/scratch":
			arg = m.scratch
		}
		here[i] = arg
	}
	cmd := exec.Command(filepath.Join(m.tools, here[0]), here[1:]...)
	cmd.Env = []string{"PATH=" + m.tools}
	return cmd
}
