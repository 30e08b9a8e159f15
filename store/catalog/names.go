package catalog

import (
	"context"
	"encoding/json"
	"fmt"
	"sync/atomic"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/store/catalog/internal/columns"
)

// nameColumn is the column in which a catalog has the names of the bands of each file.
type nameColumn struct {
	column columns.Column
	last   atomic.Pointer[parsedNames] // most files of a catalog have the same names
}

type parsedNames struct {
	text  string
	names []string
}

// pick keeps some rows, in their order.
func (n *nameColumn) pick(rows []int64) *nameColumn {
	if n == nil {
		return nil
	}
	return &nameColumn{column: columns.Pick(n.column, rows)}
}

// names returns the names of the bands of a row's file, one for each, or nil if the catalog does not say them.
func (n *nameColumn) names(ctx context.Context, row int64, bands int) ([]string, error) {
	if n == nil {
		return nil, nil
	}
	c, err := n.column.Cell(ctx, row)
	if err != nil || c.Null || len(c.Text) == 0 {
		return nil, err
	}
	p := n.last.Load()
	if p == nil || p.text != string(c.Text) {
		p = &parsedNames{text: string(c.Text)}
		if err := json.Unmarshal(c.Text, &p.names); err != nil {
			return nil, corruptNames(row, "%.60q is no JSON array of strings", c.Text)
		}
		n.last.Store(p)
	}
	if len(p.names) != bands { // readers look for a band by its number
		return nil, corruptNames(row, "%d names of %d bands", len(p.names), bands)
	}
	return p.names, nil
}

func corruptNames(row int64, format string, args ...any) error {
	return fault.New(fault.Corrupt, fmt.Sprintf("names of bands in row %d", row), fault.NoOffset, format, args...)
}

// NamesText returns names of bands as a catalog has them, a JSON array, or "" if there are none.
func NamesText(names []string) string {
	if len(names) == 0 {
		return ""
	}
	b, err := json.Marshal(names)
	if err != nil {
		panic("catalog: strings have no JSON: " + err.Error())
	}
	return string(b)
}
