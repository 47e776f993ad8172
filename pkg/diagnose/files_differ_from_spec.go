package diagnose

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/noderes/kubectl-noderes/pkg/alloc"
	"github.com/noderes/kubectl-noderes/pkg/cgroup"
	"github.com/noderes/kubectl-noderes/pkg/report"
)

// cpuFilesDifferFromSpec compares cpu.max and cpu.weight of a pod's cgroups
// with every value that spec, allocated and actuated resources could have
// produced, exact or rounded, by either weight formula.
func cpuFilesDifferFromSpec(c *podCase) []report.Finding {
	return c.filesDiffer(report.CPUFilesDifferFromSpec, "cpu.max", "cpu.weight")
}

// memoryFilesDifferFromSpec does the same for the memory files.
func memoryFilesDifferFromSpec(c *podCase) []report.Finding {
	if !c.rulesExact || c.configErr != nil {
		return c.filesDiffer(report.MemoryFilesDifferFromSpec, "memory.max")
	}
	return append(c.filesDiffer(report.MemoryFilesDifferFromSpec, "memory.max", "memory.low", "memory.min", "memory.oom.group"), c.memoryHighDiffers()...)
}

// filesDiffer compares files of the pod's slice and of its containers' scopes.
func (c *podCase) filesDiffer(code report.Code, files ...string) []report.Finding {
	if c.groupsErr != nil || c.ended() {
		return nil
	}
	var out []report.Finding
	for _, want := range withDefaults(c.podWants(), files) {
		out = append(out, c.compare(code, c.subject(""), "the pod's cgroup", c.groups.Pod, want)...)
	}
	for _, k := range c.containers() {
		g, ok := c.containerGroup(k.Name)
		if !ok {
			continue
		}
		for _, want := range withDefaults(c.containerWants(k.Name), files) {
			out = append(out, c.compare(code, c.subject(k.Name), "container "+k.Name, g, want)...)
		}
	}
	return out
}

// resourceViews are the resources that a file may speak of: those of the spec,
// those the kubelet admitted, those the runtime reports. They differ while an
// in-place resize is on its way.
var resourceViews = []cgroup.Resources{cgroup.Desired, cgroup.Allocated, cgroup.Actuated}

// podWants and containerWants list, per file, what it may hold.
func (c *podCase) podWants() []cgroup.FileValues {
	var out []cgroup.FileValues
	for _, view := range resourceViews {
		for _, s := range c.quotaViews() {
			out = merge(out, cgroup.PodValues(c.pod, view, s))
		}
	}
	return out
}

func (c *podCase) containerWants(name string) []cgroup.FileValues {
	var out []cgroup.FileValues
	for _, view := range resourceViews {
		for _, s := range c.quotaViews() {
			if values, err := cgroup.ContainerValues(c.pod, name, view, s); err == nil {
				out = merge(out, values)
			}
		}
	}
	return out
}

// withDefaults selects files, and adds those that nobody writes with what a new
// cgroup holds.
func withDefaults(wants []cgroup.FileValues, files []string) []cgroup.FileValues {
	var out []cgroup.FileValues
	for _, file := range files {
		i := slices.IndexFunc(wants, func(w cgroup.FileValues) bool { return w.File == file })
		if i >= 0 {
			out = append(out, wants[i])
		} else if text, ok := cgroup.DefaultText(file); ok {
			out = append(out, cgroup.FileValues{File: file, Accept: []cgroup.Value{{Text: text, Rule: "nobody sets it"}}})
		}
	}
	return out
}

// quotaViews are the settings with and without the quota of exclusive CPUs: a
// quota left on them has a code of its own, cpu-quota-on-exclusive-cpus.
func (c *podCase) quotaViews() []cgroup.Settings {
	lifted := c.settings(c.uid)
	kept := lifted
	kept.Exclusive = nil
	views := []cgroup.Settings{lifted, kept}
	if _, known := c.cpuCheckpoint(); !known {
		// Who owns CPUs is not known: whoever could may have no quota.
		views[0].Exclusive = func(name string) bool {
			n, _ := alloc.GuaranteedCPUs(c.pod, name, c.rules)
			return n > 0
		}
	}
	if arch := c.architecture(); arch == "arm64" || arch == "ppc64le" {
		// Kernels of these may round limits to pages of 64Ki.
		for _, s := range views[:len(views):len(views)] {
			s.PageSize = 64 << 10
			views = append(views, s)
		}
	}
	return views
}

// merge adds the accepted values of b to those of a, file by file.
func merge(a, b []cgroup.FileValues) []cgroup.FileValues {
	for _, f := range b {
		i := slices.IndexFunc(a, func(x cgroup.FileValues) bool { return x.File == f.File })
		if i < 0 {
			a = append(a, f)
			continue
		}
		for _, v := range f.Accept {
			if !slices.ContainsFunc(a[i].Accept, func(x cgroup.Value) bool { return x.Text == v.Text }) {
				a[i].Accept = append(slices.Clip(a[i].Accept), v)
			}
		}
	}
	return a
}

// compare gives a finding if the file holds none of the accepted values. A
// file that was not read says nothing.
func (n *nodeCase) compare(code report.Code, subject report.Subject, who string, g cgroup.Group, want cgroup.FileValues) []report.Finding {
	got, err := fileText(g, want.File)
	if len(want.Accept) == 0 {
		return nil
	}
	if err != nil {
		n.gaps.Miss(n.filePath(g.File(want.File)), err, want.File+" of "+who+" is not compared with the spec", "")
		return nil
	}
	if slices.ContainsFunc(want.Accept, func(v cgroup.Value) bool { return v.Text == got }) {
		return nil
	}
	confidence := report.Proven
	if want.File == "cpu.max" && n.configErr != nil {
		confidence = report.Likely // the period and cpuCFSQuota may not be the defaults
	}
	f := report.NewFinding(code, confidence, subject, fmt.Sprintf("%s of %s is %q, where the kubelet and the runtime write %s.", want.File, who, got, alternatives(want.Accept)),
		n.fileEvidence(g.File(want.File), "", got, "none of the values that the resources give, in the spec, as allocated, or as the runtime reports them"))
	var sums []string
	for _, v := range want.Accept {
		if v.Arithmetic != "" {
			sums = append(sums, v.Arithmetic)
		}
	}
	f.Arithmetic = strings.Join(sums, "; ")
	f.Remedies = []report.Remedy{{
		Summary: "Find who else writes this file: a systemd drop-in, an NRI plugin, a hand edit, or a runtime that was replaced under the running container.",
		Effect:  "Restarting the container (for the pod's own cgroup: deleting the pod) makes kubelet and runtime write it anew.",
	}}
	if max, err := g.CPUMax(); err == nil && want.File == "cpu.max" {
		if e, ok := n.scaledPeriod(max); ok {
			f.Because = append(f.Because, e)
			f.Remedies = []report.Remedy{{
				Summary: "Set a longer cpuCFSQuotaPeriod: the kernel's timer could not keep up with this one and has doubled period and quota itself.",
				Effect:  "The limit in CPUs is the same; only the periods are longer.",
			}}
		}
	}
	return []report.Finding{f}
}

// alternatives lists accepted values with the rule each comes from.
func alternatives(values []cgroup.Value) string {
	var parts []string
	for _, v := range values {
		if v.Rule == "" {
			parts = append(parts, fmt.Sprintf("%q", v.Text))
			continue
		}
		parts = append(parts, fmt.Sprintf("%q (%s)", v.Text, v.Rule))
	}
	if len(parts) == 1 {
		return parts[0]
	}
	return strings.Join(parts[:len(parts)-1], ", ") + " or " + parts[len(parts)-1]
}

// fileText is what a file that [cgroup.FileValues] names holds, in the kernel's
// spelling. A file that its own reader cannot make sense of differs from
// nothing: it was not understood.
func fileText(g cgroup.Group, file string) (string, error) {
	switch file {
	case "cpu.max":
		v, err := g.CPUMax()
		return v.String(), err
	case "cpu.weight":
		v, err := g.CPUWeight()
		return strconv.FormatUint(v, 10), err
	case "memory.oom.group":
		v, err := g.MemoryOOMGroup()
		if v {
			return "1", err
		}
		return "0", err
	}
	read, ok := map[string]func() (cgroup.Limit, error){
		"memory.max": g.MemoryMax, "memory.high": g.MemoryHigh, "memory.low": g.MemoryLow, "memory.min": g.MemoryMin,
	}[file]
	if !ok {
		return g.Text(file)
	}
	v, err := read()
	return v.String(), err
}
