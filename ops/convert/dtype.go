package convert

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/chaski-eo/chaski/chunk"
	"github.com/chaski-eo/chaski/fault"
)

// small is a float of at most 16 bits: its exponent and mantissa bits, and what its largest codes are.
type small struct {
	exponent, mantissa int
	bias               int
	infinite           bool // the largest exponent has infinity and NaNs, as IEEE 754 has it
	nans               int  // otherwise, how many of the largest positive codes are NaNs
}

var smalls = map[chunk.DType]small{
	chunk.Float16:      {exponent: 5, mantissa: 10, bias: 15, infinite: true},
	chunk.BFloat16:     {exponent: 8, mantissa: 7, bias: 127, infinite: true},
	chunk.Float8E5M2:   {exponent: 5, mantissa: 2, bias: 15, infinite: true},
	chunk.Float8E4M3FN: {exponent: 4, mantissa: 3, bias: 7, nans: 1},
	chunk.Float6E2M3FN: {exponent: 2, mantissa: 3, bias: 1},
	chunk.Float6E3M2FN: {exponent: 3, mantissa: 2, bias: 3},
	chunk.Float4E2M1FN: {exponent: 2, mantissa: 1, bias: 1},
}

// value returns the number of a code without its sign.
func (s small) value(code int) float64 {
	e, m := code>>s.mantissa, code&(1<<s.mantissa-1)
	if top := 1<<s.exponent - 1; s.infinite && e == top {
		if m == 0 {
			return math.Inf(1)
		}
		return math.NaN()
	}
	if code >= 1<<(s.exponent+s.mantissa)-s.nans {
		return math.NaN()
	}
	if e == 0 { // subnormal
		return math.Ldexp(float64(m), 1-s.bias-s.mantissa)
	}
	return math.Ldexp(float64(m+1<<s.mantissa), e-s.bias-s.mantissa)
}

// valuesOf returns the value of each code of a type of at most 16 bits, nil for other types.
func valuesOf(d chunk.DType) []float64 {
	bits := d.Bits()
	if bits > 16 || d.Components() > 1 {
		return nil
	}
	out := make([]float64, 1<<bits)
	small, isFloat := smalls[d]
	for c := range out {
		switch {
		case isFloat && c>>(bits-1) == 1:
			out[c] = -small.value(c &^ (1 << (bits - 1)))
		case isFloat:
			out[c] = small.value(c)
		case d == chunk.Float8E8M0FNU && c == 255:
			out[c] = math.NaN()
		case d == chunk.Float8E8M0FNU: // powers of two from 2^-127 on
			out[c] = math.Ldexp(1, c-127)
		case isSigned(d) && c>>(bits-1) == 1:
			out[c] = float64(c - 1<<bits)
		default:
			out[c] = float64(c)
		}
	}
	return out
}

func isSigned(d chunk.DType) bool {
	switch d {
	case chunk.Int2, chunk.Int4, chunk.Int8, chunk.Int16, chunk.Int32, chunk.Int64:
		return true
	}
	return false
}

// codesOf returns the code of each value of a type, by the bits of the value as a float64. All NaNs are one.
func codesOf(d chunk.DType) (map[uint64]uint16, error) {
	values := valuesOf(d)
	if values == nil {
		return nil, fmt.Errorf("dtype is %s: samples can be stored in types of at most 16 bits", d)
	}
	codes := make(map[uint64]uint16, len(values))
	for c, v := range slices.Backward(values) { // of several NaNs the first
		codes[keyOf(v)] = uint16(c)
	}
	if s := smalls[d]; s.infinite { // the quiet one, without a payload
		codes[keyOf(math.NaN())] = uint16((1<<s.exponent-1)<<s.mantissa | 1<<(s.mantissa-1))
	}
	return codes, nil
}

// keyOf returns the bits of a value, for all NaNs the same. Integers have no -0, and need none.
func keyOf(v float64) uint64 {
	if v != v {
		v = math.NaN()
	}
	return math.Float64bits(v)
}

// exactly returns samples of another type, which must have each of their values.
func exactly(pixels []byte, from, to chunk.DType) ([]byte, error) {
	codes, err := codesOf(to)
	if err != nil {
		return nil, err
	}
	number := numberOf(from)
	if number == nil {
		return nil, fault.New(fault.Unsupported, "conversion", fault.NoOffset, "%s samples cannot become %s", from, to)
	}
	size, width := from.Size(), to.Size()
	out := make([]byte, len(pixels)/size*width)
	for i := range len(pixels) / size {
		v := number(pixels[i*size:])
		code, ok := codes[keyOf(v)]
		if !ok {
			return nil, fault.New(fault.Unsupported, "conversion", fault.NoOffset,
				"sample %d is %v, which %s does not have", i, v, to)
		}
		if out[i*width] = byte(code); width == 2 {
			out[i*width+1] = byte(code >> 8)
		}
	}
	return out, nil
}

// numberOf returns a function that reads a sample, nil for types with several components. Integers beyond 2^53 are
// rounded to numbers that no type of 16 bits has.
func numberOf(d chunk.DType) func(b []byte) float64 {
	switch d {
	case chunk.Uint32, chunk.Uint64, chunk.Int32, chunk.Int64, chunk.Float32, chunk.Float64:
		return d.Number
	}
	values := valuesOf(d)
	switch {
	case values == nil:
		return nil
	case d.Size() == 2:
		return func(b []byte) float64 { return values[binary.LittleEndian.Uint16(b)] }
	}
	return func(b []byte) float64 { return values[int(b[0])%len(values)] }
}
