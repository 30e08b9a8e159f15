package catalog

import (
	"context"
	"encoding/binary"
	"maps"
	"math"
	"slices"

	"github.com/zeebo/xxh3"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/digest"
	"github.com/chaski-eo/chaski/store/catalog/internal/columns"
)

// SameRows bounds the samples that Table.Same compares: the digests of so many take 512 MiB.
const SameRows = 1 << 24

// Same returns for each sample the first one with the same raster of a field: the one that its row names in the same
// way. Asset reads the header of such a raster once. It is nil if all samples have rasters of their own, if there are
// too many to compare, or if memory lacks for it. It must be called before the table is used by several goroutines.
func (t *Table) Same(ctx context.Context, field int) ([]uint32, error) {
	f := &t.fields[field]
	if f.kind != Raster || t.n > SameRows || t.allDiffer(f) {
		return nil, nil
	}
	var err error
	f.same, err = digest.FirstOf(ctx, t.n, func(sums []xxh3.Uint128) error { return t.sumsOf(ctx, f, sums) })
	return f.same, fault.WithFile(err, t.src)
}

// allDiffer reports whether all samples are known to have rasters of their own.
func (t *Table) allDiffer(f *fieldColumns) bool {
	switch {
	case f.rows != nil:
		return t.stores.images == nil && rising(f.rows)
	case f.cells != nil:
		return true
	case f.main.Sums != nil:
		return !f.main.Sums.Repeats
	}
	return t.Listed()
}

// rising reports whether each row comes after the one before it.
func rising(rows []int64) bool {
	for i := 1; i < len(rows); i++ {
		if rows[i] <= rows[i-1] {
			return false
		}
	}
	return true
}

// sumsOf sets a digest of what names the raster of each sample: zero for one without a name.
func (t *Table) sumsOf(ctx context.Context, f *fieldColumns, sums []xxh3.Uint128) error {
	var record []byte
	if f.cells != nil { // each row of the table has its own
		for row := range sums {
			record = binary.LittleEndian.AppendUint64(record[:0], uint64(f.tableRow(int64(row))))
			sums[row] = xxh3.Hash128(record)
		}
		return nil
	}
	parts := append([]*columns.Column{f.main}, f.blobs...)
	for _, name := range slices.Sorted(maps.Keys(f.columns)) {
		parts = append(parts, f.columns[name])
	}
	for i, part := range parts {
		picked := f.ofSamples(part)
		err := picked.Scan(ctx, func(row int64, v Value) error {
			if i == 0 && (v.Null || len(v.Text) == 0) || i > 0 && sums[row] == (xxh3.Uint128{}) {
				return nil
			}
			record = binary.LittleEndian.AppendUint64(record[:0], sums[row].Lo)
			record = binary.LittleEndian.AppendUint64(record, sums[row].Hi)
			if i == 0 && t.stores.images != nil {
				record = binary.LittleEndian.AppendUint32(record, uint32(t.stores.images[row]))
			}
			record = appendValue(record, v)
			sums[row] = xxh3.Hash128(record)
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// appendValue appends all members of a value. Its kind uses one of them.
func appendValue(to []byte, v Value) []byte {
	null := byte(0)
	if v.Null {
		null = 1
	}
	to = binary.LittleEndian.AppendUint64(append(to, null), uint64(v.Int))
	to = binary.LittleEndian.AppendUint64(to, math.Float64bits(v.Float))
	to = binary.LittleEndian.AppendUint64(append(to, v.Text...), uint64(len(v.Text)))
	for _, element := range v.List {
		to = appendValue(to, element)
	}
	return to
}
