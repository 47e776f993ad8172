package render

import (
	"math"
	"strconv"
	"time"

	"github.com/noderes/kubectl-noderes/pkg/report"
)

// byteSize writes a size in the unit people use: 128Mi where that is exact and
// short, else one decimal of the largest unit: 438.7Mi. The decimal tells that
// it was rounded.
func byteSize(n uint64) string {
	units := []string{"", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"}
	if n < 1024 {
		return strconv.FormatUint(n, 10)
	}
	top := 0
	for rest := n; rest >= 1024; rest >>= 10 {
		top++
	}
	for i := top; i > 0; i-- {
		whole := n >> (10 * i)
		if whole<<(10*i) == n && whole < 10000 {
			return strconv.FormatUint(whole, 10) + units[i]
		}
	}
	tenths := math.Round(float64(n) / float64(uint64(1)<<(10*top)) * 10)
	if tenths >= 10240 && top < len(units)-1 {
		top++
		tenths /= 1024
	}
	return strconv.FormatFloat(tenths/10, 'f', 1, 64) + units[top]
}

// micros writes a time given in microseconds, exactly.
func micros(n uint64) string {
	if n > 0 && n < 1000 || n > math.MaxInt64/1000 {
		return strconv.FormatUint(n, 10) + "us"
	}
	return (time.Duration(n) * time.Microsecond).String()
}

func optional[T any](v *T, write func(T) string) string {
	if v == nil {
		return absent
	}
	return write(*v)
}

func count[T int | int64 | uint64](v *T) string {
	return optional(v, func(n T) string {
		if n < 0 {
			return strconv.FormatInt(int64(n), 10)
		}
		return strconv.FormatUint(uint64(n), 10)
	})
}

func size(v *uint64) string { return optional(v, byteSize) }

func limit(v *report.Limit, write func(uint64) string) string {
	return optional(v, func(l report.Limit) string {
		if l.Unlimited {
			return "unlimited"
		}
		return write(l.Value)
	})
}
