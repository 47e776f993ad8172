package diagnose

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

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
	files := []string{"memory.max"}
	if c.rulesExact && c.configErr == nil {
		files = append(files, "memory.high", "memory.low", "memory.min", "memory.oom.group")
	}
	return c.filesDiffer(report.MemoryFilesDifferFromSpec, files...)
}

// filesDiffer compares files of the pod's slice and of its containers' scopes.
func (c *podCase) filesDiffer(code report.Code, files ...string) []report.Finding {
	if c.groupsErr != nil || c.ended() {
		return nil
	}
	var out []report.Finding
	for _, want := range c.podWants() {
		if slices.Contains(files, want.File) {
			out = append(out, c.compare(code, c.subject(""), "the pod's cgroup", c.groups.Pod, want)...)
		}
	}
	for _, k := range c.containers() {
		g, ok := c.containerGroup(k.Name)
		if !ok {
			continue
		}
		for _, want := range c.containerWants(k.Name) {
			if slices.Contains(files, want.File) {
				out = append(out, c.compare(code, c.subject(k.Name), "container "+k.Name, g, want)...)
			}
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

// quotaViews are the settings with and without the quota of exclusive CPUs: a
// quota left on them has a code of its own, cpu-quota-on-exclusive-cpus.
func (c *podCase) quotaViews() []cgroup.Settings {
	lifted := c.settings(c.uid)
	kept := lifted
	kept.Exclusive = nil
	return []cgroup.Settings{lifted, kept}
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
	got, err := n.fileText(g.File(want.File))
	if err != nil || len(want.Accept) == 0 {
		return nil
	}
	if slices.ContainsFunc(want.Accept, func(v cgroup.Value) bool { return v.Text == got }) {
		return nil
	}
	f := newFinding(code, report.Proven, subject, fmt.Sprintf("%s of %s is %q, where the kubelet and the runtime write %s.", want.File, who, got, alternatives(want.Accept)),
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

// fileText is a one-line file as it was read.
func (n *nodeCase) fileText(path string) (string, error) {
	data, err := fs.ReadFile(n.fsys, path)
	if err != nil {
		return "", err
	}
	text := strings.TrimSuffix(string(data), "\n")
	if text == "" {
		return "", errEmptyFile
	}
	return text, nil
}

var errEmptyFile = errors.New("the file is empty")
