// Package cut quotes foreign text for error messages.
package cut

import (
	"strconv"
	"unicode/utf8"
)

// limit is the number of bytes of foreign text that an error message repeats.
const limit = 80

// Quote returns s as %q does, cut to about 80 bytes of the original. A cut text ends in an ellipsis outside the quotes.
func Quote(s string) string {
	if len(s) <= limit {
		return strconv.Quote(s)
	}
	end := limit
	for end > limit-utf8.UTFMax && !utf8.RuneStart(s[end]) {
		end--
	}
	return strconv.Quote(s[:end]) + "…"
}
