package hdf5

import (
	"math"

	"github.com/chaski-eo/chaski/internal/cast"
	"github.com/chaski-eo/chaski/internal/kernel"
)

// Part says which bits of an element are its number: of an integer of fewer bits than the element has, or of a float
// of another form than IEEE 754's, with an exponent of all ones for infinities and NaN, as the library reads it.
type Part struct {
	As Datatype // what the numbers are read as

	first, bits         int // of an integer; bits is 0 for floats
	sign                int
	exponent, exponents int // the first bit, and how many there are
	mantissa, mantissas int
	bias                int
	size                int // bytes of an element
}

// ieee are the forms of IEEE 754, the small ones first.
var ieee = [...]Part{
	{size: 2, sign: 15, exponent: 10, exponents: 5, mantissas: 10, bias: 15, bits: 16},
	{size: 4, sign: 31, exponent: 23, exponents: 8, mantissas: 23, bias: 127, bits: 32},
	{size: 8, sign: 63, exponent: 52, exponents: 11, mantissas: 52, bias: 1023, bits: 64},
}

// integers makes t of integers that have some bits of an element.
func (t *Datatype) integers(first, bits int) {
	t.Plain = first == 0 && bits == 8*t.Size && cast.IsWidth(t.Size)
	if !t.Plain && cast.IsWidth(t.Size) && bits > 0 && first+bits <= 8*t.Size {
		as := Datatype{Class: Fixed, Size: t.Size, Big: t.Big, Signed: t.Signed, Plain: true}
		t.Part = &Part{As: as, first: first, bits: bits}
	}
}

// floats reads the places of the parts of floats. It makes t of floats if an IEEE 754 type of as many bytes or more
// has all of their values. implied says that the highest bit of a mantissa is not stored.
func (b *block) floats(t *Datatype, sign int, implied bool) {
	p := Part{size: t.Size, sign: sign, first: b.u16(), bits: b.u16(), exponent: int(b.u8()), exponents: int(b.u8()),
		mantissa: int(b.u8()), mantissas: int(b.u8()), bias: int(b.u32())}
	all := 8 * t.Size
	isPart := cast.IsWidth(t.Size) && sign < all && p.exponents > 1 && p.exponent+p.exponents <= all &&
		p.mantissas > 0 && p.mantissa+p.mantissas <= all
	for _, form := range ieee {
		switch {
		case p == form:
			t.Plain = true
			return
		case isPart && implied && form.size >= t.Size && p.mantissas <= form.mantissas && p.bias <= form.bias &&
			1<<p.exponents-p.bias <= 1<<form.exponents-form.bias:
			p.As, p.bits = Datatype{Class: Float, Size: form.size, Big: t.Big, Plain: true}, 0
			t.Part = &p
			return
		}
	}
}

// Sample returns the bits of a number of type As, of the bits of an element.
func (p *Part) Sample(element uint64) uint64 {
	switch {
	case p.bits > 0 && p.As.Signed:
		return uint64(int64(element<<(64-p.first-p.bits)) >> (64 - p.bits))
	case p.bits > 0:
		return element << (64 - p.first - p.bits) >> (64 - p.bits)
	}
	exponent := int(element >> p.exponent & (1<<p.exponents - 1))
	mantissa := element >> p.mantissa & (1<<p.mantissas - 1)
	const whole = 1<<52 - 1
	double := uint64(exponent-p.bias+1023)<<52 | mantissa<<(52-p.mantissas)
	switch {
	case exponent == 0: // without the implied bit
		double = math.Float64bits(math.Ldexp(float64(mantissa), 1-p.bias-p.mantissas))
	case exponent == 1<<p.exponents-1 && mantissa == 0:
		double = 0x7ff << 52
	case exponent == 1<<p.exponents-1:
		double = 0x7ff<<52 | whole
	}
	double |= element >> p.sign & 1 << 63
	single := float32(math.Float64frombits(double))
	switch p.As.Size {
	case 2:
		return uint64(kernel.Float16FromFloat32(single))
	case 4:
		return uint64(math.Float32bits(single))
	}
	return double
}
