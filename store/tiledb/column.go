package tiledb

import (
	"context"
	"errors"
	"iter"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/internal/ahead"
)

// columnPart is what is read of a column: its values or, of an attribute, whether cells have one (nullOffsets).
type columnPart struct {
	column int // of the array: its attributes, the coordinates, each dimension, and the times of cells
	kind   listKind
	size   int    // bytes of a cell, 0 if cells differ in size
	fill   []byte // of cells that were never written
}

// values is the part of an attribute with the values of its cells.
func (a *Attr) values(attr int) columnPart {
	if a.Var() {
		return columnPart{attr, tileOffsets, 0, a.FillValue()}
	}
	return columnPart{attr, tileOffsets, a.CellSize(), a.FillValue()}
}

// validity is the part of an attribute that says which cells have a value: one byte each, 0 or 1.
func (a *Attr) validity(attr int) columnPart {
	fill := []byte{0}
	if a.FillValid {
		fill[0] = 1
	}
	return columnPart{attr, nullOffsets, 1, fill}
}

// coordParts are the parts of the coordinates of a sparse fragment: formats 3 and 4 have one file for all of them,
// later ones have one for each dimension, and one for the times of cells if these matter.
func (f *Fragment) coordParts(s *Schema) (parts []columnPart) {
	if !f.x.dimTypes {
		return []columnPart{{column: len(s.Attrs), size: len(s.Dims) * s.DimType.Size()}}
	}
	for d, typ := range s.types() {
		part := columnPart{column: len(s.Attrs) + 1 + d, size: typ.Size()}
		if typ == StringASCII {
			part.size = 0
		}
		parts = append(parts, part)
	}
	if f.foot.times {
		parts = append(parts, columnPart{column: len(s.Attrs) + 1 + len(s.Dims), size: Uint64.Size()})
	}
	return parts
}

// which returns the first of the files of a reader that have a part. They differ, so images that share a tile
// decode it once: values and their variable-length data, or validity instead of these, then two of each dimension.
func (p *columnPart) which(s *Schema) int {
	switch {
	case p.kind == nullOffsets:
		return 1
	case p.column <= len(s.Attrs):
		return 0
	}
	return which(p.column - len(s.Attrs) - 1)
}

// openColumn is an open column of a fragment.
type openColumn struct {
	r     *Reader
	f     *Fragment
	which int // its first file
	size  int // bytes of a cell, 0 if cells differ in size
	columnStorage
	sizes      []uint64 // decoded bytes of each tile of variable-length data
	wholeTiles bool     // tiles are decoded whole, and kept for other boxes
}

// tileData is a decoded tile of a column.
type tileData struct {
	size int // bytes of a cell; 0 if cells differ in size
	data []byte
	offs []byte // of the cells of variable length
	end  uint64 // of the data
}

// span returns where the data of a cell of variable length lies.
func (t *tileData) span(row int) (lo, hi uint64) {
	return u64(t.offs, row), cellEnd(t.offs, row, t.end)
}

// at returns a cell.
func (t *tileData) at(row int) []byte {
	if t.size > 0 {
		return t.data[row*t.size : (row+1)*t.size]
	}
	lo, hi := t.span(row)
	if lo == hi { // the data of a tile of empty strings is not decoded
		return nil
	}
	return t.data[lo:hi]
}

// column opens a part of a column in a fragment, which must have it.
func (r *Reader) column(ctx context.Context, f *Fragment, p columnPart) (*openColumn, error) {
	schema := r.a.Schema
	opened := &openColumn{r: r, f: f, which: p.which(schema), size: p.size, columnStorage: f.stored(schema, p.column),
		wholeTiles: schema.Dense && !f.Dense}
	if p.kind == nullOffsets {
		opened.t, opened.p, opened.e = Uint8, f.schema.Validity, Uint8.elem(1)
	}
	if p.size > 0 {
		return opened, r.open(ctx, opened.which, f, &opened.columnStorage, p.kind)
	}
	var err error
	if opened.sizes, err = r.a.list(ctx, f, varTileSizes, &opened.columnStorage); err != nil {
		return nil, err
	}
	if opened.together {
		r.file[opened.which] = tileFile{uri: f.file(opened.stem, varOffsets)}
		r.file[opened.which].offsets, err = r.a.list(ctx, f, varOffsets, &opened.columnStorage)
	} else {
		err = r.open(ctx, opened.which, f, &opened.columnStorage, tileOffsets)
	}
	if err != nil {
		return nil, err
	}
	if err := r.open(ctx, opened.which+1, f, &opened.columnStorage, varOffsets); err != nil {
		return nil, errors.Join(err, r.file[opened.which].close())
	}
	return opened, nil
}

func (c *openColumn) close() error {
	err := c.r.file[c.which].close()
	if c.size == 0 {
		err = errors.Join(err, c.r.file[c.which+1].close())
	}
	return err
}

// expect says which tiles will be read, in ascending order, if that is not known yet.
func (c *openColumn) expect(tiles iter.Seq[int64]) {
	files := c.r.file[c.which : c.which+1]
	if c.size == 0 {
		files = c.r.file[c.which : c.which+2]
	}
	limit := c.r.ahead.limit
	if !source.IsRemote(c.f.uri) {
		limit = min(limit, ahead.MaxLocalRun)
	}
	for k := range files {
		file := &files[k]
		if file.ranges == nil || file.ranges.Known() { // nil for offsets that are with the strings
			continue
		}
		for tile := range tiles {
			file.ranges.Expect(file.place(tile), c.f.gap, limit)
		}
	}
}

// fault adds the tile and the file to an error.
func (c *openColumn) fault(tile int64, err error) error { return c.r.file[c.which].fault(tile, err) }

// tile decodes cells first to last of a tile. In a dry run the result is empty.
func (c *openColumn) tile(ctx context.Context, tile int64, first, last int) (tileData, error) {
	if c.size == 0 {
		return c.varTile(ctx, tile, first, last)
	}
	reader := c.r
	count := c.f.cells(reader.a.Schema, tile)
	if count > uint64(reader.a.o.MaxTile)/uint64(c.size) {
		return tileData{}, c.fault(tile, fault.At(fault.Limit, "", 0, "%d cells of %d bytes, at most %d bytes", count,
			c.size, reader.a.o.MaxTile))
	}
	size := count * uint64(c.size)
	decoded := tileData{size: c.size, end: size}
	var err error
	if c.wholeTiles {
		decoded.data, err = reader.decodeKept(ctx, c.which, tile, size, &c.columnStorage)
	} else {
		decoded.data, err = reader.decode(ctx, c.which, tile, size, &c.columnStorage, first*c.size, (last+1)*c.size)
	}
	return decoded, err
}

// varTile decodes the offsets of cells [first, last] of a tile, and their data, which is in the second file.
func (c *openColumn) varTile(ctx context.Context, tile int64, first, last int) (tileData, error) {
	reader := c.r
	count := c.f.cells(reader.a.Schema, tile)
	if count > uint64(reader.a.o.MaxTile)/8 {
		return tileData{}, c.fault(tile, fault.At(fault.Limit, "", 0, "%d cells", count))
	}
	decoded := tileData{end: c.sizes[tile]}
	if c.together {
		err := c.stringTile(ctx, &decoded, tile, count)
		if err == nil && reader.dry == nil {
			err = c.checkOffsets(&decoded, tile, first, last)
		}
		return decoded, err
	}
	offsets := columnStorage{p: c.f.schema.Offsets, e: Uint64.elem(1)}
	var err error
	end := min(8*(last+2), int(8*count))
	if decoded.offs, err = reader.decode(ctx, c.which, tile, 8*count, &offsets, 8*first, end); err != nil {
		return decoded, err
	}
	lo, hi := uint64(0), decoded.end
	if reader.dry == nil {
		if err := c.checkOffsets(&decoded, tile, first, last); err != nil {
			return decoded, err
		}
		lo = u64(decoded.offs, first)
		_, hi = decoded.span(last)
	}
	// Otherwise the cells are empty, and no data is read.
	if lo < hi {
		decoded.data, err = reader.decode(ctx, c.which+1, tile, decoded.end, &c.columnStorage, int(lo), int(hi))
	}
	return decoded, err
}

func (c *openColumn) checkOffsets(t *tileData, tile int64, first, last int) error {
	if err := checkOffsets(t.offs, first, last, c.t.Size(), t.end); err != nil {
		return c.fault(tile, err)
	}
	return nil
}

// stringTile decodes a tile of n strings that has their offsets too.
func (c *openColumn) stringTile(ctx context.Context, t *tileData, tile int64, n uint64) error {
	reader, second := c.r, c.which+1
	if reader.holds(c.which, tile, 0, int(8*n)) && reader.holds(second, tile, 0, int(t.end)) {
		t.offs, t.data = reader.tile[c.which], reader.tile[second]
		return nil
	}
	file := &reader.file[second]
	src, err := reader.stored(ctx, second, tile)
	if err != nil {
		return err
	}
	if reader.dry == nil {
		// The number of cells follows from the schema, but a run may stand for many cells.
		if err := reader.checkSize(src, t.end); err != nil {
			return file.fault(tile, err)
		}
		t.offs, t.data = reader.room(c.which, int(8*n)), reader.room(second, int(t.end))
		if reader.Turn != nil {
			defer reader.Turn()()
		}
		if err := reader.dec.Strings(t.data, t.offs, src, c.p, c.e); err != nil {
			return file.fault(tile, err)
		}
	}
	reader.decoded[c.which] = decodedRange{file.uri, tile, 0, int(8 * n)}
	reader.decoded[second] = decodedRange{file.uri, tile, 0, int(t.end)}
	reader.dry.decoded(t.end, &reader.ahead)
	return nil
}
