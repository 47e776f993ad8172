package alloc

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/noderes/kubectl-noderes/pkg/alloc/kubeletconfig"
)

func TestReservedCPUs(t *testing.T) {
	capacity := corev1.ResourceList{"cpu": resource.MustParse("8"), "memory": resource.MustParse("16Gi")}
	for _, tc := range []struct {
		config     string
		count      int64
		cpus       string
		arithmetic string
	}{
		{`{"kubeReserved":{"cpu":"1"}}`, 1, "", "kubeReserved 1 = 1"},
		{`{"kubeReserved":{"cpu":"500m"},"systemReserved":{"cpu":"501m"}}`, 2, "", "systemReserved 501m + kubeReserved 500m = 1001m"},
		{`{"kubeReserved":{"cpu":"1n"}}`, 1, "", "kubeReserved 1n = 1n"},
		{`{"kubeReserved":{"cpu":"3"},"reservedSystemCPUs":"0,4"}`, 2, "0,4", "reservedSystemCPUs 0,4 (2) = 2"},
	} {
		c, err := kubeletconfig.Decode([]byte(tc.config))
		if err != nil {
			t.Fatal(err)
		}
		got, err := ReservedCPUs(c, capacity)
		if err != nil || got.Count != tc.count || got.CPUs.String() != tc.cpus || got.Arithmetic() != tc.arithmetic {
			t.Errorf("%s: %d, %q, %s, %v", tc.config, got.Count, got.CPUs, got.Arithmetic(), err)
		}
	}
	for _, config := range []string{`{}`, `{"kubeReserved":{"cpu":"0"}}`, `{"kubeReserved":{"memory":"1Gi"}}`} {
		c, _ := kubeletconfig.Decode([]byte(config))
		if got, err := ReservedCPUs(c, capacity); !errors.Is(err, ErrNoCPUReservation) {
			t.Errorf("%s: %+v, %v", config, got, err)
		}
	}
	c, _ := kubeletconfig.Decode([]byte(`{"kubeReserved":{"cpu":"many"}}`))
	if _, err := ReservedCPUs(c, capacity); err == nil || errors.Is(err, ErrNoCPUReservation) {
		t.Errorf("unreadable: %v", err)
	}
}
