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

// TestNeighbour promises that a moved value is the next one that GDAL does not take for nodata: so many values below
// are masked in a file that GDAL 3.12 reads.
func TestNeighbour(t *testing.T) {
	for nodata, masked := range map[float32]int{
		7: 6, 1: 7, 1.9999: 7, 2: 7, -7: 7, 1e-38: 3, 1e-44: 0, 65504: 7, 255: 7, 0.1: 6, 0: 0,
	} {
		want := nodata
		for range masked + 1 {
			want = math.Nextafter32(want, float32(math.Inf(-1)))
		}
		next, _ := neighbour(binary.LittleEndian.AppendUint32(nil, math.Float32bits(nodata)), chunk.Float32)
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
		next, _ := neighbour(binary.LittleEndian.AppendUint64(nil, c.nodata)[:c.d.Size()], c.d)
		if got := word(next); got != c.want {
			t.Errorf("%v %x moves to %x, want %x", c.d, c.nodata, got, c.want)
		}
	}
	lowest := float32(-math.MaxFloat32) // the sum with values below -2^103 is infinite, and so is GDAL's tolerance
	next, _ := neighbour(binary.LittleEndian.AppendUint32(nil, math.Float32bits(lowest)), chunk.Float32)
	if got := math.Float32frombits(binary.LittleEndian.Uint32(next)); got < -1<<104 || got >= -1<<102 {
		t.Errorf("the lowest float32 moves to %v", got)
	}
}
