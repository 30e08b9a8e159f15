package chunk

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/x448/float16"
)

func TestHalfAgreesWithAnotherImplementation(t *testing.T) {
	for h := range 1 << 16 {
		got := Float16.Number(binary.LittleEndian.AppendUint16(nil, uint16(h)))
		want := float64(float16.Frombits(uint16(h)).Float32())
		if got != want && !(math.IsNaN(got) && math.IsNaN(want)) {
			t.Fatalf("the half %#x is %v, want %v", h, got, want)
		}
	}
}

// TestNumbersRoundTrip: the nodata value of a sample is filled in as that sample.
func TestNumbersRoundTrip(t *testing.T) {
	for d := Uint8; d <= BFloat16; d++ {
		if d.Components() > 1 {
			continue
		}
		sample := binary.LittleEndian.AppendUint64(nil, 0xc2030405c0a08123)[8-d.Size():]
		x := &Index{DType: d}
		x.NoData, x.NoDataBits = d.NoData(sample)
		if got := x.NoDataSample(); string(got) != string(sample) {
			t.Errorf("%v: %x, want %x", d, got, sample)
		}
	}
}
