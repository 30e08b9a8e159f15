package columns

import (
	"context"
	"math"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/column"
	"github.com/chaski-eo/chaski/format/tables"
	"github.com/chaski-eo/chaski/format/tables/text"
)

// TooLong returns the error for a list of more than text.MaxList elements.
func TooLong(part string) error {
	return fault.New(fault.Limit, part, fault.NoOffset, "a list of over %d elements", text.MaxList)
}

// Transform returns the six numbers of a row of a column of lists, or nil if it has others. c may be nil.
func Transform(ctx context.Context, c *Column, row int64) (*[6]float64, error) {
	if c == nil {
		return nil, nil
	}
	cell, err := c.Cell(ctx, row)
	if err != nil || len(cell.List) != 6 {
		return nil, err
	}
	var out [6]float64
	for i, x := range cell.List {
		if x.Null || math.IsNaN(x.Float) || math.IsInf(x.Float, 0) {
			return nil, nil
		}
		out[i] = x.Float
	}
	return &out, nil
}

// listAt returns the cell of a column of lists in a row of the file.
func (f *File) listAt(ctx context.Context, leaf int, kind column.Kind, row int64) (Cell, error) {
	group, in := f.Group(row)
	pages, err := f.pagesOf(ctx, leaf, group)
	if err != nil {
		return Cell{}, err
	}
	page := pages.Find(in)
	list, first := []Cell{}, int(in-pages.Pages[page].First)
	// A list may go on in the pages after the one in which it begins.
	for last := true; last && page < len(pages.Pages); page++ {
		few, err := f.page(ctx, pageKey{file: f.number, column: leaf, group: group, page: page}, pages, nil)
		if err != nil {
			return Cell{}, err
		}
		lo, hi, null := few.List(first)
		if null {
			return Cell{Null: true}, nil
		}
		for i := lo; i < hi; i++ {
			values, k, err := few.Find(i)
			if err != nil {
				return Cell{}, err
			}
			cell, err := f.cellOf(values, k, leaf, kind.Elem(), row)
			if err != nil {
				return Cell{}, err
			}
			if list = append(list, cell); len(list) > text.MaxList {
				return Cell{}, TooLong(f.part(leaf, row))
			}
		}
		last, first = first == few.Lists()-1, -1
	}
	return Cell{List: list}, nil
}

// heldLists makes the cells of a column of lists that is in memory.
func heldLists(c *Column, values *tables.Vector) {
	child, offs := values.Offsets()
	elements := InMemory(child)
	c.Kind = elements.Kind | column.List
	c.cell = func(ctx context.Context, row int64) (cell Cell, err error) {
		if values.Null(int(row)) {
			return Cell{Null: true}, nil
		}
		cell.List = make([]Cell, offs[row+1]-offs[row])
		for i := range cell.List {
			if cell.List[i], err = elements.cell(ctx, int64(offs[row])+int64(i)); err != nil {
				return cell, err
			}
		}
		return cell, nil
	}
}
