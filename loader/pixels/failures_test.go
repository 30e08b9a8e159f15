package pixels

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"io"
	"math"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/einops"
	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/internal/budget"
	"github.com/chaski-eo/chaski/internal/crs/warp"
	"github.com/chaski-eo/chaski/loader/resources"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/shuffle"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/catalog"
)

// errRead is the error of a read that fails.
var errRead = errors.New("the read fails")

// brokenFile opens a file of zeros, whose read number fails is an error. It counts reads and files that are open.
type brokenFile struct {
	size  int64
	fails int
	err   error // or its kind
	reads int
	open  int
	read  func() // called by each read; nil: nothing is
}

func (f *brokenFile) Open(context.Context, string) (source.Reader, error) {
	f.open++
	return f, nil
}

func (f *brokenFile) ReadAt(_ context.Context, p []byte, off int64) error {
	if f.reads++; f.read != nil {
		f.read()
	}
	clear(p)
	if f.reads-1 != f.fails {
		return nil
	}
	if kind, ok := f.err.(fault.Kind); ok {
		return fault.New(kind, "file", "it is cut")
	}
	return f.err
}

func (f *brokenFile) Size() int64 { return f.size }
func (f *brokenFile) Gap() int64  { return 0 }
func (f *brokenFile) Close() error {
	f.open--
	return nil
}

// countSink counts chunks, and calls put before each.
type countSink struct {
	chunks int
	put    func()
}

func (s *countSink) Put(*chunk.Index, int, []byte) {
	if s.chunks++; s.put != nil {
		s.put()
	}
}

// rowsOfChunks returns the index of an image of n rows, each a chunk of its own, with gap bytes between chunks.
func rowsOfChunks(n, gap int) *chunk.Index {
	x := &chunk.Index{Bands: 1, Height: n, Width: 2, ChunkB: 1, ChunkH: 1, ChunkW: 2, DType: chunk.Uint8,
		Predictor: chunk.NoPredictor}
	for i := range n {
		x.Ranges = append(x.Ranges, chunk.Range{Off: int64(1 + i*(2+gap)), Len: 2})
	}
	return x
}

// TestFilesWhoseReadsFail: the read that fails ends the window, with its error. The chunks before it are in the sink,
// no file stays open, and no reader waits for a tile. A window with a fault of its file is read again without tiles.
func TestFilesWhoseReadsFail(t *testing.T) {
	const n = 5
	box := chunk.Box{B1: 1, Y1: n, X1: 2}
	for _, beside := range []bool{false, true} {
		for _, failure := range []error{errRead, fault.Corrupt} {
			for _, shares := range []bool{false, true} {
				for fails := range 2*n + 1 {
					x := rowsOfChunks(n, 1)
					x.Mask = rowsOfChunks(n, 1)
					a := catalog.Asset{URI: "a", Index: x}
					if beside {
						a.MaskFile = &catalog.Asset{URI: "mask", Index: x.Mask}
					}
					file := &brokenFile{size: 100, fails: fails, err: failure}
					r := NewReader(resources.Options{Opener: file}.WithDefaults())
					if shares {
						r.Share.Tiles = NewTileCache(1 << 20)
					}
					sink, masked := &countSink{}, &countSink{}
					err := r.Read(t.Context(), a, box, nil, sink, masked)
					chunks, masks, reads := min(fails, n), max(fails-n, 0), fails+1
					want := failure
					if fails == 2*n {
						want, reads = nil, 2*n
					}
					if shares && failure == fault.Corrupt && fails < 2*n { // this file fails only once
						want, reads = nil, 2*n+fails%n+1
						chunks, masks = n+fails, n
						if fails >= n {
							chunks, masks = n, fails
						}
					}
					if !errors.Is(err, want) || sink.chunks != chunks || masked.chunks != masks ||
						file.reads != reads || file.open != 0 {
						t.Errorf("beside %t, shared %t, read %d fails: %v; %d and %d chunks of %d reads, %d open; "+
							"want %v, %d, %d, %d", beside, shares, fails, err, sink.chunks, masked.chunks, file.reads,
							file.open, want, chunks, masks, reads)
					}
					checkTiles(t, r)
				}
			}
		}
	}
}

// TestFilesOfAnotherSize: a file of another size than its index says is not read, and does not stay open.
func TestFilesOfAnotherSize(t *testing.T) {
	for size := int64(99); size <= 101; size++ {
		file := &brokenFile{size: 100, fails: -1}
		r := NewReader(resources.Options{Opener: file}.WithDefaults())
		a := catalog.Asset{URI: "a", Index: rowsOfChunks(1, 0), Size: size}
		err := r.Read(t.Context(), a, chunk.Box{B1: 1, Y1: 1, X1: 2}, nil, Nowhere{}, nil)
		same := size == 100
		if (fault.KindOf(err) == fault.Corrupt) == same || (file.reads > 0) != same || file.open != 0 {
			t.Errorf("%d bytes: %v; %d reads, %d open", size, err, file.reads, file.open)
		}
	}
}

// checkTiles checks that no tile of a reader's cache is in use, that none is waited for, and that the reader keeps no
// tile.
func checkTiles(t *testing.T, r *Reader) {
	t.Helper()
	for _, list := range [][]neededChunk{r.plan.own[:cap(r.plan.own)], r.plan.foreign[:cap(r.plan.foreign)]} {
		for _, c := range list {
			if c.t != nil {
				t.Errorf("the reader keeps tile %+v", c.t.key)
			}
		}
	}
	if r.Share.Tiles == nil {
		return
	}
	for key, tile := range r.Share.Tiles.By {
		select {
		case <-tile.Ready:
		default:
			t.Errorf("tile %+v is not decoded", key)
		}
		if tile.holders != 0 {
			t.Errorf("tile %+v has %d holders", key, tile.holders)
		}
	}
}

// stored is an array of an index that fails with err at box number fails, or where it is told which boxes come.
type stored struct {
	fails, ahead error
	number       int
	boxes        int // read
	asked        int // announced
}

func (a *stored) Open() chunk.BlockReader { return a }

func (a *stored) Ahead(_ context.Context, _ int64, boxes []chunk.Box) error {
	a.asked += len(boxes)
	return a.ahead
}

func (a *stored) ReadBox(context.Context, []byte, int64, chunk.Box) error {
	if a.boxes++; a.boxes-1 == a.number {
		return a.fails
	}
	return nil
}

// TestArraysThatFail: an array that fails ahead of its boxes, or at one, ends the window with its error.
func TestArraysThatFail(t *testing.T) {
	const n = 4
	for number := -1; number <= n; number++ {
		array, want, boxes := &stored{fails: errRead, number: number}, errRead, number+1
		switch number {
		case -1:
			array.ahead = errRead
		case n:
			want, boxes = nil, n
		}
		x := rowsOfChunks(n, 0)
		x.Ranges = nil
		r, sink := NewReader(resources.Options{}.WithDefaults()), &countSink{}
		err := r.Read(t.Context(), catalog.Asset{URI: "a", Index: x.WithBlocks(chunk.Blocks{Array: array})},
			chunk.Box{B1: 1, Y1: n, X1: 2}, nil, sink, nil)
		if !errors.Is(err, want) || sink.chunks != max(number, 0) || array.boxes != boxes || array.asked != n {
			t.Errorf("box %d fails: %v; %d chunks of %d boxes, %d asked", number, err, sink.chunks, array.boxes,
				array.asked)
		}
	}
}

// TestContextsThatEndInAWindow: a window whose context ends after some chunks puts no further ones, whether they come
// from one run, are missing in the file, are pieces, or boxes of an array.
func TestContextsThatEndInAWindow(t *testing.T) {
	const n = 4
	sparse, pieces, array := rowsOfChunks(n, 0), rowsOfChunks(1, 0), rowsOfChunks(n, 0)
	clear(sparse.Ranges)
	pieces.Height, pieces.ChunkH, pieces.Codec = n, n, chunk.Zstd
	array.Ranges = nil
	run := rowsOfChunks(n, 0)
	run.Codec = chunk.Zstd // uncompressed strips come together
	for name, x := range map[string]*chunk.Index{"a run": run, "runs": rowsOfChunks(n, 1),
		"sparse": sparse, "pieces": pieces, "an array": array.WithBlocks(chunk.Blocks{Array: &stored{number: -1}})} {
		for chunks := 1; chunks <= n; chunks++ {
			r := NewReader(resources.Options{Opener: &brokenFile{size: 100, fails: -1}}.WithDefaults())
			r.Decoder = chunk.NewDecoder(chunk.Codecs{chunk.Zstd: func() chunk.Decompressor { return instant{} }})
			if name == "pieces" {
				r.maxChunk = 2
			}
			ctx, cancel := context.WithCancel(t.Context())
			sink := &countSink{}
			sink.put = func() {
				if sink.chunks == chunks {
					cancel()
				}
			}
			err := r.Read(ctx, catalog.Asset{URI: "a", Index: x}, chunk.Box{B1: 1, Y1: n, X1: 2}, nil, sink, nil)
			if cancel(); sink.chunks != chunks || errors.Is(err, context.Canceled) != (chunks < n) {
				t.Errorf("%s: %d chunks, want %d: %v", name, sink.chunks, chunks, err)
			}
		}
	}
}

// instant decodes zeros, in no time. In pieces it reads all stored bytes first, and fails behind some rows unless these
// are 0.
type instant struct{ rows int }

func (instant) Decompress([]byte, []byte, *chunk.Tile) error { return nil }

func (c instant) Stream(src *bufio.Reader, _ int) (chunk.Stream, error) {
	return &instantStream{src: src, rows: cmp.Or(c.rows, math.MaxInt)}, nil
}

type instantStream struct {
	slowStream
	src  io.Reader
	rows int
}

func (s *instantStream) Fill([]byte) error {
	if s.rows--; s.rows < 0 {
		return fault.New(fault.Corrupt, "frame", "cut short")
	}
	_, err := io.Copy(io.Discard, struct{ io.Reader }{s.src})
	return err
}

// TestRunsOverTheLimit: a chunk may have as many stored bytes as the largest decoded one, or as a run if that is more.
func TestRunsOverTheLimit(t *testing.T) {
	for _, most := range []int{2, MaxRun - 1, MaxRun, MaxRun + 1} {
		for _, over := range []int64{-1, 0, 1} {
			x := rowsOfChunks(1, 0)
			x.Codec = chunk.Zstd
			x.Ranges[0].Len = int64(max(most, MaxRun)) + over
			file := &brokenFile{size: 1 << 30, fails: -1}
			r := NewReader(resources.Options{Opener: file, MaxChunkBytes: most}.WithDefaults())
			r.Decoder = chunk.NewDecoder(chunk.Codecs{chunk.Zstd: func() chunk.Decompressor { return instant{} }})
			err := r.Read(t.Context(), catalog.Asset{URI: "a", Index: x}, chunk.Box{B1: 1, Y1: 1, X1: 2}, nil,
				Nowhere{}, nil)
			if over <= 0 && err != nil || over > 0 && (fault.KindOf(err) != fault.Limit ||
				!strings.HasPrefix(err.Error(), "a: chunk 0 at 1: ") || file.reads > 0) {
				t.Errorf("%d bytes, chunks up to %d: %v", x.Ranges[0].Len, most, err)
			}
		}
	}
}

// TestDecodersOfRunsOnDisk: a reader of a remote file is one of the decoders before it reads a run that the cache on
// disk has, and after it reads any other run.
func TestDecodersOfRunsOnDisk(t *testing.T) {
	for _, near := range []bool{false, true} {
		decoders := resources.NewDecoders(1)
		file := &brokenFile{size: 100, fails: -1}
		r := NewReader(resources.Options{Opener: file}.WithDefaults())
		r.decoders, r.waits, r.disk = decoders, true, nearRuns{offsets: map[int64]bool{1: near}}
		reads := false // as one of the decoders
		file.read = func() { reads = decoders.AllBusy() }
		sink := &countSink{}
		sink.put = func() {
			if !decoders.AllBusy() {
				t.Errorf("near %t: it decodes and is none of the decoders", near)
			}
		}
		err := r.Read(t.Context(), catalog.Asset{URI: "a", Index: rowsOfChunks(1, 0)}, chunk.Box{B1: 1, Y1: 1, X1: 2},
			nil, sink, nil)
		if err != nil || reads != near || decoders.AllBusy() || sink.chunks != 1 {
			t.Errorf("near %t: a decoder while it reads %t, in the end %t; %d chunks, %v", near, reads,
				decoders.AllBusy(), sink.chunks, err)
		}
	}
}

// TestDecodersOfPieces: a reader of a remote chunk in pieces is one of the decoders while it decodes, and none while it
// reads, however many reads there are.
func TestDecodersOfPieces(t *testing.T) {
	decoders := resources.NewDecoders(1)
	x := rowsOfChunks(1, 0)
	x.Codec, x.Height, x.ChunkH, x.Ranges[0].Len = chunk.Zstd, 2, 2, 2*MaxRun+1
	file := &brokenFile{size: 1 << 30, fails: -1}
	r := NewReader(resources.Options{Opener: file, MaxChunkBytes: 2}.WithDefaults())
	r.Decoder = chunk.NewDecoder(chunk.Codecs{chunk.Zstd: func() chunk.Decompressor { return instant{} }})
	r.decoders, r.waits = decoders, true
	file.read = func() {
		if decoders.AllBusy() {
			t.Error("it reads as one of the decoders")
		}
	}
	sink := &countSink{}
	sink.put = func() {
		if !decoders.AllBusy() {
			t.Error("it decodes and is none of the decoders")
		}
	}
	err := r.Read(t.Context(), catalog.Asset{URI: "a", Index: x}, chunk.Box{B1: 1, Y1: 2, X1: 2}, nil, sink, nil)
	if err != nil || sink.chunks != 2 || file.reads != 3 || decoders.AllBusy() {
		t.Errorf("%d pieces of %d reads, a decoder in the end %t: %v", sink.chunks, file.reads, decoders.AllBusy(), err)
	}
}

// TestPiecesThatFail: the piece at which a decoder fails ends the window, also if it lies above the window, and ends
// the check of all rows. A read that fails, or a context that ends, ends both with its own error.
func TestPiecesThatFail(t *testing.T) {
	const n = 4
	x := rowsOfChunks(1, 0)
	x.Codec, x.Height, x.ChunkH = chunk.Zstd, n, n
	a := catalog.Asset{URI: "a", Index: x}
	for rows := 1; rows <= n+1; rows++ {
		for top := range n {
			file := &brokenFile{size: 100, fails: -1}
			r := NewReader(resources.Options{Opener: file, MaxChunkBytes: 2}.WithDefaults())
			r.Decoder = chunk.NewDecoder(chunk.Codecs{chunk.Zstd: func() chunk.Decompressor { return instant{rows} }})
			sink, want := &countSink{}, fault.Kind(0)
			if rows < n {
				want = fault.Corrupt
			}
			err := r.Read(t.Context(), a, chunk.Box{B1: 1, Y0: top, Y1: n, X1: 2}, nil, sink, nil)
			if fault.KindOf(err) != want || sink.chunks != max(min(rows, n)-top, 0) ||
				want != 0 && !strings.HasPrefix(err.Error(), "a: chunk 0 ") {
				t.Errorf("rows from %d on, %d are there: %d pieces, %v", top, rows, sink.chunks, err)
			}
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for name, c := range map[string]struct {
		ctx   context.Context
		size  int64
		fails int
		rows  int
		want  error
	}{
		"all": {t.Context(), 100, -1, 0, nil}, "rows": {t.Context(), 100, -1, 1, fault.Corrupt},
		"the last row": {t.Context(), 100, -1, 2, fault.Corrupt},
		"a read":       {t.Context(), 100, 0, 0, errRead}, "the context": {ended, 100, -1, 0, context.Canceled},
		"the range": {t.Context(), 2, -1, 0, fault.Corrupt},
	} {
		r := NewReader(resources.Options{MaxChunkBytes: 2}.WithDefaults())
		r.Decoder = chunk.NewDecoder(chunk.Codecs{chunk.Zstd: func() chunk.Decompressor { return instant{c.rows} }})
		large := *x
		large.Height, large.ChunkH, large.Width, large.ChunkW = 3, 3, pieceOfCheck, pieceOfCheck
		file := &brokenFile{size: c.size, fails: c.fails, err: errRead}
		if err := r.Check(c.ctx, file, &large, 0); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestRowsOfSharedChunks: of a chunk that a later window needs too, a reader decodes the rows that either needs. A
// window of a pool decodes all rows.
func TestRowsOfSharedChunks(t *testing.T) {
	x := rowsOfChunks(1, 0)
	x.Height, x.ChunkH, x.Ranges[0].Len = 8, 8, 16
	for _, c := range []struct{ top, bottom, later, pool, want int }{
		{0, 3, 2, 0, 3}, {0, 3, 5, 0, 5}, {2, 3, 1, 0, 3}, {0, 8, 1, 0, 8}, {0, 3, 2, 1, 8},
	} {
		r := NewReader(resources.Options{Opener: &brokenFile{size: 100, fails: -1}}.WithDefaults())
		r.Share = Shared{Tiles: NewPlannedTiles(1<<20, budget.New(1<<20)), Order: 1}
		if r.Share.Tiles.Plan(2, []Need{{Rows: c.later}}); c.pool > 0 {
			r.Share.Order = 0
		}
		box := chunk.Box{B1: 1, Y0: c.top, Y1: c.bottom, X1: 2}
		if err := r.Read(t.Context(), catalog.Asset{URI: "a", Index: x}, box, nil, Nowhere{}, nil); err != nil {
			t.Fatal(err)
		}
		if tile := r.Share.Tiles.By[TileKey{}]; tile == nil || tile.rows != c.want {
			t.Errorf("%+v: %+v", c, tile)
		}
		checkTiles(t, r)
	}
}

// TestCastsThatDoNotExist: an asset whose samples cannot be cast is an error that names it.
func TestCastsThatDoNotExist(t *testing.T) {
	x := small(chunk.Uint8, 0)
	grid := [6]float64{500000, 10, 0, 5000000, 0, -10}
	a := catalog.Asset{URI: "a.tif", Index: x, Place: catalog.NewPlace(32631, &grid, 4, 4)}
	r := NewReader(resources.Options{Opener: &brokenFile{size: 100, fails: -1}}.WithDefaults())
	none := &Converters{Base: einops.Convert{From: chunk.Complex64, To: chunk.Float32}}
	check := func(what string, err error) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), "complex64 to float32") ||
			what != "colours" && !strings.HasPrefix(err.Error(), "a.tif: ") {
			t.Errorf("%s: %v", what, err)
		}
	}
	check("planes", r.Planes(t.Context(), a, []int{0}, shuffle.Box{H: 1, W: 1}, none, 1))
	f, err := NewRaster(spec.Field{DType: "native", Layout: spec.DefaultLayout,
		LUT: &spec.LUT{Colours: [][]int{{1, 2, 3}}, To: []spec.Values{{5}}}}, 0, x)
	if err != nil {
		t.Fatal(err)
	}
	f.SetSize(1, 1)
	read := func(*Row, *Converters) error { return errRead }
	if err := r.Coloured(f, x, &Row{}, nil, read); !errors.Is(err, errRead) {
		t.Errorf("colours whose bands are not read: %v", err)
	}
	f.Final = none
	check("colours", r.Coloured(f, x, &Row{}, nil, nil))
	if f, err = NewRaster(spec.Field{DType: "native", Layout: spec.DefaultLayout}, 0, x); err != nil {
		t.Fatal(err)
	}
	f.SetSize(4, 4)
	if err := r.Coloured(f, x, nil, none, func(to *Row, c *Converters) error {
		if to != nil || c != none {
			t.Error("a field without colours has another row, or other casts")
		}
		return errRead
	}); !errors.Is(err, errRead) || f.Tensor() != f {
		t.Errorf("a field without colours: %v", err)
	}
	f.Final = none
	m, err := OnGround(warp.Raster{CRS: sameCRS, Transform: grid, Height: 4, Width: 4}, &a)
	if err != nil {
		t.Fatal(err)
	}
	check("a mosaic", r.Mosaic(&Row{Field: f}, spec.MosaicFirst).Add(t.Context(), f, a, f.Picked, m, true, 1<<20))
	if _, err := OnGround(warp.Raster{CRS: sameCRS, Transform: grid, Height: 4}, &a); err == nil {
		t.Error("a window without columns")
	}
	stack := catalog.Asset{Index: x, Parts: []catalog.Asset{{URI: "b.tif", Index: small(chunk.Complex64, 0)}}}
	for _, way := range []string{"", spec.Bilinear} {
		f, err := NewRaster(spec.Field{DType: "float32", Layout: spec.DefaultLayout, Resample: way}, 0, x)
		if err != nil {
			t.Fatal(err)
		}
		if err := f.CompileParts(&stack); fault.KindOf(err) != fault.Unsupported ||
			!strings.HasPrefix(err.Error(), "b.tif: ") {
			t.Errorf("a part, %q: %v", way, err)
		}
	}
	defer func() {
		if recover() == nil {
			t.Error("pixels that the window needs are left out")
		}
	}()
	new(Resampler).pickAll(m, chunk.Box{Y1: 3, X1: 4}, 16)
}
