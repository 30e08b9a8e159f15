package einops

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/chaski-eo/chaski/chunk"
	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/kernel"
)

// Convert says how samples become elements.
//
// With none of Scale, Offset and Clip, a sample is converted to To in one rounding to the nearest
// even; only to bfloat16 it goes through float32. With any of them the arithmetic is float32:
// y = f32(f32(x*a) + c), where x is the sample rounded to float32, a is 1 without Scale and c is 0
// without Offset, no fused multiply-add; then the clip; then To is rounded to the nearest even.
// uint8 saturates, and NaN becomes 0 in it.
type Convert struct {
	// From is any type. To is From, float32, float16, bfloat16 or uint8, from complex types only
	// From. From integers of at most 63 bits and a sign, To may be int64, too: classes for a loss. Scale,
	// Offset and Clip need float32, float16, bfloat16 or uint8 as To.
	From, To chunk.DType
	// Scale (a) and Offset (c) by index of the input axis b; nil for none, one value for all bands.
	Scale, Offset []float32
	// Clip brings results into [Lo, Hi], in output units. NaN stays NaN.
	Clip   bool
	Lo, Hi float32
	// NoData is the sample value that is not valid, compared in type From: floats are compared to it
	// rounded to From (-0 is 0), integers never equal a value that From has not. NaN stands for every
	// NaN. Of a complex sample the real part is compared and the imaginary part must be 0.
	NoData *float64
	// NoDataBits is NoData as the bits of a sample, for integers that a float64 cannot hold. It goes
	// before NoData, and is not for complex types.
	NoDataBits *uint64
	// Fill is the element for padding and, with FillNoData, for nodata; in output units. It must be a
	// value that To has where To is an integer; floats are rounded. 0 if not set.
	Fill float64
	// FillNoData writes Fill where the sample is nodata. Without it such samples are converted like
	// any other, and only the mask and the count say what they are.
	FillNoData bool
}

// Converter is a Convert made ready. It is immutable and safe for concurrent use.
type Converter struct {
	from, to         chunk.DType
	fromNum, toNum   kernel.Num // None for complex types
	fromSize, toSize int

	copies        bool // elements are the samples' bytes
	widens        bool // integers to int64
	odd           bool // float64 to a narrow type without arithmetic
	affine        bool
	scale, offset []float32
	clip          bool
	lo, hi        float32

	noData       bool
	match, imag  kernel.Match // imag of the imaginary part
	fillNoData   bool
	fill         [16]byte
	fillFloat    float32 // fill as what is stored as it
	samePerBand  bool
	maxBand      int // bands that scale and offset are given for
	complexParts kernel.Num
}

var nums = map[chunk.DType]kernel.Num{
	chunk.Uint8: kernel.U8, chunk.Uint16: kernel.U16, chunk.Uint32: kernel.U32, chunk.Uint64: kernel.U64,
	chunk.Int8: kernel.I8, chunk.Int16: kernel.I16, chunk.Int32: kernel.I32, chunk.Int64: kernel.I64,
	chunk.Float16: kernel.F16, chunk.Float32: kernel.F32, chunk.Float64: kernel.F64, chunk.BFloat16: kernel.BF16,
}

var complexParts = map[chunk.DType]kernel.Num{
	chunk.Complex64: kernel.F32, chunk.Complex128: kernel.F64, chunk.ComplexInt16: kernel.I16,
	chunk.ComplexInt32: kernel.I32, chunk.ComplexFloat16: kernel.F16,
}

// NewConverter checks c and picks the loops for it. A pair of types that is not supported is
// fault.Unsupported.
func NewConverter(c Convert) (*Converter, error) {
	cv := &Converter{
		from: c.From, to: c.To, fromNum: nums[c.From], toNum: nums[c.To],
		fromSize: c.From.Size(), toSize: c.To.Size(), complexParts: complexParts[c.From],
		fillNoData: c.FillNoData,
	}
	if !c.From.Valid() || !c.To.Valid() {
		return nil, errors.New("einops: conversion without a sample or element type")
	}
	arithmetic := c.Scale != nil || c.Offset != nil || c.Clip
	cv.widens = c.To == chunk.Int64 && c.From != c.To && !arithmetic && cv.fromNum != kernel.None && cv.fromNum != kernel.U64 && !cv.fromNum.IsFloat()
	if !cv.target() && !cv.widens && (c.From != c.To || arithmetic) {
		what := "to " + c.To.String()
		if c.From == c.To {
			what = "with scale, offset or clip"
		}
		return nil, fault.New(fault.Unsupported, "conversion", fault.NoOffset, "%s %s", c.From, what)
	}
	if cv.fromNum == kernel.None && c.From != c.To {
		return nil, fault.New(fault.Unsupported, "conversion", fault.NoOffset, "%s to %s", c.From, c.To)
	}
	cv.copies = c.From == c.To && !arithmetic
	cv.odd = c.From == chunk.Float64 && !arithmetic && (c.To == chunk.Float16 || c.To == chunk.Uint8)
	if err := cv.setArithmetic(c); err != nil {
		return nil, err
	}
	if err := cv.setNoData(c); err != nil {
		return nil, err
	}
	return cv, cv.setFill(c.Fill)
}

// target reports whether samples can be converted to the element type.
func (cv *Converter) target() bool {
	return cv.toNum == kernel.F32 || cv.toNum == kernel.F16 || cv.toNum == kernel.BF16 || cv.toNum == kernel.U8
}

func (cv *Converter) setArithmetic(c Convert) error {
	if c.Scale != nil && len(c.Scale) == 0 || c.Offset != nil && len(c.Offset) == 0 {
		return errors.New("einops: scale or offset without values")
	}
	if c.Clip && !(c.Lo <= c.Hi) {
		return fmt.Errorf("einops: clip to [%v, %v]", c.Lo, c.Hi)
	}
	cv.scale, cv.offset = append([]float32(nil), c.Scale...), append([]float32(nil), c.Offset...)
	cv.clip, cv.lo, cv.hi = c.Clip, c.Lo, c.Hi
	cv.affine = c.Scale != nil || c.Offset != nil
	if cv.fromNum == kernel.U8 || cv.fromNum == kernel.U16 {
		cv.affine = true // x*1 + 0 is x there, and has the faster loop
	}
	cv.maxBand = math.MaxInt
	for _, n := range []int{len(c.Scale), len(c.Offset)} {
		if n > 1 {
			cv.maxBand = min(cv.maxBand, n)
		}
	}
	cv.samePerBand = cv.maxBand == math.MaxInt
	return nil
}

// band returns a and c of a band.
func (cv *Converter) band(b int) (a, c float32) {
	return pick(cv.scale, b, 1), pick(cv.offset, b, 0)
}

func pick(s []float32, b int, none float32) float32 {
	switch len(s) {
	case 0:
		return none
	case 1:
		return s[0]
	}
	return s[b]
}

func (cv *Converter) setNoData(c Convert) error {
	t := cv.fromNum
	switch {
	case c.NoDataBits != nil && t == kernel.None:
		return fault.New(fault.Unsupported, "conversion", fault.NoOffset, "nodata bits of %s", c.From)
	case c.NoDataBits != nil:
		cv.match, cv.noData = kernel.MatchBits(t, *c.NoDataBits), true
	case c.NoData != nil && t == kernel.None:
		cv.match, cv.noData = kernel.MatchValue(cv.complexParts, *c.NoData)
		cv.imag, _ = kernel.MatchValue(cv.complexParts, 0)
	case c.NoData != nil:
		cv.match, cv.noData = kernel.MatchValue(t, *c.NoData)
	}
	return nil
}

// setFill makes the fill element; the imaginary part of a complex one is 0.
func (cv *Converter) setFill(v float64) error {
	t := cv.toNum
	if t == kernel.None {
		t = cv.complexParts
	}
	var bits uint64
	if t.IsFloat() {
		bits = kernel.FloatBits(t, v)
	} else {
		var ok bool
		if bits, ok = kernel.IntBits(t, v); !ok {
			return fmt.Errorf("einops: fill value %v is not a number of type %s", v, cv.to)
		}
	}
	binary.LittleEndian.PutUint64(cv.fill[:], bits)
	if cv.target() {
		f := [1]float32{}
		kernel.Load(f[:], cv.fill[:], t, 1)
		cv.fillFloat = f[0]
	}
	return nil
}

// valid sets valid[i] to 0 where sample i*stride of src is nodata, else to 1, and returns how many
// are nodata.
func (cv *Converter) valid(valid, src []byte, stride int) int {
	if cv.fromNum == kernel.None {
		return cv.validComplex(valid, src, stride)
	}
	return kernel.Valid(valid, src, cv.fromSize, stride, &cv.match)
}

func (cv *Converter) validComplex(valid, src []byte, stride int) (bad int) {
	part := cv.fromSize / 2
	for i := range valid {
		o := i * stride * cv.fromSize
		re, im := littleEndian(src[o:o+part]), littleEndian(src[o+part:o+2*part])
		hit := cv.match.Hit(re) && cv.imag.Hit(im)
		if cv.match.NaN {
			hit = cv.match.Hit(re) || cv.match.Hit(im)
		}
		valid[i] = 1
		if hit {
			valid[i] = 0
			bad++
		}
	}
	return bad
}

func littleEndian(b []byte) (v uint64) {
	for k := len(b) - 1; k >= 0; k-- {
		v = v<<8 | uint64(b[k])
	}
	return v
}

// load fills f with converted samples of src, as they are before the last rounding.
func (cv *Converter) load(f []float32, src []byte, stride int, a, c float32) {
	switch {
	case cv.affine:
		kernel.LoadAffine(f, src, cv.fromNum, stride, a, c)
	case cv.odd:
		kernel.LoadOdd(f, src, stride)
	default:
		kernel.Load(f, src, cv.fromNum, stride)
	}
	if cv.clip {
		kernel.Clip(f, cv.lo, cv.hi)
	}
}
