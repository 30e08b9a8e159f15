package dataset

import (
	"fmt"
	"strings"

	"github.com/chaski-eo/chaski/cmd/chaski/internal/console"
	"github.com/chaski-eo/chaski/loader"
)

// fieldTexts say what the members of a batch are: a raster, numbers or texts.
func fieldTexts(fields []loader.FieldInfo) []string {
	out := make([]string, len(fields))
	for i, f := range fields {
		var lengths []string
		for k, axis := range f.Axes {
			if axis != "n" {
				lengths = append(lengths, fmt.Sprintf("%s %d", axis, f.Shape[k]))
			}
		}
		out[i] = console.OneLine(f.Name) + " " + f.Kind
		if f.DType.Valid() && f.DType.String() != f.Kind {
			out[i] += " " + f.DType.String()
		}
		if len(lengths) > 0 {
			out[i] += " (" + strings.Join(lengths, ", ") + ")"
		}
	}
	return out
}
