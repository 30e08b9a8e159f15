package geozl

import (
	"encoding/binary"
	"math"

	"github.com/chaski-eo/chaski/format/codec/geozl/internal/kernel"
	"github.com/chaski-eo/chaski/format/codec/openzl"
	"github.com/chaski-eo/chaski/internal/cast"
)

// A quantizer's header is the type of the samples, flags, and one or two 64-bit floats. The stream
// holds, for each sample, the index of a level of a grid or the level itself; for floats it is of
// signed integers of their width.

// Types of samples, in the order of their codes.
const (
	typeU8 = iota
	typeU16
	typeU32
	typeU64
	typeI8
	typeI16
	typeI32
	typeI64
	typeF16
	typeF32
	typeF64
)

// Flags.
const (
	flagNonnegative = 1 << iota // no sample is below zero
	flagValues                  // the stream holds levels, not their indices
	flagFloat32                 // quant_sqrt: computed in float32
)

var typeWidth = [...]int{1, 2, 4, 8, 1, 2, 4, 8, 2, 4, 8}

// quantized is the state that all quantizers share.
type quantized struct {
	typ         byte
	values      bool
	nonnegative bool
	narrow      bool
	step        float64
	offset      float64
	src, dst    []byte
}

// open reads the header of a quantizer with these flags and that many floats, and allocates the samples.
func (q *quantized) open(c *openzl.Call, flags byte, floats int) error {
	in, header := c.In[0], c.Header
	if len(header) != 2+8*floats {
		return c.Corrupt("header of %d bytes", len(header))
	}
	if header[0] > typeF64 || typeWidth[header[0]] != in.Width || header[1]&^flags != 0 {
		return c.Corrupt("type %d and flags %d of samples of %d bytes", header[0], header[1], in.Width)
	}
	*q = quantized{typ: header[0], values: header[1]&flagValues != 0, nonnegative: header[1]&flagNonnegative != 0,
		narrow: header[1]&flagFloat32 != 0, src: in.Data}
	q.step = math.Float64frombits(binary.LittleEndian.Uint64(header[2:]))
	if floats > 1 {
		q.offset = math.Float64frombits(binary.LittleEndian.Uint64(header[10:]))
	}
	var err error
	q.dst, err = c.Make(0, in.Width, in.Count)
	return err
}

func (q *quantized) integer() bool { return q.typ <= typeI64 }

// smallestNormal is the smallest positive float64 that is not subnormal.
const smallestNormal = 0x1p-1022

func finite(v float64) bool { return math.Abs(v) <= math.MaxFloat64 }

// typeHi and typeLo are the largest and lowest value of every type. For 64-bit integers they are the last
// float64 inside the range, because the quantizers compare in float64.
var (
	typeHi = [...]float64{math.MaxUint8, math.MaxUint16, math.MaxUint32, 18446744073709549568,
		math.MaxInt8, math.MaxInt16, math.MaxInt32, 9223372036854774784, 65504, math.MaxFloat32, math.MaxFloat64}
	typeLo = [...]float64{0, 0, 0, 0, math.MinInt8, math.MinInt16, math.MinInt32, math.MinInt64,
		-65504, -math.MaxFloat32, -math.MaxFloat64}
)

func (q *quantized) limits() (lo, hi float64) {
	if q.nonnegative {
		return 0, typeHi[q.typ]
	}
	return typeLo[q.typ], typeHi[q.typ]
}

// levels converts levels to samples; for integers they are equal. With floor, values below zero become zero.
func (q *quantized) levels(floor bool) {
	switch q.typ {
	case typeI8, typeI16, typeI32, typeI64:
		cast.ByWidth(typeWidth[q.typ], floored[int8], floored[int16], floored[int32], floored[int64])(*q, floor)
	case typeF16:
		cast.Fill(q.dst, func(out []uint16) { kernel.Halves(out, cast.Values[int16](q.src), floor) })
	case typeF32:
		cast.Fill(q.dst, func(out []float32) { kernel.Floats(out, cast.Values[int32](q.src), floor) })
	case typeF64:
		cast.Fill(q.dst, func(out []float64) { kernel.Floats(out, cast.Values[int64](q.src), floor) })
	default:
		copy(q.dst, q.src)
	}
}

// The functions below are for integers of one type.

func floored[T kernel.Signed](q quantized, floor bool) {
	cast.Fill(q.dst, func(out []T) { kernel.Floor(out, cast.Values[T](q.src), floor) })
}

func times[T kernel.Unsigned](q quantized, step uint64) {
	cast.Fill(q.dst, func(out []T) { kernel.Times(out, cast.Values[T](q.src), step) })
}

func timesSigned[T kernel.Signed](q quantized, step uint64) {
	cast.Fill(q.dst, func(out []T) { kernel.TimesSigned(out, cast.Values[T](q.src), step, q.nonnegative) })
}

func squares[T kernel.Unsigned | kernel.Signed, S kernel.Unsigned](q quantized, grid kernel.SqrtGrid) {
	cast.Fill(q.dst, func(out []T) { kernel.SqrtWhole(out, cast.Values[S](q.src), &grid) })
}

// decodeQuantLinear returns samples that are multiples of a step.
func decodeQuantLinear(c *openzl.Call) error {
	var q quantized
	if err := q.open(c, flagNonnegative|flagValues, 1); err != nil {
		return err
	}
	wholes := q.integer() || q.values
	if !finite(q.step) || q.step < smallestNormal || wholes && math.Floor(q.step) != q.step {
		return c.Corrupt("step %v", q.step)
	}
	if q.values {
		q.levels(q.nonnegative)
		return nil
	}
	lo, hi := q.limits()
	// The step of integers, at least 1. A step beyond 64 bits is clipped, since the conversion of such a
	// float would differ between machines.
	step := uint64(math.MaxUint64)
	if q.step <= typeHi[typeU64] {
		step = max(uint64(q.step), 1)
	}
	switch q.typ {
	case typeU8, typeU16, typeU32, typeU64:
		cast.ByWidth(typeWidth[q.typ], times[uint8], times[uint16], times[uint32], times[uint64])(q, step)
	case typeI8, typeI16, typeI32, typeI64:
		cast.ByWidth(typeWidth[q.typ], timesSigned[int8], timesSigned[int16], timesSigned[int32],
			timesSigned[int64])(q, step)
	case typeF16:
		cast.Fill(q.dst, func(out []uint16) { kernel.LinearHalves(out, cast.Values[int16](q.src), q.step, lo, hi) })
	case typeF32:
		cast.Fill(q.dst, func(out []float32) { kernel.Linear(out, cast.Values[int32](q.src), q.step, lo, hi) })
	case typeF64:
		cast.Fill(q.dst, func(out []float64) { kernel.Linear(out, cast.Values[int64](q.src), q.step, lo, hi) })
	}
	return nil
}

// decodeQuantLog returns samples whose logarithms are multiples of a step: index 0 means 0, and index 1 the
// smallest positive sample.
func decodeQuantLog(c *openzl.Call) error {
	var q quantized
	if err := q.open(c, flagNonnegative|flagValues, 1); err != nil {
		return err
	}
	if !(q.step > 0) || !finite(q.step) || q.integer() && !q.values {
		return c.Corrupt("step %v", q.step)
	}
	if q.values {
		q.levels(q.nonnegative)
		return nil
	}
	lo, hi := q.limits()
	// An anchor is the binary logarithm of the smallest positive sample, which is subnormal: 2^-24 as float16,
	// 2^-149 as float32 and 2^-1074 as float64.
	switch q.typ {
	case typeF16:
		grid := kernel.LogGrid{Step: q.step, Anchor: -24, Lo: lo, Hi: hi}
		cast.Fill(q.dst, func(out []uint16) { kernel.Log(out, cast.Values[int16](q.src), &grid, kernel.HalfOf) })
	case typeF32:
		grid := kernel.LogGrid{Step: q.step, Anchor: -149, Lo: lo, Hi: hi}
		cast.Fill(q.dst, func(out []float32) { kernel.Log(out, cast.Values[int32](q.src), &grid, kernel.SingleOf) })
	case typeF64:
		grid := kernel.LogGrid{Step: q.step, Anchor: -1074, Lo: lo, Hi: hi}
		cast.Fill(q.dst, func(out []float64) { kernel.Log(out, cast.Values[int64](q.src), &grid, kernel.DoubleOf) })
	}
	return nil
}

// decodeQuantSqrt returns samples whose square roots, after an offset is added, are multiples of a step.
func decodeQuantSqrt(c *openzl.Call) error {
	var q quantized
	if err := q.open(c, flagNonnegative|flagValues|flagFloat32, 2); err != nil {
		return err
	}
	if !finite(q.step) || !(q.step > 0) || float64(q.step*q.step) < smallestNormal ||
		!finite(q.offset) || q.offset < 0 || q.narrow && q.typ != typeF32 {
		return c.Corrupt("step %v, offset %v", q.step, q.offset)
	}
	if q.values {
		if q.integer() {
			copy(q.dst, q.src)
		} else {
			q.levels(q.nonnegative)
		}
		return nil
	}
	lo, hi := q.limits()
	grid := kernel.SqrtGrid{Step: q.step, Offset: q.offset, Lo: lo, Hi: hi, Top: q.top()}
	switch q.typ {
	case typeU8, typeU16, typeU32, typeU64:
		cast.ByWidth(typeWidth[q.typ], squares[uint8, uint8], squares[uint16, uint16], squares[uint32, uint32],
			squares[uint64, uint64])(q, grid)
	case typeI8, typeI16, typeI32, typeI64:
		cast.ByWidth(typeWidth[q.typ], squares[int8, uint8], squares[int16, uint16], squares[int32, uint32],
			squares[int64, uint64])(q, grid)
	case typeF16:
		cast.Fill(q.dst, func(out []uint16) { kernel.SqrtHalves(out, cast.Values[uint16](q.src), &grid) })
	case typeF32:
		cast.Fill(q.dst, func(out []float32) {
			if q.narrow {
				kernel.SqrtNarrow(out, cast.Values[uint32](q.src), &grid)
			} else {
				kernel.Sqrt(out, cast.Values[uint32](q.src), &grid)
			}
		})
	case typeF64:
		cast.Fill(q.dst, func(out []float64) { kernel.Sqrt(out, cast.Values[uint64](q.src), &grid) })
	}
	return nil
}

// top returns the highest index of a grid of square roots: one past the index of the highest sample, but no more
// than the stream can hold.
func (q *quantized) top() uint64 {
	limit := float64(1 << 53) // of 64-bit indices: larger ones are not exact as float64
	switch typeWidth[q.typ] {
	case 1, 2, 4:
		limit = typeHi[q.typ]
		switch q.typ {
		case typeF16:
			limit = math.MaxInt16
		case typeF32:
			limit = math.MaxInt32
		}
	}
	index := math.Sqrt(float64(typeHi[q.typ]+q.offset)) / q.step
	if !(index < limit) {
		return uint64(limit)
	}
	return uint64(min(1+math.Ceil(index), limit))
}
