package kernel

import (
	"math"

	"github.com/chaski-eo/chaski/internal/cast"
)

// Match says which bit patterns of a number are nodata: A, B (of a float the other zero, or the largest number that A
// is a rounded text of; else A) or, with NaN, everything whose bits under Abs are more than Inf.
type Match struct {
	A, B     uint64
	NaN      bool
	Abs, Inf uint64
}

// Hit reports whether bits are nodata.
func (m *Match) Hit(bits uint64) bool {
	if m.NaN {
		return bits&m.Abs > m.Inf
	}
	return bits == m.A || bits == m.B
}

// MatchValue returns the match of a float64 value in type t, compared in that type: floats are
// rounded to it first. ok is false if type t does not have that value.
func MatchValue(t Num, v float64) (m Match, ok bool) {
	if t.IsFloat() {
		return matchFloat(t, v), true
	}
	bits, ok := IntBits(t, v)
	return Match{A: bits, B: bits}, ok
}

// MatchBits returns the match of a number given by its bits; if t is narrower, by the low ones.
func MatchBits(t Num, bits uint64) Match {
	bits &= 1<<(8*t.Size()) - 1
	switch t {
	case F16:
		return matchFloat(t, float64(Float32FromFloat16(uint16(bits))))
	case BF16:
		return matchFloat(t, float64(Float32FromBFloat16(uint16(bits))))
	case F32:
		return matchFloat(t, float64(math.Float32frombits(uint32(bits))))
	case F64:
		return matchFloat(t, math.Float64frombits(bits))
	}
	return Match{A: bits, B: bits}
}

// largestFloats are the largest finite numbers of float64 and float32, which files often have as nodata, and how much a
// text for them may differ, relative to them: -3.4e+38 differs by 1e-3. A float64 has the one of float32 from a file of
// float32; GDAL takes -3.4028235e+38 for it, and not -3.40282e+38.
var largestFloats = map[Num][]struct{ value, tolerance float64 }{
	F64: {{math.MaxFloat64, 2e-3}, {math.MaxFloat32, 1e-7}}, F32: {{math.MaxFloat32, 2e-3}},
}

func matchFloat(t Num, v float64) Match {
	sign := uint64(1) << (8*t.Size() - 1)
	if v != v {
		return Match{NaN: true, Abs: sign - 1, Inf: FloatBits(t, math.Inf(1))}
	}
	match := Match{A: FloatBits(t, v)}
	match.B = match.A
	// Both zeros match, since they are equal as numbers.
	if match.A&^sign == 0 {
		match.A, match.B = 0, sign
	}
	for _, largest := range largestFloats[t] {
		if math.Abs(math.Abs(v)-largest.value) <= largest.tolerance*largest.value {
			match.B = FloatBits(t, math.Copysign(largest.value, v))
		}
	}
	return match
}

// FloatBits returns v rounded to the nearest even number of a float type, as its bits. Through
// BF16 it is rounded to float32 first.
func FloatBits(t Num, v float64) uint64 {
	switch t {
	case F16:
		return uint64(Float16FromFloat32(roundOdd(v)))
	case BF16:
		return uint64(BFloat16FromFloat32(float32(v)))
	case F32:
		return uint64(math.Float32bits(float32(v)))
	}
	return math.Float64bits(v)
}

// IntBits returns the bits of v as an integer of type t. ok is false if v is not such an integer.
func IntBits(t Num, v float64) (bits uint64, ok bool) {
	width := 8 * t.Size()
	if v != math.Trunc(v) { // NaN too
		return 0, false
	}
	if t <= U64 {
		if v < 0 || v >= math.Ldexp(1, width) {
			return 0, false
		}
		return uint64(v), true
	}
	if limit := math.Ldexp(1, width-1); v < -limit || v >= limit {
		return 0, false
	}
	return uint64(int64(v)) & (1<<width - 1), true
}

// Valid sets valid[i] to 0 if the number at i*stride of src is nodata, otherwise to 1. It returns how many
// are nodata. size is the size of a number in bytes. src must hold len(valid) numbers.
func Valid(valid, src []byte, size, stride int, m *Match) (bad int) {
	if stride == 1 {
		var done int
		done, bad = validSIMD(valid, src, size, m)
		valid, src = valid[done:], src[done*size:]
		if len(valid) == 0 {
			return bad
		}
		// Most chips have no nodata, so a quick look pays where SIMD loops are missing.
		if done == 0 && noneEqual(src, size, len(valid), m) {
			Repeat(valid, 1, one, len(valid))
			return 0
		}
	}
	switch size {
	case 1:
		return bad + validOf(valid, src, stride, m)
	case 2:
		return bad + validNumbers[uint16](valid, src, size, stride, m)
	case 4:
		return bad + validNumbers[uint32](valid, src, size, stride, m)
	}
	return bad + validNumbers[uint64](valid, src, size, stride, m)
}

func validNumbers[T unsigned](valid, src []byte, size, stride int, m *Match) int {
	if numbers, ok := cast.Of[T](src); ok {
		return validOf(valid, numbers, stride, m)
	}
	return validBytes(valid, src, size, stride, m)
}

var one = []byte{1}

func validOf[T unsigned](valid []byte, src []T, stride int, m *Match) (bad int) {
	if m.NaN {
		abs, inf := T(m.Abs), T(m.Inf)
		for i := range valid {
			value := byte(1)
			if src[i*stride]&abs > inf {
				value = 0
			}
			valid[i] = value
			bad += 1 - int(value)
		}
		return bad
	}
	first, second := T(m.A), T(m.B)
	for i := range valid {
		number := src[i*stride]
		value := byte(1)
		if number == first || number == second {
			value = 0
		}
		valid[i] = value
		bad += 1 - int(value)
	}
	return bad
}

// validBytes is the byte-wise twin.
func validBytes(valid, src []byte, size, stride int, m *Match) (bad int) {
	for i := range valid {
		valid[i] = 1
		if m.Hit(cast.Uint(src[i*stride*size:], size)) {
			valid[i] = 0
			bad++
		}
	}
	return bad
}

// Patch writes v to f where valid is 0.
func Patch(f []float32, valid []byte, v float32) {
	for i, ok := range valid[:len(f)] {
		if ok == 0 {
			f[i] = v
		}
	}
}

// noneEqual reports whether none of the first n numbers of size bytes (1, 2 or 4) in src is nodata. It
// compares eight bytes at a time (H. S. Warren, "Hacker's Delight", section 6-1), and may return false
// although no number is nodata.
func noneEqual(src []byte, size, n int, m *Match) bool {
	if m.NaN || size > 4 {
		return false
	}
	var ones uint64
	switch size {
	case 1:
		ones = 0x0101010101010101
	case 2:
		ones = 0x0001000100010001
	case 4:
		ones = 0x0000000100000001
	}
	highs := ones << (8*size - 1)
	a, b := ones*m.A, ones*m.B
	src = src[:n*size]
	var found uint64
	for len(src) >= 8 {
		w := le.Uint64(src)
		x, y := w^a, w^b
		found |= (x - ones) & ^x
		found |= (y - ones) & ^y
		src = src[8:]
	}
	if found&highs != 0 {
		return false
	}
	for ; len(src) >= size; src = src[size:] {
		if v := cast.Uint(src, size); v == m.A || v == m.B {
			return false
		}
	}
	return true
}
