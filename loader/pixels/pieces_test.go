package pixels_test

import (
	"bytes"
	"compress/zlib"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/loader/pixels"
	"github.com/chaski-eo/chaski/loader/resources"
	"github.com/chaski-eo/chaski/store/catalog"
	"github.com/chaski-eo/chaski/tiff"
	"github.com/chaski-eo/chaski/tools/testkit/corpus"
	"github.com/chaski-eo/chaski/tools/testkit/folder"
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

// samplesOf reads a box and returns its samples, with engines that take chunks of that many bytes whole.
func samplesOf(x *chunk.Index, file []byte, box chunk.Box, most int) (map[[3]int]string, error) {
	r := pixels.NewReader(resources.Options{Opener: folder.OneFile(file), MaxChunkBytes: most}.WithDefaults())
	g := &gather{got: map[[3]int]string{}, box: box}
	return g.got, r.Read(context.Background(), catalog.Asset{URI: "f", Index: x}, box, nil, g, nil)
}

// TestPiecesOfRealFiles: of real files of every codec and layout, and of damaged ones, chunks over the limit give the
// samples, and the faults, of chunks that are decoded as a whole.
func TestPiecesOfRealFiles(t *testing.T) {
	rnd := rand.New(rand.NewPCG(31, 32))
	read, refused := map[chunk.Codec]int{}, 0
	files, err := filepath.Glob(filepath.Join(corpus.Testdata(t), "tiffs", "*.tif"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range corpus.Files(t) {
		files = append(files, filepath.Join(f.Dir, f.Path))
	}
	if testing.Short() {
		t.Skip("one goroutine decodes, which takes the race detector 9 s")
	}
	for _, path := range files {
		if filepath.Ext(path) != ".tif" {
			continue
		}
		b := testfile.Read(t, path)
		img, err := tiff.Open(context.Background(), &corpus.Mem{B: b}, tiff.Limits{})
		if err != nil || img.Index.Height*img.Index.Width*img.Index.Bands > 1<<15 {
			continue
		}
		x := img.Index
		rowOf := *x
		rowOf.ChunkH, rowOf.CutEdge = 1, true
		most := rowOf.MaxDecodedBytes() * (1 + rnd.IntN(x.ChunkH))
		if x.InPieces(most) == nil {
			continue
		}
		all := chunk.Box{B1: x.Bands, Y1: x.Height, X1: x.Width}
		want, wantErr := samplesOf(x, b, all, 1<<30)
		got, err := samplesOf(x, b, all, most)
		if err == nil && wantErr != nil && !x.CutEdge && x.Height%x.ChunkH != 0 {
			continue // in pieces, the rows of a tile below the image are not looked at
		}
		if wantErr != nil && errors.Is(err, fault.Limit) && strings.Contains(err.Error(), "claims a window") {
			refused++ // a frame whose claim is too large in either way
			continue
		}
		if fault.KindOf(err) != fault.KindOf(wantErr) || (err == nil) != (wantErr == nil) ||
			err != nil && partOfError(err) != partOfError(wantErr) {
			t.Fatalf("%s: in pieces %v, as a whole %v", path, err, wantErr)
		}
		if err != nil {
			refused++
			continue
		}
		same(t, path, x, all, got, want)
		for range 3 {
			y0, x0 := rnd.IntN(x.Height), rnd.IntN(x.Width)
			box := chunk.Box{B1: x.Bands, Y0: y0, X0: x0, Y1: y0 + 1 + rnd.IntN(x.Height-y0),
				X1: x0 + 1 + rnd.IntN(x.Width-x0)}
			got, err := samplesOf(x, b, box, most)
			if err != nil {
				t.Fatalf("%s %+v: %v", path, box, err)
			}
			same(t, path, x, box, got, want)
		}
		read[x.Codec]++
	}
	if read[chunk.Zstd] == 0 || read[chunk.Deflate] == 0 || refused == 0 {
		t.Errorf("files read, by codec: %v; refused: %d", read, refused)
	}
	t.Logf("files read, by codec: %v; refused: %d", read, refused)
}

// partOfError returns file, part and offset of an error, without what the codec says.
func partOfError(err error) string {
	var e *fault.Error
	errors.As(err, &e)
	return fmt.Sprint(e.File, " ", strings.Fields(e.Part)[:2], " ", e.Off)
}

// same holds the samples of a box to those of the whole image.
func same(t *testing.T, path string, x *chunk.Index, box chunk.Box, got, want map[[3]int]string) {
	t.Helper()
	if n := (box.B1 - box.B0) * (box.Y1 - box.Y0) * (box.X1 - box.X0); len(got) != n {
		t.Fatalf("%s %+v: %d samples of %d", path, box, len(got), n)
	}
	for at, v := range got {
		if v != want[at] {
			t.Fatalf("%s %+v: other samples, at %v", path, box, at)
		}
	}
}

// TestPiecesNameWhereAStripIsDamaged: the fault of a strip that is decoded in pieces has its file, its number, its
// offset and its kind.
func TestPiecesNameWhereAStripIsDamaged(t *testing.T) {
	content := make([]byte, 3000)
	var z bytes.Buffer
	zw := zlib.NewWriter(&z)
	if _, err := zw.Write(content); err != nil {
		t.Fatal(err)
	}
	zw.Close()
	file := append(make([]byte, 50), z.Bytes()...)
	x := &chunk.Index{Bands: 1, Height: 30, Width: 100, ChunkB: 1, ChunkH: 30, ChunkW: 100, DType: chunk.Uint8,
		Codec: chunk.Deflate, Predictor: chunk.NoPredictor, Ranges: []chunk.Range{{Off: 50, Len: int64(z.Len())}}}
	box := chunk.Box{B1: 1, Y1: 30, X1: 100}
	if _, err := samplesOf(x, file, box, 500); err != nil {
		t.Fatal(err)
	}
	file[len(file)-1] ^= 1
	_, err := samplesOf(x, file, box, 500)
	if !errors.Is(err, fault.Corrupt) || !strings.HasPrefix(err.Error(), "f: chunk 0 deflate at 50: ") ||
		!strings.Contains(err.Error(), "checksum") {
		t.Errorf("a wrong checksum: %v", err)
	}
	x.Ranges[0].Len++
	if _, err := samplesOf(x, file, box, 500); !errors.Is(err, fault.Corrupt) ||
		!strings.Contains(err.Error(), "past the file") {
		t.Errorf("a range past the end: %v", err)
	}
	x.Ranges[0].Len = int64(z.Len()) / 2
	if _, err := samplesOf(x, file, box, 500); !errors.Is(err, fault.Corrupt) ||
		!strings.HasPrefix(err.Error(), "f: chunk 0 deflate at 50: ") {
		t.Errorf("a strip that is cut: %v", err)
	}
	if _, err := samplesOf(x, file, box, 99); !errors.Is(err, fault.Limit) ||
		!strings.Contains(err.Error(),
			"a row of a chunk of (1, 30, 100) uint8 decodes to 100 bytes, over max_chunk, which is 99") {
		t.Errorf("a row over the limit: %v", err)
	}
	x.Codec = chunk.OpenZL
	if _, err := samplesOf(x, file, box, 500); !errors.Is(err, fault.Limit) ||
		!strings.Contains(err.Error(), "decodes to 3000 bytes, over max_chunk, which is 500") ||
		!strings.Contains(err.Error(), "whole") {
		t.Errorf("a codec without pieces: %v", err)
	}
}

// TestWindowsOfFrames: a frame of zstd that is decoded in pieces may claim a window as large as the largest chunk, and
// no larger one. All rows of a chunk are checked, also when no window asks for them.
func TestWindowsOfFrames(t *testing.T) {
	const rows, width, window = 17 << 10, 1024, 16 << 20
	frame := []byte{0x28, 0xb5, 0x2f, 0xfd, 0, 14 << 3} // RFC 8878: a window of 2^14 KiB; the content's size is unknown
	for rest := rows * width; rest > 0; rest -= 128 << 10 {
		header := uint32(min(rest, 128<<10)<<3 | 1<<1) // a block of one byte, repeated
		if rest <= 128<<10 {
			header |= 1 // the last one
		}
		frame = append(frame, byte(header), byte(header>>8), byte(header>>16), 7)
	}
	x := &chunk.Index{Bands: 1, Height: rows, Width: width, ChunkB: 1, ChunkH: rows, ChunkW: width, DType: chunk.Uint8,
		Codec: chunk.Zstd, Predictor: chunk.NoPredictor, Ranges: []chunk.Range{{Len: int64(len(frame))}}}
	for limit, kind := range map[int]fault.Kind{window - 1: fault.Limit, window: 0, window + 1: 0} {
		got, err := samplesOf(x, frame, chunk.Box{B1: 1, Y1: 1, X1: width}, limit)
		if fault.KindOf(err) != kind || kind == 0 && len(got) != width {
			t.Errorf("a window of 16 MiB, chunks up to %d: %d samples, %v", limit, len(got), err)
		}
	}
	file := folder.OneFile(frame)
	for n, kind := range map[int64]fault.Kind{int64(len(frame)): 0, int64(len(frame)) - 1: fault.Corrupt} {
		x.Ranges[0].Len = n
		r := pixels.NewReader(resources.Options{Opener: file, MaxChunkBytes: window}.WithDefaults())
		f, err := file.Open(t.Context(), "f")
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Check(t.Context(), f, x, 0); fault.KindOf(err) != kind {
			t.Errorf("%d bytes of %d: %v", n, len(frame), err)
		}
	}
}
