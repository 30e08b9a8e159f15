package loader

import (
	"fmt"

	"github.com/chaski-eo/chaski/chunk"
	"github.com/chaski-eo/chaski/internal/cast"
)

// The methods below return the elements of a tensor as Go numbers, in C order; for a Ragged tensor,
// its values. The slices share memory with Data if it is aligned, as it is in batches of this
// package, and are valid until Release. With the build tag purego, or if Data is not aligned, they
// are copies.
//
// The methods panic if the tensor has another DType. Types that Go lacks (float16, bfloat16,
// complex) are in Data only.

// Float32 returns the elements of a tensor of chunk.Float32.
func (t *Tensor) Float32() []float32 { return values[float32](t, chunk.Float32) }

// Float64 returns the elements of a tensor of chunk.Float64.
func (t *Tensor) Float64() []float64 { return values[float64](t, chunk.Float64) }

// Uint8 returns the elements of a tensor of chunk.Uint8.
func (t *Tensor) Uint8() []uint8 { return values[uint8](t, chunk.Uint8) }

// Uint16 returns the elements of a tensor of chunk.Uint16.
func (t *Tensor) Uint16() []uint16 { return values[uint16](t, chunk.Uint16) }

// Uint32 returns the elements of a tensor of chunk.Uint32.
func (t *Tensor) Uint32() []uint32 { return values[uint32](t, chunk.Uint32) }

// Uint64 returns the elements of a tensor of chunk.Uint64.
func (t *Tensor) Uint64() []uint64 { return values[uint64](t, chunk.Uint64) }

// Int8 returns the elements of a tensor of chunk.Int8.
func (t *Tensor) Int8() []int8 { return values[int8](t, chunk.Int8) }

// Int16 returns the elements of a tensor of chunk.Int16.
func (t *Tensor) Int16() []int16 { return values[int16](t, chunk.Int16) }

// Int32 returns the elements of a tensor of chunk.Int32.
func (t *Tensor) Int32() []int32 { return values[int32](t, chunk.Int32) }

// Int64 returns the elements of a tensor of chunk.Int64.
func (t *Tensor) Int64() []int64 { return values[int64](t, chunk.Int64) }

func values[T cast.Number](t *Tensor, d chunk.DType) []T {
	if t.DType != d {
		panic(fmt.Sprintf("loader: tensor %q holds %s, not %s", t.Name, t.DType, d))
	}
	return cast.Values[T](t.Data)
}
