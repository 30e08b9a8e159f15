package report

import (
	_ "embed"
	"fmt"
	"html/template"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

//go:embed style.css
var styleText string

// Pages about other things, such as jobs, take their style and their numbers from here, so that all pages of chaski
// look alike.

// Style returns the style sheet.
func Style() template.CSS { return template.CSS(styleText) }

// Clean makes any text one line that cannot make a page look different from its content.
func Clean(s string) string { return clean(s) }

// Bytes formats a number of bytes.
func Bytes(n int64) string { return bytesText(n) }

// Thousands formats a number with spaces between thousands.
func Thousands(n int64) string { return thousands(n) }

// clean makes text from a file one line of valid UTF-8, without control characters and without those that change
// the direction of writing: a file name could otherwise make the page look different from its content.
func clean(s string) string {
	if !utf8.ValidString(s) {
		s = strings.ToValidUTF8(s, "�")
	}
	return strings.Map(func(r rune) rune {
		switch {
		case r < ' ' || r >= 0x7F && r < 0xA0 || r == 0x2028 || r == 0x2029:
			return ' '
		case r >= 0x202A && r <= 0x202E || r >= 0x2066 && r <= 0x2069:
			return -1
		}
		return r
	}, s)
}

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
