package render

import (
	"slices"
	"strconv"
	"strings"

	"github.com/charmbracelet/lipgloss"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/noderes/kubectl-noderes/pkg/report"
)

// finding writes one verdict: its heading, the sentence, the evidence, the
// arithmetic, the remedies.
func (p *page) finding(f report.Finding, r report.Report) {
	const indent = len("CRITICAL") + gap
	severity := severityWord(f.Severity)
	lead := p.palette.severity(f.Severity).Render(severity) + strings.Repeat(" ", max(gap, indent-lipgloss.Width(severity)))
	p.heading(lead, indent, []part{
		{Escape(string(f.Code)), p.palette.strong},
		{findingSubject(f.Subject, r), p.palette.plain},
		{Escape(string(f.Confidence)), p.palette.confidence(f.Confidence)},
	})
	p.prose(2, p.palette.plain, f.Summary)
	if len(f.Because) > 0 && f.Severity != report.Info {
		p.line(2, p.palette.faint, "because")
	}
	p.evidence(f.Because, r.ObservedAt)
	p.labelled(2, "arithmetic", len("arithmetic")+2, p.palette.plain, f.Arithmetic)
	p.remedies(f.Remedies)
}

// severityWord is in capitals, to be found without colour.
func severityWord(s report.Severity) string {
	if slices.Contains(report.Severities(), s) {
		return strings.ToUpper(string(s))
	}
	return Escape(string(s))
}

// findingSubject names what a finding is about, escaped, as far as the heading
// of its report has not named it.
func findingSubject(s report.Subject, r report.Report) string {
	kind := lower(s.Kind)
	subject := kind + " " + qualified(s.Namespace, s.Name)
	if kind == kindNoun(r.Kind) && s.Namespace == r.Metadata.Namespace && s.Name == r.Metadata.Name {
		subject = kind
		if s.Container != "" {
			subject = ""
		}
	}
	if s.Container != "" {
		subject += " container " + Escape(s.Container)
	}
	return strings.TrimSpace(subject)
}

// exhibit is a piece of evidence, escaped but for what it means.
type exhibit struct {
	field, value, origin, means string
}

// Columns of evidence. A field or value wider than these stands beyond its
// column, without making it wider for the others.
const (
	evidenceIndent = 4
	widestField    = 20
	widestValue    = 28
	gap            = 2
)

// evidence writes field, value and origin of each piece in columns, what it
// means below. The origins move to lines of their own where one of them would
// not fit.
func (p *page) evidence(because []report.Evidence, observed metav1.Time) {
	exhibits := make([]exhibit, 0, len(because))
	fields, values, origins := 0, 0, 0
	for _, e := range because {
		x := exhibit{field: fieldName(e), value: shown(e.Value) + byteRemark(e), origin: trimRight(Escape(p.paths.fold(e.Source))), means: e.Means}
		if !e.At.IsZero() {
			x.origin = strings.TrimSpace(x.origin + " at " + clock(e.At, observed))
		}
		if w := lipgloss.Width(x.field); w <= widestField {
			fields = max(fields, w)
		}
		if w := lipgloss.Width(x.value); w <= widestValue {
			values = max(values, w)
		}
		origins = max(origins, lipgloss.Width(x.origin))
		exhibits = append(exhibits, x)
	}
	valueAt := evidenceIndent
	if fields > 0 {
		valueAt += fields + gap
	}
	originAt := valueAt + values + gap
	if p.style.Width > 0 && originAt+origins > p.style.Width {
		originAt = 0
	}
	for _, x := range exhibits {
		p.exhibit(x, valueAt, originAt)
	}
}

// exhibit writes one piece of evidence. originAt 0 puts the origin on a line of
// its own.
func (p *page) exhibit(x exhibit, valueAt, originAt int) {
	start := p.field(x, valueAt)
	lines := []string{x.value}
	if lipgloss.Width(x.value) > widestValue {
		lines = wrap(x.value, p.room(start))
	}
	p.out.WriteString(p.palette.strong.Render(lines[0]))
	end := start + lipgloss.Width(lines[0])
	beside := originAt > 0 && x.origin != "" && len(lines) == 1 && p.fits(max(originAt, end+gap)+lipgloss.Width(x.origin))
	if beside {
		p.out.WriteString(strings.Repeat(" ", max(originAt-end, gap)))
		p.out.WriteString(p.palette.faint.Render(x.origin))
	}
	p.blank()
	for _, line := range lines[1:] {
		p.line(start, p.palette.strong, line)
	}
	p.prose(valueAt, p.palette.plain, x.means)
	if !beside && x.origin != "" {
		p.line(valueAt, p.palette.faint, "from "+x.origin)
	}
}

// field writes a field and the blanks up to its value, and gives the place
// where that begins: valueAt, or behind a field that is too wide for that.
func (p *page) field(x exhibit, valueAt int) int {
	end := evidenceIndent + lipgloss.Width(x.field)
	start := max(valueAt, end+gap)
	switch {
	case x.field == "":
		end, start = 0, valueAt
	case !p.fits(start + min(widestValue, lipgloss.Width(x.value))):
		p.line(evidenceIndent, p.palette.plain, x.field)
		end, start = 0, valueAt
	default:
		p.out.WriteString(strings.Repeat(" ", evidenceIndent) + x.field)
	}
	p.out.WriteString(strings.Repeat(" ", start-end))
	return start
}

// fits tells whether a line of that many cells can be shown.
func (p *page) fits(cells int) bool { return p.style.Width <= 0 || cells <= p.style.Width }

// fieldName gives the field of evidence, escaped; a file of one value is its
// own field.
func fieldName(e report.Evidence) string {
	if e.Field == "" && strings.HasPrefix(e.Source, nodePrefix) {
		return trimRight(Escape(fileName(e.Source)))
	}
	return trimRight(Escape(e.Field))
}

// fileName gives the last element of a source, without its sample.
func fileName(source string) string {
	file, _, _ := strings.Cut(source[strings.LastIndexByte(source, '/')+1:], "@")
	return file
}

// shown gives a value escaped, with quotes where blanks at an end would not show.
func shown(value string) string {
	switch {
	case value == "":
		return "(empty)"
	case strings.TrimSpace(value) != value:
		return `"` + Escape(value) + `"`
	}
	return Escape(value)
}

// clock gives the time of day, with the date where it is not that of the report.
func clock(at, observed metav1.Time) string {
	full := rfc3339(at)
	date, time, _ := strings.Cut(full, "T")
	if !observed.IsZero() && strings.HasPrefix(rfc3339(observed), date+"T") {
		return time
	}
	return full
}

// byteRemark gives the usual unit of a value that the kernel writes in bytes.
func byteRemark(e report.Evidence) string {
	if !inBytes(fileName(e.Source), e.Field) {
		return ""
	}
	n, err := strconv.ParseUint(e.Value, 10, 64)
	if err != nil || n < 1024 {
		return ""
	}
	return " (" + byteSize(n) + ")"
}

// inBytes knows the files and fields of a cgroup that hold bytes (kernel,
// Documentation/admin-guide/cgroup-v2.rst).
func inBytes(file, field string) bool {
	switch file {
	case "memory.current", "memory.peak", "memory.max", "memory.high", "memory.low", "memory.min",
		"memory.swap.current", "memory.swap.peak", "memory.swap.max", "memory.swap.high":
		return true
	case "memory.stat":
		switch field {
		case "anon", "file", "kernel", "kernel_stack", "pagetables", "sec_pagetables", "percpu", "sock", "vmalloc", "shmem",
			"file_mapped", "file_dirty", "file_writeback", "swapcached", "inactive_anon", "active_anon", "inactive_file",
			"active_file", "unevictable", "slab_reclaimable", "slab_unreclaimable", "slab":
			return true
		}
	}
	return false
}

// remedies writes what to change. Commands and patches are never wrapped.
func (p *page) remedies(remedies []report.Remedy) {
	if len(remedies) == 0 {
		return
	}
	p.line(2, p.palette.faint, "to mend")
	const width = len("caution") + 2
	for _, m := range remedies {
		p.labelled(4, "-", 2, p.palette.plain, m.Summary)
		p.verbatim(6, "run", width, p.palette.command, m.Command)
		p.verbatim(6, "patch", width, p.palette.command, m.Patch)
		p.labelled(6, "effect", width, p.palette.plain, m.Effect)
		p.labelled(6, "caution", width, p.palette.doubtful, m.Caution)
	}
}
