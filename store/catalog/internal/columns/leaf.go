package columns

import (
	"cmp"
	"context"
	"encoding/binary"
	"math"
	"strconv"
	"time"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/column"
	"github.com/chaski-eo/chaski/format/tables"
	"github.com/chaski-eo/chaski/format/tables/paged"
	"github.com/chaski-eo/chaski/format/tables/parquet"
	"github.com/chaski-eo/chaski/format/tables/texts"
)

// leaf is a column of one Parquet file.
type leaf struct {
	*File
	number int         // among the columns of the file
	nested bool        // it may have lists in lists
	kind   column.Kind // of elements where it holds lists
	unit   uint8       // of timestamps, see parquet.Note; 0 of other values
}

// describe sets the leaf to a column of a file, and returns what it holds.
func (l *leaf) describe(f *File, name string) (*Column, error) {
	if l.File, l.number = f, f.Column(name); l.number < 0 {
		return nil, f.NoColumn(name)
	}
	out, err := l.elements(name)
	if err != nil {
		return nil, err
	}
	l.kind, out.Rows, out.Cell, out.Each = out.Kind, f.Rows, l.cellAt, l.scan
	if f.Columns[l.number].Repeated { // scanned cell by cell, as a list may go on in the next page
		out.Kind, out.Cell, out.Each = out.Kind|column.List, l.listAt, nil
	}
	return out, nil
}

// Day is the unit of dates.
const Day = 24 * time.Hour

// elements is describe of the elements of lists.
func (l *leaf) elements(name string) (*Column, error) {
	stored := &l.Columns[l.number]
	typ, fixed := tables.LeafType(stored), stored.Type == parquet.FixedLenByteArray
	unsupported := func(what string) (*Column, error) {
		return nil, fault.New(fault.Unsupported, "column "+name, "holds %s", what)
	}
	switch {
	case stored.Depth() > 1 && !l.nested:
		return unsupported("lists in lists")
	case stored.Type == parquet.Int96:
		return unsupported("INT96")
	case stored.Type == parquet.ByteArray || fixed && typ.Kind != tables.Float64:
		return &Column{Kind: column.Text, Bytes: !stored.Note.Text(), Opaque: stored.Note.Opaque() || fixed}, nil
	case stored.Note.Opaque():
		return unsupported("decimals")
	}
	kind, unit := typ.Column()
	if typ.Kind == tables.Timestamp {
		l.unit = stored.Note.Unit
	}
	return &Column{Kind: cmp.Or(kind, column.Int), Unit: unit}, nil // a column of nulls alone is of integers
}

// cellAt returns the cell in a row of the file.
func (l *leaf) cellAt(ctx context.Context, row int64) (cell column.Value, err error) {
	values, i, err := l.Value(ctx, l.number, row)
	if err == nil {
		cell, err = l.cellOf(values, i, row)
	}
	return cell, fault.WithFile(err, l.Name)
}

// listAt returns the list in a row of the file.
func (l *leaf) listAt(ctx context.Context, row int64) (column.Value, error) {
	list := []column.Value{}
	null, err := l.List(ctx, l.number, row, func(v *parquet.Values, i, _ int, _ bool) error {
		cell, err := l.cellOf(v, i, row)
		if list = append(list, cell); err == nil && len(list) > texts.MaxList {
			err = TooLong(l.part(row))
		}
		return err
	})
	if null || err != nil {
		return column.Value{Null: null}, fault.WithFile(err, l.Name)
	}
	return column.Value{List: list}, nil
}

// maxSamples bounds the numbers of an array in a cell: 16 bands of 1,024 by 1,024 pixels.
const maxSamples = 1 << 24

// samplesAt returns the numbers in the lists of a row of the file, each of them of size bytes, little-endian, and how
// long the lists are, from the outermost one on. Lists of one depth are equally long. Floats of 2 bytes become 4 bytes,
// and one that is null becomes NaN.
func (l *leaf) samplesAt(ctx context.Context, row int64, size int) (data []byte, shape []int, null bool, err error) {
	shape = make([]int, l.Columns[l.number].Depth())
	counts := make([]int, len(shape)) // elements of the lists that go on
	ends := func(level int) error {   // the lists below a level
		for k := len(shape) - 1; k >= level; k-- {
			if shape[k] == 0 {
				shape[k] = counts[k]
			}
			if shape[k] != counts[k] {
				return fault.New(fault.Unsupported, l.part(row), "lists of %d and of %d elements: an array has lists "+
					"of equal lengths", shape[k], counts[k])
			}
			counts[k] = 0
		}
		return nil
	}
	number, first := 0, true
	null, err = l.List(ctx, l.number, row, func(v *parquet.Values, i, level int, empty bool) error {
		if level == 0 && !first { // of lists in no other list
			level = 1
		}
		if !first {
			if err := ends(level); err != nil {
				return err
			}
			counts[level-1]++
		}
		for k := level; k < len(counts); k++ {
			counts[k] = 1
		}
		number, first = number+1, false
		switch isFloat := l.kind == column.Float; {
		case empty:
			return fault.New(fault.Unsupported, l.part(row), "an empty list in a list")
		case number > maxSamples:
			return fault.New(fault.Limit, l.part(row), "lists of over %d numbers", maxSamples)
		case v.Null(i) && !isFloat:
			return fault.New(fault.Unsupported, l.part(row), "sample %d of the list is null", number-1)
		case isFloat && size == 4:
			x := float32(math.NaN())
			if !v.Null(i) {
				x = float32(v.Float(i))
			}
			data = binary.LittleEndian.AppendUint32(data, math.Float32bits(x))
		case v.Null(i):
			data = binary.LittleEndian.AppendUint64(data, math.Float64bits(math.NaN()))
		default:
			data = append(data, v.Raw(i)[:size]...)
		}
		return nil
	})
	if err == nil && !null && !first {
		err = ends(0)
	}
	return data, shape, null, err
}

// cellOf returns value i as the cell of a row. Files that one program wrote may have timestamps in several units: all
// become microseconds. Of nanoseconds the part below is cut, and what 64 bits do not hold becomes the nearest that they
// hold.
func (l *leaf) cellOf(v *parquet.Values, i int, row int64) (column.Value, error) {
	if v.Null(i) {
		return column.Value{Null: true}, nil
	}
	switch l.kind {
	case column.Text:
		return column.Value{Text: v.Raw(i)}, nil
	case column.Float:
		return column.Value{Float: v.Float(i)}, nil
	}
	n, ok := v.Int(i)
	if !ok {
		return column.Value{}, fault.New(fault.Unsupported, l.part(row), "a number above the largest signed one")
	}
	if l.unit != 0 {
		n, _ = tables.Microseconds(n, l.unit)
	}
	return column.Value{Int: n}, nil
}

// part names a row for errors.
func (l *leaf) part(row int64) string {
	return "column " + l.Columns[l.number].Name + " row " + strconv.FormatInt(row, 10)
}

// scan visits the cells, page by page.
func (l *leaf) scan(ctx context.Context, visit column.Visit) error {
	return l.scanRows(ctx, paged.Scan{}, 0, visit)
}

// scanRows visits the cells of the rows of a scan, which are those from lo on.
func (l *leaf) scanRows(ctx context.Context, s paged.Scan, lo int64, visit column.Visit) error {
	err := l.Each(ctx, l.number, s, func(first int64, decode paged.Decode) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		values, err := decode(ctx)
		if err != nil {
			return err
		}
		for i := range values.Len() {
			row := max(first, lo) + int64(i)
			cell, err := l.cellOf(values, i, row)
			if err == nil {
				err = visit(row, cell)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	return fault.WithFile(err, l.Name)
}
