package rows

import (
	"context"
	"encoding/binary"
	"slices"

	"github.com/zeebo/xxh3"

	"github.com/chaski-eo/chaski/internal/budget"
	"github.com/chaski-eo/chaski/internal/digest"
	"github.com/chaski-eo/chaski/store/catalog"
)

// alike is what some Values can do: it returns for each row the first one that has the same raster of a field, nil if
// no rows are known to.
type alike interface {
	Same(ctx context.Context, field int) ([]uint32, error)
}

// NoteSame finds out which rows have the same raster of a field, for Field.Same. It must be called before the table is
// used by several goroutines.
func (t *Table) NoteSame(ctx context.Context) (err error) {
	for i := range t.Fields {
		if f := &t.Fields[i]; f.Kind == catalog.Raster && err == nil {
			f.same, err = f.sameRows(ctx)
		}
	}
	return err
}

// Same returns the first row that has the same raster as a row, as far as NoteSame has found out: mostly the row
// itself.
func (f *Field) Same(row int64) int64 {
	if f.same == nil {
		return row
	}
	return int64(f.same[row])
}

// Repeats reports whether some rows are known to have the same raster.
func (f *Field) Repeats() bool { return f.same != nil }

func (f *Field) sameRows(ctx context.Context) ([]uint32, error) {
	ofRow := func(change assetChange) bool { _, ok := change.(*linears); return ok }
	if s, ok := f.values.(alike); ok && !slices.ContainsFunc(f.changes, ofRow) {
		return s.Same(ctx, f.number)
	}
	return nil, nil
}

// Same implements alike: stacks are the same whose parts are.
func (s *stacked) Same(ctx context.Context, _ int) (first []uint32, err error) {
	parts := make([][]uint32, len(s.parts))
	for k := range parts {
		if parts[k], err = s.parts[k].sameRows(ctx); parts[k] == nil || err != nil {
			return nil, err
		}
	}
	return digest.FirstOf(ctx, int64(len(parts[0])), func(sums []xxh3.Uint128) error {
		for _, same := range parts {
			for row, before := range same {
				var record [20]byte
				binary.LittleEndian.PutUint64(record[:], sums[row].Lo)
				binary.LittleEndian.PutUint64(record[8:], sums[row].Hi)
				binary.LittleEndian.PutUint32(record[16:], before)
				sums[row] = xxh3.Hash128(record[:])
			}
		}
		return nil
	})
}

// Same implements alike: samples have the same raster whose rows of the table have.
func (s *side) Same(ctx context.Context, field int) ([]uint32, error) {
	below, err := s.table.Fields[field].sameRows(ctx)
	account, kept, while := budget.Of(ctx), 4*int64(len(s.row)), 4*s.table.N
	if err != nil || !account.TryGrow(kept+while) {
		return nil, err
	}
	defer account.Shrink(while)
	same, repeats := make([]uint32, len(s.row)), false
	begins := make([]uint32, s.table.N) // the first sample of each row of the table, counted from 1
	for i, from := range s.row {
		same[i] = uint32(i)
		if from < 0 {
			continue
		}
		at := uint32(from)
		if below != nil {
			at = below[from]
		}
		if begins[at] > 0 {
			same[i], repeats = begins[at]-1, true
		} else {
			begins[at] = uint32(i) + 1
		}
	}
	if !repeats {
		account.Shrink(kept)
		return nil, nil
	}
	return same, nil
}

// Same implements alike.
func (d *grouped) Same(ctx context.Context, field int) ([]uint32, error) {
	if d.from[field] < 0 {
		return nil, nil
	}
	return d.paths.Same(ctx, d.from[field])
}

// Same implements alike: an array without an axis n is the raster of all rows.
func (d *arrays) Same(ctx context.Context, field int) ([]uint32, error) {
	f := &d.fields[field]
	if f.raster == nil || !f.every || d.n < 2 || d.n > catalog.SameRows || !budget.Of(ctx).TryGrow(4*d.n) {
		return nil, nil
	}
	return make([]uint32, d.n), nil
}
