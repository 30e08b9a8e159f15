package pixels

import (
	"encoding/binary"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestBlendAgainstSlow: a sample is the mean or the median of its valid numbers, 0 without one. Each window begins
// anew. The samples of all scenes may take as many bytes as the limit of a median.
func TestBlendAgainstSlow(t *testing.T) {
	numbers := rapid.SampledFrom([]float32{-2.5, -1, 0, 1, 3, 1e30, float32(math.Inf(1)), float32(math.NaN())})
	rapid.Check(t, func(t *rapid.T) {
		var b blend
		for range 2 { // windows
			size, median := rapid.IntRange(1, 5).Draw(t, "size"), rapid.Bool().Draw(t, "median")
			lists := make([][]float64, size)
			b.begin(size, median)
			for scene := range rapid.IntRange(0, 5).Draw(t, "scenes") {
				bytes := 4 * size * (scene + 1) // of all scenes so far
				if rapid.IntRange(0, 9).Draw(t, "over the limit") == 0 {
					if b.grow(bytes-1) == median {
						t.Fatalf("%d bytes and a limit of one less, median %t", bytes, median)
					}
					return
				}
				if !b.grow(bytes) {
					t.Fatalf("%d bytes are over a limit of as many", bytes)
				}
				var data, valid []byte
				for i := range size {
					v, ok := numbers.Draw(t, "number"), rapid.ByteRange(0, 1).Draw(t, "valid")
					data = binary.LittleEndian.AppendUint32(data, math.Float32bits(v))
					if valid = append(valid, ok); ok == 1 && v == v {
						lists[i] = append(lists[i], float64(v))
					}
				}
				half := rapid.IntRange(0, size).Draw(t, "half")
				b.add(0, data[:4*half], valid[:half])
				b.add(half, data[4*half:], valid[half:])
			}
			out, valid := slices.Repeat([]byte{0x5a}, 4*size), slices.Repeat([]byte{0x5a}, size)
			b.end(out, valid)
			for i, list := range lists {
				want, n := 0.0, len(list)
				switch {
				case n > 0 && median:
					slices.Sort(list)
					want = (list[(n-1)/2] + list[n/2]) / 2
				case n > 0:
					for _, v := range list {
						want += v
					}
					want /= float64(n)
				}
				got := math.Float32frombits(binary.LittleEndian.Uint32(out[4*i:]))
				if got != float32(want) || valid[i] != byte(min(n, 1)) {
					t.Fatalf("of %v, median %t: %v, valid %d; want %v", list, median, got, valid[i], want)
				}
			}
		}
	})
}
