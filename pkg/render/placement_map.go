package render

import (
	"strconv"
	"strings"

	"github.com/noderes/kubectl-noderes/pkg/report"
)

// marks are the letters that stand for owners of CPUs in a map: one letter for
// each thread, two where there are more owners than letters.
type marks struct {
	of    map[string]string
	width int
}

// letters leave out R, which stands for reserved.
const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQSTUVWXYZ"

// newMarks gives every owner of the map one, in the order of their CPUs.
func newMarks(groups []report.PlacementGroup) marks {
	m := marks{of: map[string]string{}, width: 1}
	var owners []string
	for _, g := range groups {
		for _, core := range g.Cores {
			for _, cpu := range core {
				if _, seen := m.of[cpu.Owner]; cpu.Owner != "" && !seen {
					m.of[cpu.Owner] = ""
					owners = append(owners, cpu.Owner)
				}
			}
		}
	}
	if len(owners) > len(letters) {
		m.width = 2
	}
	for i, owner := range owners {
		mark := string(letters[i%len(letters)])
		if m.width == 2 {
			mark = string(letters[i/len(letters)%len(letters)]) + mark
		}
		m.of[owner] = mark
	}
	return m
}

// owner gives a container's mark, if it has one.
func (m marks) owner(c report.PlacementContainer) string {
	return m.of[c.Namespace+"/"+c.Pod+"/"+c.Container]
}

// thread is a CPU in the map.
func (m marks) thread(cpu report.PlacementCPU) string {
	switch cpu.Use {
	case report.CPUExclusive:
		return m.of[cpu.Owner]
	case report.CPUReserved:
		return strings.Repeat("R", m.width)
	case report.CPUFree:
		return strings.Repeat(".", m.width)
	}
	return strings.Repeat("?", m.width)
}

// cpuMap draws the machine: a row for each socket, NUMA node and cache, in it a
// word for each core.
func (p *page) cpuMap(groups []report.PlacementGroup, m marks) {
	if len(groups) == 0 {
		return
	}
	p.section("MAP", "a word is a core: R reserved, . free and shared, letters as marked below")
	heads := []string{"SOCKET", "NUMA", "CACHE", "CPUS"}
	rows := make([][]string, len(groups))
	caches := false
	for i, g := range groups {
		rows[i] = []string{strconv.Itoa(g.Socket), strconv.Itoa(g.NUMANode), Escape(g.Cache), Escape(g.CPUs)}
		caches = caches || g.Cache != ""
	}
	if !caches {
		heads = append(heads[:2:2], heads[3])
		for i := range rows {
			rows[i] = append(rows[i][:2:2], rows[i][3])
		}
	}
	widths := make([]int, len(heads))
	for i, head := range heads {
		widths[i] = len(head)
		for _, row := range rows {
			widths[i] = max(widths[i], min(len(row[i]), 24))
		}
	}
	lead := func(cells []string) string {
		var b strings.Builder
		for i, cell := range cells {
			b.WriteString(cell + strings.Repeat(" ", max(0, widths[i]-len(cell))+2))
		}
		return b.String()
	}
	p.line(2, p.palette.faint, lead(heads)+"CORES")
	before := make([]string, len(heads))
	for i, g := range groups {
		shown := make([]string, len(heads))
		for j := range rows[i] {
			// What the row above says already is left out, but not a CPU list.
			if j == len(heads)-1 || rows[i][j] != before[j] {
				copy(shown[j:], rows[i][j:])
				break
			}
		}
		before = rows[i]
		p.cores(lead(shown), len(lead(heads)), g.Cores, m)
	}
}

// cores writes a group's, on as many lines as they need.
func (p *page) cores(lead string, indent int, cores []report.PlacementCore, m marks) {
	line, cells := lead, len(lead)
	if cells > indent {
		p.line(2, p.palette.plain, line)
		line, cells = strings.Repeat(" ", indent), indent
	}
	fresh := true
	for _, core := range cores {
		word := ""
		for _, cpu := range core {
			word += m.thread(cpu)
		}
		if room := p.style.Width; room > 0 && !fresh && 2+cells+1+len(word) > room {
			p.line(2, p.palette.plain, line)
			line, cells, fresh = strings.Repeat(" ", indent), indent, true
		}
		if !fresh {
			line += " "
			cells++
		}
		line += word
		cells += len(word)
		fresh = false
	}
	p.line(2, p.palette.plain, line)
}
