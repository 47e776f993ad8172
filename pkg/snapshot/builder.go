package snapshot

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
)

// Builder fills a snapshot in memory, within the limits of a bundle. It is safe
// for concurrent use.
type Builder struct {
	mu    sync.Mutex
	tree  *memTreeBuilder
	total int64
	gaps  []Gap
}

// NewBuilder is an empty one.
func NewBuilder() *Builder { return &Builder{tree: newMemTreeBuilder(standardLimits())} }

// Add puts a file at a bundle path. The data are the builder's from then on.
func (b *Builder) Add(path string, data []byte) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := checkPath(path); err != nil {
		return pathError("add", path, err)
	}
	switch {
	case len(data) > MaxFileBytes:
		return pathError("add", path, ErrFileTooLarge)
	case b.total+int64(len(data)) > MaxTotalBytes:
		return pathError("add", path, ErrTooManyBytes)
	case len(b.tree.tree.files) >= MaxEntries:
		return pathError("add", path, ErrTooManyEntries)
	}
	if err := b.tree.addFile(path, data); err != nil {
		return pathError("add", path, err)
	}
	b.total += int64(len(data))
	return nil
}

// Gap notes what was wanted and could not be had. A gap of a file that was added
// says that the file holds a part of what there is.
func (b *Builder) Gap(g Gap) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.gaps = append(b.gaps, g)
}

// Build ends it: a snapshot that is the same, to the byte, as the bundle written
// from it. The builder must not be used again.
func (b *Builder) Build(m Manifest) (*Snapshot, error) {
	m.FormatVersion = formatVersion
	manifest, err := json.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", manifestName, err)
	}
	gaps := append([]Gap{}, b.gaps...)
	slices.SortFunc(gaps, func(x, y Gap) int {
		return cmp.Or(cmp.Compare(x.Path, y.Path), cmp.Compare(x.Reason, y.Reason), cmp.Compare(x.Detail, y.Detail))
	})
	list, err := json.Marshal(slices.Compact(gaps))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", gapsName, err)
	}
	for name, data := range map[string][]byte{manifestName: manifest, gapsName: list} {
		if err := b.Add(name, append(data, '\n')); err != nil {
			return nil, err
		}
	}
	return newSnapshot(b.tree.build("."), standardLimits())
}
