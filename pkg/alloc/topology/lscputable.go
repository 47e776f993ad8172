package topology

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/noderes/kubectl-noderes/pkg/alloc/cpuset"
	"github.com/noderes/kubectl-noderes/pkg/alloc/internal/cut"
)

type lscpuTable struct {
	caches    []lscpuCache
	rows      []lscpuRow
	hasOnline bool
}

type lscpuCache struct {
	level int
	typ   string
}

type lscpuRow struct {
	cpu                int
	core, socket, node lscpuCell
	caches             []lscpuCell
	offline            bool
}

// lscpuCell is an id; lscpu prints nothing or "-" where it knows none.
type lscpuCell struct {
	n  int
	ok bool
}

func parseLscpu(text string) (lscpuTable, error) {
	var table lscpuTable
	var header string
	var columns []string
	seen := map[int]bool{}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if comment, ok := strings.CutPrefix(line, "#"); ok {
			header = comment
			continue
		}
		if line == "" {
			continue
		}
		if columns == nil {
			var err error
			if columns, err = lscpuColumns(header); err != nil {
				return lscpuTable{}, err
			}
			table.caches, table.hasOnline = lscpuCacheColumns(columns), slices.Contains(columns, "online")
		}
		row, err := lscpuLine(line, columns, len(table.caches))
		if err != nil {
			return lscpuTable{}, err
		}
		if seen[row.cpu] {
			return lscpuTable{}, fmt.Errorf("cpu %d has two rows", row.cpu)
		}
		seen[row.cpu] = true
		table.rows = append(table.rows, row)
	}
	if len(table.rows) == 0 {
		return lscpuTable{}, errors.New("no rows")
	}
	return table, nil
}

// lscpuColumns returns the names in small letters. The plain lscpu -p leaves one column without a name between Node and the caches.
func lscpuColumns(header string) ([]string, error) {
	columns := strings.Split(strings.ToLower(header), ",")
	for i := range columns {
		columns[i] = strings.TrimSpace(columns[i])
	}
	for _, name := range []string{"cpu", "core", "socket", "node", "online"} {
		n := 0
		for _, c := range columns {
			if c == name {
				n++
			}
		}
		if n > 1 {
			return nil, fmt.Errorf("two columns %s in header %s", name, cut.Quote(header))
		}
		if n == 0 && name != "node" && name != "online" {
			return nil, fmt.Errorf("no column %s in header %s", name, cut.Quote(header))
		}
	}
	return columns, nil
}

// lscpuCacheColumns returns the caches in the order in which a row has them. One column can hold several, joined by colons
// (lscpu -p=...,CACHE); under the plain name CACHE they are L1d:L1i:L2:L3.
func lscpuCacheColumns(columns []string) []lscpuCache {
	var caches []lscpuCache
	for _, column := range columns {
		for _, name := range lscpuCacheNames(column) {
			c := lscpuCache{level: int(name[1] - '0'), typ: "Unified"}
			switch name[2:] {
			case "d":
				c.typ = "Data"
			case "i":
				c.typ = "Instruction"
			}
			caches = append(caches, c)
		}
	}
	return caches
}

// lscpuCacheNames returns the caches of a column; none if it is not one of caches.
func lscpuCacheNames(column string) []string {
	if column == "cache" {
		column = "l1d:l1i:l2:l3"
	}
	names := strings.Split(column, ":")
	for _, name := range names {
		if len(name) < 2 || len(name) > 3 || name[0] != 'l' || name[1] < '1' || name[1] > '9' || !slices.Contains([]string{"", "d", "i"}, name[2:]) {
			return nil
		}
	}
	return names
}

func lscpuLine(line string, columns []string, caches int) (lscpuRow, error) {
	cells := strings.Split(line, ",")
	if len(cells) != len(columns) {
		return lscpuRow{}, fmt.Errorf("row %s has %d cells, the header names %d", cut.Quote(line), len(cells), len(columns))
	}
	row := lscpuRow{caches: make([]lscpuCell, 0, caches)}
	var cpu lscpuCell
	for i, column := range columns {
		text := strings.TrimSpace(cells[i])
		var err error
		switch column {
		case "cpu":
			cpu, err = lscpuID(text)
		case "core":
			row.core, err = lscpuID(text)
		case "socket":
			row.socket, err = lscpuID(text)
		case "node":
			row.node, err = lscpuID(text)
		case "online":
			row.offline = text == "N" || strings.EqualFold(text, "no")
		default:
			names := lscpuCacheNames(column)
			parts := strings.Split(text, ":")
			if len(names) > 0 && len(parts) > len(names) {
				err = fmt.Errorf("%d caches, the header names %d", len(parts), len(names))
			}
			for j := range names {
				var cell lscpuCell
				if err == nil && j < len(parts) {
					cell, err = lscpuID(parts[j])
				}
				row.caches = append(row.caches, cell)
			}
		}
		if err != nil {
			return lscpuRow{}, fmt.Errorf("row %s, column %s: %w", cut.Quote(line), cut.Quote(column), err)
		}
	}
	if !cpu.ok {
		return lscpuRow{}, fmt.Errorf("row %s names no cpu", cut.Quote(line))
	}
	if row.cpu = cpu.n; row.cpu >= cpuset.MaxCPUs {
		return lscpuRow{}, fmt.Errorf("row %s: %w", cut.Quote(line), cpuset.ErrRange)
	}
	return row, nil
}

func lscpuID(text string) (lscpuCell, error) {
	if text == "" || text == "-" {
		return lscpuCell{}, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		return lscpuCell{}, fmt.Errorf("not an id: %s", cut.Quote(text))
	}
	return lscpuCell{n, true}, nil
}
