package columns

import (
	"math"
	"slices"

	"github.com/chaski-eo/chaski/chunk"
	"github.com/chaski-eo/chaski/internal/cast"
	"github.com/chaski-eo/chaski/internal/kernel"
)

// AppendValues appends samples as numbers.
func AppendValues(dst []float64, line []byte, d chunk.DType) []float64 {
	switch d {
	case chunk.Uint8:
		return numbers[uint8](dst, line)
	case chunk.Int8:
		return numbers[int8](dst, line)
	case chunk.Uint16:
		return numbers[uint16](dst, line)
	case chunk.Int16:
		return numbers[int16](dst, line)
	case chunk.Uint32:
		return numbers[uint32](dst, line)
	case chunk.Int32:
		return numbers[int32](dst, line)
	case chunk.Uint64:
		return numbers[uint64](dst, line)
	case chunk.Int64:
		return numbers[int64](dst, line)
	case chunk.Float32:
		return numbers[float32](dst, line)
	case chunk.Float64:
		return numbers[float64](dst, line)
	case chunk.Float16:
		for _, v := range cast.Values[uint16](line) {
			dst = append(dst, float64(kernel.Float32FromFloat16(v)))
		}
	case chunk.BFloat16:
		for _, v := range cast.Values[uint16](line) {
			dst = append(dst, float64(kernel.Float32FromBFloat16(v)))
		}
	}
	return dst // package stats has refused other types
}

func numbers[T cast.Number](dst []float64, line []byte) []float64 {
	for _, v := range cast.Values[T](line) {
		dst = append(dst, float64(v))
	}
	return dst
}

// Summary returns the statistics of a band as geotiff:stats has them: min, max, mean, std, percentage of valid pixels,
// and the percentiles 25, 50, 75 and 95. They are those of the finite ones of values, which it sorts, of count pixels.
// Without one they are NaN.
func Summary(values []float64, count int) []float64 {
	values = slices.DeleteFunc(values, func(v float64) bool { return math.IsNaN(v) || math.IsInf(v, 0) })
	n := float64(len(values))
	if n == 0 {
		nan := math.NaN()
		return []float64{nan, nan, nan, nan, 0, nan, nan, nan, nan}
	}
	slices.Sort(values)
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	mean := sum / n
	squares := 0.0
	for _, v := range values {
		squares += float64((v - mean) * (v - mean))
	}
	out := []float64{values[0], values[len(values)-1], mean, math.Sqrt(squares / n), 100 * n / float64(count)}
	for _, p := range []float64{25, 50, 75, 95} {
		at := (n - 1) * p / 100
		low := math.Floor(at)
		a, b := values[int(low)], values[min(int(low)+1, len(values)-1)]
		out = append(out, a+float64((b-a)*(at-low)))
	}
	return out
}
