package cgroup

import "testing"

func TestSliceExpiryOf(t *testing.T) {
	for release, want := range map[string]SliceExpiry{
		"5.4.0":                         SliceExpiryFixed,
		"5.4.0-1103-aws":                SliceExpiryFixed,
		"6.1.0-50-amd64":                SliceExpiryFixed,
		"6.12.107":                      SliceExpiryFixed,
		"10.0.1":                        SliceExpiryFixed,
		"5.10":                          SliceExpiryFixed,
		"5.3.8":                         SliceExpiryPresent,
		"5.3.9":                         SliceExpiryFixed,
		"5.3.18-59.37-default":          SliceExpiryFixed,
		"4.19.83":                       SliceExpiryPresent,
		"4.19.84+":                      SliceExpiryFixed,
		"4.14.153-127.197.amzn2.x86_64": SliceExpiryPresent,
		"4.14.181-140.257.amzn2.x86_64": SliceExpiryFixed,
		"4.18.20":                       SliceExpiryPresent,
		"5.2.21":                        SliceExpiryPresent,
		"5.0":                           SliceExpiryPresent,
		"5.3":                           SliceExpiryPresent,
		"4.18.0-305.el8.x86_64":         SliceExpiryPossible,
		"5.0.0-29-generic":              SliceExpiryPossible,
		"4.19.0-6-amd64":                SliceExpiryPossible,
		"3.10.0-1062.el7.x86_64":        SliceExpiryPossible,
		"":                              SliceExpiryUnknown,
		"5":                             SliceExpiryUnknown,
		"5.":                            SliceExpiryUnknown,
		".4.1":                          SliceExpiryUnknown,
		"5..4":                          SliceExpiryUnknown,
		"linux":                         SliceExpiryUnknown,
		"99999999999999999999.1.1":      SliceExpiryUnknown,
		"-5.4.1":                        SliceExpiryUnknown,
	} {
		if got := SliceExpiryOf(release); got != want {
			t.Errorf("SliceExpiryOf(%q) = %d, want %d", release, got, want)
		}
	}
}

func FuzzSliceExpiryOf(f *testing.F) {
	for _, s := range []string{"5.3.18-59.37-default", "4.18.0-305.el8.x86_64", "5.", "\x00.1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, release string) {
		if got := SliceExpiryOf(release); got < SliceExpiryUnknown || got > SliceExpiryPresent {
			t.Fatalf("%q: %d", release, got)
		}
	})
}
