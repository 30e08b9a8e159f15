package tiledb

import (
	"context"
	"slices"
	"strconv"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/tiledb/filter"
)

// Reader reads cells of an array. It keeps its memory between reads and is not safe for concurrent use:
// each worker has its own.
type Reader struct {
	// Turn, if it is not nil, is called once a tile's bytes were read, before they are decoded, and what it returns
	// afterwards: where fewer may decode at a time than read.
	Turn func() (done func())

	a    *Array
	dec  *filter.Decoder
	file [2]tileFile // of an attribute, and of its var-length data
	tile [2][]byte   // decoded
	last [2]memo     // what that is

	cells tileCells // of a sparse fragment
	ahead ahead
}

// Ahead says which boxes are read next, of one attribute of a dense array, until it is called again: DenseInto is to be called once for
// each of them, in their order, which is to be that of the array's tiles. Tiles that lie near each other in a file are
// then read at once, and what several boxes need of a sparse fragment is decoded once. Other boxes are read right as well, and
// in more reads. No boxes end it: each box that is read is then looked at for itself.
func (r *Reader) Ahead(ctx context.Context, attr int, boxes []Box) error {
	return fault.WithFile(r.ahead.say(ctx, r.a, attr, boxes), r.a.uri)
}

// NewReader returns a reader for one worker.
func (a *Array) NewReader() *Reader { return &Reader{a: a, dec: filter.NewDecoder(a.key)} }

// memo says which bytes of which tile are decoded: images that share a tile decode it once.
type memo struct {
	uri    string
	tile   int64
	lo, hi int
}

// smallFile is the size in bytes up to which a remote file is read as a whole when it is opened.
const smallFile = 64 << 10

// tileFile is a file of tiles that is being read.
type tileFile struct {
	uri     string
	r       source.Reader
	offsets []uint64
	size    uint64
	gap     uint64 // over which it is cheaper to read than to ask twice
	local   bool
	slot    *slot // stored bytes of some tiles
}

// open opens an attribute's file in a fragment.
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
		known.Size = int64(size) // then a remote file needs no request to be opened
	}
	src, err := source.OpenKnown(ctx, r.a.store, uri, known)
	if err != nil {
		return nil, fault.WithFile(err, uri)
	}
	if uint64(src.Size()) < size {
		src.Close()
		return nil, fault.WithFile(fault.New(fault.Corrupt, "file", src.Size(), "%d bytes, the fragment's metadata says %d", src.Size(), size), uri)
	}
	*t = tileFile{uri: uri, r: src, offsets: offsets, size: size, gap: f.gap, local: f.local(), slot: r.ahead.slot(uri)}
	return t, nil
}

func (t *tileFile) close() error { return t.r.Close() }

// end returns where a tile ends.
func (t *tileFile) end(tile int64) uint64 {
	if tile+1 < int64(len(t.offsets)) {
		return t.offsets[tile+1]
	}
	return t.size
}

// batch returns how many bytes are read at once from where a tile begins: up to the end of the last of those after it that
// have room in limit, and lie no further apart than the gap.
func (t *tileFile) batch(tile int64, next following, limit uint64) uint64 {
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

// there reports whether the stored bytes of a tile are in memory; if not, it makes a place for them, and for those of the tiles
// that are read with it.
func (t *tileFile) there(h *ahead, tile int64, next following) bool {
	lo, hi, s := t.offsets[tile], t.end(tile), t.slot.of(t.uri)
	if lo >= s.from && hi <= s.from+s.n {
		return true
	}
	s.from, s.n = lo, t.batch(tile, next, h.limit)
	if s.n > h.limit {
		h.alone(s)
	}
	return false
}

// stored returns the stored bytes of a tile; those that are needed next are read with it, as far as they lie near.
func (t *tileFile) stored(ctx context.Context, h *ahead, tile int64, next following) ([]byte, error) {
	s := t.slot
	if !t.there(h, tile, next) {
		s.buf = slices.Grow(s.buf[:0], int(s.n))[:s.n] // no more than the file has
		if err := t.r.ReadAt(ctx, s.buf, int64(s.from)); err != nil {
			s.n = 0
			return nil, fault.WithFile(err, t.uri)
		}
	}
	return s.buf[t.offsets[tile]-s.from : t.end(tile)-s.from], nil
}

// decode returns a decoded tile of n bytes, of which bytes [lo, hi) are right. It is valid until the
// next call for the same of the two files.
func (r *Reader) decode(ctx context.Context, which int, tile int64, next following, n uint64, p filter.Pipeline, e filter.Elem, lo, hi int) ([]byte, error) {
	t := &r.file[which]
	if m := r.last[which]; m.uri == t.uri && m.tile == tile && m.lo <= lo && hi <= m.hi && uint64(len(r.tile[which])) == n {
		return r.tile[which], nil
	}
	src, err := t.stored(ctx, &r.ahead, tile, next)
	if err != nil {
		return nil, err
	}
	if n > uint64(r.a.o.MaxTile) {
		return nil, t.fault(tile, fault.New(fault.Limit, "", 0, "%d bytes, at most %d", n, r.a.o.MaxTile))
	}
	// The size is known from the schema: before there is memory for it, the chunks have to say the same.
	size, _, err := filter.Size(src)
	if err == nil && uint64(size) != n {
		err = fault.New(fault.Corrupt, "", 0, "its chunks hold %d bytes, %d needed", size, n)
	}
	if err != nil {
		return nil, t.fault(tile, err)
	}
	if cap(r.tile[which]) < int(n)+filter.Spare {
		r.tile[which] = make([]byte, n, int(n)+filter.Spare)
	}
	b := r.tile[which][:n]
	r.tile[which], r.last[which] = b, memo{}
	if r.Turn != nil {
		defer r.Turn()()
	}
	if err := r.dec.Tile(b, src, p, e, lo, hi); err != nil {
		return nil, t.fault(tile, err)
	}
	r.last[which] = memo{t.uri, tile, lo, hi}
	return b, nil
}

// decodeKept is decode for a whole tile of a sparse fragment of a dense array, which the boxes of Ahead need one after the other.
func (r *Reader) decodeKept(ctx context.Context, tile int64, next following, n uint64, p filter.Pipeline, e filter.Elem) ([]byte, error) {
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

// fault names the tile and the file.
func (t *tileFile) fault(tile int64, err error) error {
	return fault.WithFile(fault.WithPart(err, "tile "+strconv.FormatInt(tile, 10), int64(t.offsets[tile])), t.uri)
}

// varTile decodes the offsets of cells [first, last] of a tile, and their data.
func (r *Reader) varTile(ctx context.Context, f *Fragment, attr int, sizes []uint64, tile int64, next following, first, last int) (offs, data []byte, err error) {
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
	if lo == hi { // nothing there
		return offs, nil, nil
	}
	data, err = r.decode(ctx, 1, tile, next, sizes[tile], a.Pipeline, a.Type.elem(1), int(lo), int(hi))
	return offs, data, err
}

// openVar opens both files of a var-length attribute and returns the sizes of the data's tiles.
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

// fixedSize returns the bytes of a fixed-length attribute's tile.
func (r *Reader) fixedSize(f *Fragment, tile int64, cell int) (uint64, error) {
	n := f.cells(r.a.Schema, tile)
	if n > uint64(r.a.o.MaxTile)/uint64(cell) {
		return 0, r.file[0].fault(tile, fault.New(fault.Limit, "", 0, "%d cells of %d bytes, at most %d bytes", n, cell, r.a.o.MaxTile))
	}
	return n * uint64(cell), nil
}
