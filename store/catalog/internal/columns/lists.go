package columns

import (
	"context"
	"math"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/column"
	"github.com/chaski-eo/chaski/format/tables"
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

// heldLists makes the cells of a column of lists that is in memory.
func heldLists(c *Column, values *tables.Vector) {
	child, offs := values.Offsets()
	elements := InMemory(child)
	c.Kind = elements.Kind | column.List
	c.cell = func(ctx context.Context, row int64) (cell column.Value, err error) {
		if values.Null(int(row)) {
			return column.Value{Null: true}, nil
		}
		cell.List = make([]column.Value, offs[row+1]-offs[row])
		for i := range cell.List {
			if cell.List[i], err = elements.cell(ctx, int64(offs[row])+int64(i)); err != nil {
				return cell, err
			}
		}
		return cell, nil
	}
}
