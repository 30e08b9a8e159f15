package arrays

import (
	"context"
	"math"
	"slices"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
)

// maxRank is the largest number of dimensions. numpy 1 has the same.
const maxRank = 32

// Meta is the metadata of an array. It does not change.
type Meta struct {
	Format int         // the version of the format
	Shape  []int64     // cells along each dimension
	Chunks []int64     // cells of a chunk, the unit of decoding
	Shards []int64     // cells of an object that holds chunks, nil if each lies by itself
	DType  chunk.DType // booleans are uint8; see view
	Bool   bool
	Fill   []byte   // one sample, little-endian, or of texts one text
	Names  []string // of the dimensions, "" for one without; nil if none has a name
	Codecs []string // in the order in which they encode, those inside of shards last
	// Filters encode a chunk, in this order, after Big said whether its samples are big-endian.
	Filters []Filter
	Big     bool
	// Element is the type of what is stored for each sample, and Sample makes the bits of a sample of its bits; not of
	// arrays that store their samples.
	Element chunk.DType
	Sample  func(element uint64) uint64
	Attrs   Object // not decoded
	Order   []int  // the dimensions in the order in which a decoded chunk holds them, the last one fastest
	// Texts makes strings of an array of bytes whose last dimension is a string; nil for arrays of numbers. Names of
	// chunks leave out that dimension.
	Texts Texts
	// List is the type of numbers if each string holds their bytes, little-endian; Invalid if it holds text.
	List chunk.DType
	// Strings is true of strings of any length, which only Labels reads: DType is of nothing.
	Strings bool
	// FillMissing is true if the fill value marks cells without a measurement.
	FillMissing bool
	// Text is the metadata that decides the meaning of the chunks, for fingerprints.
	Text string

	steps  []decodeStep // in the order in which they decode
	stored chunk.DType  // before view
}

// Texts turns the bytes of an array of strings into them.
type Texts func(ctx context.Context, data []byte) ([]string, error)

// elementSize returns the bytes of a stored sample.
func (m *Meta) elementSize() int {
	if m.Sample != nil {
		return m.Element.Size()
	}
	return m.DType.Size()
}

// CheckShape checks sizes: as many for chunks as for the array, all positive, and products that fit.
func CheckShape(shape, chunks []int64) error {
	if len(shape) > maxRank {
		return fault.New(fault.Limit, MetaPart, "%d dimensions, at most %d", len(shape), maxRank)
	}
	if len(chunks) != len(shape) {
		return Corrupt("chunks of %d dimensions in an array of %d", len(chunks), len(shape))
	}
	for d, n := range shape {
		if n < 0 || chunks[d] < 1 || n > math.MaxInt64-chunks[d] {
			return Corrupt("%d cells in chunks of %d along dimension %d", n, chunks[d], d)
		}
	}
	return nil
}

// Cells returns the number of cells of a box, or -1 if it is over limit.
func Cells(shape []int64, limit int64) int64 {
	if slices.Contains(shape, 0) {
		return 0
	}
	count := int64(1)
	for _, side := range shape {
		// The product is checked before it is made, so it does not overflow.
		if side > limit/count {
			return -1
		}
		count *= side
	}
	return count
}

// chunkBytes returns the size of a decoded chunk, or an error if it is over limit.
func (m *Meta) chunkBytes(limit int64) (int, error) {
	count := Cells(m.Chunks, limit/int64(m.DType.Size()))
	if count < 0 {
		return 0, fault.New(fault.Limit, MetaPart, "a chunk of %v %s decodes to more than max_chunk, which is %d "+
			"(--max-chunk of commands)", m.Chunks, m.DType, limit)
	}
	return int(count) * m.DType.Size(), nil
}
