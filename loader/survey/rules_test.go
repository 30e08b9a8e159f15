package survey

import (
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"pgregory.net/rapid"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/stats/moments"
	"github.com/chaski-eo/chaski/tiff"
	"github.com/chaski-eo/chaski/tools/testkit/corpus"
	"github.com/chaski-eo/chaski/tools/testkit/layouts"
	_ "github.com/chaski-eo/chaski/tools/testkit/seed"
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

// TestNotTOG: files of the profile, and one with each difference from it.
func TestNotTOG(t *testing.T) {
	type edit func(m *tiff.Meta, x *chunk.Index)
	why := func(change edit) []string {
		m, x := &tiff.Meta{Tiled: true, Planar: 2, Compression: 50000, BigTIFF: true,
			Ghost: map[string]string{"LAYOUT": "IFDS_BEFORE_DATA"}}, layouts.TOG(3, 4, 5, 64)
		change(m, x)
		return notTOG(m, x)
	}
	for i, change := range []edit{
		func(*tiff.Meta, *chunk.Index) {},
		func(m *tiff.Meta, x *chunk.Index) { m.Planar, x.Bands, x.Ranges = 1, 1, x.Ranges[:20] },
		func(_ *tiff.Meta, x *chunk.Index) { x.Bands, x.Ranges = 1, x.Ranges[:20]; slices.Reverse(x.Ranges) },
		func(_ *tiff.Meta, x *chunk.Index) { x.Bands, x.Ranges = 2, x.Ranges[:40] },
		func(_ *tiff.Meta, x *chunk.Index) { x.Ranges[1] = x.Ranges[0] }, // which share a tile
		func(m *tiff.Meta, _ *chunk.Index) { m.Ghost["KNOWN_INCOMPATIBLE_EDITION"] = "NO" },
		func(_ *tiff.Meta, x *chunk.Index) { x.DType, x.Predictor = chunk.Float16, chunk.NoPredictor },
		func(_ *tiff.Meta, x *chunk.Index) { x.DType, x.Predictor = chunk.Float64, chunk.FloatingPoint },
	} {
		if got := why(change); got != nil {
			t.Errorf("file %d of the profile: %q", i, got)
		}
	}
	edited := map[string]string{"LAYOUT": "IFDS_BEFORE_DATA", "KNOWN_INCOMPATIBLE_EDITION": "YES"}
	for says, change := range map[string]edit{
		"strips":    func(m *tiff.Meta, _ *chunk.Index) { m.Tiled = false },
		"no note":   func(m *tiff.Meta, _ *chunk.Index) { delete(m.Ghost, "LAYOUT") },
		"rewritten": func(m *tiff.Meta, _ *chunk.Index) { m.Ghost = edited },
		"are pixel-interleaved": func(m *tiff.Meta, x *chunk.Index) {
			m.Planar, x.Bands, x.Ranges = 1, 2, x.Ranges[:40]
		},
		"a position do not follow": func(_ *tiff.Meta, x *chunk.Index) {
			x.Bands, x.Ranges = 2, x.Ranges[:40]
			slices.Reverse(x.Ranges)
		},
		"pixel-interleaved":          func(m *tiff.Meta, _ *chunk.Index) { m.Planar = 1 },
		"the tiles of a position do": func(_ *tiff.Meta, x *chunk.Index) { slices.Reverse(x.Ranges) },
		"tiles of 24 by 64":          func(_ *tiff.Meta, x *chunk.Index) { x.ChunkH = 24 },
		"tiles of 64 by 24":          func(_ *tiff.Meta, x *chunk.Index) { x.ChunkW = 24 },
		"compression is LZW":         func(m *tiff.Meta, _ *chunk.Index) { m.Compression = 5 },
		"not a BigTIFF":              func(m *tiff.Meta, _ *chunk.Index) { m.BigTIFF = false },
		"1 overviews":                func(m *tiff.Meta, _ *chunk.Index) { m.Overviews = 1 },
		"none for complex":           func(_ *tiff.Meta, x *chunk.Index) { x.DType = chunk.Complex64 },
		"predictor 3, where it is 2": func(_ *tiff.Meta, x *chunk.Index) { x.Predictor = chunk.FloatingPoint },
		"predictor 2, where it is 3": func(_ *tiff.Meta, x *chunk.Index) { x.DType = chunk.Float32 },
		"has a mask":                 func(m *tiff.Meta, _ *chunk.Index) { m.HasMask = true },
		"sparse tiles":               func(_ *tiff.Meta, x *chunk.Index) { x.Ranges[3] = chunk.Range{} },
		"pixels cannot be read":      nil,
	} {
		got := notTOG(&tiff.Meta{}, nil)
		if change != nil {
			got = why(change)
		}
		if len(got) != 1 || !strings.Contains(got[0], says) {
			t.Errorf("%q, want %q", got, says)
		}
	}
}

// TestStripHeight: a strip has whole chunks of an image and of its mask, or as many rows as fit.
func TestStripHeight(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		number := func(name string, most int) int { return rapid.IntRange(1, most).Draw(t, name) }
		x := layouts.TOG(1, 4, number("across", 3), 16*number("tile", 3))
		want, each, limit := x.ChunkH, number("bytes of a pixel", 9), number("limit", 1<<14)
		if height := number("rows of the mask", 99); height > 9 {
			x.Mask = layouts.MaskOf(x, height, true)
			for want < height {
				want += x.ChunkH
			}
		}
		for want*each*x.Width > limit {
			want--
		}
		if got := stripHeight(x, each, limit); got != want {
			t.Errorf("%d rows, want %d", got, want)
		}
	})
}

// TestShares: a share lies in the dataset, which is as it was.
func TestShares(t *testing.T) {
	dataset := Extent{3, "print"}
	for says, s := range map[string]*Share{
		"":  nil,
		" ": {dataset, 0, 3}, "  ": {dataset, 3, 0}, "   ": {dataset, 1, 2},
		"survey: samples 1 to 4 of 3": {dataset, 1, 3}, "survey: samples -1 to 0 of 3": {dataset, -1, 1},
		"survey: samples 2 to 1 of 3": {dataset, 2, -1}, "survey: samples 4 to 4 of 3": {dataset, 4, 0},
		"it changed: 3 samples with the fingerprint print, and 3 with other before": {Extent{3, "other"}, 0, 1},
		"it changed: 3 samples with the fingerprint print, and 4 with print before": {Extent{4, "print"}, 0, 1},
	} {
		first, count, err := s.of(dataset, "data")
		want := [2]int64{0, 3}
		if s != nil {
			want = [2]int64{s.First, s.Count}
		}
		refused := strings.TrimSpace(says) != ""
		if refused != (err != nil) || refused && !strings.Contains(err.Error(), says) ||
			!refused && want != [2]int64{first, count} {
			t.Errorf("%+v: %d of %d, %v", s, count, first, err)
		}
	}
}

// TestReadPart: a part has its bytes and no more than the limit, and its states fit together.
func TestReadPart(t *testing.T) {
	state := func(dtype chunk.DType, bands int) []byte {
		f, err := moments.NewField(dtype, bands)
		if err != nil {
			t.Fatal(err)
		}
		return f.AppendState(nil)
	}
	field := func(first []byte, others ...[]byte) string {
		text, err := json.Marshal(Part{Fields: []PartField{{Name: "x", State: first, States: others}}})
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	const plain = `{"samples":3}`
	n := int64(len(plain))
	for _, c := range []struct {
		text  string
		limit int64
		says  string
	}{{plain, n, ""}, {plain, n - 1, "over 12 bytes"}, {plain + " ", n, "over 13 bytes"}, {plain, n + 1, "down"},
		{plain[1:], 99, "corrupt"}, {plain[:5], 99, "down"},
		{field(state(chunk.Uint8, 2), state(chunk.Int8, 2)), 0, ""},
		{field(state(chunk.Uint8, 1), state(chunk.Uint8, 1)), 0, `field "x": states of uint8 do not fit`},
		{field(state(chunk.Uint8, 1), state(chunk.Int8, 2)), 0, `field "x": states of int8 do not fit`},
	} {
		var r io.Reader = strings.NewReader(c.text)
		if c.says == "down" || strings.HasPrefix(c.says, "over") { // nothing behind the limit is read
			r = io.MultiReader(r, iotest.ErrReader(errors.New("down")))
		}
		p, err := readPart(r, cmp.Or(c.limit, maxPart))
		if (err != nil) != (c.says != "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%q of at most %d bytes: %+v, %v; want %q", c.text, c.limit, p, err, c.says)
		}
	}
}

// TestFrameInfo: frames have checksums if one of them has one of either kind. Codecs are listed once.
func TestFrameInfo(t *testing.T) {
	frame := testfile.Read(t, filepath.Join(corpus.Testdata(t), "openzl", "fv14-fse.zl"))
	for _, flags := range [][]byte{{0, 0}, {0, 1}, {2, 0}, {3, 0}, {3, 3}} { // of the content, and of the stored bytes
		f := &FrameInfo{}
		for _, flag := range flags {
			frame[11] = flag
			if err := f.add(frame, false); err != nil {
				t.Fatal(err)
			}
		}
		if f.Frames != 2 || f.Checksums != (flags[0]+flags[1] > 0) || len(f.FormatVersions) != 1 ||
			len(f.Codecs) == 0 || len(slices.Compact(slices.Sorted(slices.Values(f.Codecs)))) != len(f.Codecs) {
			t.Errorf("flags %d: %+v", flags, f)
		}
	}
}

// TestTimesText: times are days if all of them are; years have four digits.
func TestTimesText(t *testing.T) {
	for want, seconds := range map[string][]int64{
		"":                                 nil,
		"1970-01-01 1969-12-31 2000-02-29": {0, -86400, 951782400},
		"1970-01-01T00:00:00Z 1970-01-01T00:00:01Z": {0, 1},
		"9999-12-31 253402300800 s":                 {253402214400, 253402300800},
		"0001-01-01 -62135683200 s":                 {-62135596800, -62135596800 - 86400},
	} {
		if got := strings.Join(timesText(seconds), " "); got != want {
			t.Errorf("%d: %s, want %s", seconds, got, want)
		}
	}
}

// TestReadSome: bytes are read that are in the file, and as many as are allowed.
func TestReadSome(t *testing.T) {
	file := source.Memory("abcdef")
	for at, want := range map[chunk.Range]fault.Kind{{Off: 2, Len: 4}: 0, {Off: 6}: 0, {Len: 4}: 0,
		{Off: 3, Len: 4}: fault.Corrupt, {Off: 7}: fault.Corrupt, {Off: -1, Len: 2}: fault.Corrupt,
		{Off: 2, Len: -1}: fault.Corrupt, {Off: 1<<63 - 1, Len: 2}: fault.Corrupt, {Len: 5}: fault.Limit} {
		b, err := readSome(t.Context(), file, at, 4)
		if fault.KindOf(err) != want || err == nil && string(b) != "abcdef"[at.Off:at.Off+at.Len] {
			t.Errorf("%+v: %q, %v", at, b, err)
		}
	}
}

// TestRasterInfo: sizes are sums over the chunks; masks are said by their kind.
func TestRasterInfo(t *testing.T) {
	for name, c := range map[string]struct {
		change func(x *chunk.Index)
		holds  func(i *RasterInfo) bool
	}{
		"one band after the other": {func(x *chunk.Index) { x.Inner = chunk.YXB },
			func(i *RasterInfo) bool { return i.Order == "b y x" }},
		"an image of the most bytes": {func(x *chunk.Index) {
			x.Height, x.Width, x.Bands, x.DType = math.MaxInt64, 1, 1, chunk.Uint8
		}, func(i *RasterInfo) bool { return i.DecodedBytes == math.MaxInt64 }},
		"pixel by pixel": {func(x *chunk.Index) { x.Inner, x.ChunkB = chunk.YXB, 2 },
			func(i *RasterInfo) bool { return i.Order == "y x b" }},
		"bytes": {func(x *chunk.Index) { x.Ranges[0], x.Ranges[1].Len = chunk.Range{}, 7; x.Ranges = x.Ranges[:2] },
			func(i *RasterInfo) bool { return i.StoredBytes == 7 && i.Sparse == 1 && i.Chunks == 2 }},
		"an image of 8 EiB": {func(x *chunk.Index) { x.Height, x.Width, x.Bands = 1<<31, 1<<31, 1 },
			func(i *RasterInfo) bool { return i.DecodedBytes == 0 }},
		"an image of half of it": {func(x *chunk.Index) { x.Height, x.Width, x.Bands = 1<<30, 1<<31, 1 },
			func(i *RasterInfo) bool { return i.DecodedBytes == 1<<62 }},
		"an image of 32 EiB": {func(x *chunk.Index) { x.Height, x.Width, x.Bands = 1<<32, 1<<31, 2 },
			func(i *RasterInfo) bool { return i.DecodedBytes == 0 }},
		"a mask of bits": {func(x *chunk.Index) { x.Mask = layouts.MaskOf(x, 16, true) },
			func(i *RasterInfo) bool {
				m := i.Mask
				var bytes int64
				for k := range m.Chunks {
					bytes += 400 + int64(k)
				}
				return m.Kind == "internal" && m.Bits == 1 && m.Bands == 0 && m.Chunk == [2]int{16, 315} &&
					m.StoredBytes == bytes && m.Codec == "deflate" && m.Chunks == 16
			}},
		"a mask of bytes": {func(x *chunk.Index) { x.Mask = layouts.MaskOf(x, 16, false) },
			func(i *RasterInfo) bool { return i.Mask.Bits == 8 && i.Alpha == 0 }},
		"masks of bands": {func(x *chunk.Index) { x.Mask = layouts.MaskOf(x, 16, true); x.Mask.Bands = 3 },
			func(i *RasterInfo) bool { return i.Mask.Bands == 3 }},
		"masks of two bands": {func(x *chunk.Index) { x.Mask = layouts.MaskOf(x, 16, true); x.Mask.Bands = 2 },
			func(i *RasterInfo) bool { return i.Mask.Bands == 2 }},
		"alpha": {func(x *chunk.Index) { x.Alpha = true },
			func(i *RasterInfo) bool { return i.Mask.Kind == "alpha" && i.Alpha == 2 && i.Mask.Bits == 16 }},
	} {
		x := layouts.TOG(3, 4, 5, 64)
		c.change(x)
		if i := rasterInfo(x); !c.holds(i) {
			t.Errorf("%s: %+v, %+v", name, *i, i.Mask)
		}
	}
}
