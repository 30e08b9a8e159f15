package tiff

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/format/chunk/blob"
	"github.com/chaski-eo/chaski/tools/testkit/corpus"
	"github.com/chaski-eo/chaski/tools/testkit/race"
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

// coded is a line of testdata/codecs/manifest.jsonl: a file, and its samples as another implementation of its
// codec reads them.
type coded struct {
	Path   string
	Shape  []int
	DType  string
	SHA256 string
	Mask   bool
}

// TestCodings: images of codecs that know about pixels, and of samples of odd widths, have the samples that
// other implementations read.
func TestCodings(t *testing.T) {
	race.SkipCovered(t)
	dir := filepath.Join(corpus.Testdata(t), "codecs")
	rows := corpus.Rows[coded](t, dir)
	if len(rows) < 15 {
		t.Fatalf("%d files", len(rows))
	}
	for _, f := range rows {
		t.Run(f.Path, func(t *testing.T) { checkCoded(t, dir, f) })
	}
}

// TestRandomCodings is TestCodings with random files. CHASKI_ORACLE_PYTHON names a Python with rasterio,
// tifffile, imagecodecs and Pillow.
func TestRandomCodings(t *testing.T) {
	python := os.Getenv("CHASKI_ORACLE_PYTHON")
	if python == "" {
		t.Skip("CHASKI_ORACLE_PYTHON names no Python with rasterio, tifffile and imagecodecs")
	}
	count := 150
	if testing.Short() {
		count = 50
	}
	dir := t.TempDir()
	script := filepath.Join(corpus.Testdata(t), "codecs", "write.py")
	if out, err := exec.Command(python, script, dir, "7", strconv.Itoa(count)).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	rows := corpus.Rows[coded](t, dir)
	if 3*len(rows) < 8*count {
		t.Fatalf("%d files", len(rows))
	}
	for _, f := range rows {
		t.Run(f.Path, func(t *testing.T) { checkCoded(t, dir, f) })
	}
}

func checkCoded(t *testing.T, dir string, f coded) {
	b := testfile.Read(t, filepath.Join(dir, f.Path))
	img, pix, err := decode(b)
	if err != nil {
		t.Fatal(err)
	}
	checkPixels(t, img.Index, pix, f.Shape, f.DType, f.SHA256)
	if img.Meta.HasMask != f.Mask {
		t.Errorf("mask %v", img.Meta.HasMask)
	}
	y, err := blob.Parse(blob.Append(nil, img.Index), 64<<20)
	if err != nil {
		t.Fatal(err)
	}
	d := chunk.NewDecoder(nil)
	for i, r := range y.Ranges {
		checkRows(t, d, y, i, b[r.Off:][:r.Len])
	}
}

// TestQuantisationOfTheFirstScan: a table that a progressive stream replaces after the first scan of a component
// does not change the component's samples (ITU-T T.81, B.2.4.1; libjpeg keeps a copy).
func TestQuantisationOfTheFirstScan(t *testing.T) {
	b := testfile.Read(t, filepath.Join(corpus.Testdata(t), "codecs", "jpeg-progressive-gray.tif"))
	img, err := Open(t.Context(), &corpus.Mem{B: b}, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	x, r := img.Index, img.Index.Ranges[0]
	src := b[r.Off:][:r.Len]
	scan := []byte{0xff, 0xda}
	second := bytes.Index(src, scan) + 2
	second += bytes.Index(src[second:], scan)
	ones := append([]byte{0xff, 0xdb, 0, 67, 0}, bytes.Repeat([]byte{1}, 64)...)
	changed := slices.Concat(src[:second], ones, src[second:])
	want, got := make([]byte, x.DecodedBytes(0)), make([]byte, x.DecodedBytes(0))
	d := chunk.NewDecoder(nil)
	if err := d.Decode(want, src, x, 0); err != nil {
		t.Fatal(err)
	}
	if err := d.Decode(got, changed, x, 0); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Error("other samples")
	}
}

// checkRows: the first pixels of a chunk, decoded alone, are those of the whole.
func checkRows(t *testing.T, d *chunk.Decoder, x *chunk.Index, i int, src []byte) {
	_, h, w := x.DecodedShape(i)
	want, got := make([]byte, x.DecodedBytes(i)), make([]byte, x.DecodedBytes(i))
	if err := d.Decode(want, src, x, i); err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{0, w, h / 2 * w, h/2*w + w/2, (h - 1) * w, h*w - 1, h * w} {
		if err := d.DecodeFirst(got, src, x, i, n); err != nil {
			t.Fatal(err)
		}
		if n := n * (len(want) / (h * w)); !bytes.Equal(got[:n], want[:n]) {
			t.Errorf("chunk %d: other samples in its first %d pixels", i, n)
		}
	}
}

// addTiles gives a fuzz target the chunks of the files of a codec, with their shapes.
func addTiles(f *testing.F, codec chunk.Codec) {
	dir := filepath.Join(corpus.Testdata(f), "codecs")
	for _, row := range corpus.Rows[coded](f, dir) {
		b, err := os.ReadFile(filepath.Join(dir, row.Path))
		if err != nil {
			f.Fatal(err)
		}
		img, err := Open(context.Background(), &corpus.Mem{B: b}, Limits{})
		if err != nil {
			f.Fatal(err)
		}
		x := img.Index
		if x.Codec != codec {
			continue
		}
		for i, r := range x.Ranges {
			n, h, w := x.DecodedShape(i)
			f.Add(b[r.Off:][:r.Len], x.Params, uint8(n-1), uint16(h-1), uint16(w-1), uint8(x.DType-1), uint16(h))
		}
	}
}

// fuzzTiles: any bytes and parameters are refused with a kind, or are samples: the same from a new decoder and a
// used one, and the same whether all rows or the first ones are asked for. Nothing outside of dst is
// written, and memory is bounded by the tile and its bytes.
func fuzzTiles(f *testing.F, codec chunk.Codec) {
	addTiles(f, codec)
	used := chunk.Registered()[codec]()
	f.Fuzz(func(t *testing.T, src, params []byte, bands uint8, h, w uint16, dtype uint8, rows uint16) {
		tile := chunk.Tile{
			Bands: int(bands%8) + 1, Height: int(h%150) + 1, Width: int(w%150) + 1,
			DType: chunk.DType(dtype%17 + 1), Params: params,
		}
		tile.Rows, tile.LeastRows, tile.MaxHeight = tile.Height, tile.Height, tile.Height
		const guard = 0x5a
		size := tile.Bands * tile.Height * tile.Width * tile.DType.Size()
		a, b := bytes.Repeat([]byte{guard}, size+1), make([]byte, size+1)
		var err error
		fresh := chunk.Registered()[codec]()
		n := corpus.Allocated(func() { err = fresh.Decompress(a[:size:size], src, &tile) })
		each := 16
		if codec == chunk.WebP { // whose tables of codes follow the bytes, 57 for each, but not beyond the pixels
			each = 64
		}
		bound := uint64(1<<20 + each*size + each*len(src))
		if codec == chunk.LERC && len(params) == 2 && params[0] == chunk.LERCZstd {
			bound += 9 << 20 // a stream takes the window that a frame claims, up to 8 MiB, and 1.5 MB
		}
		if codec == chunk.YCbCr && len(params) > 0 && chunk.Codec(params[0]) == chunk.LZMA {
			bound += min(uint64(len(src))<<12, 4<<20) // as FuzzDecode of xz has it; its last chunk has 2 MiB at most
		}
		if n > bound {
			t.Fatalf("%d bytes allocated for a tile of %d bytes, stored as %d", n, size, len(src))
		}
		if a[size] != guard {
			t.Fatal("a write past dst")
		}
		again := used.Decompress(b[:size:size], src, &tile)
		if (err == nil) != (again == nil) {
			t.Fatalf("a new decoder says %v, a used one %v", err, again)
		}
		if err != nil {
			if fault.KindOf(err) == 0 {
				t.Fatalf("error without a kind: %v", err)
			}
			return
		}
		if !bytes.Equal(a[:size], b[:size]) {
			t.Fatal("a new decoder and a used one differ")
		}
		tile.Rows = int(rows) % (tile.Height + 1)
		if err := used.Decompress(b[:size:size], src, &tile); err != nil {
			t.Fatalf("the first %d rows of a good tile: %v", tile.Rows, err)
		}
		if n := size / tile.Height * tile.Rows; !bytes.Equal(a[:n], b[:n]) {
			t.Fatalf("the first %d rows differ", tile.Rows)
		}
	})
}

func FuzzJPEG(f *testing.F) { fuzzTiles(f, chunk.JPEG) }

func FuzzLERC(f *testing.F) { fuzzTiles(f, chunk.LERC) }

func FuzzYCbCr(f *testing.F) {
	// An xz stream whose only chunk states 1 MiB: 0xf0 0000 and 0x0083, each of them plus one, are its size and its
	// bytes, of which there are 132.
	stream := []byte("\xfd7zXZ\x00\x00\x00\xff\x12\xd9\x41" + "\x02\x00\x21\x01\x16\x00\x00\x00\x74\x2f\xe5\xa3" +
		"\xf0\x00\x00\x00\x83\x5d" + strings.Repeat("\x00", 132))
	f.Add(stream, append([]byte{byte(chunk.LZMA), 2, 2}, make([]byte, colorimetry)...), uint8(2), uint16(9), uint16(18),
		uint8(chunk.Uint8-1), uint16(9))
	fuzzTiles(f, chunk.YCbCr)
}

func FuzzWebP(f *testing.F) { fuzzTiles(f, chunk.WebP) }

// TestFlippedBits: a flipped bit of a chunk that has a checksum is refused, or changes no sample, also where it makes
// the stream longer than the chunk, and where writers pad the last strip.
func TestFlippedBits(t *testing.T) {
	race.SkipCovered(t)
	flip := func(name string, src, want []byte, read func(src []byte) ([]byte, error)) {
		changed, step := 0, max(1, len(src)/100)
		if testing.Short() {
			step *= 3
		}
		for i := 0; i < 8*len(src); i += step {
			src[i/8] ^= 1 << (i % 8)
			if got, err := read(src); err == nil && !bytes.Equal(got, want) {
				changed++
			}
			src[i/8] ^= 1 << (i % 8)
		}
		if got, err := read(src); err != nil || !bytes.Equal(got, want) || changed > 0 {
			t.Errorf("%s: %d flipped bits change samples; without one: %v", name, changed, err)
		}
	}
	for _, name := range []string{"ycbcr-8", "ycbcr-34925", "lerc-deflate", "lzma-crc32", "lzma-delta"} {
		b := testfile.Read(t, filepath.Join(corpus.Testdata(t), "codecs", name+".tif"))
		img, want, err := decode(b)
		if err != nil {
			t.Fatal(err)
		}
		r := img.Index.Ranges[0]
		flip(name, b[r.Off:][:r.Len], want, func([]byte) ([]byte, error) {
			_, pix, err := decode(b)
			return pix, err
		})
	}
	content := bytes.Repeat(payloads()["steps"][:20000], 14) // three blocks of zstd
	for codec, src := range encoded(t, content) {
		d := chunk.Registered()[codec]()
		for _, n := range []int{len(content), len(content) - 50, len(content) / 2} {
			if codec == chunk.Deflate || codec == chunk.Zstd {
				flip(fmt.Sprintf("%v, %d bytes", codec, n), src, content[:n], func(src []byte) ([]byte, error) {
					dst := make([]byte, n)
					return dst, all(d, dst, src)
				})
			}
		}
	}
}
