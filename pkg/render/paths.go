package render

import (
	"strconv"
	"strings"

	"github.com/noderes/kubectl-noderes/pkg/report"
)

// paths shortens the sources of a report: a long directory of the node's is
// written <app>, and the legend gives it in full.
type paths struct {
	labels  map[string]string // by directory, with its "node:"
	order   []string
	folding bool
}

const (
	nodePrefix = "node:/"
	cgroupRoot = "sys/fs/cgroup/"
	// longPath is the length in bytes from which a directory is shortened.
	longPath = 40
)

// foldPaths labels the directories of cgroups by the container's name or the
// level, and others by a number. On a display without limit nothing is
// shortened: only cgroups are listed.
func foldPaths(r report.Report, s Style) paths {
	p := paths{labels: map[string]string{}, folding: s.Width > 0}
	taken := map[string]bool{}
	label := func(dir, name string) {
		if dir == "" || p.labels[dir] != "" {
			return
		}
		unique := "<" + name + ">"
		for n := 2; taken[unique]; n++ {
			unique = "<" + name + "-" + strconv.Itoa(n) + ">"
		}
		taken[unique] = true
		p.labels[dir] = unique
		p.order = append(p.order, dir)
	}
	if r.Resources != nil {
		for _, level := range r.Resources.Containers {
			dir := strings.TrimPrefix(strings.Trim(level.Cgroup, "/"), cgroupRoot)
			if dir == "" {
				continue // not known, or the root
			}
			name := level.Level
			if level.Level == "container" || name == "" {
				name = level.Name
			}
			label(nodePrefix+cgroupRoot+dir, name)
		}
	}
	if !p.folding {
		return p
	}
	for _, f := range r.Findings {
		for _, e := range f.Because {
			label(longDir(e.Source), "dir")
		}
	}
	if r.Placement != nil {
		for _, c := range r.Placement.Containers {
			label(longDir(c.Source), "dir")
		}
	}
	return p
}

// longDir gives a source's directory if that is worth shortening, else nothing.
func longDir(source string) string {
	end := strings.LastIndexByte(source, '/')
	if end < longPath || !strings.HasPrefix(source, nodePrefix) {
		return ""
	}
	return source[:end]
}

// fold gives a source with its directory shortened.
func (p paths) fold(source string) string {
	end := strings.LastIndexByte(source, '/')
	if end < 0 || !p.folding {
		return source
	}
	if label := p.labels[source[:end]]; label != "" {
		return label + source[end:]
	}
	return source
}

// legend writes the directories in full.
func (p *page) legend() {
	if len(p.paths.order) == 0 {
		return
	}
	p.section("PATHS", "")
	t := table{columns: make([]column, 2), gap: 2}
	for _, dir := range p.paths.order {
		t.add(Escape(p.paths.labels[dir]), Escape(dir))
	}
	p.block(2, t, 0)
}
