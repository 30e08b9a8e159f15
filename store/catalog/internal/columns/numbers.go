package columns

import (
	"context"
	"math"

	"github.com/chaski-eo/chaski/tables/parquet"
)

// Numbers is a column of lists of numbers, such as the transforms of a catalog. It is safe for concurrent use.
type Numbers struct {
	file *File
	leaf int
}

// NumbersOf returns the column of a table whose rows are lists of floats, or nil if it has none with this name.
func NumbersOf(table *Table, name string) *Numbers {
	if len(table.Files) != 1 {
		return nil // CSV files and items have no lists, and a catalog is one file
	}
	file := table.Files[0]
	for i := range file.Fields {
		field := &file.Fields[i]
		if field.Name != name {
			continue
		}
		for len(field.Children) == 1 {
			field = &field.Children[0]
		}
		if field.Leaf >= 0 && field.Rep == 1 {
			if c := &file.Columns[field.Leaf]; c.Type == parquet.Double || c.Type == parquet.Float {
				return &Numbers{file: file, leaf: field.Leaf}
			}
		}
	}
	return nil
}

// Transform returns the six numbers of a row, or nil if it has others. c may be nil.
func (c *Numbers) Transform(ctx context.Context, row int64) (*[6]float64, error) {
	if c == nil {
		return nil, nil
	}
	numbers, err := c.row(ctx, row)
	if err != nil || len(numbers) != 6 {
		return nil, err
	}
	for _, x := range numbers {
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return nil, nil
		}
	}
	return (*[6]float64)(numbers), nil
}

// row returns the first numbers of a row: one more than six, to tell longer lists. A null has none.
func (c *Numbers) row(ctx context.Context, row int64) ([]float64, error) {
	const limit = 7
	group, row := c.file.Group(row)
	pages, err := c.file.pagesOf(ctx, c.leaf, group)
	if err != nil {
		return nil, err
	}
	page := pages.Find(row)
	lists, err := c.page(ctx, group, page, pages)
	if err != nil {
		return nil, err
	}
	first := int(row - pages.Pages[page].First)
	numbers, err := lists.AppendRow(make([]float64, 0, limit), first, limit)
	// A list may go on in the pages after the one in which it begins.
	for last := first == lists.Lists()-1; err == nil && last && page+1 < len(pages.Pages) && len(numbers) < limit; {
		page++
		if lists, err = c.page(ctx, group, page, pages); err != nil {
			return nil, err
		}
		numbers, err = lists.AppendHead(numbers, limit-len(numbers))
		last = lists.Lists() == 0
	}
	return numbers, err
}

func (c *Numbers) page(ctx context.Context, group, page int, pages *parquet.Pages) (*parquet.Few, error) {
	return c.file.page(ctx, pageKey{c.file.number, c.leaf, group, page}, pages)
}
