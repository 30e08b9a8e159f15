package loader

import (
	"bytes"
	"compress/zlib"
	"context"
	"encoding/binary"
	"errors"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/loader/pixels"
	"github.com/chaski-eo/chaski/loader/raster"
	"github.com/chaski-eo/chaski/loader/resources"
	"github.com/chaski-eo/chaski/tiff/ifdwrite"
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

// writeStrip writes a TIFF of one deflate strip: h rows of w bytes, each row its number modulo 251.
func writeStrip(t *testing.T, h, w int) string {
	t.Helper()
	var z bytes.Buffer
	zw := zlib.NewWriter(&z)
	for y := range h {
		if _, err := zw.Write(bytes.Repeat([]byte{byte(y % 251)}, w)); err != nil {
			t.Fatal(err)
		}
	}
	if err := zw.Close(); err != nil {
		t.Fatal(err)
	}
	const dir = 16
	fields := []ifdwrite.Field{
		ifdwrite.Longs(256, uint32(w)), ifdwrite.Longs(257, uint32(h)), ifdwrite.Shorts(258, 8),
		ifdwrite.Shorts(259, 8), ifdwrite.Shorts(262, 1), ifdwrite.Long8s(273, 0), ifdwrite.Shorts(277, 1),
		ifdwrite.Longs(278, uint32(h)), ifdwrite.Long8s(279, uint64(z.Len())),
	}
	at := ifdwrite.End(dir, fields)
	binary.LittleEndian.PutUint64(fields[5].Data, uint64(at))
	file := append(ifdwrite.AppendDirectory(ifdwrite.AppendHeader(nil, dir), dir, fields), z.Bytes()...)
	path := filepath.Join(t.TempDir(), "strip.tif")
	testfile.Write(t, path, file)
	return path
}

// TestMaxChunkRaised: a strip over the limit is read in pieces, and as a whole with a higher limit. Both give
// the same samples.
func TestMaxChunkRaised(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine decodes 72 MB twice, which takes the race detector 15 s")
	}
	const h, w = 9000, 8000 // 72 MB
	path := writeStrip(t, h, w)
	o := raster.ReadOptions{
		Y: raster.Selection{Slice: true, Start: 100, Stop: 103},
		X: raster.Selection{Slice: true, Start: 7990, Stop: w},
	}
	want := append(append(bytes.Repeat([]byte{100}, 10), bytes.Repeat([]byte{101}, 10)...),
		bytes.Repeat([]byte{102}, 10)...)
	for _, most := range []int{0, h * w} {
		o.Options.MaxChunkBytes = most
		a, err := raster.Read(t.Context(), []string{path}, o)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(a.Data, want) {
			t.Errorf("max_chunk %d: %v", most, a.Data)
		}
	}
	// Borrowed readers keep no large memory.
	r := pixels.BorrowReader(o.Options.WithDefaults())
	defer r.GiveBack()
	if cap(r.Samples) > resources.DefaultMaxChunkBytes || cap(r.Stored) > resources.DefaultMaxChunkBytes {
		t.Errorf("a reader keeps %d and %d bytes", cap(r.Samples), cap(r.Stored))
	}
}

// TestLargeChunksAreBounded: only as many large chunks are in memory as there is room for, but
// always one.
func TestLargeChunksAreBounded(t *testing.T) {
	x := &chunk.Index{
		Bands: 1, Height: 10_000, Width: 10_000, ChunkB: 1,
		ChunkH: 10_000, ChunkW: 10_000, DType: chunk.Uint8,
	}
	for room, want := range map[int64]int64{1: 1, 399_999_999: 1, 400_000_000: 2, 600_000_000: 3} {
		l := resources.NewLargeChunks(room)
		var held, most atomic.Int64
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				for range 50 {
					done, err := l.Take(t.Context(), x)
					if err != nil {
						t.Error(err)
						return
					}
					n := held.Add(1)
					for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
					}
					held.Add(-1)
					done()
				}
			})
		}
		all.Wait()
		if most.Load() > want {
			t.Errorf("%d of room: %d at a time, at most %d", room, most.Load(), want)
		}
		first, err := l.Take(t.Context(), x)
		if err != nil {
			t.Fatal(err)
		}
		if want == 1 {
			over, cancel := context.WithCancel(t.Context())
			cancel()
			if _, err := l.Take(over, x); !errors.Is(err, context.Canceled) {
				t.Errorf("%d of room: a second chunk: %v", room, err)
			}
		}
		first()
	}
}
