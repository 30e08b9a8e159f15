package einops

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/dtype"
	"github.com/chaski-eo/chaski/internal/kernel"
)

// Convert says how samples become elements.
//
// Without Scale, Offset and Clip, a sample is converted to To with one rounding to nearest even; only
// bfloat16 is reached through float32. With any of them the arithmetic is float32 without fused
// multiply-add: y = f32(f32(x*a) + c), where x is the sample rounded to float32, a is 1 without Scale
// and c is 0 without Offset. Then y is clipped, and rounded to To, to nearest even. uint8 saturates,
// and NaN becomes 0 in it; Checked tells such elements apart.
type Convert struct {
	// From is any type. To is From, float32, float16, bfloat16 or uint8; for complex types it is From.
	// For real types To may also be int64, which losses want for classes. Scale, Offset
	// and Clip need float32, float16, bfloat16 or uint8 as To.
	From, To dtype.Type
	// Scale (a) and Offset (c) have a value for each index of input axis b, one for all, or none.
	Scale, Offset []float32
	// Clip limits results to [Lo, Hi], in output units. NaN stays NaN.
	Clip   bool
	Lo, Hi float32
	// NoData is the value of samples that are not valid, compared in type From. It is rounded to From
	// if that is a float (-0 equals 0); integers never equal a value outside From. NaN matches every
	// NaN. A complex sample is nodata if its real part matches and its imaginary part is 0.
	NoData *float64
	// NoDataBits is nodata as the bits of a sample, for integers that a float64 cannot hold. It takes
	// precedence over NoData. Complex types do not have it.
	NoDataBits *uint64
	// Missing lists nodata values in their place, for each index of input axis b or, as one list, for all.
	Missing [][]float64
	// MissNaN makes nodata of NaN beside these.
	MissNaN bool
	// Fill is the element for padding and, with FillNoData, for nodata, in output units. If To is an
	// integer, Fill must be a value of To; floats are rounded.
	Fill float64
	// FillNoData writes Fill for samples that are nodata. Without it they are converted like any other,
	// and only the mask and the count tell them apart.
	FillNoData bool
	// Checked writes OutOfRange in place of 1 to the mask of a sample that saturates, or is NaN. To is uint8; a target
	// that lacks a mask is left unchecked. Floats and uint64 are always checked when they become int64: samples that
	// int64 cannot hold get OutOfRange.
	Checked bool
	// Table looks elements up in place of all arithmetic, which NewTable has done. Samples without a value are nodata.
	Table *Table
}

// OutOfRange is the mask of a valid sample whose value the element type cannot hold. See Convert.Checked.
const OutOfRange = 2

// Converter is a compiled Convert. It is immutable and safe for concurrent use.
type Converter struct {
	from, to         dtype.Type
	fromNum, toNum   kernel.Num // None for complex types
	fromSize, toSize int
	linear
	noDataRule

	copies       bool // elements are the samples' bytes
	widens       bool // integers to int64
	rows         bool // see ofRows
	odd          bool // float64 to float16 or uint8: see kernel.LoadOdd
	checked      bool
	table        *Table // or nil
	samePerBand  bool
	maxBand      int // bands that scale, offset and missing are given for
	complexParts kernel.Num
}

// linear is the scale, the offset and the clip of a Converter.
type linear struct {
	affine        bool
	scale, offset []float32
	clip          bool
	lo, hi        float32
}

// noDataRule is what is nodata for a Converter, and what becomes of it.
type noDataRule struct {
	noData     bool
	missing    [][]kernel.Match // of each band, or of all
	imag       kernel.Match     // of the imaginary part
	fillNoData bool
	fill       [16]byte
	fillFloat  float32 // fill, rounded to the type of the tensor
}

var complexParts = map[dtype.Type]kernel.Num{
	dtype.Complex64: kernel.F32, dtype.Complex128: kernel.F64, dtype.ComplexInt16: kernel.I16,
	dtype.ComplexInt32: kernel.I32, dtype.ComplexFloat16: kernel.F16,
}

// NewConverter checks c and chooses the loops for it. Its error has kind fault.Unsupported if the pair of
// types is not supported.
func NewConverter(c Convert) (*Converter, error) {
	converter := &Converter{
		from: c.From, to: c.To, fromNum: c.From.Num(), toNum: c.To.Num(),
		fromSize: c.From.Size(), toSize: c.To.Size(), complexParts: complexParts[c.From],
		noDataRule: noDataRule{fillNoData: c.FillNoData},
	}
	if !c.From.Valid() || !c.To.Valid() {
		return nil, errors.New("einops: conversion without a sample or element type")
	}
	arithmetic := c.Scale != nil || c.Offset != nil || c.Clip
	toInt64 := c.To == dtype.Int64 && !arithmetic
	beyond := converter.fromNum.IsFloat() || converter.fromNum == kernel.U64 // some numbers are not in int64
	converter.widens = toInt64 && c.From != c.To && converter.fromNum != kernel.None && !beyond
	wholes := toInt64 && beyond
	changes := c.From != c.To || arithmetic
	if changes && !converter.target() && !converter.widens && !wholes {
		what := "to " + c.To.String()
		if c.From == c.To {
			what = "with scale, offset or clip"
		}
		return nil, fault.New(fault.Unsupported, "conversion", "%s %s", c.From, what)
	}
	if converter.fromNum == kernel.None && c.From != c.To {
		return nil, fault.New(fault.Unsupported, "conversion", "%s to %s", c.From, c.To)
	}
	converter.copies = c.From == c.To && !arithmetic
	if converter.checked = c.Checked && !converter.copies; converter.checked && c.To != dtype.Uint8 && !wholes {
		return nil, fault.New(fault.Unsupported, "conversion", "checked, to %s", c.To)
	}
	// Through float32 these would be rounded twice, and bits would differ from numpy's.
	converter.odd = c.From == dtype.Float64 && !arithmetic && (c.To == dtype.Float16 || c.To == dtype.Uint8)
	if err := converter.setArithmetic(c); err != nil {
		return nil, err
	}
	if err := converter.setNoData(c); err != nil {
		return nil, err
	}
	switch {
	case c.Table != nil:
		converter.setTable(c.Table)
	case wholes:
		converter.setTable(wholeNumbers)
	}
	converter.rows = converter.ofRows()
	return converter, converter.setFill(c.Fill)
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
		// x*1 + 0 is exactly x, so this loop, which is faster, gives the same.
		cv.affine = true
	}
	cv.setBands(len(c.Scale), len(c.Offset), len(c.Missing))
	return nil
}

// setBands sets for how many bands the converter is made, by the lengths of lists that have a value for each band or
// one for all.
func (cv *Converter) setBands(lengths ...int) {
	cv.maxBand = math.MaxInt
	for _, n := range lengths {
		if n > 1 {
			cv.maxBand = min(cv.maxBand, n)
		}
	}
	cv.samePerBand = cv.maxBand == math.MaxInt
}

// band returns a and c of a band.
func (l *linear) band(b int) (a, c float32) { return pick(l.scale, b, 1), pick(l.offset, b, 0) }

func pick(s []float32, b int, fallback float32) float32 {
	switch len(s) {
	case 0:
		return fallback
	case 1:
		return s[0]
	}
	return s[b]
}

func (cv *Converter) setNoData(c Convert) error {
	num := cv.fromNum
	if num == kernel.None {
		num = cv.complexParts
		cv.imag, _ = kernel.MatchValue(num, 0)
		if c.NoDataBits != nil {
			return fault.New(fault.Unsupported, "conversion", "nodata bits of %s", c.From)
		}
	}
	lists := c.Missing
	switch {
	case lists != nil:
	case c.NoData != nil && c.NoDataBits == nil:
		lists = [][]float64{{*c.NoData}}
	default:
		lists = [][]float64{nil}
	}
	cv.missing = make([][]kernel.Match, len(lists))
	for band, values := range lists {
		if c.MissNaN && num.IsFloat() {
			values = append(values[:len(values):len(values)], math.NaN())
		}
		for _, value := range values {
			if match, ok := kernel.MatchValue(num, value); ok {
				cv.missing[band] = append(cv.missing[band], match)
			}
		}
		if c.NoDataBits != nil && c.Missing == nil {
			cv.missing[band] = append(cv.missing[band], kernel.MatchBits(num, *c.NoDataBits))
		}
		cv.noData = cv.noData || len(cv.missing[band]) > 0
	}
	return nil
}

// setFill sets the fill element. The imaginary part of a complex element is 0.
func (cv *Converter) setFill(v float64) error {
	num := cv.toNum
	if num == kernel.None {
		num = cv.complexParts
	}
	var bits uint64
	if num.IsFloat() {
		bits = kernel.FloatBits(num, v)
	} else {
		var ok bool
		if bits, ok = kernel.IntBits(num, v); !ok {
			return fmt.Errorf("einops: fill is %v, which %s does not have: take another fill or dtype", v, cv.to)
		}
	}
	binary.LittleEndian.PutUint64(cv.fill[:], bits)
	if cv.target() {
		rounded := [1]float32{}
		kernel.Load(rounded[:], cv.fill[:], num, 1)
		cv.fillFloat = rounded[0]
	}
	return nil
}

// valid sets valid[i] to 0 where sample i*stride of src matches, else to 1, and returns how many match.
func (cv *Converter) valid(valid, src []byte, stride int, match *kernel.Match) int {
	if cv.fromNum == kernel.None {
		return cv.validComplex(valid, src, stride, match)
	}
	return kernel.Valid(valid, src, cv.fromSize, stride, match)
}

func (cv *Converter) validComplex(valid, src []byte, stride int, match *kernel.Match) (bad int) {
	part := cv.fromSize / 2
	for i := range valid {
		start := i * stride * cv.fromSize
		realPart, imagPart := littleEndian(src[start:start+part]), littleEndian(src[start+part:start+2*part])
		hit := match.Hit(realPart) && cv.imag.Hit(imagPart)
		if match.NaN {
			// A complex number is NaN if either part is, as in numpy.
			hit = match.Hit(realPart) || match.Hit(imagPart)
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

// load fills f with samples of src, converted but not yet rounded to the element type. With stream it writes past the
// caches, samples of stride 1.
func (cv *Converter) load(f []float32, src []byte, stride int, a, c float32, stream bool) {
	switch {
	case stream:
		kernel.StreamAffine(f, src, cv.fromNum, a, c)
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
