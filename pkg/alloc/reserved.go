package alloc

import (
	"errors"

	corev1 "k8s.io/api/core/v1"

	"github.com/noderes/kubectl-noderes/pkg/alloc/cpuset"
	"github.com/noderes/kubectl-noderes/pkg/alloc/kubeletconfig"
)

// CPUReservation is how many CPUs the static policy keeps from exclusive use, and which, where the configuration names them.
type CPUReservation struct {
	kubeletconfig.Reserved
	Count int64 // the reserved amount, rounded up to whole CPUs
	// CPUs is reservedSystemCPUs. Empty: the kubelet takes Count CPUs by the same rules as for a container.
	CPUs cpuset.Set
}

// ErrNoCPUReservation is the kubelet's own word for a node on which the static policy does not start (cpumanager/policy_static.go,
// NewStaticPolicy). A reservation that adds up to zero is left out before the policy sees it, so that it comes to this too.
var ErrNoCPUReservation = errors.New("[cpumanager] unable to determine reserved CPU resources for static policy")

// ReservedCPUs returns the static policy's reservation on a node of that capacity. The error says why the kubelet would not start:
// ErrNoCPUReservation, or one of kubeletconfig's for a setting that cannot be read.
func ReservedCPUs(c kubeletconfig.Config, capacity corev1.ResourceList) (CPUReservation, error) {
	reserved, err := c.Reservation(capacity)
	if err != nil {
		return CPUReservation{}, err
	}
	cpu, ok := reserved[corev1.ResourceCPU]
	if !ok {
		return CPUReservation{}, ErrNoCPUReservation
	}
	return CPUReservation{Reserved: cpu, Count: cpu.Quantity.Value(), CPUs: c.ReservedSystemCPUs}, nil
}
