package render

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Escape makes any string safe for one line of a terminal. Control characters
// (newline and tab too), line separators and formatting characters without a
// shape of their own, among them all that change the direction of text, become
// \n, \x1b or \u202e; a byte that is not UTF-8 becomes \x85. Everything else,
// a backslash too, stays as it is.
func Escape(s string) string {
	return escape(s, func(b []byte, r rune) []byte {
		switch {
		case r == '\n':
			return append(b, `\n`...)
		case r == '\t':
			return append(b, `\t`...)
		case r == '\r':
			return append(b, `\r`...)
		case r <= unicode.MaxASCII:
			return appendHex(append(b, `\x`...), r, 2)
		}
		return appendEscape(b, r)
	})
}

// escape writes every rune of s that needs it with write, and every byte that is not
// UTF-8 as \xNN.
func escape(s string, write func([]byte, rune) []byte) string {
	at := strings.IndexFunc(s, func(r rune) bool { return needsEscape(r) || r == utf8.RuneError })
	if at < 0 {
		return s
	}
	b := append(make([]byte, 0, len(s)+16), s[:at]...)
	for at < len(s) {
		r, size := utf8.DecodeRuneInString(s[at:])
		switch {
		case r == utf8.RuneError && size == 1:
			b = appendHex(append(b, `\x`...), rune(s[at]), 2)
		case needsEscape(r):
			b = write(b, r)
		default:
			b = append(b, s[at:at+size]...)
		}
		at += size
	}
	return string(b)
}

// appendEscape writes \uXXXX, above the basic plane \UXXXXXXXX.
func appendEscape(b []byte, r rune) []byte {
	if r > 0xffff {
		return appendHex(append(b, `\U`...), r, 8)
	}
	return appendHex(append(b, `\u`...), r, 4)
}

func appendHex(b []byte, r rune, digits int) []byte {
	hex := strconv.FormatInt(int64(r), 16)
	for range digits - len(hex) {
		b = append(b, '0')
	}
	return append(b, hex...)
}

// needsEscape tells the runes that act on a terminal, or hide in it, instead of
// showing. The joiners that emoji and Indic or Persian words need are safe, and
// so are the few formatting characters with a shape (Arabic number signs).
func needsEscape(r rune) bool {
	if r < 0x7f {
		return r < 0x20
	}
	const zeroWidthNonJoiner, zeroWidthJoiner = 0x200c, 0x200d
	switch {
	case unicode.In(r, unicode.Cc, unicode.Zl, unicode.Zp):
		return true
	case r == zeroWidthNonJoiner, r == zeroWidthJoiner:
		return false
	}
	return unicode.Is(unicode.Cf, r) && !unicode.Is(unicode.Prepended_Concatenation_Mark, r)
}
