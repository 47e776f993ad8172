package cgroup

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// maxKeys bounds a keyed file; memory.stat of the newest kernels has under 100.
const maxKeys = 4096

// flatKeyed is a file of lines "key value". Keys that no accessor knows are
// kept: kernels add some with every release.
type flatKeyed struct {
	keys   []string
	values map[string]uint64
	signed map[string]int64 // the keys that the kernel prints from an int
}

// Get returns the value of a key; false means that the file has no such key,
// which is not the same as 0. A counter that the kernel prints from a signed
// int and that has wrapped to a negative number has no value here either.
func (f flatKeyed) Get(key string) (uint64, bool) {
	if value, ok := f.signed[key]; ok {
		return uint64(max(value, 0)), value >= 0
	}
	value, ok := f.values[key]
	return value, ok
}

// Keys returns the keys in the order of the file.
func (f flatKeyed) Keys() []string { return slices.Clone(f.keys) }

func (f flatKeyed) getSigned(key string) (int64, bool) {
	value, ok := f.signed[key]
	return value, ok
}

// parseFlatKeyed parses lines "key value". The values of signedKeys may be
// negative, no other may. An empty file has no keys and is no error here.
func parseFlatKeyed(data []byte, signedKeys ...string) (flatKeyed, error) {
	f := flatKeyed{values: map[string]uint64{}}
	for number, line := range numberedLines(data) {
		key, value, found := strings.Cut(line, " ")
		if !found || !isKey(key) {
			return flatKeyed{}, badText(number, line, `not a line "key value"`)
		}
		if slices.Contains(signedKeys, key) {
			if _, twice := f.signed[key]; twice {
				return flatKeyed{}, badText(number, line, "duplicate key")
			}
			parsed, err := strconv.ParseInt(value, 10, 64)
			if err != nil || strings.HasPrefix(value, "+") {
				return flatKeyed{}, badText(number, line, "not a signed 64-bit number")
			}
			if f.signed == nil {
				f.signed = map[string]int64{}
			}
			f.signed[key] = parsed
		} else {
			if _, twice := f.values[key]; twice {
				return flatKeyed{}, badText(number, line, "duplicate key")
			}
			parsed, err := kernelUint(value)
			if err != nil {
				return flatKeyed{}, badText(number, line, err.Error())
			}
			f.values[key] = parsed
		}
		if f.keys = append(f.keys, key); len(f.keys) > maxKeys {
			return flatKeyed{}, badText(number, line, fmt.Sprintf("more than %d keys", maxKeys))
		}
	}
	return f, nil
}

// parseFilledFlatKeyed is parseFlatKeyed for a file that always has lines.
func parseFilledFlatKeyed(data []byte, signedKeys ...string) (flatKeyed, error) {
	f, err := parseFlatKeyed(data, signedKeys...)
	if err == nil && len(f.keys) == 0 {
		err = badText(0, "", reasonEmpty)
	}
	return f, err
}

func isKey(key string) bool {
	return key != "" && isPrintable(key)
}
