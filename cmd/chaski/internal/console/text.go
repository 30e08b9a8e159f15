package console

import (
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"text/tabwriter"
	"unicode/utf8"

	"github.com/chaski-eo/chaski/fault"
)

// OneLine returns text that may come from a file as one line that is safe to print: see fault.Line.
func OneLine(text string) string { return fault.Line(errors.New(text)) }

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

// BinarySize writes a number of bytes in units of 1024. Sizes of files below 10 KiB are exact.
func BinarySize(n int64) string {
	const unit = 1024
	if n < 10*unit {
		return fmt.Sprintf("%d bytes", n)
	}
	v, names := float64(n)/unit, []string{"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"}
	i := 0
	for ; v >= unit && i < len(names)-1; i++ {
		v /= unit
	}
	return fmt.Sprintf("%.1f %s", v, names[i])
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

// WriteTable writes rows of cells in columns, the first column aligned left and the others right.
func WriteTable(out io.Writer, rows [][]string) error {
	writer := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	width := 0
	for _, r := range rows {
		width = max(width, utf8.RuneCountInString(r[0]))
	}
	for _, r := range rows {
		// tabwriter aligns all columns alike, so that the first one needs to be padded here.
		fmt.Fprintf(writer, "%-*s\t%s\t\n", width, r[0], strings.Join(r[1:], "\t"))
	}
	return writer.Flush()
}
