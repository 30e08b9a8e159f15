package parquet

import (
	"context"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/source"
)

// Bounds are the least and the greatest value of a row group or page that its writer recorded, in PLAIN encoding, byte
// arrays without their length. Writers ignore NaN.
type Bounds struct {
	Min, Max []byte // nil where they are not known
	Nulls    int64  // -1: not known
}

// Bounds returns the footer's bounds of a column in a row group.
func (f *File) Bounds(group, column int) Bounds {
	bounds := Bounds{Nulls: -1}
	part := &f.Groups[group].chunks[column]
	if part.stats == 0 {
		return bounds
	}
	parser := thrift{b: f.footer, at: int(part.stats), base: f.base, part: "statistics"}
	parser.fields(nil, nil, &bounds.Nulls, nil, &bounds.Max, &bounds.Min)
	// Bounds only save work, so wrong ones are no error.
	if parser.err != nil || bounds.Nulls < -1 {
		return Bounds{Nulls: -1}
	}
	return bounds
}

// HasPageBounds reports whether a column has a column index.
func (f *File) HasPageBounds(group, column int) bool {
	return f.Groups[group].chunks[column].boundsOff > 0
}

// Stored returns the bytes that a column takes in a row group, in the file.
func (f *File) Stored(group, column int) int64 {
	c := &f.Groups[group].chunks[column]
	return c.end - c.start
}

// PageBounds returns the bounds of each page from the column index, or nil if it is missing or does not match the
// pages: bounds only save work. A page without any value has Nulls equal to its rows.
func (f *File) PageBounds(ctx context.Context, group, column int, p *Pages) ([]Bounds, error) {
	part := &f.Groups[group].chunks[column]
	if part.boundsOff == 0 {
		return nil, nil
	}
	data, err := source.Read(ctx, f.r, part.boundsOff, int64(part.boundsLen)) // lies within the file, see columnChunk
	if err != nil {
		return nil, err
	}
	out, empty := columnIndex(thrift{b: data, base: part.boundsOff, part: "column index"}, len(p.Pages))
	for i := range out {
		if empty[i] {
			out[i] = Bounds{Nulls: int64(p.Rows(i))}
		}
	}
	return out, nil
}

// columnIndex reads the ColumnIndex of n pages, and which of them have no value. It returns nil if it does not match.
func columnIndex(t thrift, n int) (out []Bounds, empty []bool) {
	out, empty = make([]Bounds, n), make([]bool, n)
	for i := range out {
		out[i].Nulls = -1
	}
	mins, maxs, nulls, empties := 0, 0, 0, 0
	// values returns a function that sets the next page's value, and counts in k.
	values := func(k *int, set func(i int)) func() {
		*k = 0
		return func() {
			if *k < n {
				set(*k)
			} else {
				t.skipValue(tBinary)
			}
			*k++
		}
	}
	t.structure(func(id int, typ byte) {
		switch {
		case id == 1 && typ == tList:
			m, _ := t.listHead()
			for ; m > 0 && t.err == nil; m-- {
				if x := t.u8(); empties < n {
					empty[empties] = x == 1
				}
				empties++
			}
		case id == 2 && typ == tList:
			t.list(tBinary, values(&mins, func(i int) { out[i].Min = t.binary() }))
		case id == 3 && typ == tList:
			t.list(tBinary, values(&maxs, func(i int) { out[i].Max = t.binary() }))
		case id == 5 && typ == tList:
			t.list(tI64, func() {
				if x := t.i64(); nulls < n {
					out[nulls].Nulls = x
				}
				nulls++
			})
		default:
			t.skip(typ)
		}
	})
	if t.err != nil || mins != n || maxs != n || empties != n {
		return nil, nil
	}
	return out, empty
}

// readable refuses columns that cannot be read.
func (f *File) readable(c *columnChunk, col *Column) error {
	if c.foreign {
		return fault.New(fault.Unsupported, "column "+col.Name, "is encrypted or lies in another file")
	}
	return nil
}

// Buffered returns the file with the bytes of a column chunk read into memory in one request. If they are more than
// limit it returns the file itself.
func (f *File) Buffered(ctx context.Context, group, column int, limit int64) (*File, error) {
	part := &f.Groups[group].chunks[column]
	if part.foreign || part.end-part.start > limit || part.end == part.start {
		return f, nil
	}
	data, err := source.Read(ctx, f.r, part.start, part.end-part.start)
	if err != nil {
		return nil, err
	}
	inMemory := *f
	inMemory.r = &buffered{Reader: f.r, b: data, off: part.start}
	return &inMemory, nil
}

// buffered is a reader with a byte range in memory.
type buffered struct {
	source.Reader
	b   []byte
	off int64
}

// bytes returns n bytes of the file, which the caller must not change: they may be shared.
func (f *File) bytes(ctx context.Context, off, n int64) ([]byte, error) {
	if r, ok := f.r.(*buffered); ok {
		if b := r.within(off, n); b != nil {
			return b, nil
		}
	}
	return source.Read(ctx, f.r, off, n)
}

// within returns n bytes if they are in memory, else nil.
func (r *buffered) within(off, n int64) []byte {
	if pos := off - r.off; pos >= 0 && pos <= int64(len(r.b)) && n <= int64(len(r.b))-pos {
		return r.b[pos : pos+n : pos+n]
	}
	return nil
}

func (r *buffered) ReadAt(ctx context.Context, p []byte, off int64) error {
	if b := r.within(off, int64(len(p))); b != nil {
		copy(p, b)
		return nil
	}
	return r.Reader.ReadAt(ctx, p, off)
}
