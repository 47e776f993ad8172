package snapshot

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"sync"
)

// Node is what the bundle holds below nodes/<name>. A node of which it holds
// nothing is a Node too, whose files are all absent.
type Node struct {
	s      *Snapshot
	name   string
	folder string // "" where name cannot be a folder's
	layers func() nodeLayers
}

// nodeLayers are the folders of a node that hold its own tree.
type nodeLayers struct {
	samples []int    // indexes, ascending
	folders []string // bundle paths: the latest sample first, root/ last
	err     error    // why the samples could not be listed
}

// NodeNames are the names of all nodes that the bundle knows, from
// cluster/nodes.json and from the folders below nodes/, sorted. Neither has to
// be there; a broken nodes.json is left to [Snapshot.Nodes].
func (s *Snapshot) NodeNames() []string { return slices.Clone(s.nodeNames()) }

func (s *Snapshot) listNodeNames() []string {
	var names []string
	if nodes, err := s.Nodes(); err == nil {
		for i := range nodes {
			if name := nodes[i].Name; name != "" {
				names = append(names, name)
			}
		}
	}
	if entries, err := s.tree.ReadDir("nodes"); err == nil {
		for _, e := range entries {
			if e.IsDir() && isElement(e.Name()) {
				names = append(names, e.Name())
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Node is never nil. A name that cannot be a folder, such as "../n1", is that of
// a node without files.
func (s *Snapshot) Node(name string) *Node {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n, ok := s.nodes[name]; ok {
		return n
	}
	n := &Node{s: s, name: name}
	if isElement(name) {
		n.folder = "nodes/" + name
	}
	n.layers = sync.OnceValue(n.listLayers)
	s.nodes[name] = n
	return n
}

// Name is the node's name as it was asked for.
func (n *Node) Name() string { return n.name }

// File reads a file below nodes/<node>, such as "configz.json".
func (n *Node) File(name string) ([]byte, error) {
	if !fs.ValidPath(name) {
		return nil, pathError("open", name, fs.ErrInvalid)
	}
	if n.folder == "" {
		return nil, pathError("open", name, n.s.absence("nodes"))
	}
	return n.s.File(n.folder + "/" + name)
}

func (n *Node) listLayers() nodeLayers {
	if n.folder == "" {
		return nodeLayers{}
	}
	var l nodeLayers
	entries, err := n.s.tree.ReadDir(n.folder + "/samples")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		l.err = fmt.Errorf("samples: %w", err)
	}
	for _, e := range entries {
		// A link is kept: what it hides is unreadable, which is not the same as
		// no sample.
		if k, ok := sampleIndex(e.Name()); ok && !e.Type().IsRegular() {
			l.samples = append(l.samples, k)
		}
	}
	slices.Sort(l.samples)
	for _, k := range slices.Backward(l.samples) {
		l.folders = append(l.folders, n.sampleRoot(k))
	}
	l.folders = append(l.folders, n.folder+"/root")
	return l
}

func (n *Node) sampleRoot(k int) string {
	return n.folder + "/samples/" + strconv.Itoa(k) + "/root"
}

// Files is the node's own "/": every path from the latest sample that has it,
// else from root/. Folders are the union of all of them. It implements
// fs.ReadFileFS, fs.ReadDirFS and fs.StatFS.
func (n *Node) Files() fs.FS {
	l := n.layers()
	return &nodeTree{s: n.s, layers: l.folders, absence: n.absence}
}

// absence is the reason why no sample has a file and root/ does not either.
func (n *Node) absence(file string) error {
	if n.folder == "" {
		return n.s.absence("nodes")
	}
	if err := n.layers().err; err != nil {
		return err
	}
	err := n.s.absence(path.Join(n.folder, "root", file))
	if n.s.gaps != nil && errors.Is(err, fs.ErrNotExist) {
		if gap, ok := n.s.gaps.inSamples(n.name, file); ok {
			return &GapError{gap}
		}
	}
	return err
}

// Source names where Files takes a path from, as a report does: "node:/abs/path@1"
// for sample 1, "node:/abs/path" for root/ and for what is nowhere.
func (n *Node) Source(file string) string {
	source := "node:/" + file
	if !fs.ValidPath(file) {
		return source
	}
	for _, k := range slices.Backward(n.layers().samples) {
		if _, err := n.s.tree.Stat(path.Join(n.sampleRoot(k), file)); !errors.Is(err, fs.ErrNotExist) {
			return source + "@" + strconv.Itoa(k)
		}
	}
	return source
}
