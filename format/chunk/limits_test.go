package chunk

import (
	"encoding/binary"
	"errors"
	"image/color"
	"math"
	"math/bits"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/chaski-eo/chaski/fault"
)

// plain returns an image of one chunk, in which change is made.
func plain(change func(x *Index)) *Index {
	x := &Index{Bands: 1, Height: 4, Width: 4, ChunkB: 1, ChunkH: 4, ChunkW: 4, DType: Uint8, Predictor: NoPredictor,
		Ranges: make([]Range, 1)}
	change(x)
	return x
}

// limit is an image at a bound, and the next one, which is not valid.
type limit struct {
	accepted, refused func(x *Index)
	kind              fault.Kind
}

func checkLimits(t *testing.T, limits []limit, fileSize int64, maxChunk int) {
	t.Helper()
	for _, c := range limits {
		if err := plain(c.accepted).Validate(fileSize, maxChunk); err != nil {
			t.Errorf("accepted: %v", err)
		}
		if x := plain(c.refused); !errors.Is(x.Validate(fileSize, maxChunk), c.kind) {
			t.Errorf("%+v: %v, want %v", x, x.Validate(fileSize, maxChunk), c.kind)
		}
	}
}

// lowBits changes an image to samples of few bits.
func lowBits(dtype DType) func(x *Index) { return func(x *Index) { x.LowBits, x.DType = true, dtype } }

func TestShapesAtTheBounds(t *testing.T) {
	sides := func(height, width int) func(x *Index) {
		return func(x *Index) { x.Height, x.Width, x.Blocks, x.Ranges = height, width, &Blocks{Array: noArray{}}, nil }
	}
	chunks := func(height, width int) func(x *Index) {
		return func(x *Index) { x.ChunkH, x.ChunkW, x.CutEdge, x.CutRight = height, width, true, true }
	}
	bands := func(bands, times, chunkB int, inner Inner) func(x *Index) {
		return func(x *Index) {
			x.Bands, x.Times, x.ChunkB, x.Inner = bands, times, chunkB, inner
			x.Height, x.Width, x.ChunkH, x.ChunkW = 1, 1, 1, 1
			x.Blocks, x.Ranges = &Blocks{Array: noArray{}}, nil
		}
	}
	size := func(rows int) func(x *Index) {
		return func(x *Index) { x.Height, x.Width, x.ChunkH, x.ChunkW = rows, 64, rows, 64 }
	}
	checkLimits(t, []limit{
		{sides(1, 1), sides(0, 1), fault.Corrupt},
		{sides(MaxSide, 1), sides(MaxSide+1, 1), fault.Corrupt},
		{sides(1, MaxSide), sides(1, MaxSide+1), fault.Corrupt},
		{sides(1, 1), sides(1, 0), fault.Corrupt},
		{chunks(MaxSide, MaxSide), chunks(MaxSide+1, 1), fault.Corrupt},
		{chunks(MaxSide, MaxSide), chunks(MaxSide, MaxSide+1), fault.Corrupt},
		{chunks(4, 4), chunks(4, 0), fault.Corrupt},
		{chunks(4, 4), chunks(0, 4), fault.Corrupt},
		{size(64), size(65), fault.Limit},
		{bands(MaxBands, 0, 1, BYX), bands(MaxBands+1, 0, 1, BYX), fault.Corrupt},
		{bands(2, 1, 1, BYX), bands(2, -1, 1, BYX), fault.Corrupt},
		{bands(4, 2, 1, BYX), bands(5, 2, 1, BYX), fault.Corrupt},
		{bands(2*MaxBands, 2, 1, BYX), bands(2*MaxBands+2, 2, 1, BYX), fault.Corrupt},
		{bands(MaxPlanes, MaxPlanes, 1, BYX), bands(MaxPlanes+1, MaxPlanes+1, 1, BYX), fault.Limit},
		{bands(4, 2, 2, YXB), bands(4, 2, 3, YXB), fault.Corrupt},
		{bands(4, 2, 4, BTYX), bands(4, 2, 2, BTYX), fault.Corrupt}, // both axes lie in each chunk
		{bands(4, 2, 4, TYXB), bands(4, 0, 4, TYXB), fault.Corrupt},
		{bands(4, 2, 4, TYXB), bands(4, 1, 4, TYXB), fault.Corrupt},
		{bands(4, 2, 4, TYXB), bands(4, 4, 4, TYXB), fault.Corrupt}, // one band has other names
		{bands(4, 2, 4, TYXB), bands(4, 2, 4, numInner), fault.Corrupt},
	}, -1, 1<<12)
}

func TestPropertiesAtTheBounds(t *testing.T) {
	const fileSize, maxChunk = 1 << 20, 1 << 12
	none := func(*Index) {}
	span := func(off, n int64) func(x *Index) { return func(x *Index) { x.Ranges[0] = Range{off, n} } }
	zstd := func(n int64) func(x *Index) { return func(x *Index) { x.Codec, x.Ranges[0].Len = Zstd, n } }
	params := func(n int) func(x *Index) { return func(x *Index) { x.Params = make([]byte, n) } }
	alpha := func(bands int, dtype DType) func(x *Index) {
		return func(x *Index) { x.Alpha, x.Bands, x.DType, x.Ranges = true, bands, dtype, make([]Range, bands) }
	}
	lists := func(bands int, values ...[]float64) func(x *Index) {
		return func(x *Index) { x.Bands, x.Ranges, x.BandNoData = bands, make([]Range, bands), values }
	}
	steps := func(change func(x *Index)) func(x *Index) {
		return func(x *Index) { x.Bands, x.Times, x.Ranges = 4, 2, make([]Range, 4); change(x) }
	}
	classes := func(dtype DType) func(x *Index) { return func(x *Index) { x.Classes, x.DType = true, dtype } }
	bitmask := func(change func(x *Index)) func(x *Index) { return func(x *Index) { x.Bits = true; change(x) } }
	checkLimits(t, []limit{
		{params(MaxParams), params(MaxParams + 1), fault.Limit},
		{alpha(2, Uint8), alpha(1, Uint8), fault.Corrupt},
		{alpha(2, Uint16), alpha(2, Int16), fault.Corrupt},
		{lists(2, []float64{1}, []float64{2}), lists(3, []float64{1}, []float64{2}), fault.Corrupt},
		{lists(2, []float64{1, 2}), lists(2, []float64{1}), fault.Corrupt}, // which is NoData
		{lists(2, nil, []float64{2}), lists(2, []float64{1, 2}, []float64{1, 2}), fault.Corrupt},
		{lists(1, make([]float64, MaxNoData)), lists(1, make([]float64, MaxNoData+1)), fault.Corrupt},
		{steps(none), steps(func(x *Index) { x.Alpha = true }), fault.Corrupt},
		{classes(Int64), classes(Float16), fault.Corrupt},
		{classes(Uint8), steps(func(x *Index) { x.Classes = true }), fault.Corrupt},
		{lowBits(Uint4), lowBits(Int8), fault.Corrupt},
		{lowBits(Uint4), func(x *Index) { lowBits(Uint4)(x); classes(Uint4)(x) }, fault.Corrupt},
		{bitmask(none), bitmask(func(x *Index) { x.DType = Int8 }), fault.Corrupt},
		{bitmask(none), bitmask(func(x *Index) { x.Predictor = Horizontal }), fault.Corrupt},
		{bitmask(none), bitmask(func(x *Index) { x.Bands, x.Ranges = 2, make([]Range, 2) }), fault.Corrupt},
		{span(0, 0), span(-1, 0), fault.Corrupt},
		{span(0, 0), span(0, -1), fault.Corrupt},
		{span(fileSize-1, 1), span(fileSize, 1), fault.Corrupt},
		{span(fileSize+9, 0), span(math.MaxInt64, 1), fault.Corrupt},
		// Twice the 16 bytes of the chunk, and 64 KiB.
		{zstd(32 + 64<<10), zstd(33 + 64<<10), fault.Limit},
	}, fileSize, maxChunk)
	// Without the size of the file, ranges may lie anywhere.
	if err := plain(span(fileSize, 1)).Validate(-1, maxChunk); err != nil {
		t.Error(err)
	}
}

// TestMasksAtTheBounds: a mask is a plain image of uint8 of the size of its image, which has no steps of time.
func TestMasksAtTheBounds(t *testing.T) {
	mask := func(change func(mask *Index)) func(x *Index) {
		return func(x *Index) { x.Mask = plain(change) }
	}
	masked := func(change func(x *Index)) func(x *Index) {
		return func(x *Index) { x.Mask = plain(func(*Index) {}); change(x) }
	}
	none := func(*Index) {}
	value := 1.0
	word := uint64(1)
	checkLimits(t, []limit{
		{mask(none), mask(func(x *Index) { x.Height = 5 }), fault.Corrupt},
		{mask(none), mask(func(x *Index) { x.Width = 5 }), fault.Corrupt},
		{mask(none), mask(func(x *Index) { x.DType = Int8 }), fault.Corrupt},
		{mask(none), mask(func(x *Index) { x.NoData = &value }), fault.Corrupt},
		{mask(none), mask(func(x *Index) { x.NoDataBits = &word }), fault.Corrupt},
		{mask(none), mask(func(x *Index) { x.Physical = []Linear{{2, 1}} }), fault.Corrupt},
		{mask(none), mask(func(x *Index) { x.Mask = plain(none) }), fault.Corrupt},
		{mask(none), mask(func(x *Index) { x.Bands, x.Ranges = 2, make([]Range, 2) }), fault.Corrupt},
		{mask(none), mask(func(x *Index) { x.Ranges = nil }), fault.Corrupt},
		{mask(none), mask(lowBits(Uint4)), fault.Corrupt},
		{masked(none), masked(func(x *Index) { x.Bands, x.Times, x.Ranges = 2, 2, make([]Range, 2) }), fault.Corrupt},
		{masked(none), masked(lowBits(Uint4)), fault.Corrupt},
	}, -1, 1<<12)
}

// TestPackedBits: samples of a width that no type has become the next larger unsigned type; those of 24 bits may be
// floats.
func TestPackedBits(t *testing.T) {
	for dtype := Uint8; dtype < dtypes; dtype++ {
		for width := range 70 {
			next := 8
			for next <= width {
				next *= 2
			}
			larger := dtype == map[int]DType{8: Uint8, 16: Uint16, 32: Uint32}[next]
			own := width == 8 || width == 16
			want := width == 0 || larger && !own && width < 32 || width == 24 && dtype == Float32
			x := plain(func(x *Index) { x.DType, x.Packed = dtype, width })
			if err := x.Validate(-1, 1<<20); (err == nil) != want {
				t.Errorf("%v of %d bits: %v", dtype, width, err)
			}
		}
	}
	for name, c := range map[string]struct {
		change func(x *Index)
		valid  bool
	}{
		"planes":      {func(x *Index) { x.Bands, x.Ranges = 3, make([]Range, 3) }, true},
		"pixels":      {func(x *Index) { x.Bands, x.ChunkB, x.Inner = 3, 3, YXB }, true},
		"many planes": {func(x *Index) { x.Bands, x.ChunkB = 3, 3 }, false},
		"a predictor": {func(x *Index) { x.Predictor = Horizontal }, false},
		"bits":        {func(x *Index) { x.Bits = true }, false},
		"blocks":      {func(x *Index) { x.Blocks, x.Ranges = &Blocks{Array: noArray{}}, nil }, false},
	} {
		x := plain(func(x *Index) { x.Packed = 4; c.change(x) })
		if err := x.Validate(-1, 1<<20); (err == nil) != c.valid {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestPackedRowsDecode: packed rows of one or more bands decode to the numbers that a reader of single bits finds,
// from the stored bytes of the chunk or with their bits reversed.
func TestPackedRowsDecode(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		width := rapid.IntRange(1, 31).Filter(func(n int) bool { return n%8 != 0 }).Draw(t, "bits")
		x := plain(func(x *Index) {
			x.Packed, x.DType = width, map[int]DType{0: Uint8, 1: Uint16, 2: Uint32, 3: Uint32}[width/8]
			x.Bands = rapid.IntRange(1, 3).Draw(t, "bands")
			x.ChunkB, x.Inner, x.Reversed = x.Bands, YXB, rapid.Bool().Draw(t, "reversed")
			x.Height, x.Width = rapid.IntRange(1, 3).Draw(t, "rows"), rapid.IntRange(1, 20).Draw(t, "columns")
			x.ChunkH, x.ChunkW = x.Height, x.Width
		})
		samples := x.Width * x.Bands
		row := (samples*width + 7) / 8
		stored := rapid.SliceOfN(rapid.Byte(), x.Height*row, x.Height*row).Draw(t, "stored")
		x.Ranges[0].Len = int64(len(stored)) + 5
		if place := x.Place(0); place.Len != int64(len(stored)) {
			t.Fatalf("%d bytes are read of %d", place.Len, len(stored))
		}
		src := slices.Clone(stored)
		for i := range src {
			if x.Reversed {
				src[i] = bits.Reverse8(src[i])
			}
		}
		got := make([]byte, x.DecodedBytes(0))
		if err := NewDecoder(nil).Decode(got, src, x, 0); err != nil {
			t.Fatal(err)
		}
		for y := range x.Height {
			for i := range samples {
				want := uint32(0)
				for bit := i * width; bit < (i+1)*width; bit++ {
					want = want<<1 | uint32(stored[y*row+bit/8]>>(7-bit%8)&1)
				}
				size := x.DType.Size()
				sample := append(slices.Clone(got[(y*samples+i)*size:][:size]), 0, 0, 0)
				if value := binary.LittleEndian.Uint32(sample); value != want {
					t.Fatalf("%d bits, row %d, sample %d: %#x, want %#x", width, y, i, value, want)
				}
			}
		}
	})
}

// TestLowBits: samples of fewer than 8 bits must have zeros above them.
func TestLowBits(t *testing.T) {
	for dtype, width := range map[DType]int{Uint1: 1, Uint2: 2, Int2: 2, Uint4: 4, Int4: 4, Float4E2M1FN: 4,
		Float6E2M3FN: 6, Float6E3M2FN: 6} {
		x := plain(func(x *Index) { x.DType, x.LowBits, x.Ranges[0].Len = dtype, true, 16 })
		for value := range 256 {
			src := make([]byte, 16)
			src[11] = byte(value)
			err := NewDecoder(nil).Decode(make([]byte, 16), src, x, 0)
			if want := value >= 1<<width; errors.Is(err, fault.Corrupt) != want {
				t.Errorf("%v has %#x: %v", dtype, value, err)
			}
		}
	}
}

// TestLinears: the shortest list says the same of each band as the whole list, or nothing where that is to keep the
// samples or cannot be said.
func TestLinears(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		number := rapid.SampledFrom([]float64{0, 1, 2, -0.5, math.NaN(), math.Inf(1), math.Inf(-1)})
		usual := rapid.SampledFrom([]float64{0, 1, 2})
		var list []Linear
		finite, same, keeps := true, true, true
		for range rapid.IntRange(0, 4).Draw(t, "bands") {
			l := Linear{usual.Draw(t, "scale"), usual.Draw(t, "offset")}
			if rapid.IntRange(0, 9).Draw(t, "rare") == 0 {
				l = Linear{number.Draw(t, "scale"), number.Draw(t, "offset")}
			}
			finite = finite && l.Scale-l.Scale == 0 && l.Offset-l.Offset == 0
			if list = append(list, l); l != list[0] {
				same = false
			}
			keeps = keeps && l.Scale == 1 && l.Offset == 0
		}
		got := Linears(list)
		switch {
		case len(list) == 0 || !finite || keeps:
			if len(got) > 0 {
				t.Fatalf("%v of %v", got, list)
			}
			return
		case same && len(got) != 1 || !same && len(got) != len(list):
			t.Fatalf("%v of %v", got, list)
		}
		const steps = 2
		x := plain(func(x *Index) {
			x.Bands, x.Times, x.Physical = steps*len(list), steps, got
			x.Ranges = make([]Range, x.Bands)
		})
		if err := x.Validate(-1, 1<<20); err != nil {
			t.Fatal(err)
		}
		for plane := range x.Bands {
			if l := x.Linear(plane); l != list[plane%len(list)] {
				t.Fatalf("plane %d has %v of %v", plane, l, list)
			}
		}
		if longer := append(slices.Clone(list), list[0]); len(list) > 1 || !same {
			x.Physical = longer
			if x.Validate(-1, 1<<20) == nil {
				t.Fatalf("%d entries for %d bands", len(longer), len(list))
			}
		}
	})
	x := plain(func(*Index) {})
	if l := x.Linear(0); l != (Linear{Scale: 1}) {
		t.Errorf("without scales: %v", l)
	}
	for _, longer := range [][]Linear{{}, {{Scale: 1}}, {{2, 1}, {2, 1}}} { // not the shortest form
		x := plain(func(x *Index) { x.Bands, x.Ranges, x.Physical = 2, make([]Range, 2), longer })
		if x.Validate(-1, 1<<20) == nil {
			t.Errorf("%v is the shortest form", longer)
		}
	}
}

// TestWhatMarksMissingPixels: a mask counts alone; without one nodata does, and alpha only where neither is there.
func TestWhatMarksMissingPixels(t *testing.T) {
	value, word, mask := 3.0, uint64(3), plain(func(*Index) {})
	for i := range 16 {
		x := plain(func(x *Index) {
			x.Bands, x.Ranges, x.Alpha = 2, make([]Range, 2), i&1 != 0
			if i&2 != 0 {
				x.NoData = &value
			}
			if i&4 != 0 {
				x.NoDataBits = &word
			}
			if i&8 != 0 {
				x.Mask = mask
			}
		})
		var masking *Index
		missing, bits := x.NoData, x.NoDataBits
		switch {
		case x.Mask != nil:
			masking, missing, bits = mask, nil, nil
		case x.Alpha && missing == nil && bits == nil:
			masking = x
		}
		gotMissing, gotBits := x.Missing()
		if x.Masking() != masking || gotMissing != missing || gotBits != bits {
			t.Errorf("%+v: %v, %v, %v", x, x.Masking(), gotMissing, gotBits)
		}
		if want := 2 - i&1; x.DataBands() != want {
			t.Errorf("%+v: %d bands of data", x, x.DataBands())
		}
	}
}

// TestShift: all chunks with bytes move, with those of the mask, and the rest of the index stays.
func TestShift(t *testing.T) {
	x := tog(1, 2, 2, 16)
	x.Ranges[1] = Range{}
	x.Mask = plain(func(x *Index) { x.Ranges[0] = Range{7, 5} })
	moved := x.Shift(100)
	for i, span := range x.Ranges {
		want := span
		if span.Len > 0 {
			want.Off += 100
		}
		if moved.Ranges[i] != want {
			t.Errorf("chunk %d is at %+v, want %+v", i, moved.Ranges[i], want)
		}
	}
	if moved.Mask.Ranges[0] != (Range{107, 5}) || x.Mask.Ranges[0] != (Range{7, 5}) || x.Shift(0) != x {
		t.Errorf("the mask is at %+v", moved.Mask.Ranges[0])
	}
}

// TestMostBytesOfAChunk: ChunkFits is exact, also where the product has more bits than an int64, and compressed chunks
// have twice that and something to spare.
func TestMostBytesOfAChunk(t *testing.T) {
	for _, c := range []struct{ bands, height, width, size int }{{1, 1, 1, 1}, {3, 5, 7, 2}, {2, 4, 4, 16}} {
		x := &Index{Bands: c.bands, Height: 99, Width: 99, ChunkB: c.bands, ChunkH: c.height, ChunkW: c.width,
			DType: map[int]DType{1: Int8, 2: Int16, 16: Complex128}[c.size]}
		n := c.bands * c.height * c.width * c.size
		if !x.ChunkFits(n) || x.ChunkFits(n-1) || x.MaxDecodedBytes() != n {
			t.Errorf("%+v: %d bytes", c, x.MaxDecodedBytes())
		}
		for _, one := range []bool{true, false} {
			for codec := Raw; codec < numCodecs; codec++ {
				x.Codec, x.Ranges = codec, make([]Range, 2)
				spare := int64(64 << 10)
				if one {
					x.Ranges = x.Ranges[:1]
				}
				if one && (codec == JPEG || codec == PNG) {
					spare = 4 << 20
				}
				if got := x.MaxCompressed(); got != 2*int64(n)+spare {
					t.Errorf("%+v, %v: %d bytes compressed", c, codec, got)
				}
			}
		}
	}
	x := &Index{Bands: MaxPlanes, Height: MaxSide, Width: MaxSide, ChunkB: MaxPlanes, ChunkH: MaxSide, ChunkW: MaxSide,
		DType: Complex128}
	if x.ChunkFits(math.MaxInt) {
		t.Error("2^86 bytes fit")
	}
	x.CutEdge, x.CutRight, x.Height, x.Width = true, true, 1, 2
	if x.MaxDecodedBytes() != MaxPlanes*2*16 {
		t.Errorf("a chunk that is cut has %d bytes", x.MaxDecodedBytes())
	}
}

// TestInside: a box lies inside an image if each of its pixels does, and it has one.
func TestInside(t *testing.T) {
	sides := [][2]int{{0, 1}, {0, 3}, {2, 3}, {-1, 1}, {1, 1}, {2, 1}, {3, 3}, {2, 4}, {0, 4}}
	for _, b := range sides {
		for _, y := range sides {
			for _, x := range sides {
				want := true
				for _, side := range [][2]int{b, y, x} {
					pixels := 0
					for i := side[0]; i < side[1]; i++ {
						pixels++
						want = want && i >= 0 && i < 3
					}
					want = want && pixels > 0
				}
				if box := (Box{b[0], b[1], y[0], y[1], x[0], x[1]}); box.Inside(3, 3, 3) != want {
					t.Errorf("%+v: %v", box, !want)
				}
			}
		}
	}
}

// TestColours: opaque colours have six digits and others eight, and black ones at the end are left out.
func TestColours(t *testing.T) {
	black := color.NRGBA{A: 0xff}
	red, clearGreen := color.NRGBA{R: 0xff, A: 0xff}, color.NRGBA{G: 0x0a, B: 0x0b, A: 0xfe}
	for _, c := range []struct {
		colours []color.NRGBA
		want    []string
	}{
		{nil, nil}, {[]color.NRGBA{black, black}, nil},
		{[]color.NRGBA{red, black}, []string{"#ff0000"}},
		{[]color.NRGBA{black, clearGreen, black, black}, []string{"#000000", "#000a0bfe"}},
		{[]color.NRGBA{red, {}}, []string{"#ff0000", "#00000000"}},
	} {
		if got := Colours(c.colours); !slices.Equal(got, c.want) {
			t.Errorf("%v: %v, want %v", c.colours, got, c.want)
		}
	}
}

// TestRegister: a codec has one decompressor, which is opened once for each worker.
func TestRegister(t *testing.T) {
	opened := 0
	codecs := Codecs{LZW: func() Decompressor { opened++; return early{new([]int)} }}
	var o Opened
	o.codecs = codecs
	for range 3 {
		if codec, err := o.Of(LZW); codec == nil || err != nil {
			t.Fatal(codec, err)
		}
	}
	if _, err := o.Of(PNG); opened != 1 || !errors.Is(err, fault.Unsupported) {
		t.Errorf("opened %d times; a codec that is not there: %v", opened, err)
	}
	defer func(was Codecs) { registered = was }(registered)
	registered = Codecs{}
	Register(LZW, codecs[LZW])
	if all := Registered(); len(all) != 1 || all[LZW] == nil {
		t.Errorf("registered: %v", all)
	}
	defer func() {
		if p := recover(); p == nil || !strings.Contains(p.(string), "lzw") {
			t.Errorf("two decompressors: %v", p)
		}
	}()
	Register(LZW, codecs[LZW])
}

// TestOverLimitSaysWhatIsTooLarge: the error names what is decoded at once, and its bytes.
func TestOverLimitSaysWhatIsTooLarge(t *testing.T) {
	for want, x := range map[string]*Index{
		"a chunk of (1, 9, 5) uint16 decodes to 90 bytes": {ChunkB: 1, ChunkH: 9, ChunkW: 5, DType: Uint16},
		"a row of a chunk of (1, 9, 5) uint16 decodes to 10 bytes": {ChunkB: 1, ChunkH: 9, ChunkW: 5, DType: Uint16,
			Codec: Zstd},
		"a chunk of (1048576, 2147483647, 2147483647) uint8 decodes to too many bytes": {ChunkB: MaxPlanes,
			ChunkH: MaxSide, ChunkW: MaxSide, DType: Uint8},
		"openzl are decoded whole": {ChunkB: 1, ChunkH: 9, ChunkW: 5, DType: Uint16, Codec: OpenZL},
	} {
		x.Bands, x.Height, x.Width = x.ChunkB, 20, 20
		err := x.OverLimit(8)
		if !errors.Is(err, fault.Limit) || !strings.Contains(err.Error(), want) ||
			!strings.Contains(err.Error(), "which is 8") ||
			strings.Contains(err.Error(), "whole") != (x.Codec == OpenZL) {
			t.Errorf("%q: %v", want, err)
		}
	}
}
