package columns

import (
	"bytes"
	"fmt"
	"math"
	"math/bits"
	"slices"

	"github.com/chaski-eo/chaski/chunk"
	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/cast"
)

// AppendValues appends samples as numbers. It appends none of a type whose samples are not numbers.
func AppendValues(dst []float64, line []byte, d chunk.DType) []float64 {
	if !d.Integer() && !slices.Contains([]chunk.DType{chunk.Float16, chunk.BFloat16, chunk.Float32, chunk.Float64}, d) {
		return dst
	}
	size := d.Size()
	for ; len(line) >= size; line = line[size:] {
		dst = append(dst, d.Number(line))
	}
	return dst
}

// Summarizer computes the statistics of bands, one after the other, in memory of its own. The zero value is ready.
type Summarizer struct {
	values []float64
	line   []byte // the valid samples of a band
	// counts are zero between two bands. Neighbours are often equal, and a count that was just stored is slow to load
	// again: two tables avoid half of these waits. Tables of all 2^16 numbers need no bounds.
	counts *[2][1 << 16]uint32
}

// bandPercents are the percentiles of geotiff:stats.
var bandPercents = []float64{25, 50, 75, 95}

// Of returns the statistics of the valid samples of a band as geotiff:stats has them: min, max, mean, std, percentage
// of valid pixels, and the percentiles 25, 50, 75 and 95. They count the finite samples, of pixels in all.
// Without one they are NaN. It returns nil for a dtype that AppendValues does not take.
func (s *Summarizer) Of(valid []byte, d chunk.DType, pixels int) []float64 {
	return s.summary(valid, d, pixels, bandPercents)
}

// Image returns the statistics of each band of an image, as Of has them or, with classes, the share of each class. It
// is nil if no pixel is valid; a band without a valid pixel beside others has NaN. valid has a byte for each sample,
// and is nil if all are valid.
func (s *Summarizer) Image(data, valid []byte, d chunk.DType, bands int, classes []int64) ([][]float64, error) {
	out, none := make([][]float64, bands), true
	size := d.Size()
	count := len(data) / size / bands
	for b := range out {
		line := data[b*count*size:][:count*size]
		if valid != nil {
			line = s.Valid(line, valid[b*count:][:count], size)
		}
		if classes == nil {
			out[b] = s.Of(line, d, count)
		} else if s.values = AppendValues(s.values[:0], line, d); len(s.values) == len(line)/size {
			var err error
			if out[b], err = shares(s.values, classes); err != nil {
				return nil, fault.WithPart(err, fmt.Sprintf("band %d", b), fault.NoOffset)
			}
		}
		if out[b] == nil {
			return nil, fault.New(fault.Unsupported, "image", fault.NoOffset, "%s has no statistics", d)
		}
		none = none && math.IsNaN(out[b][0])
	}
	if none {
		return nil, nil
	}
	return out, nil
}

// Valid returns the valid samples of a band, until the next call.
func (s *Summarizer) Valid(data, valid []byte, size int) []byte {
	if bytes.IndexByte(valid, 0) < 0 {
		return data
	}
	s.line = s.line[:0]
	for i, v := range valid {
		if v != 0 {
			s.line = append(s.line, data[i*size:(i+1)*size]...)
		}
	}
	return s.line
}

// summary is Of with other percentiles, which ascend.
func (s *Summarizer) summary(valid []byte, d chunk.DType, pixels int, percents []float64) []float64 {
	switch d {
	case chunk.Uint8:
		return counted(s, cast.Values[uint8](valid), pixels, percents)
	case chunk.Int8:
		return counted(s, cast.Values[int8](valid), pixels, percents)
	case chunk.Uint16:
		return counted(s, cast.Values[uint16](valid), pixels, percents)
	case chunk.Int16:
		return counted(s, cast.Values[int16](valid), pixels, percents)
	}
	if s.values = AppendValues(s.values[:0], valid, d); len(s.values) < len(valid)/d.Size() {
		return nil
	}
	return summary(s.values, pixels, percents)
}

// counted counts how often each number occurs: most rasters have integers of 16 bits, and a chip has some thousand
// different ones, so that this takes a thirtieth of the time of sorting. A band that fits into maxRasterBytes, or into
// a chip, has fewer than 2^32 samples.
func counted[T int8 | uint8 | int16 | uint16](s *Summarizer, values []T, pixels int, percents []float64) []float64 {
	if len(values) == 0 {
		return summary(nil, pixels, percents)
	}
	low, high := extremes(values)
	counts, done := count(s, values, low, high)
	defer done()
	whole := int64(0) // at most 2^32 samples of 2^16
	for i, c := range counts {
		whole += (int64(low) + int64(i)) * int64(c)
	}
	n, squares := float64(len(values)), 0.0
	mean := float64(whole) / n
	for i, c := range counts {
		d := float64(int(low)+i) - mean
		// The conversions keep the compiler from fusing, which would make results differ between processors.
		squares += float64(float64(d*d) * float64(c))
	}
	out := []float64{float64(low), float64(high), mean, math.Sqrt(squares / n), 100 * n / float64(pixels)}
	i, below := 0, 0 // below is how many samples are less than low + i
	return percentiles(out, len(values), percents, func(rank int) float64 {
		if rank < below {
			i, below = 0, 0
		}
		for below+int(counts[i]) <= rank {
			below += int(counts[i])
			i++
		}
		return float64(int(low) + i)
	})
}

// count returns how often each number from low to high occurs, until done is called.
func count[T int8 | uint8 | int16 | uint16](s *Summarizer, values []T, low, high T) (counts []uint32, done func()) {
	if s.counts == nil {
		s.counts = new([2][1 << 16]uint32)
	}
	first := uint16(low) // sign bits of 8-bit numbers are extended, and cancel out
	even, odd, i := &s.counts[0], &s.counts[1], 0
	for ; i+4 <= len(values); i += 4 {
		v := values[i : i+4 : i+4]
		even[uint16(v[0])-first]++
		odd[uint16(v[1])-first]++
		even[uint16(v[2])-first]++
		odd[uint16(v[3])-first]++
	}
	for _, v := range values[i:] {
		even[uint16(v)-first]++
	}
	width := int(high) - int(low) + 1
	counts = even[:width]
	for k, c := range odd[:width] {
		counts[k] += c
	}
	return counts, func() {
		clear(even[:width])
		clear(odd[:width])
	}
}

// extremes returns the least and the largest number. Two halves do not wait for one another.
func extremes[T int8 | uint8 | int16 | uint16](values []T) (low, high T) {
	low, high = values[0], values[0]
	low1, high1, i := low, high, 0
	for ; i+4 <= len(values); i += 4 {
		v := values[i : i+4 : i+4]
		low, low1 = min(low, v[0], v[1]), min(low1, v[2], v[3])
		high, high1 = max(high, v[0], v[1]), max(high1, v[2], v[3])
	}
	for _, v := range values[i:] {
		low, high = min(low, v), max(high, v)
	}
	return min(low, low1), max(high, high1)
}

// summary is Summarizer.summary for numbers, which it puts into another order.
func summary(values []float64, pixels int, percents []float64) []float64 {
	values = slices.DeleteFunc(values, func(v float64) bool { return math.IsNaN(v) || math.IsInf(v, 0) })
	n := float64(len(values))
	if n == 0 {
		nan := math.NaN()
		return append([]float64{nan, nan, nan, nan, 0}, slices.Repeat([]float64{nan}, len(percents))...)
	}
	low, high, sum := values[0], values[0], 0.0
	for _, v := range values {
		low, high = min(low, v), max(high, v)
		sum += v
	}
	mean, squares := sum/n, 0.0
	for _, v := range values {
		squares += float64((v - mean) * (v - mean))
	}
	out := []float64{low, high, mean, math.Sqrt(squares / n), 100 * n / float64(pixels)}
	var ranks []int
	percentiles(nil, len(values), percents, func(rank int) float64 {
		ranks = append(ranks, rank)
		return 0
	})
	slices.Sort(ranks)
	arrange(values, 0, ranks, 2*bits.Len(uint(len(values))))
	return percentiles(out, len(values), percents, func(rank int) float64 { return values[rank] })
}

// percentiles appends percentiles of n samples, between two samples by linear interpolation. at returns the sample of a
// rank, the place that it has when they are sorted.
func percentiles(out []float64, n int, percents []float64, at func(rank int) float64) []float64 {
	for _, p := range percents {
		where := float64(n-1) * p / 100
		rank := int(where)
		a, b := at(rank), at(min(rank+1, n-1))
		out = append(out, a+float64((b-a)*(where-float64(rank))))
	}
	return out
}

// arrange moves the values of some ranks, which ascend, to where sorting would: values[0] has rank first. It sorts
// parts that were divided too often, so that no image takes the square of its size.
func arrange(values []float64, first int, ranks []int, divisions int) {
	for len(ranks) > 0 {
		if len(values) <= 32 || divisions == 0 { // sorting few is faster
			slices.Sort(values)
			return
		}
		divisions--
		below, above := divide(values)
		left, _ := slices.BinarySearch(ranks, first+below)
		right, _ := slices.BinarySearch(ranks, first+above)
		arrange(values[:below], first, ranks[:left], divisions)
		values, first, ranks = values[above:], first+above, ranks[right:]
	}
}

// divide puts the values less than the median of three of them first, those equal to it behind them, from less on, and
// the larger ones last, from more on.
func divide(values []float64) (less, more int) {
	a, b, c := values[0], values[len(values)/2], values[len(values)-1]
	pivot := max(min(a, b), min(max(a, b), c))
	more = len(values)
	for i := 0; i < more; {
		switch value := values[i]; {
		case value < pivot:
			values[i], values[less] = values[less], value
			less++
			i++
		case value > pivot:
			more--
			values[i], values[more] = values[more], value
		default:
			i++
		}
	}
	return less, more
}

// shares returns the share of each class in the values that are one of them; NaN for each if there is no value.
func shares(values []float64, classes []int64) ([]float64, error) {
	places := make(map[float64]int, len(classes))
	for i, class := range classes {
		places[float64(class)] = i
	}
	out, sum := make([]float64, len(classes)), 0
	for _, v := range values {
		if i, ok := places[v]; ok {
			out[i]++
			sum++
		}
	}
	if sum == 0 && len(values) > 0 {
		return nil, fault.New(fault.Unsupported, "classes", fault.NoOffset, "none of %d pixels has one of %d classes",
			len(values), len(classes))
	}
	for i := range out {
		out[i] /= float64(sum)
	}
	return out, nil
}
