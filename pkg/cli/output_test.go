package cli

import (
	"bytes"
	"testing"
)

func TestUnicodeLocale(t *testing.T) {
	for _, tt := range []struct {
		name string
		env  map[string]string
		want bool
	}{
		{"nothing set", nil, false},
		{"utf-8", map[string]string{"LANG": "de_DE.UTF-8"}, true},
		{"spelt as glibc normalizes it", map[string]string{"LANG": "C.utf8"}, true},
		{"plain C", map[string]string{"LANG": "C"}, false},
		{"LC_ALL before LANG", map[string]string{"LC_ALL": "C", "LANG": "en_US.UTF-8"}, false},
		{"LC_CTYPE before LANG", map[string]string{"LC_CTYPE": "UTF-8", "LANG": "C"}, true},
		{"empty is unset", map[string]string{"LC_ALL": "", "LANG": "en_US.UTF-8"}, true},
	} {
		if got := unicodeLocale(func(name string) string { return tt.env[name] }); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}

func TestValidateFormat(t *testing.T) {
	all := []string{formatText, formatJSON, formatYAML, formatJSONPath}
	for _, tt := range []struct {
		output  string
		allowed []string
		ok      bool
	}{
		{"text", all, true},
		{"json", all, true},
		{"yaml", all, true},
		{"jsonpath={.kind}", all, true},
		{"jsonpath={.a==1}", all, true},
		{"jsonpath", all, false},
		{"jsonpath=", all, false},
		{"jsonpath={.kind}", all[:3], false},
		{"json=", all, false},
		{"JSON", all, false},
		{"", all, false},
		{"go-template={{.}}", all, false},
	} {
		if err := validateFormat(tt.output, tt.allowed...); (err == nil) != tt.ok {
			t.Errorf("%q of %v: %v", tt.output, tt.allowed, err)
		}
	}
}

func TestTerminalWidthOfNoTerminal(t *testing.T) {
	if got := terminalWidth(&bytes.Buffer{}); got != 0 {
		t.Errorf("width %d, want 0", got)
	}
}
