package plane

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// grace is how long a process may take to end after SIGTERM.
const grace = 5 * time.Second

// A Process is one that this package started.
type Process struct {
	name string
	cmd  *exec.Cmd
	log  string
	done chan struct{}
	err  error // how it ended; to be read when done is closed
}

// start runs program with its output in name.log below dir, and more of an environment.
func start(dir, name string, env []string, program string, args ...string) (*Process, error) {
	p := &Process{name: name, log: filepath.Join(dir, name+".log"), done: make(chan struct{})}
	out, err := os.Create(p.log)
	if err != nil {
		return nil, err
	}
	defer out.Close()
	p.cmd = exec.Command(program, args...)
	p.cmd.Dir = dir
	p.cmd.Stdout, p.cmd.Stderr = out, out
	// An environment of its own: a proxy or a KUBECONFIG of the user is no part of the test.
	p.cmd.Env = append([]string{"HOME=" + dir, "PATH=" + os.Getenv("PATH")}, env...)
	dieWithParent(p.cmd)
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.done)
	}()
	return p, nil
}

// Stop ends the process, and returns when it has ended.
func (p *Process) Stop() {
	// Process.Signal does nothing once Wait has returned: no other process can be meant.
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.done:
	case <-time.After(grace):
		p.Kill()
	}
}

// Kill ends the process without letting it tidy up.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill()
	<-p.done
}

// running is an error with the end of the log if the process has ended.
func (p *Process) running() error {
	select {
	case <-p.done:
		return fmt.Errorf("%s ended: %v\n%s", p.name, p.err, p.tail())
	default:
		return nil
	}
}

// tail is the end of what the process printed.
func (p *Process) tail() []byte {
	data, err := os.ReadFile(p.log)
	if err != nil {
		return []byte(err.Error())
	}
	if i := len(data) - 1500; i > 0 {
		data = data[i:]
		data = data[bytes.IndexByte(data, '\n')+1:]
	}
	return data
}
