package diagnose

import (
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/noderes/kubectl-noderes/pkg/report"
)

// unitMistake speaks of quantities whose unit is probably not the one meant.
// Any quantity may be meant as it stands, so it needs a sign beside the suffix:
// an amount that nothing can run in (512m of memory is half a byte), a second
// size in the pod that is the same number in the other unit (a request of 128M
// beside a limit of 128Mi, -Xmx512m beside a limit of 512M), or more CPUs than
// any machine has.
func unitMistake(c *podCase) []report.Finding {
	if c.ended() {
		return nil
	}
	var out []report.Finding
	for _, k := range c.containers() {
		if m := c.mistakes(k.Resources, k.field("spec"), &k); len(m) > 0 {
			out = append(out, c.mistakeFinding(k.Name, "container "+k.Name, m))
		}
	}
	if r := c.pod.Spec.Resources; r != nil {
		if m := c.mistakes(*r, "spec", nil); len(m) > 0 {
			out = append(out, c.mistakeFinding("", "the pod", m))
		}
	}
	var volumes []mistake
	for _, v := range c.memoryVolumes() {
		if q := v.EmptyDir.SizeLimit; q != nil {
			if m, ok := tinyMistake(*q, fmt.Sprintf("spec.volumes[%s].emptyDir.sizeLimit", v.Name), tinyRequest); ok {
				volumes = append(volumes, m)
			}
		}
	}
	if len(volumes) > 0 {
		out = append(out, c.mistakeFinding("", "the pod", volumes))
	}
	return out
}

// mistake is one quantity and what it probably should be.
type mistake struct {
	field, value string
	is           string // what the value says
	meant        string // "" where that cannot be told
	beside       []report.Evidence
	confidence   report.Confidence
}

// name is the end of the field: "limits.memory", "volumes[scratch].emptyDir.sizeLimit".
func (m mistake) name() string {
	if _, name, ok := strings.Cut(m.field, "resources."); ok {
		return name
	}
	return strings.TrimPrefix(m.field, "spec.")
}

func (c *podCase) mistakeFinding(container, who string, all []mistake) report.Finding {
	f := report.NewFinding(report.UnitMistake, all[0].confidence, c.subject(container), "")
	for _, m := range all {
		text := fmt.Sprintf("%s has %s %q: %s", sentence(who), m.name(), m.value, m.is)
		if m.meant != "" {
			text += fmt.Sprintf("; probably %q was meant", m.meant)
		}
		if f.Summary != "" {
			f.Summary += " "
		}
		f.Summary += text + "."
		f.Confidence = weaker(f.Confidence, m.confidence)
		f.Because = append(f.Because, c.podField(m.field, m.value, m.is))
		f.Because = append(f.Because, m.beside...)
	}
	f.Remedies = []report.Remedy{{
		Summary: fmt.Sprintf("Write the quantity of %s with the suffix that is meant: Mi and Gi are 1024², 1024³ bytes, M and G 1000², 1000³, and m is a thousandth.", who),
	}}
	return f
}

const (
	// tinyLimit is less than any process can start in.
	tinyLimit = 1 << 20
	// tinyRequest is less than anyone asks for on purpose; a few Ki are asked for
	// by people who want to ask for next to nothing.
	tinyRequest = 1 << 10
	// absurdCPUs is beyond every machine.
	absurdCPUs = 4096
)

// mistakes looks at one set of requests and limits; k is the container that it
// belongs to, nil for the pod.
func (c *podCase) mistakes(r corev1.ResourceRequirements, field string, k *container) []mistake {
	var out []mistake
	for _, list := range []struct {
		name   string
		values corev1.ResourceList
		tiny   int64
	}{{"limits", r.Limits, tinyLimit}, {"requests", r.Requests, tinyRequest}} {
		at := field + ".resources." + list.name
		limit, hasLimit := r.Limits[corev1.ResourceMemory]
		if q, ok := list.values[corev1.ResourceMemory]; ok && !(list.name == "requests" && hasLimit && limit.Cmp(q) == 0) {
			if m, ok := tinyMistake(q, at+".memory", list.tiny); ok {
				out = append(out, m)
			}
		}
		if q, ok := list.values[corev1.ResourceEphemeralStorage]; ok && q.Sign() > 0 && q.Value() <= tinyRequest {
			if m, ok := tinyMistake(q, at+".ephemeral-storage", tinyRequest); ok {
				out = append(out, m)
			}
		}
		limitCPU, hasCPU := r.Limits[corev1.ResourceCPU]
		if q, ok := list.values[corev1.ResourceCPU]; ok && !(list.name == "requests" && hasCPU && limitCPU.Cmp(q) == 0) {
			if m, ok := c.cpuMistake(q, at+".cpu"); ok {
				out = append(out, m)
			}
		}
	}
	if m, ok := c.decimalMistake(r, field, k); ok {
		out = append(out, m)
	}
	return out
}

// tinyMistake takes an amount of bytes that is too small to be meant.
func tinyMistake(q resource.Quantity, field string, below int64) (mistake, bool) {
	if q.Sign() <= 0 || q.Value() >= below {
		return mistake{}, false
	}
	m := mistake{field: field, value: q.String(), confidence: report.Likely}
	milli := q.MilliValue()
	number := milli
	switch {
	case milli%1000 != 0:
		m.is = fmt.Sprintf("the suffix m is a thousandth, so this is %s bytes", trimZeros(strconv.FormatFloat(float64(milli)/1000, 'f', 3, 64)))
	case q.Value() < 1024:
		number = q.Value()
		// 1000m, 512000m: the API server writes them without the suffix.
		m.is = fmt.Sprintf("%d bytes, in which nothing runs", q.Value())
	case q.Format == resource.BinarySI && q.Value()%1024 == 0:
		number = q.Value() / 1024
		m.is = fmt.Sprintf("%d bytes, in which no process can start", q.Value())
	case q.Value()%1000 == 0:
		number = q.Value() / 1000
		m.is = fmt.Sprintf("%d bytes, in which no process can start", q.Value())
	default:
		m.is = fmt.Sprintf("%d bytes, in which no process can start", q.Value())
		return m, true
	}
	if number >= 4 {
		m.meant = fmt.Sprintf("%dMi", number)
	} else {
		m.meant = fmt.Sprintf("%dGi", number)
	}
	return m, true
}

// cpuMistake takes a number of CPUs that is one of bytes, or one of millicores
// without its suffix: beyond every machine, or by far beyond every node known.
func (c *podCase) cpuMistake(q resource.Quantity, field string) (mistake, bool) {
	cpus := q.Value()
	m := mistake{field: field, value: q.String(), confidence: report.Likely}
	switch {
	case q.Format == resource.BinarySI && cpus >= 1024 || cpus >= 1000*1000:
		m.is = fmt.Sprintf("%d CPUs, written like a number of bytes", cpus)
		return m, true
	case cpus >= absurdCPUs:
		m.is = fmt.Sprintf("%d CPUs, more than any machine has", cpus)
	default:
		most, of := c.mostCPUs()
		if most == 0 || cpus < 100 || cpus%10 != 0 || cpus/4 < most {
			return mistake{}, false
		}
		m.is = fmt.Sprintf("%d CPUs, where the largest node known has %d", cpus, most)
		m.beside = []report.Evidence{{Source: "api:nodes/" + of, Field: "status.capacity.cpu", Value: fmt.Sprint(most), Means: "the most of all nodes known"}}
	}
	m.meant = fmt.Sprintf("%dm", cpus)
	return m, true
}

// mostCPUs is the capacity of the largest node of the snapshot.
func (c *podCase) mostCPUs() (cpus int64, node string) {
	nodes, err := c.snap.Nodes()
	if err != nil {
		return 0, ""
	}
	for i := range nodes {
		if n := nodes[i].Status.Capacity.Cpu().Value(); n > cpus {
			cpus, node = n, nodes[i].Name
		}
	}
	return cpus, node
}

// decimalMistake takes memory in M or G where another size of the same thing is
// the same number in Mi or Gi: the request beside the limit, the heap of the
// runtime, a memory-backed volume. That all other sizes of the pod are in binary
// units is a weaker sign, and counts only for a number that people write of
// binary sizes.
func (c *podCase) decimalMistake(r corev1.ResourceRequirements, field string, k *container) (mistake, bool) {
	limit, request := r.Limits.Memory(), r.Requests.Memory()
	decimal := func(name string, q *resource.Quantity) (mistake, bool) {
		number, ok := decimalSize(*q)
		if !ok {
			return mistake{}, false
		}
		m := mistake{field: field + ".resources." + name + ".memory", value: q.String(), confidence: report.Likely, meant: number.binary(),
			is: fmt.Sprintf("%d bytes, %s less than %s", q.Value(), bytes(uint64(number.inBinary()-q.Value())), number.binary())}
		return m, true
	}
	for _, pair := range []struct {
		name  string
		q     *resource.Quantity
		other *resource.Quantity
		at    string
	}{{"requests", request, limit, "limits"}, {"limits", limit, request, "requests"}} {
		m, ok := decimal(pair.name, pair.q)
		if ok && pair.other.String() == m.meant {
			m.beside = []report.Evidence{c.podField(field+".resources."+pair.at+".memory", pair.other.String(), "the same number in the other unit: the two differ, so that the pod is not Guaranteed")}
			return m, true
		}
	}
	name, size := "limits", limit
	if limit.IsZero() {
		name, size = "requests", request
	}
	m, ok := decimal(name, size)
	if !ok || k == nil {
		return mistake{}, false
	}
	number, _ := decimalSize(*size)
	if rt, ok := c.languageOf(*k); ok {
		for _, s := range rt.settings {
			if s.bytes == uint64(number.inBinary()) {
				m.beside = []report.Evidence{c.podField(s.where, s.flag, fmt.Sprintf("counts in binary units: %d bytes, more than the limit", s.bytes))}
				return m, true
			}
		}
	}
	for _, v := range c.memoryVolumes() {
		if q := v.EmptyDir.SizeLimit; q != nil && mounts(*k, v.Name) && q.String() == m.meant {
			m.beside = []report.Evidence{c.podField(fmt.Sprintf("spec.volumes[%s].emptyDir.sizeLimit", v.Name), q.String(), "medium: Memory; more than the limit that it counts against")}
			return m, true
		}
	}
	if !number.round() {
		return mistake{}, false
	}
	binary, others := 0, 0
	look := func(q *resource.Quantity, field string) {
		if q.IsZero() {
			return
		}
		if others++; q.Format == resource.BinarySI {
			binary++
			m.beside = append(m.beside, c.podField(field, q.String(), "in a binary unit"))
		}
	}
	for _, o := range c.containers() {
		if o.Name != k.Name {
			look(o.Resources.Limits.Memory(), o.field("spec")+".resources.limits.memory")
		} else if name == "limits" && request.Cmp(*limit) != 0 {
			look(request, field+".resources.requests.memory")
		}
	}
	if binary == 0 || binary < others {
		return mistake{}, false
	}
	m.confidence = report.Possible
	return m, true
}

func mounts(k container, volume string) bool {
	for _, m := range k.VolumeMounts {
		if m.Name == volume {
			return true
		}
	}
	return false
}

// decimalNumber is a size as it is written in M or G.
type decimalNumber struct {
	count int64
	unit  string // "M" or "G"
}

// decimalSize is false for a size that is not written in whole M or G.
func decimalSize(q resource.Quantity) (decimalNumber, bool) {
	if q.Format != resource.DecimalSI || q.Sign() <= 0 {
		return decimalNumber{}, false
	}
	text := q.String()
	unit := text[len(text)-1:]
	count, err := strconv.ParseInt(text[:len(text)-1], 10, 32)
	if err != nil || unit != "M" && unit != "G" {
		return decimalNumber{}, false
	}
	return decimalNumber{count, unit}, true
}

func (d decimalNumber) inBinary() int64 {
	if d.unit == "M" {
		return d.count << 20
	}
	return d.count << 30
}

// binary is the size with the binary suffix, as the API server writes it.
func (d decimalNumber) binary() string {
	return resource.NewQuantity(d.inBinary(), resource.BinarySI).String()
}

// round says whether people write the number of binary sizes: a power of two,
// or a multiple of 64 M.
func (d decimalNumber) round() bool {
	return d.count&(d.count-1) == 0 && (d.unit == "M" && d.count >= 16 || d.unit == "G" && d.count >= 1) || d.unit == "M" && d.count%64 == 0
}
