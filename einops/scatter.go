package einops

import "github.com/chaski-eo/chaski/chunk"

// Block is decoded samples: band planes or pixel-interleaved, by strides.
type Block struct {
	Data  []byte // little-endian samples, the block's first sample first
	DType chunk.DType
	// Distances of neighbours in samples; not negative.
	StrideB, StrideY, StrideX int
}

// Target is one tensor being filled.
type Target struct {
	Data []byte // little-endian elements, Plan.Len() of them
	Mask []byte // Plan.Len() bytes, or nil: 1 where a valid sample was written, else 0
}

// Box is a part of the input: row N and time T, bands B0 up to B1, rows Y0 up to Y1, columns X0 up
// to X1, as indices of the input axes (of the tensor, not of a file). An axis that the input has
// not is 0, or 0 up to 1.
type Box struct{ N, T, B0, B1, Y0, Y1, X0, X1 int }
