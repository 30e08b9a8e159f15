package columns

import (
	"math"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/column"
	"github.com/chaski-eo/chaski/format/tables/texts"
)

// TooLong returns the error for a list of more than texts.MaxList elements.
func TooLong(part string) error {
	return fault.New(fault.Limit, part, "a list of over %d elements", texts.MaxList)
}

// Transform returns the six numbers of a cell of a column of lists, or nil if it has others.
func Transform(c column.Value) *[6]float64 {
	if len(c.List) != 6 {
		return nil
	}
	var out [6]float64
	for i, x := range c.List {
		if x.Null || math.IsNaN(x.Float) || math.IsInf(x.Float, 0) {
			return nil
		}
		out[i] = x.Float
	}
	return &out
}
