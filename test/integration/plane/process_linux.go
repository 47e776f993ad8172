package plane

import (
	"os/exec"
	"syscall"
)

// dieWithParent has the kernel end the process if the test is killed before it can.
func dieWithParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
