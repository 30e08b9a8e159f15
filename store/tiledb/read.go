package tiledb

import (
	"context"
	"slices"
	"strconv"

	"github.com/chaski-eo/chaski/chunk"
	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/tiledb/filter"
)

// Reader reads cells of an array. It reuses its memory from read to read and is not safe for
// concurrent use: each worker has its own.
type Reader struct {
	// Turn, if it is not nil, is called between reading the bytes of a tile and decoding them, and
	// the function that it returns after decoding. It limits the number of readers that decode at a
	// time to fewer than read at a time.
	Turn func() (done func())

	a       *Array
	dec     *filter.Decoder
	file    []tileFile     // of an attribute, of its variable-length data, and two of each dimension: see which
	tile    [][]byte       // decoded tiles of these files
	decoded []decodedRange // what tile holds
	valid   []byte         // of DenseInto: whether cells have values

	cells tileCells // of a sparse fragment
	ahead readAhead
}

// Ahead announces the boxes of one attribute of a dense array that will be read next. The caller
// then calls DenseInto once for each box, in the order of the announcement, which must be the order of
// the array's tiles. Tiles that are close to each other in a file are fetched with one read, and
// tiles of sparse fragments that several boxes need are decoded once. Boxes that were not announced
// are read correctly too, with more reads. Calling Ahead without boxes ends the announcement.
func (r *Reader) Ahead(ctx context.Context, attr int, boxes []Box) error {
	return fault.WithFile(r.ahead.announce(ctx, r.a, attr, boxes), r.a.uri)
}

// NewReader returns a reader for one worker.
func (a *Array) NewReader() *Reader {
	n := which(len(a.Schema.Dims)) + 2
	return &Reader{a: a, dec: filter.NewDecoder(a.key), file: make([]tileFile, n), tile: make([][]byte, n),
		decoded: make([]decodedRange, n)}
}

// which returns the first of the two files of dimension d among the files of a reader; the number of
// dimensions stands for the times of cells.
func which(d int) int { return 2 + 2*d }

// decodedRange is the decoded byte range of a tile, so that images that share a tile decode it once.
type decodedRange struct {
	uri    string
	tile   int64
	lo, hi int
}

// smallFile is the size up to which a remote file is read as a whole when it is opened. Above it,
// passing the known size to the opener saves a request; below it, the request that learns the size
// returns all bytes.
const smallFile = 64 << 10

// tileFile is an open file of tiles.
type tileFile struct {
	uri     string
	r       source.Reader
	offsets []uint64
	size    uint64
	gap     uint64 // reading this many unneeded bytes is cheaper than another request
	local   bool
	slot    *slot // stored bytes of some of its tiles
}

// open opens a file of a column in a fragment: see Fragment.at.
func (r *Reader) open(ctx context.Context, which int, f *Fragment, column int, kind list) (*tileFile, error) {
	file := &r.file[which]
	size := f.size(column, kind)
	offsets, err := r.a.list(ctx, f, kind, column)
	if err != nil {
		return nil, err
	}
	uri := f.file(r.a.Schema, column, kind)
	known := source.Known{}
	if size > smallFile {
		known.Size = int64(size) // so that opening a remote file takes no request
	}
	src, err := source.OpenKnown(ctx, r.a.store, uri, known)
	if err != nil {
		return nil, fault.WithFile(err, uri)
	}
	if uint64(src.Size()) < size {
		src.Close()
		return nil, fault.WithFile(fault.New(fault.Corrupt, "file", src.Size(),
			"the file has %d bytes, the fragment's metadata says %d", src.Size(), size), uri)
	}
	*file = tileFile{uri: uri, r: src, offsets: offsets, size: size, gap: f.gap, local: f.local(),
		slot: r.ahead.slot(uri)}
	return file, nil
}

// size returns the bytes of a file of a column.
func (f *Fragment) size(column int, kind list) uint64 {
	pos := f.at(column)
	switch kind {
	case varOffsets:
		return f.foot.varSizes[pos]
	case nullOffsets:
		return f.foot.nullSizes[pos]
	}
	return f.foot.sizes[pos]
}

func (t *tileFile) close() error {
	if t.r == nil { // a file of offsets that are with the data
		return nil
	}
	return t.r.Close()
}

// end returns the offset at which a tile ends.
func (t *tileFile) end(tile int64) uint64 {
	if tile+1 < int64(len(t.offsets)) {
		return t.offsets[tile+1]
	}
	return t.size
}

// batch returns how many bytes to read at once from the beginning of a tile: up to the end of the
// last needed tile after it that fits into limit without a gap worth skipping.
func (t *tileFile) batch(tile int64, next nextTiles, limit uint64) uint64 {
	if t.local {
		limit = min(limit, maxLocal)
	}
	join := chunk.Join{Span: t.place(tile), MaxGap: int64(t.gap), MaxLen: int64(limit)}
	if next.list == nil {
		for tile < next.last && join.Take(t.place(tile+1)) {
			tile++
		}
		return uint64(join.Span.Len)
	}
	for _, tile := range next.list {
		if !join.Take(t.place(tile)) {
			break
		}
	}
	return uint64(join.Span.Len)
}

// place returns where a tile lies in the file.
func (t *tileFile) place(tile int64) chunk.Range {
	return chunk.Range{Off: int64(t.offsets[tile]), Len: int64(t.end(tile) - t.offsets[tile])}
}

// inMemory reports whether the stored bytes of a tile are in memory. If not, it assigns memory to
// them and to the tiles that will be read with it.
func (t *tileFile) inMemory(h *readAhead, tile int64, next nextTiles) bool {
	lo, hi, slot := t.offsets[tile], t.end(tile), t.slot.assign(t.uri)
	if lo >= slot.from && hi <= slot.from+slot.n {
		return true
	}
	slot.from, slot.n = lo, t.batch(tile, next, h.limit)
	if slot.n > h.limit {
		h.releaseOthers(slot)
	}
	return false
}

// stored returns the stored bytes of a tile. The tiles that are needed next are read with it if
// they are close.
func (t *tileFile) stored(ctx context.Context, h *readAhead, tile int64, next nextTiles) ([]byte, error) {
	slot := t.slot
	if !t.inMemory(h, tile, next) {
		// the footer was checked against the file: this is at most the file's size
		slot.buf = slices.Grow(slot.buf[:0], int(slot.n))[:slot.n]
		if err := t.r.ReadAt(ctx, slot.buf, int64(slot.from)); err != nil {
			slot.n = 0
			return nil, fault.WithFile(err, t.uri)
		}
	}
	return slot.buf[t.offsets[tile]-slot.from : t.end(tile)-slot.from], nil
}

// decode returns a decoded tile of n bytes. Only bytes [lo, hi) are valid. The result is
// valid until the next call for the same one of the two files.
func (r *Reader) decode(ctx context.Context, which int, tile int64, next nextTiles, n uint64, p filter.Pipeline,
	e filter.Elem, lo, hi int) ([]byte, error) {
	file := &r.file[which]
	if m := r.decoded[which]; m.uri == file.uri && m.tile == tile && m.lo <= lo && hi <= m.hi &&
		uint64(len(r.tile[which])) == n {
		return r.tile[which], nil
	}
	src, err := file.stored(ctx, &r.ahead, tile, next)
	if err != nil {
		return nil, err
	}
	if n > uint64(r.a.o.MaxTile) {
		return nil, file.fault(tile, fault.New(fault.Limit, "", 0, "%d bytes, at most %d", n, r.a.o.MaxTile))
	}
	// The schema says how large the tile is. Nothing is allocated unless the chunks say the same,
	// because a small file could otherwise claim much memory.
	size, _, err := filter.Size(src)
	if err == nil && uint64(size) != n {
		err = fault.New(fault.Corrupt, "", 0, "its chunks hold %d bytes, the schema says %d", size, n)
	}
	if err != nil {
		return nil, file.fault(tile, err)
	}
	data := r.room(which, int(n))
	if r.Turn != nil {
		defer r.Turn()()
	}
	if err := r.dec.Tile(data, src, p, e, lo, hi); err != nil {
		return nil, file.fault(tile, err)
	}
	r.decoded[which] = decodedRange{file.uri, tile, lo, hi}
	return data, nil
}

// room returns memory for a decoded tile of n bytes, which the caller has checked.
func (r *Reader) room(which, n int) []byte {
	if cap(r.tile[which]) < n+filter.Spare {
		r.tile[which] = make([]byte, n, n+filter.Spare)
	}
	r.tile[which], r.decoded[which] = r.tile[which][:n], decodedRange{}
	return r.tile[which]
}

// decodeKept is decode for a whole tile of a sparse fragment of a dense array. It keeps the tile,
// because the boxes of Ahead need it one after the other.
func (r *Reader) decodeKept(ctx context.Context, which int, tile int64, next nextTiles, n uint64, p filter.Pipeline,
	e filter.Elem) ([]byte, error) {
	readAhead, uri := &r.ahead, r.file[which].uri
	if !readAhead.on {
		return r.decode(ctx, which, tile, next, n, p, e, 0, int(n))
	}
	if t := readAhead.find(uri, tile); t != nil {
		return t.b, nil
	}
	data, err := r.decode(ctx, which, tile, next, n, p, e, 0, int(n))
	if err != nil {
		return nil, err
	}
	if t := readAhead.keep(uri, tile, int(n)); t != nil {
		t.b = append(t.b, data...)
		return t.b, nil
	}
	return data, nil
}

// fault adds the tile and the file to an error.
func (t *tileFile) fault(tile int64, err error) error {
	return fault.WithFile(fault.WithPart(err, "tile "+strconv.FormatInt(tile, 10), int64(t.offsets[tile])), t.uri)
}

// codec says how the values of a column are stored in a fragment.
type codec struct {
	t        Datatype
	p        filter.Pipeline
	e        filter.Elem
	together bool // variable-length values have the offsets of their cells in the same tiles
}

// codec returns how the values of a column of a fragment are stored.
func (f *Fragment) codec(a *Array, column int) codec {
	if column < len(f.attrs) {
		attribute := f.attr(column)
		c := codec{t: attribute.Type, p: attribute.Pipeline, e: f.elem(attribute.Type, int(attribute.Values))}
		if attribute.Var() {
			c.e = f.elem(attribute.Type, 1)
			c.together = attribute.Type.text() &&
				attribute.Pipeline.HoldsOffsets(f.Version, attribute.Type == StringASCII)
		}
		return c
	}
	d := column - len(f.attrs) - 1
	if d == len(f.schema.Dims) {
		return codec{t: Uint64, p: f.schema.Coords, e: f.elem(Uint64, 1)}
	}
	typ := a.Schema.Type(d)
	c := codec{t: typ, p: f.schema.Dims[d].Pipeline, e: f.elem(typ, 1)}
	if form, _ := formatOf(f.schema.version()); len(c.p.Filters) == 0 && form.dimTypes {
		c.p = f.schema.Coords
	}
	c.together = typ == StringASCII && c.p.HoldsOffsets(f.Version, true)
	return c
}

// varTile decodes the offsets of cells [first, last] of a tile of a column, and their data, from file
// which and the one after it.
func (r *Reader) varTile(ctx context.Context, which int, f *Fragment, column int, sizes []uint64, tile int64,
	next nextTiles, first, last int) (offs, data []byte, err error) {
	codec := f.codec(r.a, column)
	cells := f.cells(r.a.Schema, tile)
	if cells > uint64(r.a.o.MaxTile)/8 {
		return nil, nil, r.file[which].fault(tile, fault.New(fault.Limit, "", 0, "%d cells", cells))
	}
	if codec.together {
		offs, data, err = r.stringTile(ctx, which, tile, next, cells, sizes[tile], codec)
	} else {
		offs, err = r.decode(ctx, which, tile, next, 8*cells, f.schema.Offsets, Uint64.elem(1), 8*first,
			min(8*(last+2), int(8*cells)))
	}
	if err != nil {
		return nil, nil, err
	}
	if err := checkOffsets(offs, first, last, codec.t.Size(), sizes[tile]); err != nil {
		return nil, nil, r.file[which].fault(tile, err)
	}
	lo, hi := u64(offs, first), sizes[tile]
	if 8*(last+1) < len(offs) {
		hi = u64(offs, last+1)
	}
	if lo == hi || codec.together { // the cells are empty, or decoded already
		return offs, data, nil
	}
	data, err = r.decode(ctx, which+1, tile, next, sizes[tile], codec.p, codec.e, int(lo), int(hi))
	return offs, data, err
}

// stringTile decodes a tile of strings that has their offsets too.
func (r *Reader) stringTile(ctx context.Context, which int, tile int64, next nextTiles, cells, size uint64,
	c codec) (offs, data []byte, err error) {
	file := &r.file[which+1]
	if m := r.decoded[which+1]; m.uri == file.uri && m.tile == tile && uint64(len(r.tile[which])) == 8*cells {
		return r.tile[which], r.tile[which+1], nil
	}
	src, err := file.stored(ctx, &r.ahead, tile, next)
	if err != nil {
		return nil, nil, err
	}
	if size > uint64(r.a.o.MaxTile) {
		return nil, nil, file.fault(tile, fault.New(fault.Limit, "", 0, "%d bytes, at most %d", size, r.a.o.MaxTile))
	}
	// Nothing is allocated unless the chunk says the same size, as in decode. The number of cells
	// follows from the schema, but a run may stand for many cells.
	if got, _, err := filter.Size(src); err != nil || uint64(got) != size {
		if err == nil {
			err = fault.New(fault.Corrupt, "", 0, "its chunks hold %d bytes, the metadata says %d", got, size)
		}
		return nil, nil, file.fault(tile, err)
	}
	offs, data = r.room(which, int(8*cells)), r.room(which+1, int(size))
	if r.Turn != nil {
		defer r.Turn()()
	}
	if err := r.dec.Strings(data, offs, src, c.p, c.e); err != nil {
		return nil, nil, file.fault(tile, err)
	}
	r.decoded[which+1] = decodedRange{file.uri, tile, 0, int(size)}
	return offs, data, nil
}

// openVar opens both files of a column of variable length and returns the sizes of its data tiles.
func (r *Reader) openVar(ctx context.Context, which int, f *Fragment, column int) ([]uint64, error) {
	sizes, err := r.a.list(ctx, f, varTileSizes, column)
	if err != nil {
		return nil, err
	}
	if f.codec(r.a, column).together {
		r.file[which] = tileFile{uri: f.file(r.a.Schema, column, varOffsets)}
		if r.file[which].offsets, err = r.a.list(ctx, f, varOffsets, column); err != nil {
			return nil, err
		}
	} else if _, err := r.open(ctx, which, f, column, tileOffsets); err != nil {
		return nil, err
	}
	if _, err := r.open(ctx, which+1, f, column, varOffsets); err != nil {
		r.file[which].close()
		return nil, err
	}
	return sizes, nil
}

func (r *Reader) closeVar(which int) error {
	err := r.file[which].close()
	if err2 := r.file[which+1].close(); err == nil {
		err = err2
	}
	return err
}

// fixedSize returns the decoded size of a tile of a fixed-length attribute.
func (r *Reader) fixedSize(which int, f *Fragment, tile int64, cell int) (uint64, error) {
	n := f.cells(r.a.Schema, tile)
	if n > uint64(r.a.o.MaxTile)/uint64(cell) {
		return 0, r.file[which].fault(tile, fault.New(fault.Limit, "", 0, "%d cells of %d bytes, at most %d bytes", n,
			cell, r.a.o.MaxTile))
	}
	return n * uint64(cell), nil
}
