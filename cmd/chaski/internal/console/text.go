package console

import (
	"fmt"
	"math"
	"strings"
)

// Printable replaces the control characters of text that comes from a file by spaces.
func Printable(s string) string {
	return strings.Map(func(r rune) rune {
		// C0, DEL and C1: a terminal would obey some of them.
		if r < ' ' || r == 0x7F || r >= 0x80 && r < 0xA0 {
			return ' '
		}
		return r
	}, s)
}

// DecimalSize writes a number of bytes in units of 1000.
func DecimalSize(n int64) string {
	const units = "kMGTPE"
	if n < 1000 {
		return fmt.Sprintf("%d B", n)
	}
	v, i := float64(n)/1000, 0
	// Rounded to one decimal before the comparison, since 999.96 kB would print as 1000.0 kB.
	for ; math.Round(v*10) >= 10000 && i < len(units)-1; i++ {
		v /= 1000
	}
	return fmt.Sprintf("%.1f %cB", v, units[i])
}
