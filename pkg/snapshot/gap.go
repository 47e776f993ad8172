package snapshot

import (
	"bytes"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	kjson "sigs.k8s.io/json"
)

const gapsName = "gaps.json"

// Reasons of a gap. NotCollected is none: it is what [Reason] says of a bundle
// without gaps.json.
const (
	ReasonForbidden    = "Forbidden"
	ReasonNotFound     = "NotFound"
	ReasonTimeout      = "Timeout"
	ReasonUnreadable   = "Unreadable"
	ReasonRefused      = "Refused"
	ReasonTooLarge     = "TooLarge"
	ReasonNotCollected = "NotCollected"
)

// Gap is one entry of gaps.json: something that was wanted and could not be had.
type Gap struct {
	Path   string `json:"path"` // a bundle path; a folder stands for all below it
	Reason string `json:"reason"`
	Detail string `json:"detail"`
}

// GapError is the error of a file that a gap covers.
type GapError struct{ Gap }

func (e *GapError) Error() string {
	text := e.word()
	if e.Detail != "" {
		text += ": " + printable(cut(e.Detail, 200))
	}
	return text
}

// Is makes a forbidden file match fs.ErrPermission and one that was not found
// fs.ErrNotExist.
func (e *GapError) Is(target error) bool {
	switch e.Reason {
	case ReasonForbidden:
		return target == fs.ErrPermission
	case ReasonNotFound:
		return target == fs.ErrNotExist
	}
	return false
}

// word is the reason where it is a word. Later formats may know more of them.
func (e *GapError) word() string {
	letter := func(r rune) bool { return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' }
	if e.Reason == "" || len(e.Reason) > 32 || strings.ContainsFunc(e.Reason, func(r rune) bool { return !letter(r) }) {
		return ReasonUnreadable
	}
	return e.Reason
}

// Gaps are the entries of gaps.json in its order. Without the file the second
// value is false, and nothing follows from the absence of any file.
func (s *Snapshot) Gaps() ([]Gap, bool) {
	if s.gaps == nil {
		return nil, false
	}
	return slices.Clone(s.gaps.all), true
}

// parseGaps reads gaps.json. It is strict: a gap that is overlooked would turn
// "could not be read" into "did not exist".
func parseGaps(data []byte) ([]Gap, error) {
	if !bytes.HasPrefix(bytes.TrimLeft(data, " \t\r\n"), []byte("[")) {
		return nil, fmt.Errorf("not a list: %s", quote(data[:min(len(data), 100)]))
	}
	if n := bytes.Count(data, []byte(",")); n > maxListCommas {
		return nil, ErrTooManyEntries
	}
	gaps := []Gap{}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(data, &gaps); err != nil {
		return nil, harmless(err)
	}
	for i := range gaps {
		g := &gaps[i]
		clean := strings.TrimRight(g.Path, "/")
		if !fs.ValidPath(clean) {
			return nil, fmt.Errorf("item %d: path %s is no path of a bundle", i, quote(g.Path))
		}
		if g.Reason == "" {
			return nil, fmt.Errorf("item %d: no reason", i)
		}
		g.Path = clean
	}
	return gaps, nil
}

// gapIndex finds the gap that covers a path.
type gapIndex struct {
	all    []Gap
	byPath map[string]Gap
	// sampled holds, for every node, the gaps below any of its samples by the
	// path on the node, "." for a whole sample. A sample of which nothing could
	// be read leaves no folder behind, only a gap.
	sampled map[string]map[string]Gap
}

func indexGaps(gaps []Gap) *gapIndex {
	x := &gapIndex{all: gaps, byPath: make(map[string]Gap, len(gaps)), sampled: map[string]map[string]Gap{}}
	for _, g := range gaps {
		// Of two that disagree the one that proves less counts.
		if old, ok := x.byPath[g.Path]; !ok || old.Reason == ReasonNotFound {
			x.byPath[g.Path] = g
		}
		if node, file, ok := samplePath(g.Path); ok && g.Reason != ReasonNotFound {
			if x.sampled[node] == nil {
				x.sampled[node] = map[string]Gap{}
			}
			if _, ok := x.sampled[node][file]; !ok {
				x.sampled[node][file] = g
			}
		}
	}
	return x
}

// samplePath splits nodes/<node>/samples[/<k>[/root[/<file>]]].
func samplePath(p string) (node, file string, ok bool) {
	parts := strings.SplitN(p, "/", 6)
	if len(parts) < 3 || parts[0] != "nodes" || parts[2] != "samples" {
		return "", "", false
	}
	switch {
	case len(parts) <= 4:
		return parts[1], ".", true
	case parts[4] != "root":
		return "", "", false
	case len(parts) == 5:
		return parts[1], ".", true
	}
	return parts[1], parts[5], true
}

// at is the gap on p or on the closest folder above it.
func (x *gapIndex) at(p string) (Gap, bool) { return closest(x.byPath, p) }

// inSamples is the gap that kept a node's file from being in any sample.
func (x *gapIndex) inSamples(node, file string) (Gap, bool) { return closest(x.sampled[node], file) }

func closest(gaps map[string]Gap, p string) (Gap, bool) {
	if len(gaps) == 0 {
		return Gap{}, false
	}
	for {
		if g, ok := gaps[p]; ok {
			return g, true
		}
		if p == "." {
			return Gap{}, false
		}
		p = path.Dir(p)
	}
}

// Partial is the gap of a file that is there: it holds a part of what there is.
// Nil where gaps.json does not name the file itself.
func (s *Snapshot) Partial(path string) error {
	if s.gaps == nil {
		return nil
	}
	if g, ok := s.gaps.byPath[path]; ok {
		return &GapError{g}
	}
	return nil
}
