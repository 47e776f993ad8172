package snapshot

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	kjson "sigs.k8s.io/json"
)

const (
	manifestName  = "bundle.json"
	formatVersion = 1
)

// Manifest is bundle.json.
type Manifest struct {
	FormatVersion int       `json:"formatVersion"`
	CapturedAt    time.Time `json:"capturedAt"` // zero: not said
	Tool          string    `json:"tool"`       // what wrote the bundle
	Server        string    `json:"server"`     // the API server's version, such as "v1.37.2"
}

// parseManifest reads bundle.json. The version comes first: another format may
// give every other key another shape.
func parseManifest(data []byte) (Manifest, error) {
	var version struct {
		FormatVersion json.RawMessage `json:"formatVersion"`
	}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(data, &version); err != nil {
		return Manifest{}, harmless(err)
	}
	switch got := version.FormatVersion; {
	case got == nil:
		return Manifest{}, errors.New("no formatVersion")
	case string(got) != fmt.Sprint(formatVersion):
		return Manifest{}, fmt.Errorf("formatVersion %s is not known, only %d is", printable(cut(string(got), 40)), formatVersion)
	}
	var m Manifest
	if err := kjson.UnmarshalCaseSensitivePreserveInts(data, &m); err != nil {
		return Manifest{}, harmless(err)
	}
	return m, nil
}
