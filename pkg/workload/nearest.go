package workload

import (
	"cmp"
	"slices"
	"strings"
)

const (
	// mostNearest is how many names an error tells.
	mostNearest = 5
	// mostNameBytes bounds what is compared: the API has no longer names.
	mostNameBytes = 253
	// mostCompared bounds the work on a list of names that a stranger made.
	mostCompared = 5000
)

// Nearest are the names that are most like the one asked for, the nearest first:
// by the edits that turn one into the other, where a name that begins as the
// other counts as near. Names that have nothing in common are left out.
func Nearest(names []string, asked string) []string {
	type near struct {
		name     string
		distance int
	}
	var found []near
	asked = asked[:min(len(asked), mostNameBytes)]
	for _, name := range names[:min(len(names), mostCompared)] {
		if len(name) > mostNameBytes {
			continue
		}
		d := edits(name, asked)
		switch {
		case asked != "" && (strings.HasPrefix(name, asked) || name != "" && strings.HasPrefix(asked, name)):
			d = min(d, 2)
		case 2*d > max(len(name), len(asked)):
			continue
		}
		found = append(found, near{name, d})
	}
	slices.SortFunc(found, func(a, b near) int { return cmp.Or(cmp.Compare(a.distance, b.distance), cmp.Compare(a.name, b.name)) })
	var out []string
	for _, n := range slices.Compact(found) {
		if out = append(out, n.name); len(out) == mostNearest {
			break
		}
	}
	return out
}

// edits is the least number of bytes to insert, remove, replace or swap with the
// next one.
func edits(a, b string) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before, last, row = last, row, before
		row[0] = i + 1
		for j := range len(b) {
			change := last[j]
			if a[i] != b[j] {
				change++
			}
			row[j+1] = min(change, last[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
	}
	return row[len(b)]
}
