package topology

import (
	"fmt"
	"io/fs"
	"math"
	"strconv"
	"strings"

	"github.com/noderes/kubectl-noderes/pkg/alloc/internal/cut"
)

// readNodeCPUs returns the CPUs of a node in the order of their names: those of its cpuN entries, or of cpulist where there is none.
// nil: the folder has neither.
func readNodeCPUs(fsys fs.FS, n numbered) ([]int, error) {
	dir := nodeDir + "/" + n.name
	entries, err := readNumbered(fsys, dir, "cpu")
	if err != nil {
		return nil, err
	}
	ids := make([]int, len(entries))
	for i, e := range entries {
		ids[i] = e.id
	}
	if len(ids) > 0 {
		return ids, nil
	}
	text, ok, err := readFile(fsys, dir+"/cpulist")
	if err != nil || !ok {
		return nil, err
	}
	set, err := parseList(text)
	if err != nil {
		return nil, fmt.Errorf("%s/cpulist: %w", dir, err)
	}
	return append([]int{}, byName(set.List())...), nil
}

// readNode reads a node's memory, huge pages and distances.
func (t *Topology) readNode(fsys fs.FS, n numbered) error {
	node := t.ensureNode(n.id)
	dir := nodeDir + "/" + n.name
	text, ok, err := readFile(fsys, dir+"/meminfo")
	if err != nil {
		return err
	}
	if ok {
		if node.MemTotal, err = parseMemTotal(text); err != nil {
			return fmt.Errorf("%s/meminfo: %w", dir, err)
		}
		node.HasMemTotal = true
	}
	text, ok, err = readFile(fsys, dir+"/distance")
	if err != nil {
		return err
	}
	if ok {
		if node.Distances, err = parseDistances(text); err != nil {
			return fmt.Errorf("%s/distance: %w", dir, err)
		}
		node.HasDistances = true
	}
	return t.readHugePages(fsys, dir+"/hugepages", node)
}

func (t *Topology) readHugePages(fsys fs.FS, dir string, node *NUMANode) error {
	names, err := readDir(fsys, dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		size, ok := strings.CutPrefix(name, "hugepages-")
		size, kb := strings.CutSuffix(size, "kB")
		kib, err := strconv.ParseUint(size, 10, 64)
		if !ok || !kb || err != nil {
			t.note(dir, "folder is not named for a page size: "+cut.Quote(name))
			continue
		}
		pages := HugePages{SizeKiB: kib}
		path := dir + "/" + name + "/nr_hugepages"
		text, ok, err := readFile(fsys, path)
		if err != nil {
			return err
		}
		if ok {
			if pages.Count, err = strconv.ParseUint(text, 10, 64); err != nil {
				return fmt.Errorf("%s: not a number of pages: %s", path, cut.Quote(text))
			}
			pages.HasCount = true
		}
		node.HugePages = append(node.HugePages, pages)
	}
	return nil
}

// parseMemTotal returns the MemTotal of proc/meminfo or of a node's meminfo ("Node 0 MemTotal: 123 kB") in bytes.
func parseMemTotal(text string) (uint64, error) {
	for line := range strings.SplitSeq(text, "\n") {
		_, rest, ok := strings.Cut(line, "MemTotal:")
		if !ok {
			continue
		}
		number, ok := strings.CutSuffix(strings.TrimSpace(rest), " kB")
		kib, err := strconv.ParseUint(number, 10, 64)
		if !ok || err != nil || kib > math.MaxUint64/1024 {
			return 0, fmt.Errorf("not a MemTotal in kB: %s", cut.Quote(line))
		}
		return kib * 1024, nil
	}
	return 0, fmt.Errorf("no MemTotal in %s", cut.Quote(text))
}

func parseDistances(text string) ([]uint64, error) {
	var distances []uint64
	for field := range strings.SplitSeq(text, " ") {
		d, err := strconv.ParseUint(field, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("not a distance: %s in %s", cut.Quote(field), cut.Quote(text))
		}
		distances = append(distances, d)
	}
	return distances, nil
}
