package rumi

import (
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/tiff"
)

// encoding is the name of a sample type in a file: TIFF's SampleFormat, or a private value of generations 2 and 3,
// and the bits of a sample.
type encoding struct{ format, bits uint8 }

// encodings2 are the sample types that generation 2 adds to generation 1. A decoded sample of fewer
// than 8 bits takes one byte.
var encodings2 = map[encoding]chunk.DType{
	{1, 1}: chunk.Uint1, {1, 2}: chunk.Uint2, {1, 4}: chunk.Uint4, {2, 2}: chunk.Int2, {2, 4}: chunk.Int4,
	{100, 8}: chunk.Float8E4M3FN, {101, 8}: chunk.Float8E5M2, {102, 16}: chunk.BFloat16, {103, 8}: chunk.Float8E8M0FNU,
	{104, 6}: chunk.Float6E2M3FN, {105, 6}: chunk.Float6E3M2FN, {106, 4}: chunk.Float4E2M1FN,
}

// dtypeOf returns the sample type of an encoding, or chunk.Invalid.
func dtypeOf(generation int, format, bits uint64) chunk.DType {
	if generation > 1 && format < 256 && bits < 256 {
		if dtype := encodings2[encoding{uint8(format), uint8(bits)}]; dtype != chunk.Invalid {
			return dtype
		}
	}
	return tiff.DTypeOf(format, bits)
}

// encodingOf returns the encoding of a sample type, zeros if a generation has none.
func encodingOf(generation int, d chunk.DType) (format, bits uint16) {
	if generation > 1 {
		for name, dtype := range encodings2 {
			if dtype == d {
				return uint16(name.format), uint16(name.bits)
			}
		}
	}
	return tiff.FormatOf(d)
}

// Stores reports whether files of a generation, 1 to 3, can hold samples of a type.
func Stores(generation int, d chunk.DType) bool {
	format, _ := encodingOf(generation, d)
	return format != 0
}
