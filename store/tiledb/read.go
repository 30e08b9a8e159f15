package tiledb

import (
	"context"
	"slices"
	"strconv"

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
	file    [2]tileFile     // the file of an attribute, and the one of its variable-length data
	tile    [2][]byte       // decoded tiles of these files
	decoded [2]decodedRange // what tile holds

	cells tileCells // of a sparse fragment
	ahead readAhead
}

// Ahead announces the boxes of one attribute of a dense array that will be read next. The caller
// then calls DenseInto once for each box, in the order of the announcement, which must be that of
// the array's tiles. Tiles that are close to each other in a file are fetched with one read, and
// tiles of sparse fragments that several boxes need are decoded once. Boxes that were not announced
// are read correctly too, with more reads. Calling Ahead without boxes ends the announcement.
func (r *Reader) Ahead(ctx context.Context, attr int, boxes []Box) error {
	return fault.WithFile(r.ahead.announce(ctx, r.a, attr, boxes), r.a.uri)
}

// NewReader returns a reader for one worker.
func (a *Array) NewReader() *Reader { return &Reader{a: a, dec: filter.NewDecoder(a.key)} }

// decodedRange says which bytes of which tile are decoded, so that images that share a tile decode
// it once.
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

// open opens the file of an attribute in a fragment.
func (r *Reader) open(ctx context.Context, which int, f *Fragment, attr int, variable bool) (*tileFile, error) {
	t := &r.file[which]
	kind, size := tileOffsets, f.foot.sizes[attr]
	if variable {
		kind, size = varOffsets, f.foot.varSizes[attr]
	}
	offsets, err := r.a.list(ctx, f, kind, attr)
	if err != nil {
		return nil, err
	}
	uri := f.file(r.a.Schema, attr, variable)
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
	*t = tileFile{uri: uri, r: src, offsets: offsets, size: size, gap: f.gap, local: f.local(), slot: r.ahead.slot(uri)}
	return t, nil
}

func (t *tileFile) close() error { return t.r.Close() }

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
	lo, end := t.offsets[tile], t.end(tile)
	if t.local {
		limit = min(limit, maxLocal)
	}
	if next.list == nil {
		for tile < next.last && t.end(tile+1)-lo <= limit {
			tile++
		}
		return t.end(tile) - lo
	}
	for _, tile := range next.list {
		if t.offsets[tile]-end > t.gap || t.end(tile)-lo > limit {
			break
		}
		end = t.end(tile)
	}
	return end - lo
}

// inMemory reports whether the stored bytes of a tile are in memory. If not, it assigns memory to
// them and to the tiles that will be read with it.
func (t *tileFile) inMemory(h *readAhead, tile int64, next nextTiles) bool {
	lo, hi, s := t.offsets[tile], t.end(tile), t.slot.assign(t.uri)
	if lo >= s.from && hi <= s.from+s.n {
		return true
	}
	s.from, s.n = lo, t.batch(tile, next, h.limit)
	if s.n > h.limit {
		h.releaseOthers(s)
	}
	return false
}

// stored returns the stored bytes of a tile. The tiles that are needed next are read with it if
// they are close.
func (t *tileFile) stored(ctx context.Context, h *readAhead, tile int64, next nextTiles) ([]byte, error) {
	s := t.slot
	if !t.inMemory(h, tile, next) {
		// the footer was checked against the file: this is at most the file's size
		s.buf = slices.Grow(s.buf[:0], int(s.n))[:s.n]
		if err := t.r.ReadAt(ctx, s.buf, int64(s.from)); err != nil {
			s.n = 0
			return nil, fault.WithFile(err, t.uri)
		}
	}
	return s.buf[t.offsets[tile]-s.from : t.end(tile)-s.from], nil
}

// decode returns a decoded tile of n bytes, of which only bytes [lo, hi) are valid. The result is
// valid until the next call for the same one of the two files.
func (r *Reader) decode(ctx context.Context, which int, tile int64, next nextTiles, n uint64, p filter.Pipeline,
	e filter.Elem, lo, hi int) ([]byte, error) {
	t := &r.file[which]
	if m := r.decoded[which]; m.uri == t.uri && m.tile == tile && m.lo <= lo && hi <= m.hi &&
		uint64(len(r.tile[which])) == n {
		return r.tile[which], nil
	}
	src, err := t.stored(ctx, &r.ahead, tile, next)
	if err != nil {
		return nil, err
	}
	if n > uint64(r.a.o.MaxTile) {
		return nil, t.fault(tile, fault.New(fault.Limit, "", 0, "%d bytes, at most %d", n, r.a.o.MaxTile))
	}
	// The schema says how large the tile is. Nothing is allocated unless the chunks say the same,
	// because a small file could otherwise claim much memory.
	size, _, err := filter.Size(src)
	if err == nil && uint64(size) != n {
		err = fault.New(fault.Corrupt, "", 0, "its chunks hold %d bytes, the schema says %d", size, n)
	}
	if err != nil {
		return nil, t.fault(tile, err)
	}
	if cap(r.tile[which]) < int(n)+filter.Spare {
		r.tile[which] = make([]byte, n, int(n)+filter.Spare)
	}
	b := r.tile[which][:n]
	r.tile[which], r.decoded[which] = b, decodedRange{}
	if r.Turn != nil {
		defer r.Turn()()
	}
	if err := r.dec.Tile(b, src, p, e, lo, hi); err != nil {
		return nil, t.fault(tile, err)
	}
	r.decoded[which] = decodedRange{t.uri, tile, lo, hi}
	return b, nil
}

// decodeKept is decode for a whole tile of a sparse fragment of a dense array. It keeps the tile,
// because the boxes of Ahead need it one after the other.
func (r *Reader) decodeKept(ctx context.Context, tile int64, next nextTiles, n uint64, p filter.Pipeline,
	e filter.Elem) ([]byte, error) {
	h, uri := &r.ahead, r.file[0].uri
	if !h.on {
		return r.decode(ctx, 0, tile, next, n, p, e, 0, int(n))
	}
	if t := h.find(uri, tile); t != nil {
		return t.b, nil
	}
	b, err := r.decode(ctx, 0, tile, next, n, p, e, 0, int(n))
	if err != nil {
		return nil, err
	}
	if t := h.keep(uri, tile, int(n)); t != nil {
		t.b = append(t.b, b...)
		return t.b, nil
	}
	return b, nil
}

// fault adds the tile and the file to an error.
func (t *tileFile) fault(tile int64, err error) error {
	return fault.WithFile(fault.WithPart(err, "tile "+strconv.FormatInt(tile, 10), int64(t.offsets[tile])), t.uri)
}

// varTile decodes the offsets of cells [first, last] of a tile, and their data.
func (r *Reader) varTile(ctx context.Context, f *Fragment, attr int, sizes []uint64, tile int64, next nextTiles,
	first, last int) (offs, data []byte, err error) {
	s := r.a.Schema
	a := &s.Attrs[attr]
	cells := f.cells(s, tile)
	if cells > uint64(r.a.o.MaxTile)/8 {
		return nil, nil, r.file[0].fault(tile, fault.New(fault.Limit, "", 0, "%d cells", cells))
	}
	offs, err = r.decode(ctx, 0, tile, next, 8*cells, s.Offsets, Uint64.elem(1), 8*first, min(8*(last+2), int(8*cells)))
	if err != nil {
		return nil, nil, err
	}
	if err := checkOffsets(offs, first, last, a.Type.Size(), sizes[tile]); err != nil {
		return nil, nil, r.file[0].fault(tile, err)
	}
	lo, hi := u64(offs, first), sizes[tile]
	if 8*(last+1) < len(offs) {
		hi = u64(offs, last+1)
	}
	if lo == hi { // the cells are empty
		return offs, nil, nil
	}
	data, err = r.decode(ctx, 1, tile, next, sizes[tile], a.Pipeline, a.Type.elem(1), int(lo), int(hi))
	return offs, data, err
}

// openVar opens both files of an attribute of variable length and returns the sizes of its data
// tiles.
func (r *Reader) openVar(ctx context.Context, f *Fragment, attr int) ([]uint64, error) {
	sizes, err := r.a.list(ctx, f, varTileSizes, attr)
	if err != nil {
		return nil, err
	}
	offs, err := r.open(ctx, 0, f, attr, false)
	if err != nil {
		return nil, err
	}
	if _, err := r.open(ctx, 1, f, attr, true); err != nil {
		offs.close()
		return nil, err
	}
	return sizes, nil
}

func (r *Reader) closeVar() error {
	err := r.file[0].close()
	if err2 := r.file[1].close(); err == nil {
		err = err2
	}
	return err
}

// fixedSize returns the decoded size of a tile of a fixed-length attribute.
func (r *Reader) fixedSize(f *Fragment, tile int64, cell int) (uint64, error) {
	n := f.cells(r.a.Schema, tile)
	if n > uint64(r.a.o.MaxTile)/uint64(cell) {
		return 0, r.file[0].fault(tile, fault.New(fault.Limit, "", 0, "%d cells of %d bytes, at most %d bytes", n,
			cell, r.a.o.MaxTile))
	}
	return n * uint64(cell), nil
}
