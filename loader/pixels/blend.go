package pixels

import (
	"encoding/binary"
	"math"
	"slices"
)

// blend computes the mean or the median of the valid samples of several scenes, float32. Sums are of float64, in the
// order of the scenes, so they are the same everywhere.
type blend struct {
	median bool
	size   int // samples of a window
	scenes int
	sums   []float64
	counts []uint32
	values []float32 // for the median: of one scene after the other, NaN where one has none
	sorted []float32
}

// begin begins a window of some samples.
func (b *blend) begin(size int, median bool) {
	b.median, b.size, b.scenes = median, size, 0
	b.values = b.values[:0]
	if !median {
		b.sums, b.counts = append(b.sums[:0], make([]float64, size)...), append(b.counts[:0], make([]uint32, size)...)
	}
}

// grow begins a scene. It reports false if the samples of all scenes are over limit bytes.
func (b *blend) grow(limit int) bool {
	b.scenes++
	if !b.median {
		return true
	}
	if int64(b.scenes)*int64(b.size) > int64(limit)/4 {
		return false
	}
	start := len(b.values)
	b.values = slices.Grow(b.values, b.size)[:start+b.size]
	for i := start; i < len(b.values); i++ {
		b.values[i] = float32(math.NaN())
	}
	return true
}

// add adds samples of the scene that grow began, from number first on. NaN does not count as a sample, even where
// the nodata value differs: it would make the result of all scenes NaN.
func (b *blend) add(first int, data, valid []byte) {
	for i, ok := range valid {
		if ok == 0 {
			continue
		}
		sample := math.Float32frombits(binary.LittleEndian.Uint32(data[4*i:]))
		if sample != sample {
			continue
		}
		if b.median {
			b.values[(b.scenes-1)*b.size+first+i] = sample
			continue
		}
		b.sums[first+i] += float64(sample)
		b.counts[first+i]++
	}
}

// end writes the samples and their validity. A sample that no scene has is 0.
func (b *blend) end(out, valid []byte) {
	for i := range b.size {
		sample, ok := b.of(i)
		valid[i] = 0
		if ok {
			valid[i] = 1
		}
		binary.LittleEndian.PutUint32(out[4*i:], math.Float32bits(sample))
	}
}

// of returns a sample.
func (b *blend) of(i int) (float32, bool) {
	if !b.median {
		if b.counts[i] == 0 {
			return 0, false
		}
		return float32(b.sums[i] / float64(b.counts[i])), true
	}
	b.sorted = b.sorted[:0]
	for k := i; k < len(b.values); k += b.size {
		if v := b.values[k]; v == v {
			b.sorted = append(b.sorted, v)
		}
	}
	count := len(b.sorted)
	if count == 0 {
		return 0, false
	}
	slices.Sort(b.sorted)
	return float32((float64(b.sorted[(count-1)/2]) + float64(b.sorted[count/2])) / 2), true
}
