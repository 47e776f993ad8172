package main

import (
	"os"
	"path"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// manifest is a plugin's manifest as krew v1alpha2 defines it.
type manifest struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name string `json:"name"`
	} `json:"metadata"`
	Spec struct {
		Version          string         `json:"version"`
		Homepage         string         `json:"homepage"`
		ShortDescription string         `json:"shortDescription"`
		Description      string         `json:"description"`
		Caveats          string         `json:"caveats"`
		Platforms        []krewPlatform `json:"platforms"`
	} `json:"spec"`
}

type krewPlatform struct {
	URI      string `json:"uri"`
	SHA256   string `json:"sha256"`
	Bin      string `json:"bin"`
	Selector struct {
		MatchLabels map[string]string `json:"matchLabels"`
	} `json:"selector"`
	Files []struct{ From, To string } `json:"files"`
}

// krewSupported are the pairs that validate-krew-manifest installs for.
var krewSupported = []platform{
	{"windows", "386"}, {"windows", "amd64"}, {"windows", "arm64"},
	{"linux", "386"}, {"linux", "amd64"}, {"linux", "arm"}, {"linux", "arm64"}, {"linux", "ppc64le"},
	{"darwin", "386"}, {"darwin", "amd64"}, {"darwin", "arm64"},
}

// TestKrewManifest applies the rules of krew's internal/index/validation and
// validate-krew-manifest to the rendered manifest.
func TestKrewManifest(t *testing.T) {
	text, err := os.ReadFile("../../krew.yaml")
	if err != nil {
		t.Fatal(err)
	}
	r := release{Version: "v1.2.3", SHA256: map[string]string{}}
	for i, p := range platforms {
		r.SHA256[p.key()] = strings.Repeat(string("0123456789abcdef"[i]), 64)
	}
	rendered, err := renderManifest(text, r)
	if err != nil {
		t.Fatal(err)
	}
	var m manifest
	if err := yaml.UnmarshalStrict(rendered, &m); err != nil {
		t.Fatal(err)
	}

	if m.APIVersion != "krew.googlecontainertools.github.com/v1alpha2" || m.Kind != "Plugin" {
		t.Errorf("apiVersion %q, kind %q", m.APIVersion, m.Kind)
	}
	if m.Metadata.Name != "noderes" || !regexp.MustCompile(`^[\w-]+$`).MatchString(m.Metadata.Name) {
		t.Errorf("name %q", m.Metadata.Name)
	}
	if !regexp.MustCompile(`^v\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?$`).MatchString(m.Spec.Version) {
		t.Errorf("version %q is no semantic version with v", m.Spec.Version)
	}
	if s := m.Spec.ShortDescription; s == "" || strings.ContainsAny(s, "\r\n") {
		t.Errorf("shortDescription %q is empty or of several lines", s)
	}
	if m.Spec.Description == "" || strings.Contains(m.Spec.Description, "--") {
		t.Errorf("description is empty or lists flags: %q", m.Spec.Description)
	}
	if m.Spec.Homepage == "" {
		t.Error("no homepage")
	}

	seen := map[string]bool{}
	for _, p := range m.Spec.Platforms {
		labels := p.Selector.MatchLabels
		if len(labels) != 2 || labels["os"] == "" || labels["arch"] == "" {
			t.Errorf("selector %v is not os and arch", labels)
		}
		pair := platform{labels["os"], labels["arch"]}
		if seen[pair.key()] {
			t.Errorf("%s: selected twice", pair.key())
		}
		seen[pair.key()] = true
		if !isIn(pair, krewSupported) {
			t.Errorf("%s: krew installs nothing there", pair.key())
		}
		if !regexp.MustCompile(`^[0-9a-f]{64}$`).MatchString(p.SHA256) || p.SHA256 != r.SHA256[pair.key()] {
			t.Errorf("%s: sha256 %q", pair.key(), p.SHA256)
		}
		if got, want := path.Base(p.URI), pair.archive(r.Version); got != want {
			t.Errorf("%s: uri ends in %q, the archive is %q", pair.key(), got, want)
		}
		if !strings.HasPrefix(p.URI, m.Spec.Homepage+"/releases/download/"+r.Version+"/") {
			t.Errorf("%s: uri %q is not of the release", pair.key(), p.URI)
		}
		if p.Bin != pair.binary() {
			t.Errorf("%s: bin %q, the archive holds %q", pair.key(), p.Bin, pair.binary())
		}
		// Without a list of files everything is installed, LICENSE too.
		if p.Files != nil {
			t.Errorf("%s: files are listed", pair.key())
		}
	}
	for _, p := range platforms {
		if !seen[p.key()] {
			t.Errorf("%s is built but not in the manifest", p.key())
		}
	}
}

func TestRenderManifestMissingSum(t *testing.T) {
	if _, err := renderManifest([]byte(`{{ .SHA256.plan9_386 }}`), release{SHA256: map[string]string{}}); err == nil {
		t.Error("a platform that was not built must not render")
	}
}

func isIn(p platform, list []platform) bool {
	for _, q := range list {
		if p == q {
			return true
		}
	}
	return false
}
