package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
)

// ReadPressure reads /proc/pressure/<resource> of a node, the pressure of all
// its tasks: what the root group's file of that resource says too. The error
// matches [ErrPressureDisabled] where the kernel keeps none.
func ReadPressure(fsys fs.FS, resource string) (Pressure, error) {
	if !slices.Contains(pressureResources, resource) {
		return Pressure{}, fmt.Errorf("cgroup: no pressure file for resource %q", cut(resource))
	}
	file := "proc/pressure/" + resource
	data, err := fs.ReadFile(fsys, file)
	if errors.Is(err, errors.ErrUnsupported) {
		err = fmt.Errorf("%w: %w", ErrPressureDisabled, err)
	}
	if err != nil {
		return Pressure{}, err
	}
	p, err := parsePressure(data)
	if bad, ok := errors.AsType[*ParseError](err); ok {
		bad.File = file
	}
	return p, err
}
