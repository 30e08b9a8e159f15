package packed

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/fault"
)

// bytesOf returns the bytes of a text of bits, filled with zeros.
func bytesOf(bits string) []byte {
	bits += strings.Repeat("0", (8-len(bits)%8)%8)
	out := make([]byte, 0, len(bits)/8)
	for eight := range slices.Chunk([]byte(bits), 8) {
		b, _ := strconv.ParseUint(string(eight), 2, 8)
		out = append(out, byte(b))
	}
	return out
}

// numberOf returns the number in the bytes of an array.
func numberOf(b []byte, big bool) uint64 {
	if big {
		return binary.BigEndian.Uint64(append(make([]byte, 8-len(b)), b...))
	}
	return binary.LittleEndian.Uint64(append(slices.Clone(b), make([]byte, 8-len(b))...))
}

// offsetHeader returns the header of a chunk of scaleoffset.
func offsetHeader(width int, least uint64) []byte {
	b := binary.LittleEndian.AppendUint32(nil, uint32(width))
	b = binary.LittleEndian.AppendUint64(append(b, 8), least)
	return append(b, make([]byte, offsetHead-len(b))...)
}

// TestPackedNumbers: numbers of each width that are written as text of zeros and ones come back, by nbit at a shift,
// and by scaleoffset with the least one on top. Files of h5py, which other tests read, have few of these widths.
func TestPackedNumbers(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, size := range []int{1, 2, 4, 8} {
		for width := 1; width <= 8*size; width++ {
			count, shift, least := 1+r.IntN(9), r.IntN(8*size-width+1), r.Uint64()
			var text strings.Builder
			numbers := make([]uint64, count)
			for i := range numbers {
				numbers[i] = r.Uint64() >> (64 - width)
				fmt.Fprintf(&text, "%0*b", width, numbers[i])
			}
			bits := bytesOf(text.String())
			for _, big := range []bool{false, true} {
				nbit := Parameters{0, 0, 0, 1, uint32(size), 0, uint32(width), uint32(shift)}
				offset := Parameters{2, 0, 0, 0, uint32(size), 0, 0, 0}
				if big {
					nbit[nbitBig], offset[offsetBig] = 1, 1
				}
				shifted, summed := make([]byte, count*size), make([]byte, count*size)
				stored := append(slices.Clone(bits), 0)[:count*width/8+1] // what the library writes
				if err := nbit.NBit(shifted, stored); err != nil {
					t.Fatal(err)
				}
				if width < 8*size { // numbers of all bits are stored as they are
					src := append(offsetHeader(width, least), bits...)
					if err := offset.ScaleOffset(summed, src); err != nil {
						t.Fatal(err)
					}
				}
				mask := uint64(math.MaxUint64) >> (64 - 8*size)
				for i, number := range numbers {
					if got := numberOf(shifted[i*size:][:size], big); got != number<<shift {
						t.Fatalf("nbit: %d of %d bits at %d: %d", number, width, shift, got)
					}
					got := numberOf(summed[i*size:][:size], big)
					if width < 8*size && got != (number+least)&mask {
						t.Fatalf("scaleoffset: %d of %d bits over %d: %d", number, width, least, got)
					}
				}
				if fault.KindOf(nbit.NBit(shifted, stored[1:])) != fault.Corrupt {
					t.Fatalf("nbit: %d values of %d bits in %d bytes", count, width, len(stored)-1)
				}
			}
		}
	}
}

// TestPackedFloats: decimals of scaleoffset are the stored number over a power of ten, and the least one.
func TestPackedFloats(t *testing.T) {
	const text = "00000000" + "00000001" + "01111101" + "11111111" // 0, 1, 125, and the fill value
	singles := Parameters{0, 2, 0, 1, 4, 0, 0, 1, math.Float32bits(-9)}
	doubles := Parameters{0, 2, 0, 1, 8, 0, 0, 1, 0, math.Float32bits(2)} // 2.0 of 64 bits
	got4, got8 := make([]byte, 16), make([]byte, 32)
	body := bytesOf(text)
	src4 := append(offsetHeader(8, uint64(math.Float32bits(1.5))), body...)
	if err := singles.ScaleOffset(got4, src4); err != nil {
		t.Fatal(err)
	}
	src8 := append(offsetHeader(8, math.Float64bits(1.5)), body...)
	if err := doubles.ScaleOffset(got8, src8); err != nil {
		t.Fatal(err)
	}
	for i, want := range []float64{1.5, 1.51, 2.75} {
		single := math.Float32frombits(binary.LittleEndian.Uint32(got4[4*i:]))
		double := math.Float64frombits(binary.LittleEndian.Uint64(got8[8*i:]))
		if single != float32(want) || double != want {
			t.Errorf("%v, %v, want %v", single, double, want)
		}
	}
	if fill := math.Float32frombits(binary.LittleEndian.Uint32(got4[12:])); fill != -9 {
		t.Errorf("fill value %v", fill)
	}
	if fill := math.Float64frombits(binary.LittleEndian.Uint64(got8[24:])); fill != 2 {
		t.Errorf("fill value %v", fill)
	}
}

// TestPackedRefusals: parameters of a file that name impossible values are errors.
func TestPackedRefusals(t *testing.T) {
	dst, src, memory := make([]byte, 8), make([]byte, offsetHead+8), []byte(nil)
	for _, values := range []Parameters{
		nil,                       // no parameters
		{0, 0, 0, 2, 4, 0, 3, 0},  // not numbers
		{0, 0, 0, 1, 16, 0, 3, 0}, // 16 bytes
		{0, 0, 0, 1, 3, 0, 3, 0},  // 3 bytes do not fill the chunk
		{0, 0, 0, 1, 4, 0, 0, 0},  // 0 bits
		{0, 0, 0, 1, 4, 0, 31, 2}, // past the end of a value
		{0, 0, 0, 1, 4, 0, 1, math.MaxUint32},
	} {
		if err := values.NBit(dst, src); fault.KindOf(err) != fault.Unsupported {
			t.Errorf("nbit %d: %v", values, err)
		}
	}
	// 8 values of 3 bytes fill the chunk, but no number has as many.
	err := (Parameters{0, 0, 0, 1, 3, 0, 3, 0}).NBit(make([]byte, 24), src[:4])
	if fault.KindOf(err) != fault.Unsupported {
		t.Errorf("nbit of 3 bytes: %v", err)
	}
	if err := (Parameters{0, 1}).NBit(dst, src[:8]); err != nil {
		t.Errorf("nbit of whole values: %v", err)
	}
	if err := (Parameters{0, 1}).NBit(dst, src[:7]); fault.KindOf(err) != fault.Corrupt {
		t.Errorf("nbit of 7 bytes: %v", err)
	}
	for _, values := range []Parameters{nil, {0, 8, 25, 8}, {0, 0, 8, 8}, {0, 65, 8, 8}, {0, 8, 8, 0}, {0, 8, 0, 8}} {
		if err := values.Szip(dst, src, &memory); fault.KindOf(err) != fault.Unsupported {
			t.Errorf("szip %d: %v", values, err)
		}
	}
	for _, stored := range [][]byte{{8, 0, 0}, {7, 0, 0, 0, 1}, {8, 0, 0, 0}, {8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}} {
		if err := (Parameters{0, 8, 8, 8}).Szip(dst, stored, &memory); fault.KindOf(err) != fault.Corrupt {
			t.Errorf("szip of %d: %v", stored, err)
		}
	}
	integers := Parameters{2, 0, 0, 0, 4}
	for name, broken := range map[string][]byte{"short": src[:offsetHead-1], "wide": offsetHeader(33, 0),
		"whole": offsetHeader(32, 0), "packed": append(offsetHeader(9, 0), 1, 2)} {
		if err := integers.ScaleOffset(dst, broken); fault.KindOf(err) != fault.Corrupt {
			t.Errorf("scaleoffset, %s: %v", name, err)
		}
	}
	for _, values := range []Parameters{{2, 0, 0, 0, 3}, {0, 2, 0, 1, 2}, {1, 2, 0, 1, 4}} {
		if err := values.ScaleOffset(dst, src); fault.KindOf(err) != fault.Unsupported {
			t.Errorf("scaleoffset %d: %v", values, err)
		}
	}
}
