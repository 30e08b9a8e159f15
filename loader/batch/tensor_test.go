package batch

import (
	"slices"
	"testing"

	"github.com/chaski-eo/chaski/format/dtype"
)

// TestTensorViews: views yield the numbers of a tensor in its own type, and panic for any other
// type.
func TestTensorViews(t *testing.T) {
	data := []byte{0xff, 0, 0, 0, 0, 0, 0x80, 0x3f}
	of := func(d dtype.Type) *Tensor { return &Tensor{Name: "image", DType: d, Data: data} }
	for name, ok := range map[string]bool{
		"float32": slices.Equal(of(dtype.Float32).Float32(), []float32{0xffp-149, 1}),
		"float64": slices.Equal(of(dtype.Float64).Float64(), []float64{0x1.00000000000ffp-7}),
		"uint8":   slices.Equal(of(dtype.Uint8).Uint8(), data),
		"uint16":  slices.Equal(of(dtype.Uint16).Uint16(), []uint16{0xff, 0, 0, 0x3f80}),
		"uint32":  slices.Equal(of(dtype.Uint32).Uint32(), []uint32{0xff, 0x3f800000}),
		"uint64":  slices.Equal(of(dtype.Uint64).Uint64(), []uint64{0x3f800000000000ff}),
		"int8":    slices.Equal(of(dtype.Int8).Int8(), []int8{-1, 0, 0, 0, 0, 0, -128, 0x3f}),
		"int16":   slices.Equal(of(dtype.Int16).Int16(), []int16{0xff, 0, 0, 0x3f80}),
		"int32":   slices.Equal(of(dtype.Int32).Int32(), []int32{0xff, 0x3f800000}),
		"int64":   slices.Equal(of(dtype.Int64).Int64(), []int64{0x3f800000000000ff}),
	} {
		if !ok {
			t.Errorf("%s: other numbers", name)
		}
	}
	defer func() {
		if got := recover(); got != `batch: tensor "image" holds uint16, not float32` {
			t.Errorf("panic %v", got)
		}
	}()
	of(dtype.Uint16).Float32()
}
