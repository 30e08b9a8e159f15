package vector

import (
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/tables/parquet"
)

// maxNames bounds the bytes of the different strings of a column, with nameBytes more for each, and maxName the bytes
// of one: they are classes or paths of images. A million paths of 200 bytes fit.
const (
	maxNames  = 256 << 20
	nameBytes = 64
	maxName   = 4 << 10
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
	names := &codes{v: values, of: map[string]uint32{}}
	refuse := func(k fault.Kind, format string, args ...any) error {
		return fault.New(k, "column "+name, fault.NoOffset, format, args...)
	}
	known := []parquet.NoteKind{parquet.NoNote, parquet.Integer, parquet.String}
	switch {
	case meta.Repeated || !slices.Contains(known, meta.Note.Kind):
		return nil, refuse(fault.Unsupported, "holds no numbers and no strings")
	case meta.Note.Kind == parquet.String && meta.Type == parquet.ByteArray:
		values.Codes = make([]uint32, rows)
		take = func(row, i int, page *parquet.Values) (err error) {
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
	chunks, err := p.open(ctx, column)
	if err != nil {
		return nil, err
	}
	err = p.scan(ctx, column, chunks, func(first int, page *parquet.Values) error {
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

// codes numbers the strings of a column.
type codes struct {
	mu   sync.Mutex // pages are read several at a time
	v    *Values
	of   map[string]uint32
	size int // of the strings, with nameBytes for each
}

func (c *codes) code(b []byte) (uint32, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if code, ok := c.of[string(b)]; ok {
		return code, nil
	}
	if c.size += len(b) + nameBytes; len(b) > maxName || c.size > maxNames {
		return 0, fault.New(fault.Limit, "column", fault.NoOffset,
			"it has different strings of over %d bytes, or one of over %d bytes", maxNames, maxName)
	}
	fresh := uint32(len(c.of))
	c.of[string(b)] = fresh
	c.v.Names = append(c.v.Names, string(b))
	return fresh, nil
}

// sort gives the strings numbers in their order, because the pages come in any order.
func (c *codes) sort() {
	sorted := slices.Sorted(maps.Keys(c.of))
	numbers := make([]uint32, len(sorted))
	for number, name := range sorted {
		numbers[c.of[name]] = uint32(number)
	}
	for i, code := range c.v.Codes {
		if !c.v.null[i] {
			c.v.Codes[i] = numbers[code]
		}
	}
	c.v.Names = sorted
}
