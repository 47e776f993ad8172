package cgroup

import (
	"cmp"
	"strconv"
	"strings"
)

// SliceExpiry says whether a kernel throttles groups that use less than their
// quota: up to 5.3 the slices of quota that CPUs had taken expired with the
// period. The fix is de53fd7aedb1, in 5.4 and in the stable lines 4.14.154,
// 4.19.84 and 5.3.9 on.
type SliceExpiry int

const (
	SliceExpiryUnknown  SliceExpiry = iota // no version that can be read
	SliceExpiryFixed                       // the version is that of the fix or later
	SliceExpiryPossible                    // an old line that a distribution patches without counting on
	SliceExpiryPresent                     // older than the fix
)

// sliceExpiryFixes are the stable lines that got the fix, by the patch level.
var sliceExpiryFixes = map[[2]int]int{{4, 14}: 154, {4, 19}: 84, {5, 3}: 9}

// SliceExpiryOf judges a kernel by its release as uname gives it:
// "5.3.18-59.37-default", "4.18.0-305.el8.x86_64". Distributions whose releases
// stay at patch level 0 ("4.18.0-…", "5.0.0-…") may have the fix without
// showing it.
func SliceExpiryOf(release string) SliceExpiry {
	version, suffix := release, ""
	if i := strings.IndexFunc(release, func(r rune) bool { return r != '.' && (r < '0' || r > '9') }); i >= 0 {
		version, suffix = release[:i], release[i:]
	}
	var numbers [3]int
	parts := strings.Split(strings.TrimRight(version, "."), ".")
	if len(parts) < 2 || len(release) > 256 {
		return SliceExpiryUnknown
	}
	for i, part := range parts[:min(len(parts), 3)] {
		n, err := strconv.Atoi(part)
		if err != nil || n < 0 {
			return SliceExpiryUnknown
		}
		numbers[i] = n
	}
	line := [2]int{numbers[0], numbers[1]}
	if cmp.Or(cmp.Compare(line[0], 5), cmp.Compare(line[1], 4)) >= 0 {
		return SliceExpiryFixed
	}
	if patch, ok := sliceExpiryFixes[line]; ok && numbers[2] >= patch {
		return SliceExpiryFixed
	}
	if numbers[2] == 0 && suffix != "" {
		return SliceExpiryPossible
	}
	return SliceExpiryPresent
}
