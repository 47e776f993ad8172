package kubeletconfig

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/noderes/kubectl-noderes/pkg/alloc/cpuset"
	"github.com/noderes/kubectl-noderes/pkg/alloc/internal/cut"
	"github.com/noderes/kubectl-noderes/pkg/alloc/internal/jsonobject"
)

// ErrEmpty is matched by the error for a document without content.
var ErrEmpty = errors.New("kubelet configuration is empty")

// ErrTwice is matched by the error for a field that stands twice, for which a kubelet starts all the same.
var ErrTwice = errors.New("stands twice, the last one counts")

// Decode reads what /configz answers, {"kubeletconfig":{...}}, or a bare KubeletConfiguration in JSON. Fields of no interest are
// named in Ignored. A field that cannot be read keeps its default and is named in the error, beside which the rest is returned.
func Decode(configz []byte) (Config, error) {
	if len(bytes.TrimSpace(configz)) == 0 {
		return Config{}, ErrEmpty
	}
	members, err := jsonobject.Members(configz)
	if err != nil {
		return Config{}, fmt.Errorf("kubelet configuration: %w", err)
	}
	wrapped := false
	for _, m := range members {
		if m.Key == "kubeletconfig" {
			wrapped = true
			if members, err = jsonobject.Members(m.Value); err != nil {
				return Config{}, fmt.Errorf("kubelet configuration: kubeletconfig: %w", err)
			}
			break
		}
	}

	c := Config{set: map[string]bool{}}
	d := decoder{}
	fields := c.fields(&d)
	ignored := map[string]bool{}
	seen := map[string]bool{}
	served := false
	for _, m := range members {
		if seen[m.Key] {
			d.fail(m.Key, ErrTwice)
		}
		seen[m.Key] = true
		served = served || m.Key == "containerRuntimeEndpoint"
		read, known := fields[m.Key]
		if !known {
			ignored[m.Key] = true
			continue
		}
		if c.set[m.Key] = !m.IsNull(); !m.IsNull() {
			read(m.Key, m.Value)
		}
	}
	c.Ignored = slices.Sorted(maps.Keys(ignored))
	c.Served = wrapped && served
	c.applyDefaults()
	return c, d.err()
}

// fields maps the names of the fields to the reading of their values.
func (c *Config) fields(d *decoder) map[string]func(name string, raw json.RawMessage) {
	return map[string]func(string, json.RawMessage){
		"cpuManagerPolicy":          into(d, &c.CPUManagerPolicy),
		"cpuManagerPolicyOptions":   d.texts(&c.CPUManagerPolicyOptions),
		"cpuManagerReconcilePeriod": d.duration(&c.CPUManagerReconcilePeriod),
		"reservedSystemCPUs":        d.cpus(&c.ReservedSystemCPUs),

		"memoryManagerPolicy": into(d, &c.MemoryManagerPolicy),
		"reservedMemory":      d.reservedMemory(&c.ReservedMemory),

		"topologyManagerPolicy":        into(d, &c.TopologyManagerPolicy),
		"topologyManagerScope":         into(d, &c.TopologyManagerScope),
		"topologyManagerPolicyOptions": d.texts(&c.TopologyManagerPolicyOptions),

		"kubeReserved":           d.texts(&c.KubeReserved),
		"systemReserved":         d.texts(&c.SystemReserved),
		"kubeReservedCgroup":     into(d, &c.KubeReservedCgroup),
		"systemReservedCgroup":   into(d, &c.SystemReservedCgroup),
		"enforceNodeAllocatable": into(d, &c.EnforceNodeAllocatable),

		"evictionHard":                     d.texts(&c.EvictionHard),
		"evictionSoft":                     d.texts(&c.EvictionSoft),
		"evictionSoftGracePeriod":          d.texts(&c.EvictionSoftGracePeriod),
		"evictionMinimumReclaim":           d.texts(&c.EvictionMinimumReclaim),
		"evictionMaxPodGracePeriod":        into(d, &c.EvictionMaxPodGracePeriod),
		"evictionPressureTransitionPeriod": d.duration(&c.EvictionPressureTransitionPeriod),
		"mergeDefaultEvictionSettings":     into(d, &c.MergeDefaultEvictionSettings),

		"cgroupDriver":      into(d, &c.CgroupDriver),
		"cgroupRoot":        into(d, &c.CgroupRoot),
		"cgroupsPerQOS":     into(d, &c.CgroupsPerQOS),
		"kubeletCgroups":    into(d, &c.KubeletCgroups),
		"systemCgroups":     into(d, &c.SystemCgroups),
		"qosReserved":       d.texts(&c.QOSReserved),
		"cpuCFSQuota":       into(d, &c.CPUCFSQuota),
		"cpuCFSQuotaPeriod": d.duration(&c.CPUCFSQuotaPeriod),

		"failSwapOn": into(d, &c.FailSwapOn),
		"memorySwap": d.nested(map[string]func(string, json.RawMessage){
			"swapBehavior": into(d, &c.MemorySwapBehavior),
		}),
		"memoryThrottlingFactor":  into(d, &c.MemoryThrottlingFactor),
		"memoryReservationPolicy": into(d, &c.MemoryReservationPolicy),
		"singleProcessOOMKill":    into(d, &c.SingleProcessOOMKill),
		"failCgroupV1":            into(d, &c.FailCgroupV1),

		"podPidsLimit": into(d, &c.PodPidsLimit),
		"maxPods":      into(d, &c.MaxPods),
		"podsPerCore":  into(d, &c.PodsPerCore),

		"crashLoopBackOff": d.nested(map[string]func(string, json.RawMessage){
			"maxContainerRestartPeriod": func(name string, raw json.RawMessage) {
				var period time.Duration
				problems := d.problems()
				if d.duration(&period)(name, raw); d.problems() == problems {
					c.MaxContainerRestartPeriod = &period
				}
			},
		}),

		"featureGates": d.gates(&c.FeatureGates),
	}
}

// defaultEvictionHard are the hard thresholds on Linux.
func defaultEvictionHard() map[string]string {
	return map[string]string{
		"memory.available":   "100Mi",
		"nodefs.available":   "10%",
		"nodefs.inodesFree":  "5%",
		"imagefs.available":  "15%",
		"imagefs.inodesFree": "5%",
	}
}

// applyDefaults fills in what the kubelet would, which for most fields takes the empty value for an absent one.
func (c *Config) applyDefaults() {
	orDefault(&c.CPUManagerPolicy, "none")
	orDefault(&c.CPUManagerReconcilePeriod, 10*time.Second)
	orDefault(&c.MemoryManagerPolicy, "None")
	orDefault(&c.TopologyManagerPolicy, "none")
	orDefault(&c.TopologyManagerScope, "container")
	orDefault(&c.EvictionPressureTransitionPeriod, 5*time.Minute)
	orDefault(&c.CgroupDriver, "cgroupfs")
	orDefault(&c.MaxPods, 110)
	for name, field := range map[string]*bool{"cgroupsPerQOS": &c.CgroupsPerQOS, "cpuCFSQuota": &c.CPUCFSQuota, "failSwapOn": &c.FailSwapOn} {
		if !c.set[name] {
			*field = true
		}
	}
	if !c.set["cpuCFSQuotaPeriod"] {
		c.CPUCFSQuotaPeriod = 100 * time.Millisecond
	}
	if !c.set["podPidsLimit"] || c.PodPidsLimit < 0 {
		c.PodPidsLimit = -1
	}
	if !c.set["enforceNodeAllocatable"] && !c.Served {
		c.EnforceNodeAllocatable = []string{"pods"}
	}
	switch {
	case !c.set["evictionHard"] && !c.Served:
		c.EvictionHard = defaultEvictionHard()
	case c.MergeDefaultEvictionSettings:
		merged := defaultEvictionHard()
		maps.Copy(merged, c.EvictionHard)
		c.EvictionHard = merged
	}
}

func orDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// maxErrors bounds the number of fields that an error names.
const maxErrors = 16

type decoder struct {
	errs []error
	more int
}

func (d *decoder) fail(name string, err error) {
	if len(d.errs) == maxErrors {
		d.more++
		return
	}
	d.errs = append(d.errs, fmt.Errorf("%s: %w", plain(name), err))
}

// problems counts what could not be read so far.
func (d *decoder) problems() int { return len(d.errs) + d.more }

func (d *decoder) err() error {
	if len(d.errs) == 0 {
		return nil
	}
	errs := d.errs
	if d.more > 0 {
		errs = append(errs, fmt.Errorf("and %d more", d.more))
	}
	return &FieldsError{errs}
}

// FieldsError names fields of a configuration whose values cannot be read, while the document as a whole could.
type FieldsError struct{ Fields []error }

func (e *FieldsError) Error() string {
	return "kubelet configuration: " + errors.Join(e.Fields...).Error()
}

func (e *FieldsError) Unwrap() []error { return e.Fields }

// plain quotes a name from outside unless it is one of the letters and signs that field names are made of.
func plain(name string) string {
	if len(name) > 100 || strings.ContainsFunc(name, func(r rune) bool { return (r < '!' || r > '~') && r != ' ' }) {
		return cut.Quote(name)
	}
	return name
}

// into reads a field of a simple type. A value that does not fit leaves the field alone.
func into[T any](d *decoder, field *T) func(string, json.RawMessage) {
	return func(name string, raw json.RawMessage) {
		var value T
		if json.Unmarshal(raw, &value) != nil {
			d.fail(name, fmt.Errorf("unexpected value %s", cut.Quote(string(raw))))
			return
		}
		*field = value
	}
}

func (d *decoder) nested(fields map[string]func(string, json.RawMessage)) func(string, json.RawMessage) {
	return func(name string, raw json.RawMessage) {
		d.object(name, raw, func(path, key string, value json.RawMessage) {
			if read, ok := fields[key]; ok && !jsonobject.IsNull(value) {
				read(path, value)
			}
		})
	}
}

func (d *decoder) object(name string, raw json.RawMessage, member func(path, key string, value json.RawMessage)) {
	members, err := jsonobject.Members(raw)
	if err != nil {
		d.fail(name, err)
		return
	}
	for _, m := range members {
		member(name+"."+m.Key, m.Key, m.Value)
	}
}

// texts reads a map of strings, leaving out what is none. A map that was written empty is not nil.
func (d *decoder) texts(field *map[string]string) func(string, json.RawMessage) {
	return func(name string, raw json.RawMessage) {
		*field = map[string]string{}
		d.object(name, raw, func(path, key string, value json.RawMessage) {
			var text string
			problems := d.problems()
			if into(d, &text)(path, value); d.problems() == problems {
				(*field)[key] = text
			}
		})
	}
}

func (d *decoder) gates(field *map[string]bool) func(string, json.RawMessage) {
	return func(name string, raw json.RawMessage) {
		*field = map[string]bool{}
		d.object(name, raw, func(path, key string, value json.RawMessage) {
			var on bool
			problems := d.problems()
			if into(d, &on)(path, value); d.problems() == problems && !jsonobject.IsNull(value) {
				(*field)[key] = on
			}
		})
	}
}

func (d *decoder) duration(field *time.Duration) func(string, json.RawMessage) {
	return func(name string, raw json.RawMessage) {
		var text string
		if json.Unmarshal(raw, &text) == nil {
			if value, err := time.ParseDuration(text); err == nil {
				*field = value
				return
			}
		}
		d.fail(name, fmt.Errorf("not a duration: %s", cut.Quote(string(raw))))
	}
}

func (d *decoder) cpus(field *cpuset.Set) func(string, json.RawMessage) {
	return func(name string, raw json.RawMessage) {
		var text string
		problems := d.problems()
		if into(d, &text)(name, raw); d.problems() > problems {
			return
		}
		set, err := cpuset.Parse(text)
		if err != nil {
			d.fail(name, err)
			return
		}
		*field = set
	}
}

func (d *decoder) reservedMemory(field *[]MemoryReservation) func(string, json.RawMessage) {
	return func(name string, raw json.RawMessage) {
		var items []json.RawMessage
		if json.Unmarshal(raw, &items) != nil {
			d.fail(name, fmt.Errorf("not a list: %s", cut.Quote(string(raw))))
			return
		}
		for i, item := range items {
			reservation := MemoryReservation{Limits: corev1.ResourceList{}}
			problems := d.problems()
			d.object(name+"["+strconv.Itoa(i)+"]", item, func(path, key string, value json.RawMessage) {
				switch key {
				case "numaNode":
					into(d, &reservation.NUMANode)(path, value)
				case "limits":
					d.object(path, value, func(path, key string, value json.RawMessage) {
						d.quantity(path, value, func(q quantity) { reservation.Limits[corev1.ResourceName(key)] = q })
					})
				}
			})
			if d.problems() == problems {
				*field = append(*field, reservation)
			}
		}
	}
}

// quantity reads a quantity, which JSON can have as a string or as a number.
func (d *decoder) quantity(path string, raw json.RawMessage, use func(quantity)) {
	text := string(raw)
	if json.Unmarshal(raw, &text) != nil {
		text = string(raw)
	}
	q, err := parseQuantity(text)
	if err != nil {
		d.fail(path, err)
		return
	}
	use(q)
}
