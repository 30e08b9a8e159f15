package columns

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/chaski-eo/chaski/chunk"
)

// sorted is Summarizer.summary as its comment says it: the samples are sorted.
func sorted(values []float64, pixels int, percents []float64) []float64 {
	v := slices.Clone(values)
	v = slices.DeleteFunc(v, func(x float64) bool { return math.IsNaN(x) || math.IsInf(x, 0) })
	slices.Sort(v)
	n := float64(len(v))
	sum, squares := 0.0, 0.0
	for _, x := range v {
		sum += x
	}
	for _, x := range v {
		squares += (x - sum/n) * (x - sum/n)
	}
	out := []float64{v[0], v[len(v)-1], sum / n, math.Sqrt(squares / n), 100 * n / float64(pixels)}
	for _, p := range percents {
		low, part := math.Modf((n - 1) * p / 100)
		a, b := v[int(low)], v[min(int(low)+1, len(v)-1)]
		out = append(out, a+(b-a)*part)
	}
	return out
}

// TestSummaries: statistics of bands of every kind, also of those that are slow to divide, are those of sorted samples.
func TestSummaries(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	shapes := map[string]func(i, n int) float64{
		"random":  func(int, int) float64 { return rng.NormFloat64() * 500 },
		"one":     func(int, int) float64 { return -7 },
		"two":     func(i, _ int) float64 { return float64(i % 2) },
		"rising":  func(i, _ int) float64 { return float64(i % 30_000) },
		"falling": func(i, n int) float64 { return float64((n - i) % 30_000) },
		"organ":   func(i, n int) float64 { return float64(min(i, n-i) % 30_000) },
		"saw":     func(i, _ int) float64 { return float64(i * 7919 % 101) },
		"ends":    func(i, _ int) float64 { return []float64{math.MinInt16, math.MaxInt16, math.NaN()}[i%3] },
	}
	var s Summarizer
	for name, shape := range shapes {
		for _, n := range []int{1, 2, 3, 4, 5, 33, 1000, 20_011} {
			b8, b16, b32, bytes, ints, floats := []byte{}, []byte{}, []byte{}, []float64{}, []float64{}, []float64{}
			for i := range n {
				v := shape(i, n)
				floats = append(floats, float64(float32(v)))
				b32 = binary.LittleEndian.AppendUint32(b32, math.Float32bits(float32(v)))
				if math.IsNaN(v) {
					v = 0
				}
				ints = append(ints, float64(int16(v)))
				b16 = binary.LittleEndian.AppendUint16(b16, uint16(int16(v)))
				bytes = append(bytes, float64(int8(v)))
				b8 = append(b8, byte(int8(v)))
			}
			for d, of := range map[chunk.DType][]byte{chunk.Int8: b8, chunk.Int16: b16, chunk.Float32: b32} {
				values := map[chunk.DType][]float64{chunk.Int8: bytes, chunk.Int16: ints, chunk.Float32: floats}[d]
				got, want := s.Of(of, d, 2*n), sorted(values, 2*n, bandPercents)
				for k := range want {
					if diff := math.Abs(got[k] - want[k]); !(diff <= 1e-9*max(1, math.Abs(want[k]))) ||
						diff > 0 && k != 2 && k != 3 { // only sums depend on the order
						t.Fatalf("%s, %d of %s: %v, want %v", name, n, d, got, want)
					}
				}
			}
		}
	}
}

func BenchmarkSummaries(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, d := range []chunk.DType{chunk.Uint16, chunk.Float32} {
		var band []byte
		for range 128 * 128 {
			v := max(0, 1000+300*rng.NormFloat64())
			if d == chunk.Uint16 {
				band = binary.LittleEndian.AppendUint16(band, uint16(v))
			} else {
				band = binary.LittleEndian.AppendUint32(band, math.Float32bits(float32(v)))
			}
		}
		b.Run(d.String(), func(b *testing.B) {
			var s Summarizer
			b.SetBytes(int64(len(band)))
			for b.Loop() {
				s.Of(band, d, 128*128)
			}
		})
	}
}
