package convert

import (
	"encoding/binary"
	"math"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/chunk"
	"github.com/chaski-eo/chaski/tools/testkit/corpus"
)

// theirs are the first half of the SHA-256 of the values of all codes of a type, as float64 with NaN as
// 0x7FF8000000000000: np.arange(1 << bits).view(dtype) with ml_dtypes 0.6.0 and numpy 2.4.6, and of the integers of
// fewer than 8 bits two's complement.
var theirs = map[chunk.DType]string{
	chunk.Float16:       "ecc18b9b372011f0402dc5e75578328f",
	chunk.BFloat16:      "6a00f29e7303e153fd9ec155cefb51fd",
	chunk.Float8E4M3FN:  "98959cdf4be234fd2c6642943d11510f",
	chunk.Float8E5M2:    "0ebeb4cd681ba45cb07e8f6b4ab91af1",
	chunk.Float8E8M0FNU: "a3dfaeaa54eb87b76adef58c84316902",
	chunk.Float6E2M3FN:  "2cad943ffd9938236416abfdad2e1be0",
	chunk.Float6E3M2FN:  "fe6ecfe7e41d29e0acfd824f7856ff58",
	chunk.Float4E2M1FN:  "bafb8c3b8a81bdda0c61588f824ab8a1",
	chunk.Int2:          "a8503da37c9d9f69253e263a604cd035",
	chunk.Int4:          "7d3827dbcd6472c1bfbee16971b6e3c0",
	chunk.Uint2:         "9392b85eaba90b4aa6f39e1f269927b4",
	chunk.Uint4:         "799eb99a60dd83c57bfe43c1eb5b9e53",
	chunk.Int8:          "532d1d5d6d7cc915fd15d7d901ba62f2",
	chunk.Int16:         "e86856ea07f47c995e494719cf83dd22",
}

// TestValuesOfTypes: the codes of small types have the values of ml_dtypes.
func TestValuesOfTypes(t *testing.T) {
	for d, want := range theirs {
		var b []byte
		for _, v := range valuesOf(d) {
			bits := math.Float64bits(v)
			if v != v {
				bits = 0x7FF8000000000000
			}
			b = binary.LittleEndian.AppendUint64(b, bits)
		}
		if got := corpus.SHA256(b); !strings.HasPrefix(got, want) {
			t.Errorf("%s: %s, want %s", d, got, want)
		}
	}
}

// TestExactly: samples that become another type and float64 again are what they were, and values that a type does not
// have are refused.
func TestExactly(t *testing.T) {
	for d := range theirs {
		values := valuesOf(d)
		wide := make([]byte, 0, 8*len(values))
		for _, v := range values {
			wide = binary.LittleEndian.AppendUint64(wide, math.Float64bits(v))
		}
		codes, err := exactly(wide, chunk.Float64, d)
		if err != nil {
			t.Fatal(d, err)
		}
		number := numberOf(d)
		for i, v := range values {
			got := number(codes[i*d.Size():])
			if math.Float64bits(got) != math.Float64bits(v) && (got == got || v == v) {
				t.Errorf("%s: %v became %v", d, v, got)
			}
		}
		for _, v := range []float64{1.0 / 3, 1e300, -1e300, 0x1p-1074} {
			b := binary.LittleEndian.AppendUint64(nil, math.Float64bits(v))
			if _, err := exactly(b, chunk.Float64, d); err == nil {
				t.Errorf("%s has %v", d, v)
			}
		}
	}
	for _, d := range []chunk.DType{chunk.Float32, chunk.Complex64, chunk.Uint32} {
		if _, err := codesOf(d); err == nil {
			t.Errorf("%s is no small type", d)
		}
	}
	if _, err := exactly([]byte{2}, chunk.Uint8, chunk.Uint1); err == nil {
		t.Error("2 in one bit")
	}
}
