package vector

import (
	"context"
	"slices"
	"sync"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/tables/parquet"
)

// values reads a column; nil without a name.
func (p *parquetShapes) values(ctx context.Context, name string) (*Values, error) {
	if name == "" {
		return nil, nil
	}
	column := p.f.Column(name)
	if column < 0 {
		return nil, p.f.NoColumn(name)
	}
	values := &Values{}
	rows, meta := p.f.Rows, &p.f.Columns[column]
	var take func(row, i int, page *parquet.Values) error
	names := &stringCodes{v: values, of: map[string]uint32{}}
	refuse := func(k fault.Kind, format string, args ...any) error {
		return fault.New(k, "column "+name, format, args...)
	}
	known := []parquet.NoteKind{parquet.NoNote, parquet.Integer, parquet.String}
	switch {
	case meta.Repeated || !slices.Contains(known, meta.Note.Kind):
		return nil, refuse(fault.Unsupported, "holds no numbers and no strings")
	case meta.Note.Kind == parquet.String && meta.Type == parquet.ByteArray:
		values.Codes = make([]uint32, rows)
		var mu sync.Mutex // pages are read several at a time
		take = func(row, i int, page *parquet.Values) (err error) {
			mu.Lock()
			defer mu.Unlock()
			values.Codes[row], err = names.code(page.Raw(i))
			return err
		}
	case meta.Type == parquet.Float || meta.Type == parquet.Double:
		values.Floats = make([]float64, rows)
		take = func(row, i int, page *parquet.Values) error {
			values.Floats[row] = page.Float(i)
			return nil
		}
	case meta.Type == parquet.Boolean || meta.Type == parquet.Int32 || meta.Type == parquet.Int64:
		values.Ints = make([]int64, rows)
		take = func(row, i int, page *parquet.Values) error {
			number, ok := page.Int(i)
			if values.Ints[row] = number; !ok {
				return refuse(fault.Limit, "row %d has a number over 2^63-1", row)
			}
			return nil
		}
	default:
		return nil, refuse(fault.Unsupported, "holds no numbers and no strings")
	}
	values.null = make([]bool, rows)
	err := p.scan(ctx, column, func(first int, page *parquet.Values) error {
		for i := range page.Len() {
			if values.null[first+i] = page.Null(i); values.null[first+i] {
				continue
			}
			if err := take(first+i, i, page); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	names.sort()
	return values, nil
}
