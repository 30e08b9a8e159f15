package recipe

import (
	"bytes"
	"math"
	"slices"

	"github.com/chaski-eo/chaski/chunk"
	"github.com/chaski-eo/chaski/internal/cast"
	"github.com/chaski-eo/chaski/internal/kernel"
	"github.com/chaski-eo/chaski/loader"
	"github.com/chaski-eo/chaski/stats"
)

// tally measures the chips of one worker.
type tally struct {
	fields []*stats.Field // of all chips; nil before the first
	line   []byte         // the valid samples of a band
	values []float64      // of a band
}

// add measures an image of field k of n, and returns its statistics by band as geotiff:stats has them: min, max, mean,
// std, percentage of valid pixels, and the percentiles 25, 50, 75 and 95. It is nil if no pixel is valid; a band
// without a valid pixel beside others has NaN.
func (t *tally) add(k, n int, pixels *loader.Tensor, valid []byte) ([][]float64, error) {
	if t.fields == nil {
		t.fields = make([]*stats.Field, n)
	}
	bands := int(pixels.Shape[1])
	if t.fields[k] == nil {
		f, err := stats.NewField(pixels.DType, bands)
		if err != nil {
			return nil, err
		}
		t.fields[k] = f
	}
	size := pixels.DType.Size()
	count := len(valid) / bands
	out, none := make([][]float64, bands), true
	for b := range bands {
		line, of := pixels.Data[b*count*size:][:count*size], valid[b*count:][:count]
		if missing := bytes.Count(of, []byte{0}); missing > 0 {
			line = t.valid(line, of, size)
			t.fields[k].AddNoData(b, uint64(missing))
		}
		t.fields[k].AddRows(b, line)
		t.values = appendValues(t.values[:0], line, pixels.DType)
		out[b] = summary(t.values, count)
		none = none && math.IsNaN(out[b][0])
	}
	if none {
		return nil, nil
	}
	return out, nil
}

// valid returns the valid samples of a line.
func (t *tally) valid(line, valid []byte, size int) []byte {
	t.line = t.line[:0]
	for i, v := range valid {
		if v != 0 {
			t.line = append(t.line, line[i*size:(i+1)*size]...)
		}
	}
	return t.line
}

// appendValues appends samples as numbers.
func appendValues(dst []float64, line []byte, d chunk.DType) []float64 {
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

// summary returns the statistics of the finite ones of values, which it sorts, of count pixels.
func summary(values []float64, count int) []float64 {
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

// report merges what all workers measured.
func (m *maker) report(res *Result) (*stats.Report, error) {
	r := &stats.Report{Version: stats.ReportVersion, Samples: int64(m.table.len()), Skipped: res.Bad + res.Misplaced,
		Fields: map[string]stats.FieldReport{}}
	var total []*stats.Field
	for range m.workers {
		t := <-m.tallies
		for k, f := range t.fields {
			switch {
			case total == nil:
				total = make([]*stats.Field, len(t.fields))
				fallthrough
			case total[k] == nil:
				total[k] = f
			case f != nil:
				if err := total[k].Merge(f); err != nil {
					return nil, err
				}
			}
		}
	}
	for k, f := range total {
		of := f.Report()
		for b, name := range m.table.bands[k] {
			of.Bands[b].Name = name
		}
		r.Fields[m.recipe.Fields[k].Name] = of
	}
	return r, nil
}
