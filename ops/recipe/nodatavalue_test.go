package recipe

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/chaski-eo/chaski/chunk"
	"github.com/chaski-eo/chaski/loader/spec"
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
	if _, err := byValue(&chip, &Field{Field: spec.Field{Name: "x"}}, nodata, []byte{1, 0}); err != nil {
		t.Errorf("%s of %s: %v", nodata, d, err)
		return
	}
	if got := chip.Pixels[len(want):]; string(got) != string(want) || chip.NoData != nodata {
		t.Errorf("%s of %s: the missing pixel is %x, nodata %s, want %x", nodata, d, got, chip.NoData, want)
	}
}

// TestBeside promises that a moved value is the one below, or above the least finite one of the type.
func TestBeside(t *testing.T) {
	for nodata, want := range map[float32]float32{
		7: math.Nextafter32(7, 0), -7: math.Nextafter32(-7, -8), 0: math.Nextafter32(0, -1),
		-math.MaxFloat32: math.Nextafter32(-math.MaxFloat32, 0), math.MaxFloat32: math.Nextafter32(math.MaxFloat32, 0),
	} {
		next := beside(binary.LittleEndian.AppendUint32(nil, math.Float32bits(nodata)), chunk.Float32)
		if got := math.Float32frombits(binary.LittleEndian.Uint32(next)); got != want {
			t.Errorf("%v moves to %v, want %v", nodata, got, want)
		}
	}
	for _, c := range []struct {
		d            chunk.DType
		nodata, want uint64
	}{
		{chunk.Uint8, 0, 1}, {chunk.Uint8, 255, 254}, {chunk.Int16, 0x8000, 0x8001}, {chunk.Int16, 0, 0xffff},
		{chunk.Uint64, math.MaxUint64, math.MaxUint64 - 1}, {chunk.Int64, 1 << 63, 1<<63 + 1},
		{chunk.Float16, 0x8000, 0x8001}, {chunk.Float16, 0xfc00, 0xfbff}, {chunk.Float32, 0x7f800000, 0x7f7fffff},
	} {
		next := beside(binary.LittleEndian.AppendUint64(nil, c.nodata)[:c.d.Size()], c.d)
		if want := binary.LittleEndian.AppendUint64(nil, c.want)[:c.d.Size()]; string(next) != string(want) {
			t.Errorf("%v %x moves to %x, want %x", c.d, c.nodata, next, want)
		}
	}
}
