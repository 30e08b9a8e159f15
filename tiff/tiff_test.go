package tiff

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/format/chunk/blob"
	"github.com/chaski-eo/chaski/tiff/ifd"
	"github.com/chaski-eo/chaski/tiff/ifdwrite"
	"github.com/chaski-eo/chaski/tools/testkit/corpus"
	"github.com/chaski-eo/chaski/tools/testkit/corpus/whole"
	"github.com/chaski-eo/chaski/tools/testkit/race"
)

// decode opens a file and decodes all of it.
func decode(file []byte) (*Image, []byte, error) {
	img, err := Open(context.Background(), &corpus.Mem{B: file}, Limits{MaxChunk: 64 << 20})
	if err != nil {
		return nil, nil, err
	}
	pix, err := whole.Image(img.Index, file, 64<<20)
	return img, pix, err
}

// checkFile compares one file with its row of a manifest.
func checkFile(t *testing.T, f *corpus.File) {
	img, pix, err := decode(f.Bytes(t))
	if err != nil {
		if f.MayRefuse() && errors.Is(err, fault.Unsupported) {
			return
		}
		t.Fatal(err)
	}
	x, m := img.Index, img.Meta
	if got := []int{x.Bands, x.Height, x.Width}; !slices.Equal(got, f.Shape) || x.DType.String() != f.DType {
		t.Errorf("shape %v %v, want %v %v", got, x.DType, f.Shape, f.DType)
	}
	if got := corpus.SHA256(pix); got != f.SHA256 {
		t.Errorf("sha256 %s, want %s", got, f.SHA256)
	}
	if l := f.Layout; l != nil {
		got := []any{m.BigTIFF, m.BigEndian, m.Tiled, int(m.Compression), int(m.Planar), len(m.Ghost) > 0}
		want := []any{l.BigTIFF, l.ByteOrder == "MM", l.Tiled, l.Compression, l.Planar, l.Ghost != nil}
		if !slices.Equal(got, want) {
			t.Errorf("meta %v, want %v", got, want)
		}
		if l.NChunks != len(x.Ranges) {
			t.Errorf("%d chunks, want %d", len(x.Ranges), l.NChunks)
		}
	}
	if f.TOG != (m.Interleave == "TILE") && f.DType[0] != 'c' && !strings.HasPrefix(f.Note, "relative") {
		t.Errorf("interleave %s, TOG %v", m.Interleave, f.TOG)
	}
	if m.Overviews != len(f.Overviews) || m.HasMask != (f.MaskSHA256 != nil) {
		t.Errorf("%d overviews, mask %v, want %d, %v", m.Overviews, m.HasMask, len(f.Overviews), f.MaskSHA256 != nil)
	}
	if f.NoData == nil {
		if x.NoData != nil {
			t.Errorf("nodata %v", *x.NoData)
		}
	} else if want, err := strconv.ParseFloat(fmt.Sprint(f.NoData), 64); err != nil {
		t.Fatal(err)
	} else if x.NoData == nil || *x.NoData != want && !(math.IsNaN(want) && math.IsNaN(*x.NoData)) {
		t.Errorf("nodata %v, want %v", x.NoData, want)
	}
	y, err := blob.Parse(blob.Append(nil, x), 64<<20)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(x.Ranges, y.Ranges) {
		t.Error("the blob has other ranges")
	}
}

func TestCorpus(t *testing.T) {
	race.SkipCovered(t)
	files := corpus.Of(corpus.Files(t), "tiff")
	if len(files) == 0 {
		t.Fatal("no files")
	}
	for _, f := range files {
		t.Run(strings.TrimPrefix(f.Path, "tog/"), func(t *testing.T) { checkFile(t, &f) })
	}
}

// TestBadFiles: malformed files yield an error, or what their manifest allows.
func TestBadFiles(t *testing.T) {
	all := corpus.Files(t)
	for _, f := range corpus.Of(all, "bad", "tog") {
		t.Run(strings.TrimPrefix(f.Path, "bad/"), func(t *testing.T) {
			_, pix, err := decode(f.Bytes(t))
			f.CheckBad(t, pix, err)
		})
	}
}

// TestOneRead: opening a TOG takes one read.
func TestOneRead(t *testing.T) {
	for _, f := range corpus.Of(corpus.Files(t), "tiff") {
		if !f.TOG {
			continue
		}
		m := &corpus.Mem{B: f.Bytes(t)}
		if _, err := Open(context.Background(), m, Limits{}); err != nil {
			t.Fatal(err)
		}
		if m.Reads != 1 || m.Bytes > 64<<10 {
			t.Errorf("%s: %d reads of %d bytes", f.Path, m.Reads, m.Bytes)
		}
	}
}

// TestParseNoData: texts mean what rasterio says that GDAL 3.10 reads.
func TestParseNoData(t *testing.T) {
	nan, none := math.NaN(), 1e-300
	for _, c := range []struct {
		s    string
		d    chunk.DType
		want float64
		bits uint64
	}{
		{"", chunk.Uint8, none, 0},
		{"0", chunk.Uint8, 0, 0},
		{"255", chunk.Uint8, 255, 0},
		{"256", chunk.Uint8, 256, 0},
		{"-1", chunk.Uint8, -1, 0},
		{"5.5", chunk.Int16, 5.5, 5},
		{"-5.5", chunk.Int16, -5.5, 1<<64 - 5},
		{"-5.5", chunk.Uint16, -5.5, 0},
		{"255.5", chunk.Uint8, 255.5, 0},
		{"nan", chunk.Uint16, nan, 0},
		{"nan", chunk.Float32, nan, 0},
		{"-nan", chunk.Float64, 0, 0},
		{"1.#QNAN", chunk.Float32, nan, 0},
		{"-1.#IND000", chunk.Float32, nan, 0},
		{"-1.#INF", chunk.Float64, math.Inf(-1), 0},
		{"1.#IND", chunk.Float64, 1, 0},
		{"-9999", chunk.Int16, -9999, 0},
		{"-3.4028234663852886e+38", chunk.Float32, -math.MaxFloat32, 0},
		{"-inf", chunk.Float32, math.Inf(-1), 0},
		{"none", chunk.Uint8, 0, 0},
		{"0x10", chunk.Float32, 0, 0},
		{"0,1", chunk.Float32, 0.1, 0},
		{"1,000", chunk.Float64, 1, 0},
		{".5e1x", chunk.Float64, 5, 0},
		{"12abc", chunk.Uint8, 12, 0},
		{"12abc", chunk.Int64, 12, 12},
		{"9223372036854775807", chunk.Int64, 1 << 63, math.MaxInt64},
		{"-9223372036854775808", chunk.Int64, -1 << 63, 1 << 63},
		{"18446744073709551615", chunk.Uint64, 1 << 64, math.MaxUint64},
		{"18446744073709551616", chunk.Uint64, 1 << 64, math.MaxUint64},
		{"9223372036854775808", chunk.Int64, 1 << 63, math.MaxInt64},
		{"-1", chunk.Uint64, -1, math.MaxUint64},
		{"-9999", chunk.Uint64, -9999, math.MaxUint64 - 9998},
		{"1e400", chunk.Float64, math.Inf(1), 0},
	} {
		v, bits := NoData(c.s, c.d)
		if (v == nil) != (c.want == none) {
			t.Errorf("%q as %v: %v", c.s, c.d, v)
			continue
		}
		if v != nil && *v != c.want && !(math.IsNaN(*v) && math.IsNaN(c.want)) {
			t.Errorf("%q as %v: %v", c.s, c.d, *v)
		}
		if (bits != nil) != (c.bits != 0) || bits != nil && *bits != c.bits {
			t.Errorf("%q as %v: bits %v", c.s, c.d, bits)
		}
	}
}

func BenchmarkOpen(b *testing.B) {
	for _, e := range corpus.Of(corpus.Files(b), "tiff") {
		if e.Path != "tog/tog-odd-16.tif" {
			continue
		}
		file := e.Bytes(b)
		b.Run("tog", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Open(context.Background(), &corpus.Mem{B: file}, Limits{}); err != nil {
					b.Fatal(err)
				}
			}
		})
		img, err := Open(context.Background(), &corpus.Mem{B: file}, Limits{})
		if err != nil {
			b.Fatal(err)
		}
		data := blob.Append(nil, img.Index)
		b.Run("blob", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := blob.Parse(data, 1<<20); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// TestUnsupportedCompressions: a compression without a decoder is unsupported by its name, or by
// its number if it has no name.
func TestUnsupportedCompressions(t *testing.T) {
	names := map[uint16]string{12345: "12345"}
	for _, known := range compressions {
		names[known.number] = known.name
	}
	read := 0
	for c, name := range names {
		file := oneTile(ifdwrite.Shorts(ifd.TagCompression, c))
		switch _, err := Open(context.Background(), &corpus.Mem{B: file}, Limits{}); {
		case err == nil:
			read++
		case !errors.Is(err, fault.Unsupported) || !strings.Contains(err.Error(), "compression "+name):
			t.Errorf("%d: %v", c, err)
		}
	}
	if read != 8 { // none, LZW, both of deflate, PackBits, LZMA, zstd, JPEG
		t.Errorf("%d compressions are read", read)
	}
}

// TestWhatGDALConverts: the error of a compression that GDAL reads, of an image or of its mask, names the command that
// converts the file.
func TestWhatGDALConverts(t *testing.T) {
	const command = "gdal_translate -co COMPRESS=DEFLATE in.tif out.tif"
	for c, name := range map[uint16]string{
		2: "CCITT RLE", 3: "CCITT fax 3", 4: "CCITT fax 4", 6: "old JPEG", 34661: "JBIG", 50002: "JPEG XL",
		52546: "JPEG XL",
	} {
		_, err := Open(t.Context(), &corpus.Mem{B: oneTile(ifdwrite.Shorts(ifd.TagCompression, c))}, Limits{})
		fields := maskFields(9, 2, 1)
		fields[4] = ifdwrite.Shorts(ifd.TagCompression, c)
		_, _, ofMask := readMask(maskFile(9, 2, make([]byte, 32), fields...))
		for _, err := range []error{err, ofMask} {
			if !errors.Is(err, fault.Unsupported) || !strings.Contains(err.Error(), "compression "+name+"; ") ||
				!strings.Contains(err.Error(), command) {
				t.Errorf("%d: %v", c, err)
			}
		}
	}
}
