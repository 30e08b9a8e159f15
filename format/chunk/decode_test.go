package chunk

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/cast"
)

// slowEncode applies TIFF's predictors the obvious way, by TIFF 6.0 section 14 and Technical Note
// 3: it turns little-endian samples (rows of n interleaved components of size bytes, pixels stride
// components apart) into the bytes of a file in the given byte order.
func slowEncode(plain []byte, p Predictor, bigEndian bool, n, size, stride int) []byte {
	var out []byte
	for row := range slices.Chunk(plain, n*size) {
		nums := make([]*big.Int, n)
		for i := range nums {
			le := slices.Clone(row[i*size : (i+1)*size])
			slices.Reverse(le)
			nums[i] = new(big.Int).SetBytes(le)
		}
		switch p {
		case Horizontal:
			mod := new(big.Int).Lsh(big.NewInt(1), uint(8*size))
			diff := make([]*big.Int, n)
			for i := range nums {
				diff[i] = nums[i]
				if i >= stride {
					diff[i] = new(big.Int).Mod(new(big.Int).Sub(nums[i], nums[i-stride]), mod)
				}
			}
			nums = diff
		case FloatingPoint:
			var planes []byte
			for k := range size {
				for i := range nums {
					planes = append(planes, nums[i].FillBytes(make([]byte, size))[k])
				}
			}
			enc := slices.Clone(planes)
			for i := stride; i < len(planes); i++ {
				enc[i] = planes[i] - planes[i-stride]
			}
			out = append(out, enc...)
			continue
		}
		for _, v := range nums {
			b := v.FillBytes(make([]byte, size))
			if !bigEndian {
				slices.Reverse(b)
			}
			out = append(out, b...)
		}
	}
	return out
}

func TestDecodeAgainstSlowPredictors(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 6))
	for d := Uint8; d < dtypes; d++ {
		for p := NoPredictor; p <= FloatingPoint; p++ {
			size := d.Size() / d.Components()
			if p == FloatingPoint && size == 1 {
				continue
			}
			for _, bigEndian := range []bool{false, true} {
				for _, shape := range [][4]int{{1, 5, 7, 0}, {3, 4, 6, 0}, {3, 4, 6, 1}, {1, 1, 1, 0}, {2, 3, 1, 1}} {
					x := &Index{Bands: shape[0], Height: shape[1], Width: shape[2], ChunkB: shape[0], ChunkH: shape[1],
						ChunkW: shape[2], DType: d, Predictor: p, BigEndian: bigEndian, Inner: Inner(shape[3])}
					plain := make([]byte, x.MaxDecodedBytes())
					for i := range plain {
						plain[i] = byte(rnd.Uint32())
					}
					n, stride := x.Width*d.Components(), d.Components()
					if x.Inner == YXB {
						n, stride = n*x.Bands, stride*x.Bands
					}
					src := slowEncode(plain, p, bigEndian, n, size, stride)
					x.Ranges = []Range{{0, int64(len(src))}}
					if err := x.Validate(int64(len(src)), 1<<20); err != nil {
						t.Fatal(err)
					}
					for shift := range 2 { // dst at an even and at an odd address
						dst := make([]byte, len(plain)+1)[shift:][:len(plain)]
						if err := NewDecoder(nil).Decode(dst, src, x, 0); err != nil {
							t.Fatal(err)
						}
						if !bytes.Equal(dst, plain) {
							t.Errorf("%v predictor %d big-endian %v shape %v: wrong bytes", d, p, bigEndian, shape)
						}
					}
				}
			}
		}
	}
}

func TestSparseChunkIsNoData(t *testing.T) {
	f := func(v float64) *float64 { return &v }
	bits := uint64(math.MaxInt64 - 1)
	for _, c := range []struct {
		d      DType
		nodata *float64
		bits   *uint64
		want   any // one sample
	}{
		{Uint16, nil, nil, uint16(0)},
		{Uint16, f(77), nil, uint16(77)},
		{Uint8, f(255), nil, uint8(255)},
		{Uint8, f(1), nil, uint8(1)},
		{Uint8, f(0), nil, uint8(0)},
		{Int8, f(1), nil, int8(1)},
		{Int8, f(-1), nil, int8(-1)},
		{Int16, f(-9999), nil, int16(-9999)},
		{Int64, f(-5), nil, int64(-5)},
		{Int64, f(1e18), &bits, int64(math.MaxInt64 - 1)},
		{Uint64, f(1 << 63), nil, uint64(1 << 63)},
		{Float32, f(-9999), nil, float32(-9999)},
		{Float64, f(0.1), nil, 0.1},
		{Float16, f(1), nil, uint16(0x3c00)},
		{BFloat16, f(1), nil, uint16(0x3f80)},
		{Complex64, f(2), nil, []float32{2, 0}},
		{Complex128, f(2), nil, []float64{2, 0}},
		{ComplexInt16, f(-3), nil, []int16{-3, 0}},
		{ComplexInt32, f(-3), nil, []int32{-3, 0}},
		{ComplexFloat16, f(1), nil, []uint16{0x3c00, 0}},
		// Numbers that the type cannot hold become what GDAL 3.12.2 fills in.
		{Uint8, f(-9999), nil, uint8(0)},
		{Uint8, f(300), nil, uint8(255)},
		{Uint8, f(1.5), nil, uint8(2)},
		{Uint8, f(2.5), nil, uint8(3)},
		{Uint8, f(math.NaN()), nil, uint8(0)},
		{Uint8, f(math.Inf(1)), nil, uint8(255)},
		{Int8, f(-1.5), nil, int8(-2)},
		{Int8, f(-9999), nil, int8(-128)},
		{Int16, f(1e10), nil, int16(32767)},
		{Int16, f(-1e300), nil, int16(-32768)},
		{Uint16, f(-1), nil, uint16(0)},
		{Uint16, f(1e5), nil, uint16(65535)},
		{Uint32, f(1e10), nil, uint32(math.MaxUint32)},
		{Int32, f(math.Inf(-1)), nil, int32(math.MinInt32)},
		{Int32, f(2.5), nil, int32(3)},
		{Float32, f(1e300), nil, float32(math.Inf(1))},
		{Float16, f(1e5), nil, uint16(0x7c00)},
		{ComplexInt16, f(1.5), nil, []int16{2, 0}},
		{ComplexInt16, f(1e10), nil, []int16{32767, 0}},
		{Uint64, f(1e300), nil, uint64(math.MaxUint64)},
		{Int64, f(-1e300), nil, int64(math.MinInt64)},
		{Float64, f(math.NaN()), nil, uint64(0x7ff8 << 48)},
		{Float32, f(math.NaN()), nil, uint32(0x7fc0 << 16)},
	} {
		x := &Index{Bands: 1, Height: 2, Width: 2, ChunkB: 1, ChunkH: 2, ChunkW: 2, DType: c.d, Predictor: NoPredictor,
			BigEndian: true, NoData: c.nodata, NoDataBits: c.bits, Ranges: make([]Range, 1)}
		var one bytes.Buffer
		if err := binary.Write(&one, binary.LittleEndian, c.want); err != nil {
			t.Fatal(err)
		}
		dst := bytes.Repeat([]byte{0xaa}, x.DecodedBytes(0))
		if err := NewDecoder(nil).Decode(dst, nil, x, 0); err != nil {
			t.Fatal(err)
		}
		if want := bytes.Repeat(one.Bytes(), 4); !bytes.Equal(dst, want) {
			t.Errorf("%v nodata %v: got %x want %x", c.d, c.want, dst, want)
		}
		if got := x.NoDataSample(); (got != nil) != (c.nodata != nil) || got != nil && !bytes.Equal(got, one.Bytes()) {
			t.Errorf("%v nodata %v: got the sample %x want %x", c.d, c.want, got, one.Bytes())
		}
	}
}

func TestEveryChunkCoversItsBox(t *testing.T) {
	for _, cut := range []bool{false, true} {
		x := &Index{
			Bands: 5, Height: 37, Width: 50, ChunkB: 1, ChunkH: 16,
			ChunkW: 24, CutEdge: cut, CutRight: cut, DType: Uint8,
		}
		seen := map[[3]int]int{}
		for i := range x.Across() * x.Down() * x.Groups() {
			box := x.Box(i)
			for b := box.B0; b < box.B1; b++ {
				for y := box.Y0; y < box.Y1; y++ {
					for c := box.X0; c < box.X1; c++ {
						seen[[3]int{b, y, c}]++
					}
				}
			}
			want := [3]int{1, 16, 24}
			if cut {
				want = [3]int{1, box.Y1 - box.Y0, box.X1 - box.X0}
			}
			if b, h, w := x.DecodedShape(i); [3]int{b, h, w} != want || x.DecodedBytes(i) > x.MaxDecodedBytes() {
				t.Errorf("chunk %d is stored as %d %d %d", i, b, h, w)
			}
		}
		if len(seen) != 5*37*50 {
			t.Errorf("%d samples covered", len(seen))
		}
		for s, n := range seen {
			if n != 1 {
				t.Errorf("sample %v is in %d chunks", s, n)
			}
		}
	}
}

func TestDecodeErrorsNameTheCause(t *testing.T) {
	x := tog(1, 1, 1, 16)
	dst := make([]byte, x.DecodedBytes(0))
	err := NewDecoder(Codecs{}).Decode(dst, []byte{1}, x, 0)
	if want := "chunk 0: this program does not import the package that decompresses zstd: " +
		"import github.com/chaski-eo/chaski/tiff, "; fault.KindOf(err) != fault.Unsupported ||
		!strings.HasPrefix(err.Error(), want) {
		t.Error(err)
	}
	x.Codec, x.Predictor = Raw, NoPredictor
	inImage := len(dst) / x.ChunkH * x.Height
	if err := NewDecoder(nil).Decode(dst, dst[:inImage-1], x, 0); fault.KindOf(err) != fault.Corrupt {
		t.Error(err)
	}
	// Some writers cut off the rows of a tile below the image.
	src := bytes.Repeat([]byte{7}, inImage)
	err = NewDecoder(nil).Decode(dst, src, x, 0)
	if err != nil || !bytes.Equal(dst[:inImage], src) || bytes.Contains(dst[inImage:], []byte{7}) {
		t.Errorf("a tile cut off below the image: %v", err)
	}
}

func TestDecodeNoAlloc(t *testing.T) {
	for _, p := range []Predictor{NoPredictor, Horizontal, FloatingPoint} {
		x := tog(1, 1, 1, 64)
		x.Codec, x.Predictor = Raw, p
		src, dst, d := make([]byte, x.DecodedBytes(0)), make([]byte, x.DecodedBytes(0)), NewDecoder(nil)
		if n := testing.AllocsPerRun(20, func() { _ = d.Decode(dst, src, x, 0) }); n != 0 {
			t.Errorf("predictor %d: %v allocations", p, n)
		}
	}
}

func BenchmarkDecode(b *testing.B) {
	for _, p := range []Predictor{Horizontal, FloatingPoint} {
		for _, d := range []DType{Uint8, Uint16, Float32} {
			x := tog(1, 1, 1, 512)
			x.Codec, x.Predictor, x.DType = Raw, p, d
			src, dst, dec := make([]byte, x.DecodedBytes(0)), make([]byte, x.DecodedBytes(0)), NewDecoder(nil)
			b.Run(fmt.Sprintf("predictor=%d/%v", p, d), func(b *testing.B) {
				b.SetBytes(int64(len(dst)))
				b.ReportAllocs()
				for range b.N {
					_ = dec.Decode(dst, src, x, 0)
				}
			})
		}
	}
}

// TestDecodeBits: rows of bits, of every width and cut after every row, agree with reading bit by
// bit.
func TestDecodeBits(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 4))
	d := NewDecoder(nil)
	for w := 1; w <= 40; w++ {
		h := 1 + r.IntN(5)
		x := &Index{
			Bands: 1, Height: h, Width: w, ChunkB: 1, ChunkH: h,
			ChunkW: w, DType: Uint8, Predictor: NoPredictor, Bits: true,
		}
		packed := (w + 7) / 8
		src := make([]byte, h*packed)
		for i := range src {
			src[i] = byte(r.Uint32())
		}
		x.Ranges = []Range{{Off: 0, Len: int64(len(src)) + 3}}
		if p := x.Place(0); p.Len != int64(len(src)) {
			t.Fatalf("%d by %d: %d bytes are read of %d", h, w, p.Len, len(src))
		}
		for pixels := range h*w + 1 {
			dst := make([]byte, h*w)
			if err := d.DecodeFirst(dst, src, x, 0, pixels); err != nil {
				t.Fatal(err)
			}
			for i := range pixels {
				if want := src[i/w*packed+i%w/8] >> (7 - i%w%8) & 1; dst[i] != want {
					t.Fatalf("%d by %d, pixel %d: %d, want %d", h, w, i, dst[i], want)
				}
			}
		}
		if err := d.Decode(make([]byte, h*w), src[:len(src)-1], x, 0); !errors.Is(err, fault.Corrupt) {
			t.Errorf("a byte missing: %v", err)
		}
		x.Ranges[0].Len = 0
		dst := bytes.Repeat([]byte{9}, h*w)
		if err := d.Decode(dst, nil, x, 0); err != nil || !bytes.Equal(dst, make([]byte, h*w)) {
			t.Errorf("sparse: %v, %v", dst, err)
		}
	}
}

// TestAsStored: what is not decoded is what decoding gives, and whatever needs decoding is decoded.
func TestAsStored(t *testing.T) {
	src := cast.Aligned(4*4*16 + 7)
	if _, can := cast.Of[uint16](src); !can {
		t.Skip("no views of bytes in this build")
	}
	for i := range src {
		src[i] = byte(i * 37)
	}
	plain := func(change func(x *Index)) *Index {
		x := &Index{
			DType: Uint16, Bands: 1, Height: 4, Width: 4, ChunkB: 1, ChunkH: 4, ChunkW: 4, Codec: Raw,
			Predictor: NoPredictor, Ranges: []Range{{Len: int64(len(src))}},
		}
		change(x)
		return x
	}
	for name, c := range map[string]struct {
		x     *Index
		align int // bytes of a number
	}{
		"uint16":                     {plain(func(*Index) {}), 2},
		"float32":                    {plain(func(x *Index) { x.DType = Float32 }), 4},
		"float64":                    {plain(func(x *Index) { x.DType = Float64 }), 8},
		"complex_int16":              {plain(func(x *Index) { x.DType = ComplexInt16 }), 2},
		"complex64":                  {plain(func(x *Index) { x.DType = Complex64 }), 4},
		"complex128":                 {plain(func(x *Index) { x.DType = Complex128 }), 8},
		"bytes of a big-endian file": {plain(func(x *Index) { x.DType, x.BigEndian = Uint8, true }), 1},
	} {
		x := c.x
		want := make([]byte, x.DecodedBytes(0))
		if err := NewDecoder(nil).Decode(want, src, x, 0); err != nil {
			t.Fatal(name, err)
		}
		if got := x.AsStored(src, 0); !bytes.Equal(got, want) {
			t.Errorf("%s: %x, want %x", name, got, want)
		}
		if x.AsStored(src[:len(want)-1], 0) != nil || x.AsStored(nil, 0) != nil {
			t.Errorf("%s: samples of bytes that are not there", name)
		}
		for begin := range 8 {
			if got := x.AsStored(src[begin:], 0); (got != nil) != (begin%c.align == 0) {
				t.Errorf("%s: %d samples at %d", name, len(got), begin)
			}
		}
	}
	for name, x := range map[string]*Index{
		"zstd": plain(func(x *Index) { x.Codec = Zstd }), "big-endian": plain(func(x *Index) { x.BigEndian = true }),
		"horizontal": plain(func(x *Index) { x.Predictor = Horizontal }),
		"packed":     plain(func(x *Index) { x.Packed = 12 }), "reversed": plain(func(x *Index) { x.Reversed = true }),
		"of few bits": plain(func(x *Index) { x.DType, x.LowBits = Uint8, true }),
	} {
		if x.AsStored(src, 0) != nil {
			t.Errorf("%s: not decoded", name)
		}
	}
}

// TestCodecsNameTheirPackage: the error about a codec that a program lacks names the folder whose code registers it.
func TestCodecsNameTheirPackage(t *testing.T) {
	for codec := Zstd; codec < numCodecs; codec++ {
		_, err := (&Opened{codecs: Codecs{}}).Of(codec)
		_, rest, _ := strings.Cut(err.Error(), "import github.com/chaski-eo/chaski/")
		folder, _, _ := strings.Cut(rest, ", ")
		files, _ := filepath.Glob(filepath.Join("../..", folder, "*.go"))
		call, found := []byte("chunk.register(chunk."+codec.String()+","), false
		for _, name := range files {
			text, err := os.ReadFile(name)
			found = found || err == nil && bytes.Contains(bytes.ToLower(text), call)
		}
		if !found {
			t.Errorf("%v: no file of %q has %s", err, folder, call)
		}
	}
}
