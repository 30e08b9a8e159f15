package dataset

import (
	"fmt"
	"strings"

	"github.com/chaski-eo/chaski/loader"
)

// fieldStrings describes the fields of a batch: name, kind, dtype and lengths of the axes. It leaves out
// n, since all fields share it.
func fieldStrings(fields []loader.FieldInfo) []string {
	out := make([]string, len(fields))
	for i, fieldInfo := range fields {
		var lengths []string
		for k, axis := range fieldInfo.Axes {
			if axis != "n" {
				lengths = append(lengths, fmt.Sprintf("%s %d", axis, fieldInfo.Shape[k]))
			}
		}
		out[i] = fieldInfo.Name + " " + fieldInfo.Kind
		if fieldInfo.DType.Valid() && fieldInfo.DType.String() != fieldInfo.Kind {
			out[i] += " " + fieldInfo.DType.String()
		}
		if len(lengths) > 0 {
			out[i] += " (" + strings.Join(lengths, ", ") + ")"
		}
	}
	return out
}
