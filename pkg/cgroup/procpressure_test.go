package cgroup

import (
	"errors"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"
)

func TestReadPressure(t *testing.T) {
	fsys := fstest.MapFS{
		// A recorded node, kernel 6.12.
		"proc/pressure/cpu":    {Data: []byte("some avg10=84.79 avg60=85.11 avg300=90.04 total=3611823519\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n")},
		"proc/pressure/memory": {Data: []byte("some avg10=\x1b[2J\n")},
	}
	p, err := ReadPressure(fsys, "cpu")
	if err != nil {
		t.Fatal(err)
	}
	if p.Some == nil || p.Some.Total != 3611823519 || p.Some.Avg10 != 84.79 || p.Full == nil {
		t.Errorf("cpu: %+v", p)
	}
	_, err = ReadPressure(fsys, "memory")
	bad, ok := errors.AsType[*ParseError](err)
	if !ok || bad.File != "proc/pressure/memory" || strings.Contains(err.Error(), "\x1b") {
		t.Errorf("memory: %v", err)
	}
	if _, err := ReadPressure(fsys, "io"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("io: %v", err)
	}
	if _, err := ReadPressure(fsys, "../stat"); err == nil || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("../stat: %v", err)
	}
	if _, err := ReadPressure(unsupportedFS{}, "cpu"); !errors.Is(err, ErrPressureDisabled) {
		t.Errorf("psi=0: %v", err)
	}
}

// unsupportedFS answers as a kernel booted with psi=0 does.
type unsupportedFS struct{}

func (unsupportedFS) Open(name string) (fs.File, error) {
	return nil, &fs.PathError{Op: "open", Path: name, Err: errors.ErrUnsupported}
}
