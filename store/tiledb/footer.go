package tiledb

import (
	"context"
	"encoding/binary"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/num"
	"github.com/chaski-eo/chaski/source"
)

const footerPart = "footer"

// maxFooter bounds a footer, in bytes. Ten lists for 65,536 columns take 5 MiB.
const maxFooter = 8 << 20

// footerTail is how many bytes at the end of a metadata file are read first, if the length of the
// footer follows it. They hold the footer of some 150 columns.
const footerTail = 16 << 10

// columns returns the number of entries in each list of a footer, and in each list about variable-length data.
func (f *Fragment) columns() (all, variable uint64) {
	count := uint64(len(f.schema.Attrs))
	if !f.x.dimTypes {
		return count + 1, count
	}
	count += 1 + uint64(len(f.schema.Dims))
	if f.foot.times {
		count++
	}
	if f.foot.deletes {
		count += 2
	}
	return count, count
}

// footerSize returns the size of a footer in bytes, for formats 3 to 9 without string coordinates.
// There it follows from the numbers of attributes and dimensions.
func (f *Fragment) footerSize() int64 {
	fixed, variable := f.columns()
	size := 4 + 1 + 1 + 8 + 8 + 8*(2*fixed+3*variable) + 8
	if f.x.nullable {
		size += 8 * 2 * fixed
	}
	for _, t := range f.schema.types() {
		size += 2 * uint64(t.Size())
	}
	return int64(size)
}

// footerBytes reads the footer and returns its offset.
func (f *Fragment) footerBytes(ctx context.Context, r source.Reader) (b []byte, start int64, err error) {
	if !f.x.footerSize && !f.schema.hasText() {
		size := f.footerSize()
		if start = r.Size() - size; start < 0 {
			return nil, 0, fault.At(fault.Corrupt, footerPart, 0, "the file has %d bytes, the footer alone takes %d",
				r.Size(), size)
		}
		b = make([]byte, size)
		return b, start, r.ReadAt(ctx, b, start)
	}
	tail := min(r.Size(), footerTail)
	if tail < 8 {
		return nil, 0, fault.At(fault.Corrupt, footerPart, 0, "the file has %d bytes, a footer's length takes 8", tail)
	}
	b = make([]byte, tail)
	if err := r.ReadAt(ctx, b, r.Size()-tail); err != nil {
		return nil, 0, err
	}
	size, end := binary.LittleEndian.Uint64(b[tail-8:]), r.Size()-8
	switch {
	case size > uint64(end):
		return nil, 0, fault.At(fault.Corrupt, footerPart, end, "a footer of %d bytes in a file of %d", size, r.Size())
	case size > maxFooter:
		return nil, 0, fault.At(fault.Limit, footerPart, end, "a footer of %d bytes, at most %d", size, maxFooter)
	}
	start = end - int64(size)
	if int64(size) <= tail-8 {
		return b[tail-8-int64(size) : tail-8], start, nil
	}
	b = make([]byte, size)
	return b, start, r.ReadAt(ctx, b, start)
}

// readFooter reads the footer of a fragment.
func (a *Array) readFooter(ctx context.Context, r source.Reader, f *Fragment) (err error) {
	if !f.x.schemaName {
		// Formats before 10 have one schema, in the file schemaName.
		if f.schema, err = a.namedSchema(ctx, schemaName); err != nil {
			return err
		}
	}
	data, start, err := f.footerBytes(ctx, r)
	if err != nil {
		return err
	}
	cursor := &byteCursor{b: data, part: footerPart, base: start, x: f.x}
	// A fragment of format 4 differs from one of format 3 by this number only.
	if v := cursor.u32("version"); cursor.bad == nil && v != f.Version && (f.x.dimTypes || v != Version+1) {
		return errVersion(cursor.part, start, uint64(v))
	}
	if f.x.schemaName {
		if f.schema, err = a.schemaOf(ctx, cursor); err != nil {
			return err
		}
	}
	if err := a.match(f); err != nil {
		return err
	}
	return f.parseFooter(cursor)
}

// schemaOf returns the schema that a footer names.
func (a *Array) schemaOf(ctx context.Context, c *byteCursor) (*Schema, error) {
	start := c.off
	name := c.text("name of the schema")
	if c.bad != nil {
		return nil, c.bad
	}
	if s, err := parseName(name); name == schemaName {
		return a.namedSchema(ctx, name)
	} else if err != nil || s.version > 0 {
		return nil, c.fault(fault.Corrupt, start, "the schema is called %q", name)
	}
	return a.namedSchema(ctx, schemasDir+"/"+name)
}

// namedSchema is schema for a fragment: it takes the lock, and a missing schema is corrupt.
func (a *Array) namedSchema(ctx context.Context, name string) (*Schema, error) {
	// The lock is needed because several fragments are opened at a time.
	unlock, err := a.schemaLock.Lock(ctx, struct{}{})
	if err != nil {
		return nil, err
	}
	defer unlock()
	schema, err := a.schema(ctx, name)
	if fault.KindOf(err) == fault.NotFound {
		// A fragment without its schema is damaged: an interrupted write looks different.
		return nil, fault.New(fault.Corrupt, footerPart, "it needs the schema %s, which is missing", name)
	}
	return schema, err
}

// match finds the attributes of the array among those that the fragment was written with, and checks
// that both schemas have the same cells.
func (a *Array) match(f *Fragment) error {
	latest, schema := a.Schema, f.schema
	bad := func(format string, args ...any) error {
		return fault.New(fault.Unsupported, footerPart, format, args...)
	}
	if latest == schema {
		f.attrs = num.Range[int](0, len(latest.Attrs))
		return nil
	}
	orders := latest.CellOrder == schema.CellOrder && latest.TileOrder == schema.TileOrder
	same := latest.Dense == schema.Dense && len(latest.Dims) == len(schema.Dims) &&
		latest.Capacity == schema.Capacity && (!latest.Dense || orders)
	for d := 0; same && d < len(latest.Dims); d++ {
		same = latest.Type(d) == schema.Type(d) && latest.Dims[d].Domain == schema.Dims[d].Domain &&
			(!latest.Dense || latest.Dims[d].Extent == schema.Dims[d].Extent)
	}
	if !same {
		return bad("its schema has other dimensions or orders than the array's latest one")
	}
	byName := map[string]int{}
	for i := range schema.Attrs {
		byName[schema.Attrs[i].Name] = i
	}
	f.attrs = make([]int, len(latest.Attrs))
	for i := range latest.Attrs {
		attr := &latest.Attrs[i]
		number, ok := byName[attr.Name]
		if !ok {
			f.attrs[i] = -1
			continue
		}
		other := &schema.Attrs[number]
		if other.Type != attr.Type || other.Values != attr.Values || other.Nullable != attr.Nullable {
			return bad("attribute %s has %s of type %v in its schema, and %s of type %v in the array's latest one",
				attr.Name, other.Cells(), other.Type, attr.Cells(), attr.Type)
		}
		f.attrs[i] = number
	}
	return nil
}

// parseFooter parses the footer after the name of the schema.
func (f *Fragment) parseFooter(c *byteCursor) error {
	schema := f.schema
	flagsAt := c.off
	dense, null := c.u8("dense flag"), c.u8("null domain flag")
	if dense > 1 || null > 1 {
		c.fail(flagsAt, "dense flag %d, null domain flag %d", dense, null)
	}
	f.Dense = dense == 1
	if null == 1 && !f.x.dimTypes {
		c.fail(flagsAt+1, "it has no non-empty domain")
	}
	domainAt := c.off
	const what = "non-empty domain"
	switch types := schema.types(); {
	case null == 1:
	case f.Dense:
		f.NonEmpty = c.box(types, what)
	default:
		f.NonEmpty = c.bounds(types, what)
		for d, i := range f.NonEmpty {
			if !f.x.dimTypes && types[d].unbounded(i) {
				f.NonEmpty[d] = schema.Dims[d].Domain
			}
		}
	}
	countsAt := c.off
	tiles, last := c.u64("number of sparse tiles"), c.u64("cells of the last tile")
	f.parseLists(c)
	if err := c.end(); err != nil {
		return err
	}
	switch {
	case null == 1: // it has no cells
		return nil
	case f.Dense:
		return f.denseGrid(c, schema, domainAt, tiles, last)
	}
	return f.sparseTiles(c, schema, countsAt, tiles, last)
}

// parseLists parses the sizes of files and the offsets of the parts of the metadata.
func (f *Fragment) parseLists(c *byteCursor) {
	f.foot = footer{start: c.base}
	if f.x.times {
		f.foot.times = c.flag("whether cells have times")
	}
	if f.x.deletes {
		f.foot.deletes = c.flag("whether cells have times of deletion")
	}
	fixed, variable := f.columns()
	foot := &f.foot
	foot.sizes[tileOffsets], foot.sizes[varOffsets] = c.u64s(fixed, "file sizes"), c.u64s(variable, "var file sizes")
	if f.x.nullable {
		foot.sizes[nullOffsets] = c.u64s(fixed, "validity file sizes")
	}
	offsetsAt := c.off
	foot.rtree = c.u64("R-tree offset")
	foot.offsets[tileOffsets], foot.offsets[varOffsets] = c.u64s(fixed, "offsets"), c.u64s(variable, "offsets")
	foot.offsets[varTileSizes] = c.u64s(variable, "offsets")
	if f.x.nullable {
		foot.offsets[nullOffsets] = c.u64s(fixed, "offsets")
	}
	if f.x.summaries { // smallest and largest values, sums and counts of each column
		c.u64s(4*fixed, "offsets")
	}
	// The same of all cells. The specification has this in format 11 too, but the library does not write it there.
	if f.x.totals {
		c.u64("offset of totals")
	}
	if f.x.conditions {
		c.u64("offset of the conditions")
	}
	end := c.off
	if f.x.extensible {
		for n := c.u32("number of sections"); n > 0 && c.bad == nil; n-- {
			c.u64("kind of a section")
			c.take(uint64(c.u32("size of a section")), "section")
		}
	}
	for i := offsetsAt; i < end && c.bad == nil; i += 8 {
		if o := binary.LittleEndian.Uint64(c.b[i:]); o > uint64(c.base) {
			c.fail(i, "a part of the metadata begins at %d, after the footer at %d", o, c.base)
		}
	}
}
