package console

import (
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/chaski-eo/chaski/fault"
)

// OneLine returns a text that data or a list has, as a terminal can have it: see fault.Line.
func OneLine(text string) string { return fault.Line(errors.New(text)) }

// Printable takes control characters out of text that comes from a file.
func Printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7F || r >= 0x80 && r < 0xA0 {
			return ' '
		}
		return r
	}, s)
}

func BinarySize(n int64) string {
	const unit = 1024
	if n < 10*unit {
		return fmt.Sprintf("%d bytes", n)
	}
	v, names := float64(n), []string{"bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"}
	i := 0
	for ; v >= unit && i < len(names)-1; i++ {
		v /= unit
	}
	return fmt.Sprintf("%.1f %s", v, names[i])
}

// DecimalSize writes a number of bytes for people.
func DecimalSize(n int64) string {
	const units = "kMGTPE"
	if n < 1000 {
		return fmt.Sprintf("%d B", n)
	}
	v, i := float64(n)/1000, 0
	for ; math.Round(v*10) >= 10000 && i < len(units)-1; i++ {
		v /= 1000
	}
	return fmt.Sprintf("%.1f %cB", v, units[i])
}
