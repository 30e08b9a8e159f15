package kernel

import (
	"encoding/binary"
	"math"
)

// Every product below is converted separately. This prevents compilers from fusing it with a sum, which
// would round once where the original rounds twice.

// Signed is the type of a sample of integers with a sign.
type Signed interface {
	int8 | int16 | int32 | int64
}

// Floor copies src to dst; with zero, values below 0 become 0. Both have equal lengths, as in all loops
// below.
func Floor[T Signed](dst, src []T, zero bool) {
	copy(dst, src)
	if zero {
		for i, value := range dst {
			dst[i] = max(value, 0)
		}
	}
}

// Floats is Floor for whole numbers that become floats.
func Floats[F float32 | float64, T int32 | int64](dst []F, src []T, zero bool) {
	for i, value := range src {
		if zero {
			value = max(value, 0)
		}
		dst[i] = F(value)
	}
}

// Halves is Floats for floats of 16 bits.
func Halves(dst []uint16, src []int16, zero bool) {
	for i, value := range src {
		if zero {
			value = max(value, 0)
		}
		dst[i] = Half(float32(value))
	}
}

// Times multiplies by step. Products above the highest number become it.
func Times[T Unsigned](dst, src []T, step uint64) {
	highest := ^T(0)
	limit := uint64(highest) / step
	for i, index := range src {
		if uint64(index) > limit {
			dst[i] = highest
		} else {
			dst[i] = index * T(step)
		}
	}
}

// TimesSigned multiplies by step and limits the product to what T has. With zero, values below 0 become 0.
func TimesSigned[T Signed](dst, src []T, step uint64, zero bool) {
	top := uint64(1) << (8*binary.Size(T(0)) - 1)
	limit := top / step
	for i, index := range src {
		magnitude := uint64(int64(index))
		if index < 0 {
			magnitude = -magnitude
		}
		if magnitude > limit {
			magnitude = top
		} else {
			magnitude *= step
		}
		switch {
		case index >= 0:
			dst[i] = T(min(magnitude, top-1))
		case zero:
			dst[i] = 0
		default:
			dst[i] = T(-magnitude)
		}
	}
}

func clamp[F float32 | float64](v, lo, hi F) F {
	if v < lo {
		return lo
	}
	if v > hi {
		return hi
	}
	return v
}

// Linear multiplies by step and keeps the product within lo and hi.
func Linear[F float32 | float64, T int32 | int64](dst []F, src []T, step, lo, hi float64) {
	for i, index := range src {
		dst[i] = F(clamp(float64(index)*step, lo, hi))
	}
}

// LinearHalves is Linear for floats of 16 bits.
func LinearHalves(dst []uint16, src []int16, step, lo, hi float64) {
	for i, index := range src {
		dst[i] = Half(float32(clamp(float64(index)*step, lo, hi)))
	}
}

// SqrtGrid is a grid of samples whose square roots, after Offset is added, are multiples of Step.
// Indices above Top stand for it.
type SqrtGrid struct {
	Step, Offset, Lo, Hi float64
	Top                  uint64
}

func (g *SqrtGrid) at(index uint64) float64 {
	root := float64(min(index, g.Top)) * g.Step
	return within(float64(root*root)-g.Offset, g.Lo, g.Hi)
}

func (g *SqrtGrid) narrow(index uint64) float32 {
	root := float32(min(index, g.Top)) * float32(g.Step)
	return within(float32(root*root)-float32(g.Offset), float32(g.Lo), float32(g.Hi))
}

// within is clamp, with lo for NaN.
func within[F float32 | float64](v, lo, hi F) F {
	if !(v > lo) {
		return lo
	}
	if !(v < hi) {
		return hi
	}
	return v
}

// SqrtWhole makes whole samples from their indices.
func SqrtWhole[D Unsigned | Signed, T Unsigned](dst []D, src []T, g *SqrtGrid) {
	for i, index := range src {
		if sample := round(g.at(uint64(index))); sample < 0 {
			dst[i] = D(int64(sample))
		} else {
			dst[i] = D(uint64(sample))
		}
	}
}

// Sqrt makes samples from their indices.
func Sqrt[F float32 | float64, T uint32 | uint64](dst []F, src []T, g *SqrtGrid) {
	for i, index := range src {
		dst[i] = F(g.at(uint64(index)))
	}
}

// SqrtNarrow is Sqrt with all arithmetic in float32.
func SqrtNarrow(dst []float32, src []uint32, g *SqrtGrid) {
	for i, index := range src {
		dst[i] = g.narrow(uint64(index))
	}
}

// SqrtHalves is SqrtNarrow for floats of 16 bits.
func SqrtHalves(dst, src []uint16, g *SqrtGrid) {
	for i, index := range src {
		dst[i] = Half(g.narrow(uint64(index)))
	}
}

// round rounds half away from zero.
func round(v float64) float64 {
	switch {
	case !(v > -1<<53 && v < 1<<53):
		return v
	case v < 0:
		return -float64(int64(0.5 - v))
	}
	return float64(int64(v + 0.5))
}

// LogGrid is a grid of samples whose logarithms to base 2 are multiples of Step: index 0 is sample
// 0, and indices 1 and -1 are 2 to the power of Anchor and less than zero.
type LogGrid struct {
	Step   float64
	Anchor int
	Lo, Hi float64
}

func (g *LogGrid) at(index int64) float64 {
	if index == 0 {
		return 0
	}
	magnitude := uint64(index)
	if index < 0 {
		magnitude = -magnitude
	}
	sample := exp2(float64(g.Anchor) + float64((float64(magnitude)-1)*g.Step))
	if index < 0 {
		sample = -sample
	}
	if sample != sample {
		return 0
	}
	return clamp(sample, g.Lo, g.Hi)
}

// Log makes samples from their indices; store makes one from a float64.
func Log[D uint16 | float32 | float64, T int16 | int32 | int64](dst []D, src []T, g *LogGrid, store func(float64) D) {
	// Neighbouring samples tend to have one index: the last ones' levels are kept. The slot of an
	// index holds it, and every index is looked up in its own slot only.
	var keys [1 << 10]T
	var levels [1 << 10]D
	for i := range levels {
		keys[i], levels[i] = 0, store(0)
	}
	for i, index := range src {
		slot := uint64(index) % uint64(len(keys))
		if keys[slot] != index {
			keys[slot], levels[slot] = index, store(g.at(int64(index)))
		}
		dst[i] = levels[slot]
	}
}

// HalfOf, SingleOf and DoubleOf are for Log.
func HalfOf(v float64) uint16    { return Half(float32(v)) }
func SingleOf(v float64) float32 { return float32(v) }
func DoubleOf(v float64) float64 { return v }

// exp2 returns 2 to the power of y: the whole part as an exponent, the rest by a
// series of exp. Out of range gives 0 and infinity.
func exp2(y float64) float64 {
	if !(y > -1200) {
		return 0
	}
	if y >= 1024 {
		return math.Inf(1)
	}
	whole := round(y)
	power := exp2Fraction(y - whole)
	exponent := int(whole)
	for ; exponent > 1023; exponent -= 1023 {
		power *= 8.98846567431158e307 // not quite 1<<1023, as in the original
	}
	for ; exponent < -1022; exponent += 1022 {
		power *= 0x1p-1022
	}
	return power * math.Float64frombits(uint64(exponent+1023)<<52)
}

// series are 1/13!, 1/12!, ..., 1, 1, as written in the original.
var series = [...]float64{
	1.6059043836821614599e-10, 2.0876756987868098979e-9, 2.5052108385441718775e-8,
	2.7557319223985890653e-7, 2.7557319223985890653e-6, 2.4801587301587301587e-5,
	1.9841269841269841270e-4, 1.3888888888888888889e-3, 8.3333333333333333333e-3,
	4.1666666666666666667e-2, 1.6666666666666666667e-1, 0.5, 1, 1,
}

func exp2Fraction(f float64) float64 {
	g := f * 0.69314718055994530942
	sum := series[0]
	for _, coefficient := range series[1:] {
		sum = float64(sum*g) + coefficient
	}
	return sum
}

// Half converts to a float of 16 bits, rounding halves away from zero.
func Half(f float32) uint16 {
	word := math.Float32bits(f)
	sign, fraction, exponent := uint16(word>>16&0x8000), word&0x7fffff, int(word>>23&0xff)-127+15
	switch {
	case word>>23&0xff == 0xff && fraction != 0:
		return sign | 0x7e00
	case exponent >= 31:
		return sign | 0x7c00
	case exponent < -10:
		return sign
	case exponent <= 0:
		fraction |= 0x800000
		shift := uint(14 - exponent)
		return sign | uint16(fraction>>shift+fraction>>(shift-1)&1)
	}
	// A carry into the exponent gives the next power of two, which is right.
	return sign + uint16(exponent)<<10 + uint16(fraction>>13) + uint16(fraction>>12&1)
}
