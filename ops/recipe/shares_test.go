package recipe

import (
	"bytes"
	"encoding/binary"
	"math"
	"testing"

	"github.com/chaski-eo/chaski/chunk"
	"github.com/chaski-eo/chaski/loader"
	"github.com/chaski-eo/chaski/loader/spec"
)

// maxClass is the greatest class that pixels, which are compared as float64, cannot reach by rounding.
const maxClass = 1<<53 - 1

// TestShares: of 100 pixels, 7 are a share of 0.07 and no more, of any dtype of whole numbers, and classes do not
// become equal by rounding.
func TestShares(t *testing.T) {
	valid := bytes.Repeat([]byte{1}, 100)
	image := func(of chunk.DType, value int64, n int) *loader.Tensor {
		data, size := make([]byte, 100*of.Size()), of.Size()
		for i := range n {
			var b [8]byte
			binary.LittleEndian.PutUint64(b[:], uint64(value))
			copy(data[i*size:][:size], b[:])
		}
		return &loader.Tensor{Name: "mask", DType: of, Shape: []int64{1, 1, 5, 20}, Data: data}
	}
	in := func(l Labels, pixels *loader.Tensor) bool {
		t.Helper()
		is, err := l.in(pixels, valid)
		if err != nil {
			t.Fatal(err)
		}
		return is
	}
	for of, class := range map[chunk.DType]int64{chunk.Uint8: 255, chunk.Int8: -128, chunk.Uint16: 65535,
		chunk.Int16: -2, chunk.Uint32: math.MaxUint32, chunk.Int32: -1, chunk.Uint64: maxClass,
		chunk.Int64: -maxClass} {
		for n := range 101 {
			pixels := image(of, class, n)
			for k := range 101 {
				l := Labels{Classes: []int64{5, class}, MinShare: float64(k) / 100}
				if want := n > 0 && n >= k; in(l, pixels) != want {
					t.Fatalf("%s: %d pixels are a share of %g: %t", of, n, l.MinShare, !want)
				}
			}
		}
	}
	for of, value := range map[chunk.DType]int64{chunk.Uint64: maxClass + 1, chunk.Int64: maxClass + 2,
		chunk.Uint8: 4} {
		if in(Labels{Classes: []int64{maxClass, 260}}, image(of, value, 100)) {
			t.Errorf("%s: %d is another class", of, value)
		}
	}
}

// TestShareOfNoData: of 100 pixels, 29 are a share of 0.29 and no more.
func TestShareOfNoData(t *testing.T) {
	valid := bytes.Repeat([]byte{1}, 100)
	copy(valid, make([]byte, 29))
	b := &loader.Batch{Tensors: []loader.Tensor{{Name: "a" + validity, Data: valid}}}
	for limit, want := range map[float64]bool{0.28: true, 0.29: false, 0.3: false} {
		r := &Recipe{Fields: []Field{{Field: spec.Field{Name: "a"}}}, Quality: Quality{MaxNoData: &limit}}
		m := &Maker{recipe: r}
		if m.isEmpty(b) != want {
			t.Errorf("%g: %v", limit, !want)
		}
	}
}
