package cgroup

import (
	"errors"
	"io/fs"
	"regexp"
)

// maxWalkEntries bounds the directory entries that one search looks at; a large
// node has some 500 groups of 60 files.
const maxWalkEntries = 500_000

var errWalkCut = errors.New("cgroup: search given up, the tree is too large")

type step int

const (
	skip  step = iota // do not look below this group
	enter             // look below it
	stop              // the search is over
)

// walkGroups calls visit for the groups below start, at most levels deep,
// breadth first and sorted within a directory. It returns errWalkCut when it
// met a bound, else the first error of reading a directory that is not mere
// absence: either means that what was not found may exist.
func walkGroups(start Group, levels, maxEntries int, visit func(Group) step) error {
	var firstErr error
	budget := maxEntries
	for layer := []Group{start}; levels > 0 && len(layer) > 0; levels-- {
		var below []Group
		for _, g := range layer {
			entries, err := g.entries()
			if err != nil {
				gone := errors.Is(err, fs.ErrNotExist) || errors.Is(err, ErrVanished)
				if firstErr == nil && !gone {
					firstErr = err
				}
				continue
			}
			for _, entry := range entries {
				if budget--; budget < 0 {
					return errWalkCut
				}
				if !entry.IsDir() {
					continue
				}
				child := g.Child(entry.Name())
				switch visit(child) {
				case enter:
					below = append(below, child)
				case stop:
					return firstErr
				}
			}
		}
		layer = below
	}
	return firstErr
}

var onTheWayPattern = regexp.MustCompile(
	`kubepods|\.slice$|^pod|^burstable$|^besteffort$|^docker|^kubelet|^container$`)

// mayHoldKubepods says whether the kubepods group of a node, or of a node that
// is itself a container (kind), can be below a directory of this name.
func mayHoldKubepods(name string) bool {
	if onTheWayPattern.MatchString(name) {
		return true
	}
	_, _, isContainer := ParseContainerDir(name)
	return isContainer
}
