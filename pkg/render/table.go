package render

import (
	"io"
	"slices"
	"strings"

	"github.com/charmbracelet/lipgloss"
)

// List writes rows below upper-case headers, as kubectl lists things. A row
// may be shorter or longer than the header.
func List(w io.Writer, header []string, rows [][]string, s Style) error {
	t := table{gap: 3}
	for _, h := range header {
		t.columns = append(t.columns, column{head: Escape(strings.ToUpper(h))})
	}
	for _, row := range rows {
		cells := make([]string, len(row))
		for i, cell := range row {
			cells[i] = trimRight(Escape(cell))
		}
		for len(t.columns) < len(cells) {
			t.columns = append(t.columns, column{})
		}
		t.rows = append(t.rows, cells)
	}
	p := page{style: s, palette: newPalette(s.Color)}
	p.block(0, t, 0)
	return p.flush(w)
}

const (
	// absent is the cell of a value that is not known.
	absent = "?"
	// none is the cell of a list without elements.
	none = "-"
)

// column is one column of a table of facts; figures stand at the right.
type column struct {
	head   string
	figure bool
}

// table is a borderless table. Its first keys columns name a row.
type table struct {
	columns []column
	keys    int
	gap     int
	rows    [][]string
}

func (t *table) add(cells ...string) { t.rows = append(t.rows, cells) }

// cell gives an escaped cell, empty beyond the end of a short row.
func cell(row []string, i int) string {
	if i < len(row) {
		return row[i]
	}
	return ""
}

// missing tells a cell that says nothing.
func missing(cell string) bool { return cell == absent || cell == none || cell == "" }

// known tells whether any row has a value in column i.
func (t *table) known(i int) bool {
	return slices.ContainsFunc(t.rows, func(row []string) bool { return !missing(cell(row, i)) })
}

// says tells whether a row has more than its keys.
func (t *table) says(row []string) bool {
	return len(row) > t.keys && slices.ContainsFunc(row[t.keys:], func(cell string) bool { return !missing(cell) })
}

// pick gives the table with the columns at the given places only.
func (t *table) pick(places []int) table {
	sub := table{keys: t.keys, gap: t.gap}
	for _, i := range places {
		sub.columns = append(sub.columns, t.columns[i])
	}
	for _, row := range t.rows {
		cells := make([]string, 0, len(places))
		for _, i := range places {
			cells = append(cells, cell(row, i))
		}
		sub.rows = append(sub.rows, cells)
	}
	return sub
}

func (t *table) widths() []int {
	widths := make([]int, len(t.columns))
	for i, c := range t.columns {
		widths[i] = lipgloss.Width(c.head)
		for _, row := range t.rows {
			widths[i] = max(widths[i], lipgloss.Width(cell(row, i)))
		}
	}
	return widths
}

// facts writes a table below its title, without the rows and columns that
// nothing is known of. One that is wider than the display is written as several, each with
// the key columns.
func (p *page) facts(title, remark string, t table) {
	const indent = 2
	t.gap = gap
	t.rows = slices.DeleteFunc(slices.Clone(t.rows), func(row []string) bool { return !t.says(row) })
	if len(t.rows) == 0 {
		return
	}
	var places []int
	for i := range t.columns {
		if i < t.keys || t.known(i) {
			places = append(places, i)
		}
	}
	t = t.pick(places)
	if !p.explained && slices.ContainsFunc(t.rows, func(row []string) bool { return slices.Contains(row, absent) }) {
		p.explained = true
		remark = strings.TrimPrefix(remark+"; "+absent+" = not known", "; ")
	}
	if title == "" {
		p.blank()
	} else {
		p.section(title, remark)
	}
	widths := t.widths()
	keys := make([]int, t.keys)
	start := indent
	for i := range keys {
		keys[i] = i
		start += widths[i] + t.gap
	}
	split := p.style.Width > 0 && start < p.style.Width/2 // else the keys alone would fill the display
	places, cells := keys, start
	for i := t.keys; i < len(t.columns); i++ {
		if split && len(places) > t.keys && cells+widths[i] > p.style.Width {
			p.block(indent, t.pick(places), t.keys)
			places, cells = keys, start
		}
		places = append(places[:len(places):len(places)], i)
		cells += widths[i] + t.gap
	}
	p.block(indent, t.pick(places), t.keys)
}

// block writes a table as it is.
func (p *page) block(indent int, t table, keys int) {
	widths := t.widths()
	line := func(cellAt func(int) string) string {
		var b strings.Builder
		for i, c := range t.columns {
			if i > 0 {
				b.WriteString(strings.Repeat(" ", t.gap))
			}
			b.WriteString(pad(cellAt(i), widths[i], c.figure && i >= keys))
		}
		return b.String()
	}
	p.line(indent, p.palette.strong, line(func(i int) string { return t.columns[i].head }))
	for _, row := range t.rows {
		p.line(indent, p.palette.plain, line(func(i int) string { return cell(row, i) }))
	}
}
