package arrays

import (
	"encoding/binary"
	"encoding/json"
	"testing"

	"github.com/chaski-eo/chaski/format/chunk"
)

// TestFillOfNaN promises the bits that zarr-python has: numpy.array(numpy.nan, dtype).tobytes().
func TestFillOfNaN(t *testing.T) {
	for dtype, want := range map[chunk.DType]uint64{chunk.Float16: 0x7e00, chunk.Float32: 0x7fc00000,
		chunk.Float64: 0x7ff8000000000000} {
		fill, err := ParseFill(json.RawMessage(`"NaN"`), dtype)
		if err != nil {
			t.Fatal(err)
		}
		got := binary.LittleEndian.Uint64(append(fill, make([]byte, 8-len(fill))...))
		if got != want {
			t.Errorf("%v: bits %#x, want %#x", dtype, got, want)
		}
	}
}
