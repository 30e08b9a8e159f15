package tiff

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/tiff/ifd"
	"github.com/chaski-eo/chaski/tiff/ifdwrite"
	"github.com/chaski-eo/chaski/tools/testkit/corpus"
)

//go:embed testdata/write_masks.py
var maskScript string

// readMask returns the whole mask of a file, one byte for each pixel or, band after band, each
// sample, and its structure.
func readMask(file []byte) (*chunk.Index, []byte, error) {
	f, err := ifd.Open(context.Background(), &corpus.Mem{B: file}, ifd.Limits{})
	if err != nil {
		return nil, nil, err
	}
	ctx := context.Background()
	tags := f.Tags(ctx, &f.Dirs[0])
	w, h := tags.Uint(ifd.TagImageWidth, 0), tags.Uint(ifd.TagImageLength, 0)
	bands := tags.Uint(ifd.TagSamplesPerPixel, 1)
	if tags.Err != nil {
		return nil, nil, tags.Err
	}
	image := &chunk.Index{
		Width: int(min(w, chunk.MaxSide)), Height: int(min(h, chunk.MaxSide)),
		Bands: int(min(bands, chunk.MaxBands)),
	}
	x, err := OpenMask(ctx, f, image, Limits{MaxChunk: 1 << 20})
	if x == nil || err != nil {
		return nil, nil, err
	}
	if x.Height > 1<<22/x.Width/x.Bands {
		return nil, nil, fault.New(fault.Limit, "mask", "too large for a test")
	}
	out, d, dst := make([]byte, x.Bands*x.Height*x.Width), chunk.NewDecoder(nil), make([]byte, x.MaxDecodedBytes())
	for i, r := range x.Ranges {
		dst := dst[:x.DecodedBytes(i)]
		if err := d.Decode(dst, file[r.Off:][:r.Len], x, i); err != nil {
			return nil, nil, err
		}
		for k, v := range dst {
			dst[k] = min(v, 1)
		}
		box := x.Box(i)
		n, h, w := x.DecodedShape(i)
		for b := box.B0; b < box.B1; b++ {
			for y := box.Y0; y < box.Y1; y++ {
				for c := box.X0; c < box.X1; c++ {
					at := ((b-box.B0)*h+y-box.Y0)*w + c - box.X0
					if x.Inner == chunk.YXB {
						at = ((y-box.Y0)*w+c-box.X0)*n + b - box.B0
					}
					out[(b*x.Height+y)*x.Width+c] = dst[at]
				}
			}
		}
	}
	return x, out, nil
}

// checkMask compares a mask with the original reader's, which has 255 for 1.
func checkMask(t *testing.T, f *corpus.File) {
	t.Helper()
	_, got, err := readMask(f.Bytes(t))
	if err != nil {
		t.Fatal(err)
	}
	for i := range got {
		got[i] *= 255
	}
	if corpus.SHA256(got) != *f.MaskSHA256 {
		t.Errorf("%s: another mask", f.Path)
	}
}

func TestMasksOfTheCorpus(t *testing.T) {
	n := 0
	for _, f := range corpus.Of(corpus.Raster(t), "tiff") {
		if f.MaskSHA256 != nil {
			checkMask(t, &f)
			n++
		} else if m, _, err := readMask(f.Bytes(t)); m != nil || err != nil && fault.KindOf(err) == 0 {
			t.Errorf("%s: mask %v, %v", f.Path, m, err)
		}
	}
	if n == 0 {
		t.Error("no file with a mask")
	}
}

func TestMasksOfTestdata(t *testing.T) {
	for _, f := range corpus.Manifest(t, filepath.Join(corpus.Testdata(t), "masks")) {
		checkMask(t, &f)
	}
}

// TestMasksOfGDAL: masks that GDAL writes, in many layouts, are those that GDAL reads.
// CHASKI_PYTHON names a Python with rasterio.
func TestMasksOfGDAL(t *testing.T) {
	python := os.Getenv("CHASKI_PYTHON")
	if python == "" {
		t.Skip("CHASKI_PYTHON names no Python with rasterio")
	}
	dir := t.TempDir()
	if out, err := exec.Command(python, "-c", maskScript, dir, "1", "60").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, f := range corpus.Manifest(t, dir) {
		t.Run(f.Path, func(t *testing.T) { checkMask(t, &f) })
	}
}

// maskFile returns a BigTIFF made by hand: an image whose chunks are never read, and a mask of one
// uncompressed chunk, given by its fields.
func maskFile(width, height int, stored []byte, fields ...ifdwrite.Field) []byte {
	b := ifdwrite.AppendHeader(nil, 16)
	b = ifdwrite.AppendDirectory(b, 16, []ifdwrite.Field{
		ifdwrite.Longs(ifd.TagImageWidth, uint32(width)), ifdwrite.Longs(ifd.TagImageLength, uint32(height)),
	})
	next := len(b) - 8
	off := ifdwrite.End(int64(len(b)), append(fields, ifdwrite.Shorts(ifd.TagStripOffsets, 0),
		ifdwrite.Shorts(ifd.TagStripByteCounts,
			0)))
	fields = append(fields, ifdwrite.Long8s(ifd.TagStripOffsets, uint64(off)),
		ifdwrite.Long8s(ifd.TagStripByteCounts, uint64(len(stored))))
	binary.LittleEndian.PutUint64(b[next:], uint64(len(b)))
	b = ifdwrite.AppendDirectory(b, int64(len(b)), fields)
	return append(b, stored...)
}

func maskFields(width, height, bits int) []ifdwrite.Field {
	return []ifdwrite.Field{
		ifdwrite.Longs(ifd.TagNewSubfileType, SubfileMask), ifdwrite.Longs(ifd.TagImageWidth, uint32(width)),
		ifdwrite.Longs(ifd.TagImageLength, uint32(height)), ifdwrite.Shorts(ifd.TagBitsPerSample, uint16(bits)),
		ifdwrite.Shorts(ifd.TagCompression, compNone), ifdwrite.Shorts(ifd.TagPhotometric, 4),
	}
}

// TestMaskOfEveryWidth: bits and bytes of every width are unpacked pixel by pixel.
func TestMaskOfEveryWidth(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 5))
	for _, bits := range []int{1, 8} {
		for width := 1; width <= 40; width++ {
			height := 1 + rnd.IntN(5)
			want := make([]byte, width*height)
			var stored []byte
			for y := range height {
				row := make([]byte, (width*bits+7)/8)
				for x := range width {
					v := byte(rnd.IntN(2))
					want[y*width+x] = v
					if bits == 8 {
						row[x] = v * byte(1+rnd.IntN(255))
					} else {
						row[x/8] |= v << (7 - x%8)
					}
				}
				stored = append(stored, row...)
			}
			_, got, err := readMask(maskFile(width, height, stored, maskFields(width, height, bits)...))
			if err != nil || !bytes.Equal(got, want) {
				t.Errorf("%d bits, %d by %d: %v %v, want %v", bits, height, width, err, got, want)
			}
		}
	}
}

func TestMaskRefuses(t *testing.T) {
	with := func(bits int, edit func(f []ifdwrite.Field) []ifdwrite.Field) []byte {
		return maskFile(9, 2, make([]byte, 32), edit(maskFields(9, 2, bits))...)
	}
	for name, c := range map[string]struct {
		kind fault.Kind
		file []byte
	}{
		"another size": {fault.Corrupt, maskFile(9, 3, make([]byte, 32), maskFields(9, 2, 1)...)},
		"16 bits":      {fault.Unsupported, with(16, func(f []ifdwrite.Field) []ifdwrite.Field { return f })},
		"three samples": {fault.Unsupported, with(8, func(f []ifdwrite.Field) []ifdwrite.Field {
			return append(f, ifdwrite.Shorts(ifd.TagSamplesPerPixel, 3))
		})},
		"floats": {fault.Unsupported, with(8, func(f []ifdwrite.Field) []ifdwrite.Field {
			return append(f, ifdwrite.Shorts(ifd.TagSampleFormat, formatFloat))
		})},
		"bits of a third order": {fault.Unsupported, with(1, func(f []ifdwrite.Field) []ifdwrite.Field {
			return append(f, ifdwrite.Shorts(ifd.TagFillOrder, 3))
		})},
		"a predictor on bits": {fault.Unsupported, with(1, func(f []ifdwrite.Field) []ifdwrite.Field {
			f[4] = ifdwrite.Shorts(ifd.TagCompression, 5)
			return append(f, ifdwrite.Shorts(ifd.TagPredictor, 2))
		})},
		"too few bytes": {fault.Corrupt, maskFile(9, 2, make([]byte, 3), maskFields(9, 2, 1)...)},
		"JPEG": {fault.Unsupported, with(8, func(f []ifdwrite.Field) []ifdwrite.Field {
			f[4] = ifdwrite.Shorts(ifd.TagCompression, 7)
			return f
		})},
		"a huge chunk": {fault.Limit, maskFile(1<<20, 1<<20, nil, maskFields(1<<20, 1<<20, 8)...)},
	} {
		if m, _, err := readMask(c.file); !errors.Is(err, c.kind) {
			t.Errorf("%s: mask %v, %v, want %v", name, m, err, c.kind)
		}
	}
	overview := with(1, func(f []ifdwrite.Field) []ifdwrite.Field {
		f[0] = ifdwrite.Longs(ifd.TagNewSubfileType, SubfileMask|SubfileReduced)
		return f
	})
	if m, _, err := readMask(overview); m != nil || err != nil {
		t.Errorf("the mask of an overview: %v %v", m, err)
	}
}

func TestMaskNoAlloc(t *testing.T) {
	f, err := ifd.Open(context.Background(), &corpus.Mem{
		B: maskFile(9, 2, []byte{1, 2, 3, 4}, maskFields(9, 2, 1)...),
	}, ifd.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	m, err := OpenMask(context.Background(), f, &chunk.Index{Width: 9, Height: 2}, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	d, dst, src := chunk.NewDecoder(nil), make([]byte, 18), []byte{1, 2, 3, 4}
	if n := testing.AllocsPerRun(10, func() {
		if err := d.Decode(dst, src, m, 0); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// FuzzMask: any bytes yield an error with a kind, no mask, or a mask of zeros and ones.
func FuzzMask(f *testing.F) {
	for _, bits := range []int{1, 8} {
		f.Add(maskFile(9, 2, make([]byte, 32), maskFields(9, 2, bits)...))
		f.Add(maskFile(16, 2, []byte{8, 0, 0x80, 0x40, 1, 1},
			append(maskFields(16, 2, bits), ifdwrite.Shorts(ifd.TagTileWidth, 16),
				ifdwrite.Shorts(ifd.TagTileLength, 16))...))
	}
	for _, e := range append(corpus.Files(f), corpus.Manifest(f, filepath.Join(corpus.Testdata(f), "masks"))...) {
		if e.MaskSHA256 != nil {
			f.Add(e.Bytes(f))
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		m, pix, err := readMask(b)
		if err != nil && fault.KindOf(err) == 0 {
			t.Fatalf("error without a kind: %v", err)
		}
		if err == nil && m != nil {
			for i, v := range pix {
				if v > 1 {
					t.Fatalf("pixel %d is %d", i, v)
				}
			}
		}
	})
}
