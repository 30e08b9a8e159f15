package dataset

import (
	"fmt"
	"strings"

	"github.com/chaski-eo/chaski/loader"
)

// fieldsOf describes the fields of a batch, and where each batch is of one source, the fields of every source.
func fieldsOf(e *loader.Engine) []string {
	sp := e.Spec()
	if sp.Batches == "" {
		return fieldStrings(e.Fields())
	}
	var out []string
	for _, source := range e.Sources() {
		for _, text := range fieldStrings(source.Fields) {
			out = append(out, source.Name+": "+text)
		}
	}
	return out
}

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
