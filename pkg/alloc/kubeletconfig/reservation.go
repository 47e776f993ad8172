package kubeletconfig

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/noderes/kubectl-noderes/pkg/alloc/internal/cut"
)

// Reserved is what a node keeps back of one resource, and why.
type Reserved struct {
	Quantity resource.Quantity
	Terms    []Term // that add up to Quantity
	Replaced []Term // cpu of systemReserved and kubeReserved, which reservedSystemCPUs makes void
}

// Term is one part of a reservation.
type Term struct {
	Field    string // systemReserved, kubeReserved, reservedSystemCPUs or evictionHard[...]
	Text     string // as configured
	Quantity resource.Quantity
}

// String returns the term as it was configured; one that is not a quantity by itself has its amount behind it.
func (t Term) String() string {
	s := t.Field + " " + t.Text
	if _, err := parseQuantity(t.Text); err != nil || t.Field == "reservedSystemCPUs" {
		s += " (" + t.Quantity.String() + ")"
	}
	return s
}

// Arithmetic returns the sum as text: "systemReserved 10Gi + evictionHard[memory.available] 100Mi = 10340Mi".
func (r Reserved) Arithmetic() string {
	terms := make([]string, len(r.Terms))
	for i, t := range r.Terms {
		terms[i] = t.String()
	}
	return strings.Join(terms, " + ") + " = " + r.Quantity.String()
}

// Reservation returns what the node keeps back of each resource in its capacity (kubelet 1.37, GetNodeAllocatableReservation):
// systemReserved, kubeReserved and the hard eviction thresholds memory.available and nodefs.available (for ephemeral-storage), of
// which a percentage is taken of the capacity as the kubelet does, through a 32 bit float. Resources of which nothing is kept back
// are left out. With reservedSystemCPUs the number of these CPUs stands for all cpu reservations (cmd/kubelet/app/server.go).
//
// The error names every setting that cannot be read, on which a kubelet does not start; the sums are then without it.
func (c Config) Reservation(capacity corev1.ResourceList) (map[corev1.ResourceName]Reserved, error) {
	var errs []error
	parts := map[corev1.ResourceName]Reserved{}
	for _, list := range []struct {
		field string
		texts map[string]string
	}{{"systemReserved", c.SystemReserved}, {"kubeReserved", c.KubeReserved}} {
		for _, name := range slices.Sorted(maps.Keys(list.texts)) {
			text := list.texts[name]
			q, err := parseReserved(name, text)
			if err != nil {
				errs = appendBounded(errs, fmt.Errorf("%s[%s]: %w", list.field, cut.Quote(name), err))
				continue
			}
			part := parts[corev1.ResourceName(name)]
			part.Terms = append(part.Terms, Term{list.field, text, q})
			parts[corev1.ResourceName(name)] = part
		}
	}
	if !c.ReservedSystemCPUs.IsEmpty() {
		n := *resource.NewQuantity(int64(c.ReservedSystemCPUs.Size()), resource.DecimalSI)
		parts[corev1.ResourceCPU] = Reserved{
			Terms:    []Term{{"reservedSystemCPUs", c.ReservedSystemCPUs.String(), n}},
			Replaced: parts[corev1.ResourceCPU].Terms,
		}
	}
	for _, signal := range slices.Sorted(maps.Keys(c.EvictionHard)) {
		text := c.EvictionHard[signal]
		threshold, err := parseThreshold(signal, text)
		if err != nil {
			errs = appendBounded(errs, fmt.Errorf("evictionHard[%s]: %w", cut.Quote(signal), err))
			continue
		}
		name, ok := reservingSignals[signal]
		if !ok || threshold.ignored {
			continue
		}
		part := parts[name]
		part.Terms = append(part.Terms, Term{"evictionHard[" + signal + "]", text, threshold.of(capacity[name])})
		parts[name] = part
	}

	reserved := map[corev1.ResourceName]Reserved{}
	for name := range capacity {
		part, ok := parts[name]
		if !ok {
			continue
		}
		for _, term := range part.Terms {
			part.Quantity.Add(term.Quantity)
		}
		if !part.Quantity.IsZero() {
			reserved[name] = part
		}
	}
	return reserved, errors.Join(errs...)
}

func appendBounded(errs []error, err error) []error {
	if len(errs) >= maxErrors {
		return errs
	}
	return append(errs, err)
}

func parseReserved(name, text string) (resource.Quantity, error) {
	switch name {
	case "cpu", "memory", "ephemeral-storage", "pid":
	default:
		return resource.Quantity{}, errors.New("the kubelet cannot reserve this resource")
	}
	q, err := parseQuantity(text)
	if err == nil && q.Sign() < 0 {
		err = fmt.Errorf("negative: %s", cut.Quote(text))
	}
	return q, err
}

// reservingSignals are the eviction signals whose hard threshold lowers what the node allocates.
var reservingSignals = map[string]corev1.ResourceName{
	"memory.available": corev1.ResourceMemory,
	"nodefs.available": corev1.ResourceEphemeralStorage,
}

// threshold is the value of an eviction threshold (pkg/kubelet/eviction, parseThresholdStatement).
type threshold struct {
	ignored    bool // "0%" and "100%" turn a threshold off
	percentage float32
	quantity   *resource.Quantity
}

// signals are the eviction signals that can be configured.
var signals = []string{
	"memory.available", "allocatableMemory.available", "nodefs.available", "nodefs.inodesFree", "imagefs.available",
	"imagefs.inodesFree", "containerfs.available", "containerfs.inodesFree", "pid.available",
}

func parseThreshold(signal, text string) (threshold, error) {
	if !slices.Contains(signals, signal) {
		return threshold{}, errors.New("unsupported eviction signal")
	}
	if number, ok := strings.CutSuffix(text, "%"); ok {
		if text == "0%" || text == "100%" {
			return threshold{ignored: true}, nil
		}
		value, err := strconv.ParseFloat(strings.TrimRight(number, "%"), 32)
		percentage := float32(value) / 100
		if err != nil || math.IsNaN(value) || percentage < 0 || percentage > 1 {
			return threshold{}, fmt.Errorf("not a percentage from 0%% to 100%%: %s", cut.Quote(text))
		}
		return threshold{percentage: percentage}, nil
	}
	q, err := parseQuantity(text)
	if err != nil {
		return threshold{}, err
	}
	if q.Sign() <= 0 {
		return threshold{}, fmt.Errorf("not above zero: %s", cut.Quote(text))
	}
	return threshold{quantity: &q}, nil
}

// of returns the threshold for a capacity.
func (t threshold) of(capacity resource.Quantity) resource.Quantity {
	if t.quantity != nil {
		return t.quantity.DeepCopy()
	}
	value := float64(capacity.Value()) * float64(t.percentage)
	if value >= math.MaxInt64 {
		return *resource.NewQuantity(math.MaxInt64, resource.BinarySI)
	}
	return *resource.NewQuantity(int64(value), resource.BinarySI)
}
