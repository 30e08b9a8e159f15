package build

import (
	"encoding/json"
	"math"

	"github.com/chaski-eo/chaski/tables"
)

// isJSON reports whether the strings of a column are JSON.
func isJSON(v *tables.Vector) bool { return v.Type().Stored().Extension == tables.ExtensionJSON }

// appendPython appends a value as JSON that Python reads as it is: with NaN and infinities as numbers.
func appendPython(dst []byte, v *tables.Vector, i int) []byte {
	if v.Null(i) {
		return append(dst, "null"...)
	}
	switch v.Kind() {
	case tables.String:
		if text := v.Bytes(i); isJSON(v) && json.Valid(text) {
			return append(dst, text...)
		}
	case tables.Float64:
		switch f := v.Float(i); {
		case math.IsNaN(f):
			return append(dst, "NaN"...)
		case math.IsInf(f, 1):
			return append(dst, "Infinity"...)
		case math.IsInf(f, -1):
			return append(dst, "-Infinity"...)
		}
	case tables.List:
		child, lo, hi := v.List(i)
		dst = append(dst, '[')
		for k := lo; k < hi; k++ {
			if k > lo {
				dst = append(dst, ", "...)
			}
			dst = appendPython(dst, child, k)
		}
		return append(dst, ']')
	case tables.Struct:
		dst = append(dst, '{')
		for k, column := range v.Type().Fields {
			if k > 0 {
				dst = append(dst, ", "...)
			}
			dst = appendPython(append(append(dst, quoted(column.Name)...), ": "...), v.Field(k), i)
		}
		return append(dst, '}')
	}
	return v.AppendJSON(dst, i)
}
