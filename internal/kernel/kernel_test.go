package kernel

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/x448/float16"

	"github.com/chaski-eo/chaski/internal/cast"
)

// lengths are below, at and above the block sizes of all vector loops.
var lengths = []int{0, 1, 2, 3, 7, 15, 16, 17, 31, 32, 33, 47, 48, 63, 64, 65, 127, 255, 256, 257, 1000}

func rng() *rand.Rand { return rand.New(rand.NewPCG(1, 2)) }

// randomBytes returns n bytes that start offset bytes past an aligned address.
func randomBytes(r *rand.Rand, n, offset int) []byte {
	b := make([]byte, n+offset+8)[offset : offset+n]
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

func number(b []byte, size int) (v uint64) {
	for k := size - 1; k >= 0; k-- {
		v = v<<8 | uint64(b[k])
	}
	return v
}

func putNumber(b []byte, size int, v uint64) {
	for k := range size {
		b[k] = byte(v >> (8 * k))
	}
}

// slowHorizontal applies TIFF predictor 2 as the specification words it: from the last number on,
// it subtracts the left neighbour.
func slowHorizontal(row []byte, size, stride int) {
	for i := len(row)/size - 1; i >= stride; i-- {
		d := number(row[i*size:], size) - number(row[(i-stride)*size:], size)
		putNumber(row[i*size:], size, d)
	}
}

// slowFloatPredictor applies TIFF predictor 3: it splits numbers into planes of bytes, most
// significant first, and then takes differences of bytes.
func slowFloatPredictor(row []byte, size, stride int) {
	n := len(row) / size
	planes := make([]byte, len(row))
	for i := range n {
		for k := range size {
			planes[k*n+i] = row[i*size+size-1-k]
		}
	}
	copy(row, planes)
	slowHorizontal(row, 1, stride)
}

// Rows of every length, one to five of them and one that is cut, are what their differences were made of.
func TestUndoHorizontalUndoesThePredictor(t *testing.T) {
	r := rng()
	for _, size := range []int{1, 2, 4, 8} {
		for _, stride := range []int{1, 2, 3, 4, 13} {
			for _, n := range lengths {
				for offset := range 3 {
					pitch := max(n, 1) * size
					want := randomBytes(r, r.IntN(6)*pitch+r.IntN(max(n, 1))*size, offset)
					got := randomBytes(r, len(want), offset)
					copy(got, want)
					for row := range slices.Chunk(got, pitch) {
						slowHorizontal(row, size, stride)
					}
					twin := slices.Clone(got)
					UndoHorizontal(got, pitch, size, stride)
					if !slices.Equal(got, want) {
						t.Fatalf("size %d stride %d n %d offset %d: %d bytes", size, stride, n, offset, len(want))
					}
					for row := range slices.Chunk(twin, pitch) {
						undoHorizontalBytes(row, size, stride)
					}
					if !slices.Equal(twin, want) {
						t.Fatalf("twin: size %d stride %d n %d", size, stride, n)
					}
				}
			}
		}
	}
}

func TestUndoHorizontalLeavesNeighboursAlone(t *testing.T) {
	r := rng()
	for _, size := range []int{1, 2, 4, 8} {
		for _, n := range lengths {
			for rows := 1; rows < 4; rows++ {
				all := randomBytes(r, rows*n*size+64, 0)
				before, end := slices.Clone(all), 32+rows*n*size
				UndoHorizontal(all[32:end], n*size, size, 1)
				if !slices.Equal(all[:32], before[:32]) || !slices.Equal(all[end:], before[end:]) {
					t.Fatalf("size %d n %d wrote outside of its %d rows", size, n, rows)
				}
			}
		}
	}
}

func TestUndoFloatPredictorUndoesThePredictor(t *testing.T) {
	r := rng()
	for _, size := range []int{2, 3, 4, 8} {
		for _, stride := range []int{1, 2, 3, 7} {
			for _, n := range lengths {
				for _, offset := range []int{0, 1} {
					pitch := max(n, 1) * size
					want := randomBytes(r, r.IntN(6)*pitch, offset)
					got := randomBytes(r, len(want), offset)
					copy(got, want)
					for row := range slices.Chunk(got, pitch) {
						slowFloatPredictor(row, size, stride)
					}
					UndoFloatPredictor(got, make([]byte, pitch), size, stride)
					if !slices.Equal(got, want) {
						t.Fatalf("size %d stride %d n %d", size, stride, n)
					}
				}
			}
		}
	}
}

func TestSwapBytesReversesEveryNumber(t *testing.T) {
	r := rng()
	for _, size := range []int{1, 2, 4, 8} {
		for _, n := range lengths {
			in := randomBytes(r, n*size, 1)
			got := slices.Clone(in)
			SwapBytes(got, size)
			for i := range n {
				one := slices.Clone(in[i*size : (i+1)*size])
				slices.Reverse(one)
				if !slices.Equal(got[i*size:(i+1)*size], one) {
					t.Fatalf("size %d number %d of %d", size, i, n)
				}
			}
		}
	}
}

func TestFloat16AgainstX448(t *testing.T) {
	for h := range 1 << 16 {
		want := math.Float32bits(float16.Frombits(uint16(h)).Float32())
		got := math.Float32bits(Float32FromFloat16(uint16(h)))
		if got != want {
			t.Fatalf("%#04x: %#08x, want %#08x", h, got, want)
		}
		if h&0x7fff <= 0x7c00 && Float16FromFloat32(math.Float32frombits(got)) != uint16(h) {
			t.Fatalf("%#04x does not survive float32", h)
		}
	}
	r := rng()
	check := func(bits uint32) {
		f := math.Float32frombits(bits)
		got, want := Float16FromFloat32(f), float16.Fromfloat32(f).Bits()
		if got != want {
			t.Fatalf("%#08x: %#04x, want %#04x", bits, got, want)
		}
	}
	for range 500_000 {
		check(r.Uint32())
		check(0x33000000 + r.Uint32N(0x48000000-0x33000000)) // the range of float16
	}
	for h := range uint32(1 << 16) { // halfway cases and their neighbours
		f := math.Float32bits(Float32FromFloat16(uint16(h)))
		for _, d := range []uint32{0, 0xfff, 0x1000, 0x1001, 0xffffffff} {
			check(f + d)
		}
	}
}

// nearest returns whichever of lo and hi is nearer to v, and the one with even bits in the middle.
func nearest(v, lo, hi *big.Float, bitsLo, bitsHi uint64) uint64 {
	dl := new(big.Float).SetPrec(3000).Sub(v, lo)
	dh := new(big.Float).SetPrec(3000).Sub(hi, v)
	switch c := dl.Cmp(dh); {
	case c < 0:
		return bitsLo
	case c > 0:
		return bitsHi
	case bitsLo%2 == 0:
		return bitsLo
	}
	return bitsHi
}

func TestBFloat16IsNearestEven(t *testing.T) {
	r := rng()
	exact := func(h uint16) *big.Float {
		if h == 0x7f80 {
			return new(big.Float).SetMantExp(big.NewFloat(1), 128) // where infinity stands for rounding
		}
		return big.NewFloat(float64(Float32FromBFloat16(h)))
	}
	for i := range 200_000 {
		bits := r.Uint32() & 0x7fffffff
		if i%4 == 0 {
			bits = bits&^0xffff | 0x8000
		}
		if bits > 0x7f800000 {
			if got := BFloat16FromFloat32(math.Float32frombits(bits)); got != 0x7fc0 {
				t.Fatalf("NaN %#08x: %#04x", bits, got)
			}
			continue
		}
		lo := uint16(bits >> 16)
		want := uint64(lo)
		if bits&0xffff != 0 {
			want = nearest(big.NewFloat(float64(math.Float32frombits(bits))), exact(lo), exact(lo+1), uint64(lo),
				uint64(lo+1))
		}
		for _, sign := range []uint32{0, 1} {
			got := BFloat16FromFloat32(math.Float32frombits(bits | sign<<31))
			if uint64(got) != want|uint64(sign)<<15 {
				t.Fatalf("%#08x sign %d: %#04x, want %#04x", bits, sign, got, want)
			}
		}
	}
}

// TestRoundOddThenFloat16IsOneRounding: the result is the nearest float16 in exact arithmetic.
func TestRoundOddThenFloat16IsOneRounding(t *testing.T) {
	r := rng()
	exact := func(h uint16) *big.Float {
		if h == 0x7c00 {
			return big.NewFloat(65536)
		}
		return big.NewFloat(float64(Float32FromFloat16(h)))
	}
	for i := range 200_000 {
		h := uint16(r.Uint32N(0x7c00))
		a, b := exact(h), exact(h+1)
		mid, _ := new(big.Float).Add(a, b).Float64()
		v := mid / 2
		switch i % 4 {
		case 0:
			v = math.Nextafter(v, 0)
		case 1:
			v = math.Nextafter(v, 1e9)
		case 2:
			f, _ := a.Float64()
			g, _ := b.Float64()
			v = f + (g-f)*r.Float64()
		}
		want := nearest(big.NewFloat(v), a, b, uint64(h), uint64(h+1))
		if got := Float16FromFloat32(roundOdd(v)); uint64(got) != want {
			t.Fatalf("%v: %#04x, want %#04x", v, got, want)
		}
		if got := Float16FromFloat32(roundOdd(-v)); uint64(got) != want|0x8000 {
			t.Fatalf("%v: %#04x", -v, got)
		}
	}
	for _, v := range []float64{
		0, math.Copysign(0, -1), math.Inf(1), math.Inf(-1), math.MaxFloat64, 5e-324, 1e-40, 65519.999, 65520,
	} {
		got := roundOdd(v)
		if math.Signbit(v) != math.Signbit(float64(got)) || (v == 0) != (got == 0) {
			t.Errorf("roundOdd(%v) = %v", v, got)
		}
	}
	if f := roundOdd(math.NaN()); f == f {
		t.Error("roundOdd(NaN) is a number")
	}
}

func TestUint8FromFloat32(t *testing.T) {
	for f, want := range map[float32]uint8{
		-1: 0, 0: 0, 0.5: 0, 0.50000006: 1, 1.5: 2, 2.5: 2, 254.5: 254, 254.50002: 255, 255: 255, 255.5: 255, 1e30: 255,
		float32(math.Inf(1)): 255, float32(math.Inf(-1)): 0, 1e-45: 0,
	} {
		if got := Uint8FromFloat32(f); got != want {
			t.Errorf("%v: %d, want %d", f, got, want)
		}
	}
	if got := Uint8FromFloat32(float32(math.NaN())); got != 0 {
		t.Errorf("NaN: %d", got)
	}
	r := rng()
	for range 100_000 {
		f := r.Float32()*300 - 20
		want := uint8(min(max(math.RoundToEven(float64(f)), 0), 255))
		if got := Uint8FromFloat32(f); got != want {
			t.Fatalf("%v: %d, want %d", f, got, want)
		}
	}
}

// slowFloat32 returns number i of src as float32, from its exact value in math/big.
func slowFloat32(src []byte, t Num, i int) float32 {
	b := src[i*t.Size():]
	exact := new(big.Float).SetPrec(2000)
	switch bits := number(b, t.Size()); t {
	case U8, U16, U32, U64:
		exact.SetUint64(bits)
	case I8:
		exact.SetInt64(int64(int8(bits)))
	case I16:
		exact.SetInt64(int64(int16(bits)))
	case I32:
		exact.SetInt64(int64(int32(bits)))
	case I64:
		exact.SetInt64(int64(bits))
	case F16:
		return float16.Frombits(uint16(bits)).Float32()
	case BF16:
		return math.Float32frombits(uint32(bits) << 16)
	case F32:
		return math.Float32frombits(uint32(bits))
	case F64:
		v := math.Float64frombits(bits)
		if v != v || math.IsInf(v, 0) {
			return float32(v)
		}
		exact.SetFloat64(v)
		f, _ := exact.Float32()
		if v == 0 {
			return float32(v) // the sign of zero
		}
		return f
	}
	f, _ := exact.Float32()
	return f
}

func same(a, b float32) bool {
	return math.Float32bits(a) == math.Float32bits(b) || a != a && b != b
}

func TestLoadAgainstExactValues(t *testing.T) {
	r := rng()
	for num := U8; num < numNums; num++ {
		for _, stride := range []int{1, 2, 5} {
			for _, n := range lengths {
				for _, offset := range []int{0, 1} {
					src := randomBytes(r, max(0, (n-1)*stride+1)*num.Size(), offset)
					if num == F64 { // near the range of float32, and halfway between two
						for i := 0; i+8 <= len(src); i += 8 {
							v := math.Float32frombits(r.Uint32())
							next := math.Nextafter32(v, 0)
							binary.LittleEndian.PutUint64(src[i:], math.Float64bits((float64(v)+float64(next))/2))
						}
					}
					a, c := r.Float32()*2-1, float32(r.Float32()*100)
					plain, affine := make([]float32, n), make([]float32, n)
					Load(plain, src, num, stride)
					LoadAffine(affine, src, num, stride, a, c)
					for i := range n {
						x := slowFloat32(src, num, i*stride)
						if !same(plain[i], x) {
							t.Fatalf("num %d stride %d n %d: number %d is %v, want %v", num, stride, n, i, plain[i], x)
						}
						product := float32(x * a) // rounded, as c is: no processor may fuse it
						if y := product + c; !same(affine[i], y) {
							t.Fatalf("num %d stride %d n %d: affine %d is %v, want %v", num, stride, n, i, affine[i], y)
						}
					}
				}
			}
		}
	}
}

// TestVectorLoopsAgainstTwins: each vector loop equals its plain twin, bit for bit.
func TestVectorLoopsAgainstTwins(t *testing.T) {
	r := rng()
	for _, n := range lengths {
		for range 20 {
			a, c := math.Float32frombits(r.Uint32()), math.Float32frombits(r.Uint32())
			src := randomBytes(r, 4*n, 1)
			got, want := make([]float32, n), make([]float32, n)
			LoadAffine(got, src, U16, 1, a, c)
			affineBytes[uint16](want, src, a, c)
			compare(t, "uint16", got, want)
			LoadAffine(got, src, U8, 1, a, c)
			affineInt(want, src, a, c)
			compare(t, "uint8", got, want)
			Load(got, src, F32, 1)
			copy(want, got)
			Affine(got, a, c)
			affineF32(want, a, c)
			compare(t, "float32", got, want)
			LoadAffine(got, src, I16, 1, a, c)
			affineBytes[int16](want, src, a, c)
			compare(t, "int16", got, want)
			room := cast.Aligned(4 * (n + 16))
			for lead := range 16 { // wherever dst stands in a line
				dst, ok := cast.Of[float32](room)
				if !ok {
					dst = make([]float32, n+16)
				}
				dst = dst[lead : lead+n]
				for num, plain := range map[Num]func(){
					U16: func() { affineBytes[uint16](want, src, a, c) },
					I16: func() { affineBytes[int16](want, src, a, c) },
					U8:  func() { affineInt(want, src, a, c) },
				} {
					plain()
					StreamAffine(dst, src, num, a, c)
					StreamEnd()
					compare(t, "streamed", dst, want)
				}
			}
			Load(got, src, F16, 1)
			loadFloat16(want, src, 1)
			compare(t, "float16", got, want)
			Load(got, src, F32, 1)
			copy(want, got)
			lo, hi := min(a, c), max(a, c)
			if lo == lo {
				Clip(got, lo, hi)
				clip(want, lo, hi)
				compare(t, "clip", got, want)
			}
		}
	}
}

// TestVectorStoresAgainstTwins: stores agree for all float16 values with their neighbours and
// middles, for all bfloat16 values with four tails, and for the middles between bytes.
func TestVectorStoresAgainstTwins(t *testing.T) {
	var f []float32
	for h := range uint32(1 << 16) {
		bits := math.Float32bits(Float32FromFloat16(uint16(h)))
		for _, d := range []uint32{0, 1, 0xfff, 0x1000, 0x1001, 0xffffffff} {
			f = append(f, math.Float32frombits(bits+d))
		}
		for _, tail := range []uint32{0, 0x7fff, 0x8000, 0x8001} {
			f = append(f, math.Float32frombits(h<<16|tail))
		}
		f = append(f, float32(h%1024)/2-100)
	}
	for num, twin := range map[Num]func([]byte, []float32, int){
		F16:  storeFloat16,
		BF16: storeBFloat16,
		U8:   storeUint8,
	} {
		size := num.Size()
		got, want := make([]byte, len(f)*size), make([]byte, len(f)*size)
		Store(got, f, num, 1)
		twin(want, f, 1)
		for i, v := range f {
			if g, w := number(got[i*size:], size), number(want[i*size:], size); g != w {
				t.Fatalf("num %d: %#08x is %#x, by the twin %#x", num, math.Float32bits(v), g, w)
			}
		}
		for _, n := range lengths { // nothing past the end is written
			all := randomBytes(rng(), n*size+64, 1)
			tail := slices.Clone(all[n*size:])
			Store(all, f[:n], num, 1)
			if !slices.Equal(all[n*size:], tail) {
				t.Fatalf("num %d n %d: wrote past the end", num, n)
			}
		}
	}
}

func compare(t *testing.T, what string, got, want []float32) {
	t.Helper()
	for i := range got {
		if !same(got[i], want[i]) {
			t.Fatalf("%s: number %d of %d is %v, want %v", what, i, len(got), got[i], want[i])
		}
	}
}

func TestStoreAndCopyAndRepeat(t *testing.T) {
	r := rng()
	for _, n := range lengths {
		for _, stride := range []int{1, 3} {
			for _, offset := range []int{0, 1} {
				f := make([]float32, n)
				for i := range f {
					f[i] = r.Float32()*600 - 100
				}
				for _, num := range []Num{F32, F16, BF16, U8} {
					size := num.Size()
					dst := randomBytes(r, n*stride*size, offset)
					want := slices.Clone(dst)
					for i, v := range f {
						var bits uint64
						switch num {
						case F32:
							bits = uint64(math.Float32bits(v))
						case F16:
							bits = uint64(float16.Fromfloat32(v))
						case BF16:
							bits = uint64(BFloat16FromFloat32(v))
						case U8:
							bits = uint64(min(max(math.RoundToEven(float64(v)), 0), 255))
						}
						putNumber(want[i*stride*size:], size, bits)
					}
					Store(dst, f, num, stride)
					if !slices.Equal(dst, want) {
						t.Fatalf("Store num %d n %d stride %d", num, n, stride)
					}
				}
				for _, size := range []int{1, 2, 4, 8, 16} {
					src := randomBytes(r, n*2*size, offset)
					dst := randomBytes(r, n*stride*size, offset)
					want := slices.Clone(dst)
					again := slices.Clone(dst)
					elem := randomBytes(r, size, 0)
					wantRepeat := slices.Clone(dst)
					for i := range n {
						copy(want[i*stride*size:], src[i*(3-stride)*size:][:size])
						copy(wantRepeat[i*stride*size:], elem)
					}
					srcStride := 3 - stride // 2, or 0: the same number again
					Copy(dst, stride, src, srcStride, n, size)
					if !slices.Equal(dst, want) {
						t.Fatalf("Copy size %d n %d stride %d", size, n, stride)
					}
					Repeat(again, stride, elem, n)
					if !slices.Equal(again, wantRepeat) {
						t.Fatalf("Repeat size %d n %d stride %d", size, n, stride)
					}
				}
			}
		}
	}
}

func TestClip(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	f := []float32{-inf, -2, -1, 0, 1, 2, inf, nan}
	Clip(f, -1, 1)
	compare(t, "clip", f, []float32{-1, -1, -1, 0, 1, 1, 1, nan})
}

func TestMatchValue(t *testing.T) {
	nan := math.NaN()
	for _, c := range []struct {
		num   Num
		v     float64
		can   bool
		hit   []uint64
		other []uint64
	}{
		{U8, 255, true, []uint64{255}, []uint64{0, 254}},
		{U8, 256, false, nil, nil},
		{U8, -1, false, nil, nil},
		{U8, 1.5, false, nil, nil},
		{U8, nan, false, nil, nil},
		{U16, 65535, true, []uint64{65535}, []uint64{0}},
		{I16, -9999, true, []uint64{0xd8f1}, []uint64{9999}},
		{I8, -128, true, []uint64{0x80}, []uint64{0x7f}},
		{I8, 128, false, nil, nil},
		{I64, -1, true, []uint64{math.MaxUint64}, []uint64{1}},
		{I64, 0x1p63, false, nil, nil},
		{U64, 0x1p63, true, []uint64{1 << 63}, []uint64{0}},
		{U64, 0x1p64, false, nil, nil},
		{U32, math.Inf(1), false, nil, nil},
		{F32, 0, true, []uint64{0, 1 << 31}, []uint64{1}},
		{F32, -3.4028234663852886e+38, true, []uint64{0xff7fffff}, []uint64{0x7f7fffff}},
		{F32, nan, true, []uint64{0x7fc00000, 0xff800001}, []uint64{0x7f800000, 0xff800000, 0}},
		{F64, nan, true, []uint64{0x7ff8000000000001}, []uint64{0x7ff0000000000000}},
		{F64, 0.1, true, []uint64{math.Float64bits(0.1)}, []uint64{math.Float64bits(0.2)}},
		{F16, nan, true, []uint64{0x7e00, 0xfc01}, []uint64{0x7c00}},
		{F16, -1, true, []uint64{0xbc00}, []uint64{0x3c00}},
		{BF16, nan, true, []uint64{0x7fc0, 0xff81}, []uint64{0x7f80}},
		{BF16, 1, true, []uint64{0x3f80}, []uint64{0xbf80}},
	} {
		m, ok := MatchValue(c.num, c.v)
		if ok != c.can {
			t.Errorf("num %d value %v: %v", c.num, c.v, ok)
			continue
		}
		for _, bits := range c.hit {
			if !m.Hit(bits) {
				t.Errorf("num %d value %v misses %#x", c.num, c.v, bits)
			}
			if byBits := MatchBits(c.num, bits); !byBits.Hit(bits) {
				t.Errorf("num %d: MatchBits misses %#x", c.num, bits)
			}
		}
		for _, bits := range c.other {
			if m.Hit(bits) {
				t.Errorf("num %d value %v hits %#x", c.num, c.v, bits)
			}
		}
	}
}

func TestValidAgainstHit(t *testing.T) {
	r := rng()
	for _, size := range []int{1, 2, 4, 8} {
		matches := []Match{{A: 3, B: 3}, {A: 0, B: 1 << (8*size - 1)}, {NaN: true, Abs: 1<<(8*size-1) - 1, Inf: 2}}
		if size == 4 {
			matches = append(matches, matchFloat(F32, math.NaN()))
		}
		for _, n := range lengths {
			for _, stride := range []int{1, 3} {
				for _, offset := range []int{0, 1} {
					for _, few := range []uint32{4, 1000} { // numbers that often, or seldom, match
						src := randomBytes(r, max(0, (n-1)*stride+1)*size, offset)
						for i := range len(src) / size {
							putNumber(src[i*size:], size, uint64(r.Uint32N(few)))
							if size == 4 && r.Uint32N(few) == 0 {
								putNumber(src[i*size:], size, uint64(0x7f7fffff+r.Uint32N(4))|uint64(r.Uint32N(2))<<31)
							}
						}
						for _, m := range matches {
							want, bad := make([]byte, n), 0
							for i := range want {
								want[i] = 1
								if m.Hit(number(src[i*stride*size:], size)) {
									want[i] = 0
									bad++
								}
							}
							got := make([]byte, n)
							if c := Valid(got, src, size, stride, &m); c != bad || !slices.Equal(got, want) {
								t.Fatalf("size %d n %d stride %d: %d, want %d", size, n, stride, c, bad)
							}
							if c := validBytes(got, src, size, stride, &m); c != bad || !slices.Equal(got, want) {
								t.Fatalf("twin: size %d n %d stride %d: %d, want %d", size, n, stride, c, bad)
							}
							if stride == 1 && noneEqual(src, size, n, &m) && bad > 0 {
								t.Fatalf("noneEqual missed %d of %d, size %d", bad, n, size)
							}
						}
					}
				}
			}
		}
	}
	m := Match{A: 7, B: 7}
	if !noneEqual(make([]byte, 4096), 2, 2048, &m) {
		t.Error("noneEqual sees nodata where there is none")
	}
}

func BenchmarkTile(b *testing.B) {
	const n = 65536
	src := randomBytes(rng(), 8*n, 0)
	dst := make([]float32, n)
	tmp := make([]byte, 8*n)
	bench := func(name string, f func()) {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				f()
			}
		})
	}
	bench("affine/uint16", func() { LoadAffine(dst, src[:2*n], U16, 1, 1e-4, -.5) })
	bench("affine/uint16-twin", func() { affineBytes[uint16](dst, src[:2*n], 1e-4, -.5) })
	bench("affine/uint8", func() { LoadAffine(dst, src[:n], U8, 1, 1e-4, -.5) })
	bench("affine/uint8-twin", func() { affineInt(dst, src[:n], 1e-4, -.5) })
	bench("affine/float32", func() { Affine(dst, 1, 0) })
	bench("affine/float32-twin", func() { affineF32(dst, 1, 0) })
	bench("affine/int16", func() { LoadAffine(dst, src[:2*n], I16, 1, 1e-4, -.5) })
	for _, size := range []int{1, 2, 4} {
		bench(fmt.Sprintf("horizontal/%d", size), func() { UndoHorizontal(src[:n*size], 256*size, size, 1) })
	}
	bench("horizontal/2-twin", func() {
		for row := range slices.Chunk(src[:n*2], 256*2) {
			undoHorizontalBytes(row, 2, 1)
		}
	})
	for _, size := range []int{4, 8} {
		bench(fmt.Sprintf("float/%d", size), func() { UndoFloatPredictor(src[:n*size], tmp[:256*size], size, 1) })
	}
	bench("load/float16", func() { Load(dst, src[:2*n], F16, 1) })
	for _, num := range []Num{F16, BF16, U8} {
		bench(fmt.Sprintf("store/%d", num), func() { Store(tmp, dst, num, 1) })
	}
	m := Match{A: 0x1234, B: 0x1234}
	bench("nodata/scan", func() { noneEqual(src, 2, n, &m) })
	bench("nodata/valid", func() { Valid(tmp[:n], src[:2*n], 2, 1, &m) })
	bench("clip", func() { Clip(dst, -1, 1) })
}

// TestTurn: Turn agrees with a copy of one element after the other.
func TestTurn(t *testing.T) {
	r := rand.New(rand.NewPCG(6, 7))
	for range 2000 {
		size := []int{1, 2, 4, 8, 16}[r.IntN(5)]
		rows, cols, pitch := 1+r.IntN(TurnedRows), 1+r.IntN(TurnedCols), TurnedCols
		if r.IntN(2) == 0 {
			rows = TurnedRows
		}
		if size == 16 {
			pitch, cols = 128, min(cols, 128)
		}
		step := 1 + r.IntN(8)
		sy := []int{1, -1, step, -step, cols + 3, -cols}[r.IntN(6)]
		sx := []int{-1, 1, -step, rows + 1, -rows, rows*step + 1, 140, -140}[r.IntN(8)]
		first, last := 0, 0
		for _, s := range []int{(rows - 1) * sy, (cols - 1) * sx} {
			first, last = first-min(s, 0), last+max(s, 0)
		}
		offset := r.IntN(2) * r.IntN(4)
		src := make([]byte, (first+last+1)*size+offset)[offset:]
		for i := range src {
			src[i] = byte(r.Uint32())
		}
		dst := make([]byte, TurnedBytes)
		Turn(dst, src, first, sy, sx, rows, cols, pitch, size)
		for y := range rows {
			for x := range cols {
				got, want := dst[(y*pitch+x)*size:][:size], src[(first+y*sy+x*sx)*size:][:size]
				if string(got) != string(want) {
					t.Fatalf("%d by %d of %d bytes, strides %d and %d: (%d, %d) is %x, want %x",
						rows, cols, size, sy, sx, y, x, got, want)
				}
			}
		}
	}
}
