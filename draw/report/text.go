package report

import (
	_ "embed"
	"fmt"
	"math"
	"strconv"
	"strings"
)

//go:embed style.css
var style string

// base returns the last two parts of a path.
func base(s string) string {
	s = clean(s)
	i := strings.LastIndexByte(s, '/')
	if i < 0 {
		return s
	}
	if j := strings.LastIndexByte(s[:i], '/'); j >= 0 {
		return "…" + s[j:]
	}
	return s
}

// exact formats a number of a table with six digits.
func exact(v float64) string {
	s := strconv.FormatFloat(v, 'g', 6, 64)
	if a := math.Abs(v); a >= 1e6 && a < 1e15 {
		s = strconv.FormatFloat(v, 'f', 0, 64)
	}
	return minus(s)
}

// whole formats a minimum or maximum: integers with all digits, floats with six.
func whole(s string) string {
	if _, err := strconv.ParseInt(s, 10, 64); err == nil {
		return minus(s)
	}
	if v, err := strconv.ParseFloat(s, 64); err == nil && strings.ContainsAny(s, ".eE") {
		return exact(v)
	}
	return minus(s)
}

func minus(s string) string { return strings.Replace(s, "-", "−", 1) }

func count(n uint64) string { return thousands(int64(min(n, math.MaxInt64))) }

func thousands(n int64) string {
	s := strconv.FormatInt(n, 10)
	var b strings.Builder
	for i, r := range s {
		if i > 0 && (len(s)-i)%3 == 0 && s[i-1] != '-' {
			b.WriteRune('\u202f')
		}
		b.WriteRune(r)
	}
	return b.String()
}

func bytesText(n int64) string {
	if n < 1024 {
		return fmt.Sprintf("%d B", n)
	}
	v, names := float64(n), []string{"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"}
	i := 0
	for ; v >= 1023.5 && i < len(names)-1; i++ {
		v /= 1024
	}
	digits := 0
	if v < 9.95 {
		digits = 2
	} else if v < 99.5 {
		digits = 1
	}
	return strconv.FormatFloat(v, 'f', digits, 64) + " " + names[i]
}

func plural(n int64, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strings.TrimSpace(thousands(n) + " " + many)
}
