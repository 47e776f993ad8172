package render

import (
	"strconv"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func TestEscape(t *testing.T) {
	for in, want := range map[string]string{
		"":                      "",
		"node:/sys/fs/cgroup@1": "node:/sys/fs/cgroup@1",
		"한국어 Привет e\u0301 👩‍🚀": "한국어 Привет e\u0301 👩‍🚀",
		`C:\x1b stays`:              `C:\x1b stays`,
		"\x1b[2J\a":                 `\x1b[2J\x07`,
		"a\nb\tc\rd\x00e\bf\x7f":    `a\nb\tc\rd\x00e\x08f\x7f`,
		"\u0085 \u009b31m":          `\u0085 \u009b31m`,
		"\u202egpj.exe\u2069\u061c": `\u202egpj.exe\u2069\u061c`,
		"\u200e\u200f\u200b\ufeff":  `\u200e\u200f\u200b\ufeff`,
		"\u2028\u2029":              `\u2028\u2029`,
		"\U000e0041":                `\U000e0041`,
		"\u0600 \u200d \u200c":      "\u0600 \u200d \u200c",
		"\x85\xff half \xe2\x80":    `\x85\xff half \xe2\x80`,
		"\ufffd is itself":          "\ufffd is itself",
		"\xed\xa0\x80":              `\xed\xa0\x80`,
	} {
		if got := Escape(in); got != want {
			t.Errorf("Escape(%q) = %q, want %q", in, got, want)
		}
	}
}

// dangerous is written apart from needsEscape.
func dangerous(r rune) bool {
	switch {
	case r < 0x20, r >= 0x7f && r < 0xa0, r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069, r == 0x200e, r == 0x200f, r == 0x061c:
		return true
	}
	return unicode.Is(unicode.Bidi_Control, r)
}

func FuzzEscape(f *testing.F) {
	for _, s := range []string{"", "plain", hostile, "\xff", "\u202e", "한국어", "\ufffd", `\x1b`, "\xe2\x80\xae\xe2\x80"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got := Escape(s)
		if !utf8.ValidString(got) {
			t.Fatalf("Escape(%q) = %q is no UTF-8", s, got)
		}
		if strings.ContainsFunc(got, dangerous) {
			t.Fatalf("Escape(%q) = %q", s, got)
		}
		if Escape(got) != got {
			t.Fatalf("Escape(Escape(%q)) = %q, not %q", s, Escape(got), got)
		}
		// Nothing is lost or added: each character is itself or its escape.
		rest := got
		for at := 0; at < len(s); {
			r, size := utf8.DecodeRuneInString(s[at:])
			if valid := r != utf8.RuneError || size > 1; valid && strings.HasPrefix(rest, string(r)) {
				rest = rest[size:]
			} else {
				if !valid {
					r = rune(s[at])
				}
				escaped, multibyte, tail, err := strconv.UnquoteChar(rest, 0)
				if err != nil || escaped != r || !valid && multibyte {
					t.Fatalf("Escape(%q) = %q: at %q stands %q", s, got, s[at:], rest)
				}
				rest = tail
			}
			at += size
		}
		if rest != "" {
			t.Fatalf("Escape(%q) = %q: added %q", s, got, rest)
		}
	})
}
