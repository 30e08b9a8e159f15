package tables

import (
	"context"
	"math"
	"strconv"

	"github.com/chaski-eo/chaski/fault"
)

// Names returns the values of a column that names things: strings, or whole numbers in decimal; "" for null.
func (t *Table) Names(ctx context.Context, column string) ([]string, error) {
	values, err := t.Column(ctx, column)
	if err != nil {
		return nil, err
	}
	names := make([]string, values.Len())
	for row := range names {
		if values.Null(row) {
			continue
		}
		switch values.Kind() {
		case String:
			names[row] = values.Str(row)
		case Int64, Uint64:
			names[row] = string(values.AppendCast(nil, row))
		case Float64: // pandas makes floats of integers in a column with a gap
			number := values.Float(row)
			if number == number && number != math.Trunc(number) {
				return nil, fault.New(fault.Unsupported, "column "+column,
					"holds %v, which is no id: ids are strings or whole numbers", number)
			}
			if number == number {
				names[row] = strconv.FormatFloat(number+0, 'f', -1, 64)
			}
		default:
			return nil, fault.New(fault.Unsupported, "column "+column,
				"holds values of type %v, which name nothing: names are strings or whole numbers", values.Type())
		}
	}
	return names, nil
}
