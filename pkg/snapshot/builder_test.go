package snapshot

import (
	"bytes"
	"errors"
	"io/fs"
	"testing"
	"time"
)

func TestBuilder(t *testing.T) {
	b := NewBuilder()
	for _, c := range []struct {
		path string
		size int
		want error
	}{
		{"cluster/pods.json", 1, nil},
		{"cluster/pods.json", 1, ErrDuplicate},
		{"cluster/pods.json/x", 1, ErrDuplicate},
		{"../x", 1, ErrPath},
		{"large", MaxFileBytes + 1, ErrFileTooLarge},
	} {
		if err := b.Add(c.path, make([]byte, c.size)); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.path, err, c.want)
		}
	}
	for _, g := range []Gap{{"nodes/n", ReasonRefused, "no"}, {"cluster/pods.json", ReasonForbidden, "some"}, {"nodes/n", ReasonRefused, "no"}} {
		b.Gap(g)
	}
	at := time.Date(2026, 7, 14, 9, 0, 0, 0, time.UTC)
	s, err := b.Build(Manifest{CapturedAt: at, Tool: "t", Server: "v1.37.2"})
	if err != nil {
		t.Fatal(err)
	}
	if m := s.Manifest(); m.FormatVersion != 1 || !m.CapturedAt.Equal(at) || m.Tool != "t" {
		t.Errorf("manifest %+v", m)
	}
	if gaps, ok := s.Gaps(); !ok || len(gaps) != 2 || gaps[0].Path != "cluster/pods.json" {
		t.Errorf("gaps %+v", gaps)
	}
	if _, err := s.File("nodes/n/x"); Reason(err) != ReasonRefused {
		t.Error(err)
	}
	if _, err := s.File("nodes/m/x"); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	if err := s.Partial("cluster/pods.json"); Reason(err) != ReasonForbidden {
		t.Error(err)
	}
	if err := s.Partial("nodes/n/x"); err != nil {
		t.Errorf("a folder's gap makes no file partial: %v", err)
	}
	var archive bytes.Buffer
	if err := s.WriteArchive(&archive); err != nil {
		t.Fatal(err)
	}
	if again, err := ReadArchive(&archive); err != nil || Reason(again.Partial("cluster/pods.json")) != ReasonForbidden {
		t.Error(err)
	}
}
