package tiledb

import (
	"context"
	"slices"
	"strconv"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/internal/ahead"
	"github.com/chaski-eo/chaski/store/tiledb/filter"
)

// Reader reads cells of an array. It reuses its memory from read to read and is not safe for
// concurrent use: each worker has its own.
type Reader struct {
	// Turn, if it is not nil, is called between reading the bytes of a tile and decoding them, and the function that it
	// returns after decoding. It limits the number of readers that decode at a time to fewer than read at a time.
	Turn func() (done func())

	a       *Array
	dec     *filter.Decoder
	file    []tileFile     // of an attribute, of its variable-length data, and two of each dimension: see which
	tile    [][]byte       // decoded tiles of these files
	decoded []decodedRange // what tile holds
	valid   []byte         // of DenseInto: whether cells have values

	cells tileCells // of a sparse fragment
	ahead readAhead
	dry   *DryRun // not nil: reads of tiles are counted, and not made
}

// Ahead announces the boxes of one attribute of a dense array that will be read next. The caller
// then calls DenseInto once for each box, in the order of the announcement, which must be the order of
// the array's tiles. Tiles that are close to each other in a file are fetched with one read, and
// tiles of sparse fragments that several boxes need are decoded once. Boxes that were not announced
// are read correctly too, with more reads. Calling Ahead without boxes ends the announcement.
func (r *Reader) Ahead(ctx context.Context, attr int, boxes []Box) error {
	if !r.a.Schema.Dense {
		return fault.WithFile(fault.New(fault.Unsupported, "sub-array", "the array is sparse"), r.a.uri)
	}
	for _, b := range boxes {
		if err := r.a.Schema.check(b); err != nil {
			return fault.WithFile(err, r.a.uri)
		}
	}
	r.ahead.on = len(boxes) > 0
	return fault.WithFile(r.ahead.expect(ctx, r.a, attr, boxes...), r.a.uri)
}

// NewReader returns a reader for one worker.
func (a *Array) NewReader() *Reader {
	files := which(len(a.Schema.Dims)) + 2
	reader := &Reader{a: a, dec: filter.NewDecoder(a.key), file: make([]tileFile, files), tile: make([][]byte, files),
		decoded: make([]decodedRange, files)}
	reader.ahead.ranges = ahead.Ranges{MaxHeld: maxBatch, InOrder: true}
	return reader
}

// which returns the first of the two files of dimension d among the files of a reader; the number of
// dimensions stands for the times of cells.
func which(d int) int { return 2 + 2*d }

// decodedRange is the decoded byte range of a tile, so images that share a tile decode it once.
type decodedRange struct {
	uri    string
	tile   int64
	lo, hi int
}

// smallFile is the size up to which a remote file is read as a whole when it is opened. Above it, passing the known
// size to the opener saves a request; below it, the request that learns the size returns all bytes.
const smallFile = 64 << 10

// tileFile is an open file of tiles.
type tileFile struct {
	uri     string
	r       source.Reader
	offsets []uint64
	size    uint64
	ranges  *ahead.File
}

// open opens a file of a column in a fragment.
func (r *Reader) open(ctx context.Context, which int, f *Fragment, c *columnStorage, kind listKind) error {
	size := f.foot.sizes[kind][c.at]
	offsets, err := r.a.list(ctx, f, kind, c)
	if err != nil {
		return err
	}
	uri := f.file(c.stem, kind)
	var src source.Reader
	if r.dry == nil {
		if src, err = r.openFile(ctx, uri, size); err != nil {
			return fault.WithFile(err, uri)
		}
	}
	r.file[which] = tileFile{uri: uri, r: src, offsets: offsets, size: size, ranges: r.ahead.ranges.File(uri)}
	return nil
}

// openFile opens a file, which must have size bytes or more.
func (r *Reader) openFile(ctx context.Context, uri string, size uint64) (source.Reader, error) {
	known := source.Known{}
	if size > smallFile {
		// Opening a remote file of known size takes no request, so only its ranges do.
		known.Size = int64(size)
	}
	src, err := source.OpenKnown(ctx, r.a.store, uri, known)
	if err != nil {
		return nil, err
	}
	if uint64(src.Size()) < size {
		src.Close()
		return nil, fault.At(fault.Corrupt, "file", src.Size(),
			"the file has %d bytes, the fragment's metadata says %d", src.Size(), size)
	}
	return src, nil
}

func (t *tileFile) close() error {
	if t.r == nil { // a file of offsets that are with the data, or one of a dry run
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

// place returns where a tile lies in the file.
func (t *tileFile) place(tile int64) chunk.Range {
	return chunk.Range{Off: int64(t.offsets[tile]), Len: int64(t.end(tile) - t.offsets[tile])}
}

// stored returns the stored bytes of a tile of a file, or nil in a dry run. The tiles that are needed next are read
// with it if they are close.
func (r *Reader) stored(ctx context.Context, which int, tile int64) ([]byte, error) {
	file := &r.file[which]
	return file.ranges.Read(file.place(tile), func(at chunk.Range, buf []byte) ([]byte, error) {
		if r.dry != nil {
			r.dry.note(file.uri, at.Off, at.Len)
			return nil, nil
		}
		// the footer was checked against the file: this is at most the file's size
		buf = slices.Grow(buf[:0], int(at.Len))[:at.Len]
		return buf, fault.WithFile(file.r.ReadAt(ctx, buf, at.Off), file.uri)
	})
}

// holds reports whether a tile of a file is decoded from lo to hi.
func (r *Reader) holds(which int, tile int64, lo, hi int) bool {
	m := &r.decoded[which]
	return m.uri == r.file[which].uri && m.tile == tile && m.lo <= lo && hi <= m.hi
}

// decode returns a decoded tile of n bytes. Only bytes [lo, hi) are valid. The result is
// valid until the next call for the same one of the files.
func (r *Reader) decode(ctx context.Context, which int, tile int64, n uint64, c *columnStorage,
	lo, hi int) ([]byte, error) {
	if r.holds(which, tile, lo, hi) {
		return r.tile[which], nil
	}
	src, err := r.stored(ctx, which, tile)
	if err != nil {
		return nil, err
	}
	file := &r.file[which]
	var data []byte
	if r.dry == nil {
		if err := r.checkSize(src, n); err != nil {
			return nil, file.fault(tile, err)
		}
		data = r.room(which, int(n))
		if r.Turn != nil {
			defer r.Turn()()
		}
		if err := r.dec.Tile(data, src, c.p, c.e, lo, hi); err != nil {
			return nil, file.fault(tile, err)
		}
	}
	r.decoded[which] = decodedRange{file.uri, tile, lo, hi}
	r.dry.decoded(n, &r.ahead)
	return data, nil
}

// checkSize returns an error if the stored bytes of a tile cannot hold n bytes, which the schema or the metadata says.
func (r *Reader) checkSize(src []byte, n uint64) error {
	if n > uint64(r.a.o.MaxTile) {
		return fault.At(fault.Limit, "", 0, "%d bytes, at most %d", n, r.a.o.MaxTile)
	}
	// Nothing is allocated before this check, because a small file could otherwise claim much memory.
	size, _, err := filter.Size(src)
	if err == nil && uint64(size) != n {
		err = fault.At(fault.Corrupt, "", 0, "its chunks hold %d bytes, %d expected", size, n)
	}
	return err
}

// room returns memory for a decoded tile of n bytes, which the caller has checked.
func (r *Reader) room(which, n int) []byte {
	if cap(r.tile[which]) < n+filter.Spare {
		r.tile[which] = make([]byte, n, n+filter.Spare)
	}
	r.tile[which], r.decoded[which] = r.tile[which][:n], decodedRange{}
	return r.tile[which]
}

// decodeKept is decode for a whole tile of a sparse fragment of a dense array. It keeps the tile.
func (r *Reader) decodeKept(ctx context.Context, which int, tile int64, n uint64, c *columnStorage) ([]byte, error) {
	kept, key := r.ahead.decodedTiles, tileKey{r.file[which].uri, tile}
	if kept == nil {
		return r.decode(ctx, which, tile, n, c, 0, int(n))
	}
	if data, ok := kept.Get(key); ok {
		return data, nil
	}
	data, err := r.decode(ctx, which, tile, n, c, 0, int(n))
	if err == nil && n <= maxKept {
		// The tile is kept, because the boxes of Ahead need it one after the other.
		kept.Add(key, slices.Clone(data), int64(n))
		r.dry.decoded(n, &r.ahead)
	}
	return data, err
}

// fault adds the tile and the file to an error.
func (t *tileFile) fault(tile int64, err error) error {
	return fault.WithFile(fault.WithPart(err, "tile "+strconv.FormatInt(tile, 10), int64(t.offsets[tile])), t.uri)
}
