package main

import (
	"bytes"
	"text/template"
)

// release is what krew.yaml refers to; SHA256 is keyed by os_arch.
type release struct {
	Version string
	SHA256  map[string]string
}

func renderManifest(text []byte, r release) ([]byte, error) {
	t, err := template.New("krew.yaml").Option("missingkey=error").Parse(string(text))
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	if err := t.Execute(&out, r); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}
