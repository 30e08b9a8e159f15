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
		a := &i.Arrays[k]
		if a.Path != "" {
			s.line("array", "%s", console.OneLine(a.Path))
		}
		if a.Unreadable != "" {
			s.line("unreadable", "%s", console.Printable(a.Unreadable))
		}
		if a.DType == "" {
			continue
		}
		s.line("shape", "%v %s, dimensions %s", a.Shape, a.DType, orNone(a.Dims))
		if a.Axes != nil {
			s.line("images", "%s", strings.Join(a.Axes, " "))
		}
		shards := ""
		if a.Shards != nil {
			shards = fmt.Sprintf(" in shards of %v", a.Shards)
		}
		s.line("chunks", "%v%s, codecs %s, fill value %v", a.Chunks, shards, orNone(a.Codecs), float64(*a.Fill))
		if a.NoData != nil {
			s.line("nodata", "%v", float64(*a.NoData))
		}
		if a.Scale != nil {
			s.line("scale", "%v", *a.Scale)
		}
		if a.Offset != nil {
			s.line("offset", "%v", *a.Offset)
		}
		if a.EPSG != 0 {
			s.line("crs", "EPSG:%d", a.EPSG)
		}
		if a.Transform != nil {
			s.line("transform", "%v", *a.Transform)
		}
	}
	return s.b.String()
}
