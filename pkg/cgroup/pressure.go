package cgroup

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Pressure is pressure stall information: cpu.pressure, memory.pressure,
// io.pressure or irq.pressure. A line that the file does not have is nil:
// irq.pressure has only full.
type Pressure struct {
	Some *PressureLine // time in which at least one task waited
	Full *PressureLine // time in which all non-idle tasks waited
}

// PressureLine is one line of a pressure file. The averages are percentages of
// the last 10, 60 and 300 seconds.
type PressureLine struct {
	Avg10, Avg60, Avg300 float64
	Total                uint64 // µs
}

var pressureResources = []string{"cpu", "memory", "io", "irq"}

// Pressure reads the pressure file of a resource: "cpu", "memory", "io" or
// "irq" (the last only with CONFIG_IRQ_TIME_ACCOUNTING). The error matches
// [ErrPressureDisabled] where the kernel keeps none.
func (g Group) Pressure(resource string) (Pressure, error) {
	if !slices.Contains(pressureResources, resource) {
		return Pressure{}, fmt.Errorf("cgroup: no pressure file for resource %q", cut(resource))
	}
	p, err := readFile(g, resource+".pressure", parsePressure)
	// The kernel answers EOPNOTSUPP, which matches ErrUnsupported on every platform.
	if errors.Is(err, errors.ErrUnsupported) {
		err = fmt.Errorf("%w: %w", ErrPressureDisabled, err)
	}
	return p, err
}

// parsePressure parses lines "some avg10=0.00 avg60=0.00 avg300=0.00 total=0".
// Other lines and fields of that form are skipped.
func parsePressure(data []byte) (Pressure, error) {
	var p Pressure
	for number, line := range numberedLines(data) {
		kind, rest, _ := strings.Cut(line, " ")
		parsed, err := parsePressureLine(rest)
		if err != nil {
			return Pressure{}, badText(number, line, err.Error())
		}
		var into **PressureLine
		switch kind {
		case "some":
			into = &p.Some
		case "full":
			into = &p.Full
		default:
			continue
		}
		if *into != nil {
			return Pressure{}, badText(number, line, "duplicate line")
		}
		*into = &parsed
	}
	if p.Some == nil && p.Full == nil {
		if len(strings.Trim(string(data), "\n")) == 0 {
			return Pressure{}, badText(0, "", reasonEmpty)
		}
		return Pressure{}, badText(0, string(data), "neither a line some nor a line full")
	}
	return p, nil
}

func parsePressureLine(text string) (PressureLine, error) {
	var line PressureLine
	wanted := map[string]bool{"avg10": true, "avg60": true, "avg300": true, "total": true}
	for field := range strings.SplitSeq(text, " ") {
		key, value, found := strings.Cut(field, "=")
		if !found {
			return PressureLine{}, fmt.Errorf("field %q is not key=value", cut(field))
		}
		first, known := wanted[key]
		if !known {
			continue
		}
		if !first {
			return PressureLine{}, fmt.Errorf("duplicate field %q", cut(field))
		}
		wanted[key] = false
		var err error
		switch key {
		case "avg10":
			line.Avg10, err = decimalFraction(value)
		case "avg60":
			line.Avg60, err = decimalFraction(value)
		case "avg300":
			line.Avg300, err = decimalFraction(value)
		case "total":
			line.Total, err = kernelUint(value)
		}
		if err != nil {
			return PressureLine{}, fmt.Errorf("field %q: %w", cut(field), err)
		}
	}
	for _, key := range []string{"avg10", "avg60", "avg300", "total"} {
		if wanted[key] {
			return PressureLine{}, fmt.Errorf("field %s is missing", key)
		}
	}
	return line, nil
}

// decimalFraction parses digits with at most one point, and none of the other
// forms that strconv.ParseFloat takes, such as NaN and 1e9.
func decimalFraction(text string) (float64, error) {
	if strings.Trim(text, "0123456789.") != "" {
		return 0, errNoNumber
	}
	value, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return 0, errNoNumber
	}
	return value, nil
}
