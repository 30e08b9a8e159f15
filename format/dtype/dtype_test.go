package dtype

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"math"
	"math/big"
	"strconv"
	"strings"
	"testing"

	"github.com/x448/float16"
)

// TestNamesSayTheBits: the number in the name of a type says how many bits a sample has, each component of
// complex_int and complex_float, and that of float8_e4m3fn stands before its exponent.
func TestNamesSayTheBits(t *testing.T) {
	for dtype := Uint8; dtype < End; dtype++ {
		name, _, _ := strings.Cut(strings.ReplaceAll(dtype.String(), "complex_", "complex"), "_")
		width, err := strconv.Atoi(strings.TrimLeft(name, "abcdefghijklmnopqrstuvwxyz"))
		if err != nil {
			t.Fatal(dtype, err)
		}
		components := 1
		if strings.HasPrefix(name, "complex") {
			components = 2
		}
		if strings.HasPrefix(dtype.String(), "complex_") {
			width *= 2
		}
		integer := strings.Contains(name, "int") && components == 1 && width >= 8
		if dtype.Bits() != width || dtype.Size() != (width+7)/8 || dtype.Components() != components ||
			dtype.Integer() != integer || !dtype.Valid() {
			t.Errorf("%v has %d bits in %d bytes, and %d components; integer %v", dtype, dtype.Bits(), dtype.Size(),
				dtype.Components(), dtype.Integer())
		}
	}
	if Invalid.Valid() || End.Valid() || End.Size() != 0 || End.Components() != 0 ||
		End.String() != "invalid" {
		t.Error("a type that is none is valid")
	}
	var dtype Type
	if err := dtype.UnmarshalText([]byte("uint3")); err == nil || dtype != Invalid {
		t.Errorf("uint3 is %v, %v", dtype, err)
	}
}

// TestNumberOfLowTypes: types of fewer than 8 bits have no number but their byte.
func TestNumberOfLowTypes(t *testing.T) {
	for dtype := Uint1; dtype < End; dtype++ {
		if got := dtype.Number([]byte{0xc5}); got != 0xc5 {
			t.Errorf("%v: %v", dtype, got)
		}
	}
	for _, dtype := range []Type{Int64, Uint64} { // beyond 2^53 the bits are exact, and the number is rounded
		word := uint64(1<<53 + 1)
		number, bits := dtype.NoData(binary.LittleEndian.AppendUint64(nil, word))
		if *number != 1<<53 || bits == nil || *bits != word {
			t.Errorf("%v: %v %v", dtype, *number, bits)
		}
	}
	if _, bits := Int32.NoData(bytes.Repeat([]byte{1}, 4)); bits != nil {
		t.Error("the bits of an int32")
	}
}

func TestHalfAgreesWithAnotherImplementation(t *testing.T) {
	for h := range 1 << 16 {
		got := Float16.Number(binary.LittleEndian.AppendUint16(nil, uint16(h)))
		want := float64(float16.Frombits(uint16(h)).Float32())
		if got != want && !(math.IsNaN(got) && math.IsNaN(want)) {
			t.Fatalf("the half %#x is %v, want %v", h, got, want)
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

func TestDTypeNames(t *testing.T) {
	for d := Uint8; d < End; d++ {
		b, err := json.Marshal(d)
		if err != nil {
			t.Fatal(err)
		}
		var back Type
		if err := json.Unmarshal(b, &back); err != nil || back != d || string(b) != `"`+d.String()+`"` {
			t.Errorf("%v: %s %v", d, b, err)
		}
	}
	_, err := Parse("invalid")
	if err == nil || Invalid.Size() != 0 || Invalid.Components() != 0 || Invalid.String() != "invalid" {
		t.Error("invalid is a type")
	}
}
