package inspect

import (
	"fmt"
	"strings"

	"github.com/chaski-eo/chaski/cmd/chaski/internal/console"
	"github.com/chaski-eo/chaski/loader/survey"
)

// zarrText describes a Zarr array or group as text.
func zarrText(i *survey.ZarrInfo) string {
	var s sheet
	what := "array"
	if i.Group {
		what = fmt.Sprintf("group of %d arrays", len(i.Arrays))
	}
	if i.Consolidated {
		what += ", consolidated"
	}
	fmt.Fprintf(&s.b, "%s: Zarr %d, %s\n", console.OneLine(i.Path), i.Format, what)
	for k := range i.Arrays {
		zarrArray := &i.Arrays[k]
		if zarrArray.Path != "" {
			s.line("array", "%s", console.OneLine(zarrArray.Path))
		}
		if zarrArray.Unreadable != "" {
			s.line("unreadable", "%s", console.Printable(zarrArray.Unreadable))
		}
		if zarrArray.DType == "" {
			continue
		}
		s.line("shape", "%v %s, dimensions %s", zarrArray.Shape, zarrArray.DType, orNone(zarrArray.Dims))
		if zarrArray.Axes != nil {
			s.line("images", "%s", strings.Join(zarrArray.Axes, " "))
		}
		shards := ""
		if zarrArray.Shards != nil {
			shards = fmt.Sprintf(" in shards of %v", zarrArray.Shards)
		}
		s.line("chunks", "%v%s, codecs %s, fill value %v", zarrArray.Chunks, shards, orNone(zarrArray.Codecs),
			float64(*zarrArray.Fill))
		if zarrArray.NoData != nil {
			s.line("nodata", "%v", float64(*zarrArray.NoData))
		}
		if zarrArray.Scale != nil {
			s.line("scale", "%v", *zarrArray.Scale)
		}
		if zarrArray.Offset != nil {
			s.line("offset", "%v", *zarrArray.Offset)
		}
		if zarrArray.EPSG != 0 {
			s.line("crs", "EPSG:%d", zarrArray.EPSG)
		}
		if zarrArray.Transform != nil {
			s.line("transform", "%v", *zarrArray.Transform)
		}
	}
	return s.b.String()
}
