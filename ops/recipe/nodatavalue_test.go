package recipe

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/chaski-eo/chaski/chunk"
	"github.com/chaski-eo/chaski/ops/convert"
)

// TestByValue promises that missing pixels get the nodata value of the source exactly, also those that float64 or
// float32 round.
func TestByValue(t *testing.T) {
	for nodata, bits := range map[string]uint64{
		"9007199254740993":     1<<53 + 1,
		"9223372036854775807":  math.MaxInt64,
		"-9223372036854775808": 1 << 63,
		"-9999":                math.MaxUint64 - 9998,
	} {
		testByValue(t, nodata, chunk.Int64, binary.LittleEndian.AppendUint64(nil, bits))
	}
	testByValue(t, "18446744073709551615", chunk.Uint64, binary.LittleEndian.AppendUint64(nil, math.MaxUint64))
	for _, nodata := range []string{"-3.4028235e+38", "-3.4028234663852886e+38"} {
		testByValue(t, nodata, chunk.Float32, binary.LittleEndian.AppendUint32(nil, math.Float32bits(-math.MaxFloat32)))
	}
}

func testByValue(t *testing.T, nodata string, d chunk.DType, want []byte) {
	t.Helper()
	chip := convert.Chip{DType: d, Shape: [3]int{2, 1, 1}, Pixels: make([]byte, 2*len(want))}
	if _, err := byValue(&chip, &Field{Name: "x"}, nodata, []byte{1, 0}); err != nil {
		t.Errorf("%s of %s: %v", nodata, d, err)
		return
	}
	if got := chip.Pixels[len(want):]; string(got) != string(want) || chip.NoData != nodata {
		t.Errorf("%s of %s: the missing pixel is %x, nodata %s, want %x", nodata, d, got, chip.NoData, want)
	}
}
