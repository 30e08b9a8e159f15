package parquet

import (
	"context"
	"math/bits"

	"github.com/chaski-eo/chaski/fault"
)

// Levels are the repetition and definition levels of a page, one pair for each value or missing value. Either is nil if
// the column has no levels of that sort.
type Levels struct {
	Rep, Def []uint32
}

// Nested decodes the pages of a column in a row group, in order, and calls visit with their levels and values. It
// passes only values that exist, never null. No level exceeds the schema's. An error of visit ends it and is returned.
func (f *File) Nested(ctx context.Context, group, column int, visit func(n int, l Levels, v *Values) error) error {
	rowGroup, part, col := &f.Groups[group], &f.Groups[group].chunks[column], &f.Columns[column]
	if err := f.readable(part, col); err != nil {
		return err
	}
	if rowGroup.Rows == 0 {
		return nil
	}
	return fault.WithPart(f.nested(ctx, rowGroup, part, col, visit), "column "+col.Name, 0)
}

func (f *File) nested(ctx context.Context, g *Group, c *columnChunk, col *Column,
	visit func(int, Levels, *Values) error) error {
	var dict *Values
	rows := int64(0)
	for pos := c.start; pos < c.end; {
		if err := ctx.Err(); err != nil {
			return err
		}
		header, data, err := f.load(ctx, Page{Off: pos}, c.end)
		if err != nil {
			return err
		}
		switch header.kind {
		case dictionaryPage:
			if dict != nil {
				return fault.At(fault.Corrupt, "page header", pos, "a second dictionary")
			}
			dict, err = f.dictionary(ctx, Page{Off: pos}, c, col)
		case dataPage, dataPageV2:
			var begun int64
			begun, err = header.nested(data, pos, c, col, dict, visit)
			if rows += begun; rows > g.Rows {
				return fault.At(fault.Corrupt, "page header", pos, "more rows than the %d of the row group", g.Rows)
			}
		}
		if err != nil {
			return err
		}
		pos += int64(header.head) + int64(header.stored)
	}
	if rows != g.Rows {
		return fault.At(fault.Corrupt, "column chunk", c.start, "%d rows of %d", rows, g.Rows)
	}
	return nil
}

// nested decodes one data page and returns how many rows begin in it.
func (h *pageHeader) nested(b []byte, at int64, c *columnChunk, col *Column, dict *Values,
	visit func(int, Levels, *Values) error) (int64, error) {
	levels, data, err := h.readLevels(b, c, col)
	if err != nil {
		return 0, fault.WithPart(err, "", at)
	}
	count := int(h.values)
	if levels.Def != nil {
		count = 0
		for _, d := range levels.Def {
			if int(d) == col.defLevel {
				count++
			}
		}
	}
	values := newValues(col, count)
	if err := values.decode(data, count, h.encoding, dict); err != nil {
		return 0, fault.WithPart(err, "", at)
	}
	return levels.rows(int(h.values)), visit(int(h.values), levels, values)
}

// rows returns how many rows begin in a page of n values or missing values.
func (l Levels) rows(n int) int64 {
	rows := int64(n)
	for _, r := range l.Rep {
		if r > 0 {
			rows--
		}
	}
	return rows
}

// readLevels returns the levels of a data page, and its values as they are encoded, decompressed.
func (h *pageHeader) readLevels(stored []byte, c *columnChunk, col *Column) (l Levels, data []byte, err error) {
	rep, def, data, err := h.splitLevels(stored, c.codec, col.repLevel > 0, col.defLevel > 0)
	if err == nil {
		l.Rep, err = levels(rep, col.repLevel, int(h.values), h.repEncoding)
	}
	if err == nil {
		l.Def, err = levels(def, col.defLevel, int(h.values), h.defEncoding)
	}
	return l, data, err
}

// levels decodes n levels of at most limit. It returns nil if limit is 0.
func levels(b []byte, limit, n int, encoding int32) ([]uint32, error) {
	if limit == 0 {
		return nil, nil
	}
	if encoding != encRLE {
		return nil, fault.At(fault.Unsupported, "page", 0, "levels in encoding %d", encoding)
	}
	out, err := hybrid(b, bits.Len(uint(limit)), n)
	for _, level := range out {
		if int(level) > limit {
			return nil, corrupt("level %d, at most %d", level, limit)
		}
	}
	return out, err
}

// splitLevels returns the levels of a data page, without the length before them, and its values, decompressed. Version
// 2 stores levels uncompressed.
func (h *pageHeader) splitLevels(b []byte, codec int32, repeated, nullable bool) (rep, def, data []byte, err error) {
	if h.kind == dataPageV2 {
		cut := int(h.repLen + h.defLen)
		rep, def, data = b[:h.repLen], b[h.repLen:cut], b[cut:]
		if h.plain {
			codec = codecNone
		}
		data, err = decompress(codec, data, int(h.size)-cut)
		return rep, def, data, err
	}
	if data, err = decompress(codec, b, int(h.size)); err != nil {
		return nil, nil, nil, err
	}
	part := func(found bool) (levels []byte) {
		switch {
		case !found || err != nil:
			return nil
		case len(data) < 4:
			err = corrupt("the page is too short for its levels")
			return nil
		case uint64(le32(data)) > uint64(len(data)-4):
			err = corrupt("levels of %d bytes in a page of %d", le32(data), len(data))
			return nil
		}
		n := 4 + int(le32(data))
		levels, data = data[4:n], data[n:]
		return levels
	}
	rep = part(repeated)
	def = part(nullable)
	return rep, def, data, err
}
