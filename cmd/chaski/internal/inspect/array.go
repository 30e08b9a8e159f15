package inspect

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/chaski-eo/chaski/cmd/chaski/internal/console"
	"github.com/chaski-eo/chaski/loader/survey"
)

// arrayText describes an array as text.
func arrayText(i *survey.ArrayInfo) string {
	var s sheet
	kind := "sparse"
	if i.Dense {
		kind = "dense"
	}
	fmt.Fprintf(&s.b, "%s: TileDB array, format version %d, %s\n", console.OneLine(i.Path), i.FormatVersion, kind)
	if i.Encrypted {
		s.line("encrypted", "AES-256-GCM")
	}
	for k, arrayDim := range i.Dims {
		written := ""
		if arrayDim.Current != nil {
			written = fmt.Sprintf(", in use %s to %s", arrayDim.Current[0], arrayDim.Current[1])
		}
		if i.NonEmpty != nil {
			written += fmt.Sprintf(", written %s to %s", i.NonEmpty[k][0], i.NonEmpty[k][1])
		}
		s.line("dimension", "%s: %s, %s to %s, tiles of %s%s", console.Printable(arrayDim.Name), arrayDim.Type,
			arrayDim.Domain[0],
			arrayDim.Domain[1], arrayDim.Extent, written)
	}
	s.line("orders", "tiles %s-major, cells %s-major, capacity %d", i.TileOrder, i.CellOrder, i.Capacity)
	for _, arrayAttr := range i.Attrs {
		values := fmt.Sprintf(" × %d", arrayAttr.Values)
		switch arrayAttr.Values {
		case 1:
			values = ""
		case -1:
			values = " × any number"
		}
		if arrayAttr.Nullable {
			values += ", nullable"
		}
		if arrayAttr.Enum != "" {
			values += ", enumeration " + console.Printable(arrayAttr.Enum)
		}
		s.line("attribute", "%s: %s%s, filters %s", console.Printable(arrayAttr.Name), arrayAttr.Type, values,
			orNone(arrayAttr.Filters))
	}
	s.line("coordinates", "filters %s; offsets: filters %s", orNone(i.Coords), orNone(i.Offsets))
	s.line("fragments", "%d, %d hidden, %d tiles an attribute", i.Fragments, i.Hidden, i.Tiles)
	if i.Times != nil {
		s.line("written", "%s to %s", timeText(i.Times[0]), timeText(i.Times[1]))
	}
	return s.b.String()
}

// timeText formats a time so that --timestamp accepts it.
func timeText(ms uint64) string {
	if ms > maxMilli {
		return strconv.FormatUint(ms, 10)
	}
	return time.UnixMilli(int64(ms)).UTC().Format("2006-01-02T15:04:05.000Z07:00")
}

// maxMilli is the end of the year 9999, the last one that a time like 2026-11-20T12:00:00Z can name. Later
// times are printed as numbers, so that --timestamp accepts those too.
const maxMilli = 253402300799999

// orNone lists names that may come from a file.
func orNone(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return console.Printable(strings.Join(names, ", "))
}
