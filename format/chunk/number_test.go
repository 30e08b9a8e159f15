package chunk

import (
	"encoding/binary"
	"testing"
)

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
