package tables

import (
	"context"
	"encoding/binary"
	"math"
	"slices"

	"github.com/chaski-eo/chaski/format/tables/paged"
	"github.com/chaski-eo/chaski/format/tables/parquet"
)

// Range bounds the values of a column: from Lo to Hi, both included. A bound is nil where the range is open, else an
// int64 (dates, timestamps in their units, signed integers of up to 64 bits and unsigned ones of up to 32), a float64
// or a string.
type Range struct {
	Column int
	Lo, Hi any
}

// Prune returns the part of the table that may hold rows inside the ranges, judged by the statistics of row groups and
// pages in the file, and the numbers of these rows in t. If nothing can be left out, or the columns of the ranges are
// already in memory, it returns t itself and nil. Rows inside a range are never null or NaN in its column.
func (t *Table) Prune(ctx context.Context, ranges []Range) (*Table, []int, error) {
	pages := t.pages
	onDisk := func(r Range) bool { return t.inMemory(r.Column) == nil }
	if pages == nil || pages.keep != nil || !slices.ContainsFunc(ranges, onDisk) {
		return t, nil, nil
	}
	keep := paged.Spans{}
	for number := range pages.f.Groups {
		group := &pages.f.Groups[number]
		spans := paged.Spans{{Lo: group.First, Hi: group.First + group.Rows}}
		for _, r := range ranges {
			var err error
			if spans, err = pages.within(ctx, number, r, spans); err != nil {
				return nil, nil, err
			}
		}
		for _, span := range spans {
			if n := len(keep); n > 0 && keep[n-1].Hi == span.Lo {
				keep[n-1].Hi = span.Hi
			} else if span.Lo < span.Hi {
				keep = append(keep, span)
			}
		}
	}
	rows := keep.Rows()
	if len(rows) == t.n {
		return t, nil, nil
	}
	pruned := *pages
	pruned.keep = keep
	out := New(len(rows), t.cols, pruned.column)
	out.pages = &pruned
	return out, rows, nil
}

// within narrows the rows of a row group to those that may lie in a range.
func (p *parquetTable) within(ctx context.Context, g int, r Range, in paged.Spans) (paged.Spans, error) {
	field := &p.f.Fields[r.Column]
	if field.Leaf < 0 || field.Repeated || len(in) == 0 {
		return in, nil
	}
	group := &p.f.Groups[g]
	if !p.mayHold(field.Leaf, p.f.Bounds(g, field.Leaf), group.Rows, r) {
		return nil, nil
	}
	if !p.f.HasPageBounds(g, field.Leaf) {
		return in, nil
	}
	pages, err := p.f.Pages(ctx, g, field.Leaf)
	if err != nil {
		return nil, err
	}
	bounds, err := p.f.PageBounds(ctx, g, field.Leaf, pages)
	if err != nil || bounds == nil {
		return in, err
	}
	var out paged.Spans
	pos := 0
	for i := range pages.Pages {
		lo := group.First + pages.Pages[i].First
		hi := lo + int64(pages.Rows(i))
		if !p.mayHold(field.Leaf, bounds[i], hi-lo, r) {
			continue
		}
		for pos < len(in) && in[pos].Hi <= lo {
			pos++
		}
		for k := pos; k < len(in) && in[k].Lo < hi; k++ {
			out = append(out, paged.Span{Lo: max(lo, in[k].Lo), Hi: min(hi, in[k].Hi)})
		}
	}
	return out, nil
}

// mayHold reports whether values with the bounds b may lie in a range.
func (p *parquetTable) mayHold(leaf int, b parquet.Bounds, rows int64, r Range) bool {
	// Nulls lie outside of every range, so a page of nulls holds no row of it.
	if b.Nulls >= rows {
		return false
	}
	column := &p.f.Columns[leaf]
	if lo, ok := decodeBound(column, b.Min); ok && r.Hi != nil && above(lo, r.Hi) {
		return false
	}
	hi, ok := decodeBound(column, b.Max)
	return !ok || r.Lo == nil || !above(r.Lo, hi)
}

// decodeBound converts a bound of the file to the form of Range.
func decodeBound(c *parquet.Column, b []byte) (any, bool) {
	if b == nil {
		return nil, false
	}
	switch typ := leafType(c); typ.Kind {
	case String:
		return string(b), true
	case Float64:
		switch len(b) {
		case 4:
			f := float64(math.Float32frombits(binary.LittleEndian.Uint32(b)))
			return f, f == f
		case 8:
			f := math.Float64frombits(binary.LittleEndian.Uint64(b))
			return f, f == f && typ.Bits == 64
		}
	case Int64, Uint64, Date, Timestamp:
		var x int64
		switch {
		case len(b) == 4 && typ.Kind == Uint64:
			x = int64(binary.LittleEndian.Uint32(b))
		case len(b) == 4:
			x = int64(int32(binary.LittleEndian.Uint32(b)))
		case len(b) == 8 && (typ.Kind != Uint64 || typ.Bits < 64):
			x = int64(binary.LittleEndian.Uint64(b))
		default:
			return nil, false
		}
		if typ.Kind == Timestamp {
			return Microseconds(x, c.Note.Unit)
		}
		return x, true
	}
	return nil, false
}

// Microseconds converts a time from units of 10^-unit seconds to microseconds, rounded down. Where they overflow, it
// returns the nearest that do not, and false.
func Microseconds(x int64, unit uint8) (us int64, ok bool) {
	switch unit {
	case 3:
		us = min(max(x, math.MinInt64/1000), math.MaxInt64/1000)
		return us * 1000, us == x
	case 6:
		return x, true
	case 9:
		if x%1000 < 0 {
			return x/1000 - 1, true
		}
		return x / 1000, true
	}
	return 0, false
}

// above reports whether a > b. It reports false if their types differ.
func above(a, b any) bool {
	switch x := a.(type) {
	case int64:
		y, ok := b.(int64)
		return ok && x > y
	case float64:
		y, ok := b.(float64)
		return ok && x > y
	case string:
		y, ok := b.(string)
		return ok && x > y
	}
	return false
}
