package taco2

import (
	"context"

	"github.com/chaski-eo/chaski/store/taco/internal/model"
	"github.com/chaski-eo/chaski/tables"
)

// Parents implements model.Reader. A row has the position of its parent in the level above, in a catalog among the rows
// of the same source file.
func (c *reader) Parents(ctx context.Context, k int) ([]int32, error) {
	l, up := c.levels[k], c.levels[k-1]
	ids, err := model.Column(ctx, l.Table, model.ColumnParent, tables.Int64)
	if err != nil {
		return nil, c.inLevel(err, k)
	}
	above := make([][]int32, len(c.sources)) // rows by source
	above[0] = make([]int32, 0, up.Table.Len())
	for i := range up.Table.Len() {
		from := up.from(i)
		above[from] = append(above[from], int32(i))
	}
	parents := make([]int32, l.Table.Len())
	for i := range parents {
		among := above[l.from(i)]
		switch {
		case ids.Null(i):
			return nil, c.container.InRow(k, i, "%s is null", model.ColumnParent)
		case ids.Int(i) < 0 || ids.Int(i) >= int64(len(among)):
			return nil, c.container.InRow(k, i, "%s is %d, the level above has rows 0 to %d", model.ColumnParent,
				ids.Int(i), len(among)-1)
		}
		parents[i] = among[ids.Int(i)]
	}
	return parents, nil
}

// number sets the numbers of the source files of a level's rows.
func (c *reader) number(l *level) {
	l.numbers = make([]int32, l.Table.Len())
	for i := range l.numbers {
		name := l.Sources.Bytes(i)
		n, known := c.numbers[string(name)]
		if !known {
			n = int32(len(c.sources))
			c.numbers[string(name)], c.sources = n, append(c.sources, string(name))
		}
		l.numbers[i] = n
	}
}

// from returns the number of the source file of a row; outside catalogs all rows are of the container's own.
func (l *level) from(row int) int32 {
	if l.numbers == nil {
		return 0
	}
	return l.numbers[row]
}
