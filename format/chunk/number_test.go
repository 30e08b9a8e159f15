package chunk

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/big"
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

// TestNumbersAtTheBounds: a number becomes the nearest integer of a type, with halves away from 0, and one beyond the
// bounds becomes the bound.
func TestNumbersAtTheBounds(t *testing.T) {
	for d := Uint8; d <= Int64; d++ {
		lowest, highest, bits := new(big.Int), big.NewInt(1), d.Bits()
		if d >= Int8 {
			lowest.Neg(new(big.Int).Lsh(highest, uint(bits-1)))
			bits--
		}
		highest.Sub(highest.Lsh(highest, uint(bits)), big.NewInt(1))
		top := math.Ldexp(1, bits) // one above the highest
		for _, v := range []float64{0, 0.5, -0.5, 1.4, 2.5, top, top - 1, top - 0.5, top + 1, 2 * top, -top, -top - 1,
			-top - 0.5, -2 * top, 1e300, -1e300} {
			want, _ := big.NewFloat(math.Round(v)).Int(nil)
			if want.Cmp(highest) > 0 {
				want = highest
			} else if want.Cmp(lowest) < 0 {
				want = lowest
			}
			sample := make([]byte, 8)
			if d.PutNumber(sample[:d.Size()], v); d >= Int8 && sample[d.Size()-1] >= 0x80 {
				copy(sample[d.Size():], bytes.Repeat([]byte{0xff}, 8)) // the sign
			}
			got := new(big.Int).SetUint64(binary.LittleEndian.Uint64(sample))
			if d >= Int8 {
				got.SetInt64(int64(binary.LittleEndian.Uint64(sample)))
			}
			if got.Cmp(want) != 0 {
				t.Errorf("%v of %s is %s, want %s", v, d, got, want)
			}
		}
	}
}
