package pixels

import (
	"bufio"
	"context"
	"errors"
	"io"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/loader/resources"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/catalog"
)

// The times that a slow file, codec and sink take, in a clock that only they move.
const (
	sOther, sOpen, sRead, sTurn, sDecode, sScatter = time.Second, 2 * time.Second, 3 * time.Second, 4 * time.Second,
		5 * time.Second, 6 * time.Second
)

// slowFile opens a file of zeros that is slow.
type slowFile struct{ size int64 }

func (f slowFile) Open(context.Context, string) (source.Reader, error) {
	time.Sleep(sOpen)
	return f, nil
}

func (slowFile) ReadAt(context.Context, []byte, int64) error {
	time.Sleep(sRead)
	return nil
}

func (f slowFile) Size() int64 { return f.size }
func (slowFile) Close() error  { return nil }

// slowCodec decodes nothing, slowly, and fails if err is set.
type slowCodec struct{ err error }

func (c slowCodec) Decompress([]byte, []byte, *chunk.Tile) error {
	time.Sleep(sDecode)
	return c.err
}

func (c slowCodec) Stream(src *bufio.Reader, _ int) (chunk.Stream, error) {
	return slowStream{src}, nil
}

type slowStream struct{ src *bufio.Reader }

func (s slowStream) Fill([]byte) error {
	if _, err := s.src.ReadByte(); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	time.Sleep(sDecode)
	return nil
}

func (slowStream) End() error { return nil }
func (slowStream) Close()     {}

// slowArray is an array whose reader says when it decodes.
type slowArray struct{ turn func() func() }

func (a *slowArray) Open() chunk.BlockReader    { return a }
func (a *slowArray) SetTurn(turn func() func()) { a.turn = turn }

func (a *slowArray) ReadBox(context.Context, []byte, int64, chunk.Box) error {
	time.Sleep(sOpen + sRead)
	done := a.turn()
	time.Sleep(sDecode)
	done()
	return nil
}

// slowSink takes chunks slowly.
// slowDisk is a cache on disk that takes time to say that it has nothing.
type slowDisk struct{ source.DiskCache }

func (slowDisk) Has(any, source.Range) bool {
	time.Sleep(sOther)
	return false
}

type slowSink struct{ put func() }

func (s slowSink) Put(*chunk.Index, int, []byte) {
	time.Sleep(sScatter)
	s.put()
}

func slowReader(o resources.Options, err error) *Reader {
	r := NewReader(o.WithDefaults())
	r.Decoder = chunk.NewDecoder(chunk.Codecs{chunk.Zstd: func() chunk.Decompressor { return slowCodec{err} }})
	return r
}

// TestStagesOfAReader: a reader counts each moment in the stage that it passes in, whether a chunk is decoded whole, in
// pieces of a row, or by an array. Of remote files, it is one of the decoders after it has read, and until it has
// decoded.
func TestStagesOfAReader(t *testing.T) {
	whole := &chunk.Index{Bands: 1, Height: 4, Width: 3, ChunkB: 1, ChunkH: 4, ChunkW: 3, DType: chunk.Uint8,
		Codec: chunk.Zstd, Predictor: chunk.NoPredictor, Ranges: []chunk.Range{{Off: 1, Len: 2}}}
	array := *whole
	array.Codec, array.Ranges = 0, nil
	for name, c := range map[string]struct {
		x        *chunk.Index
		maxChunk int
		pieces   int
		waits    bool
		asks     int  // how often it asks a slow cache on disk; 0 without one
		silent   bool // the decoder does not tell the predictor's time from the codec's
	}{
		"a chunk": {x: whole, pieces: 1}, "pieces": {x: whole, maxChunk: 3, pieces: 4},
		"an array":                   {x: array.WithBlocks(chunk.Blocks{Array: &slowArray{}}), pieces: 1},
		"a remote chunk":             {x: whole, pieces: 1, waits: true},
		"remote pieces":              {x: whole, maxChunk: 3, pieces: 4, waits: true},
		"a remote array":             {x: array.WithBlocks(chunk.Blocks{Array: &slowArray{}}), pieces: 1, waits: true},
		"a cache on disk":            {x: whole, pieces: 1, waits: true, asks: 2},
		"a chunk and its predictor":  {x: whole, pieces: 1, silent: true},
		"pieces and their predictor": {x: whole, maxChunk: 3, pieces: 4, silent: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var stages resources.Stages
				r := slowReader(resources.Options{Opener: slowFile{9}, MaxChunkBytes: c.maxChunk}, nil)
				r.large = resources.NewLargeChunks(1)
				if _, err := r.large.TakeBytes(t.Context(), 1); err != nil { // small chunks need no room there
					t.Fatal(err)
				}
				decoders, waited := resources.NewDecoders(1), time.Duration(0)
				if c.waits {
					waited = sTurn
					decoders.Begin(nil)
					go func() {
						time.Sleep(sOther + sOpen + sRead + sTurn + time.Duration(c.asks)*sOther)
						decoders.End(nil)
					}()
				}
				r.decoders, r.waits = decoders, c.waits
				if c.asks > 0 {
					r.disk = slowDisk{}
				}
				clock := stages.Clock()
				r.SetClock(clock)
				decoded := resources.StageDecode
				if c.silent {
					r.Decoder.Decompressed, decoded = nil, resources.StagePredictor
				}
				time.Sleep(sOther)
				puts := 0
				sink := slowSink{func() {
					if puts++; c.waits && !decoders.AllBusy() && c.x.Blocks == nil {
						t.Error("it decodes and is none of the decoders")
					}
				}}
				err := r.Read(t.Context(), catalog.Asset{URI: "a", Index: c.x}, chunk.Box{B1: 1, Y1: 4, X1: 3}, nil,
					sink, nil)
				if err != nil || decoders.AllBusy() || puts != c.pieces {
					t.Errorf("%d pieces; a decoder is left: %v; %v", puts, decoders.AllBusy(), err)
				}
				time.Sleep(sOther)
				clock.Stop()
				n := time.Duration(c.pieces)
				want := resources.Spent{resources.StageRead: sOpen + sRead, resources.StageScatter: n * sScatter,
					resources.StageTurn: waited, resources.StageOther: time.Duration(2+c.asks) * sOther}
				want[decoded] = n * sDecode
				if got := stages.Spent(); got != want {
					t.Errorf("stages of %v, want %v", got, want)
				}
				if chunks, bytes := stages.Decoded(); chunks != 1 || bytes != 12 {
					t.Errorf("%d chunks of %d bytes", chunks, bytes)
				}
			})
		})
	}
}

// TestRoomForLargeChunks: a chunk over 64 MiB waits for room for its stored and its decoded bytes, which it gives back
// with its memory, whether it can be decoded or not. Nobody else waits for it.
func TestRoomForLargeChunks(t *testing.T) {
	const side = 1 << 13
	x := &chunk.Index{Bands: 1, Height: side + 1, Width: side, ChunkB: 1, ChunkH: side + 1, ChunkW: side,
		DType: chunk.Uint8, Codec: chunk.Zstd, Predictor: chunk.NoPredictor, Ranges: []chunk.Range{{Len: 2}}}
	const need, spare = 2 * (side + 1) * side, 10
	broken := fault.New(fault.Corrupt, "frame", "broken")
	for _, fails := range []error{nil, broken} {
		synctest.Test(t, func(t *testing.T) {
			var stages resources.Stages
			r := slowReader(resources.Options{Opener: slowFile{9}, MaxChunkBytes: 1 << 30}, fails)
			r.large = resources.NewLargeChunks(need + spare)
			r.Share = Shared{Tiles: NewTileCache(1 << 30)}
			leave, err := r.large.TakeBytes(t.Context(), spare+1)
			if err != nil {
				t.Fatal(err)
			}
			takes := func(n int64) bool {
				ctx, cancel := context.WithTimeout(t.Context(), time.Nanosecond)
				defer cancel()
				done, err := r.large.TakeBytes(ctx, n)
				if err == nil {
					done()
				}
				return err == nil
			}
			clock := stages.Clock()
			r.SetClock(clock)
			asset, box := catalog.Asset{URI: "a", Index: x}, chunk.Box{B1: 1, Y1: 1, X1: side}
			ctx, cancel := context.WithTimeout(t.Context(), sOther)
			defer cancel()
			if err := r.Read(ctx, asset, box, nil, Nowhere{}, nil); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("without room: %v", err)
			}
			go func() {
				time.Sleep(sTurn)
				leave()
			}()
			puts := 0
			sink := slowSink{func() {
				if puts++; !takes(spare) || takes(spare+1) {
					t.Errorf("it does not take %d bytes", need)
				}
			}}
			err = r.Read(t.Context(), asset, box, nil, sink, nil)
			if !errors.Is(err, fault.KindOf(fails)) && (fails != nil || err != nil) || (puts == 1) != (fails == nil) {
				t.Errorf("%d chunks, %v; want %v", puts, err, fails)
			}
			clock.Stop()
			// The first time, it has no time left when the file is open.
			if got := stages.Spent()[resources.StageMemory]; got != sTurn-sOpen {
				t.Errorf("it waits %v for room, want %v", got, sTurn-sOpen)
			}
			if !takes(need+spare) || r.Samples != nil || r.Stored != nil || len(r.Share.Tiles.By) > 0 {
				t.Error("it keeps room or memory, or shares the chunk")
			}
		})
	}
}

// TestStoredBytesInParts: the stored bytes of a chunk that is decoded in pieces come in reads of any length.
func TestStoredBytesInParts(t *testing.T) {
	const begin, end = 7, 507
	file := make([]byte, 600)
	for i := range file {
		file[i] = byte(i * i / 7)
	}
	read := &parts{ctx: t.Context(), r: NewReader(resources.Options{}.WithDefaults()), f: source.Memory(file),
		rest: chunk.Range{Off: begin, Len: end - begin}}
	if err := iotest.TestReader(read, file[begin:end]); err != nil {
		t.Error(err)
	}
	*read = parts{ctx: t.Context(), r: read.r, f: &brokenFile{err: errRead}, rest: chunk.Range{Len: 9}}
	if n, err := read.Read(make([]byte, 5)); n != 0 || !errors.Is(err, errRead) {
		t.Errorf("%d bytes of a read that fails: %v", n, err)
	}
}
