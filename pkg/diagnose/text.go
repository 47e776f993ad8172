package diagnose

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// percent of a ratio, with one decimal below 10 % and where it is not whole.
func percent(ratio float64) string {
	return trimZeros(strconv.FormatFloat(ratio*100, 'f', 1, 64)) + " %"
}

// usec shows microseconds as a person reads them, exact to the digits shown.
func usec(us float64) string {
	switch {
	case us >= 1e6:
		return trimZeros(strconv.FormatFloat(us/1e6, 'f', 2, 64)) + " s"
	case us >= 1e3:
		return trimZeros(strconv.FormatFloat(us/1e3, 'f', 2, 64)) + " ms"
	default:
		return trimZeros(strconv.FormatFloat(us, 'f', 0, 64)) + " µs"
	}
}

// bytes shows a size in the largest binary unit, exact where it divides and
// with two decimals otherwise.
func bytes(b uint64) string {
	units := []string{"", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"}
	i, v := 0, float64(b)
	for v >= 1024 && i < len(units)-1 {
		v /= 1024
		i++
	}
	if i == 0 {
		return strconv.FormatUint(b, 10) + " bytes"
	}
	return trimZeros(strconv.FormatFloat(v, 'f', 2, 64)) + units[i]
}

func trimZeros(s string) string {
	if strings.Contains(s, ".") {
		s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	}
	return s
}

// cores shows CPUs, not seconds.
func cores(c float64) string {
	return trimZeros(strconv.FormatFloat(c, 'f', 3, 64)) + " CPU"
}

func utc(t time.Time) string {
	if t.IsZero() {
		return "an unknown time"
	}
	return t.UTC().Format(time.RFC3339)
}

// clip cuts a text of the API that anyone could have made long.
func clip(s string) string {
	const most = 400
	if len(s) <= most {
		return s
	}
	r := []rune(s)
	if len(r) <= most {
		return s
	}
	return string(r[:most]) + "…"
}

// plural gives "1 period", "2 periods".
func plural[N int | int64 | uint64](n N, noun string) string {
	if n == 1 {
		return fmt.Sprintf("%d %s", n, noun)
	}
	if strings.HasSuffix(noun, "s") {
		return fmt.Sprintf("%d %ses", n, noun)
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

func join(items []string) string {
	switch len(items) {
	case 0:
		return ""
	case 1:
		return items[0]
	default:
		return strings.Join(items[:len(items)-1], ", ") + " and " + items[len(items)-1]
	}
}
