package pixels

import (
	"bytes"
	"encoding/binary"
	"math"
	"slices"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/cast"
)

// tents are the weights by which the m samples of a side make n: triangles that are two samples of the coarser of
// both wide at half their height. They are whole numbers, and exact. See docs/order.md, Resampling.
type tents struct {
	spans   []tent
	weights []float64
}

// tent is samples in a row, from number from on, and their weights.
type tent struct {
	from    int
	weights [2]int  // begin and end among those of all
	sum     float64 // of the weights
}

// set makes the weights for n samples of m.
func (t *tents) set(m, n int) {
	t.spans, t.weights = t.spans[:0], t.weights[:0]
	top := 2 * max(m, n)
	for i := range n {
		centre := (2*i + 1) * m
		s := tent{weights: [2]int{len(t.weights)}}
		if below := centre - top - n; below >= 0 {
			s.from = below/(2*n) + 1
		}
		for j := s.from; j < m; j++ {
			off := (2*j+1)*n - centre
			w := float64(top - max(off, -off))
			if w <= 0 {
				break
			}
			t.weights = append(t.weights, w)
			s.sum += w
		}
		s.weights[1] = len(t.weights)
		t.spans = append(t.spans, s)
	}
}

// of returns the weights of a span.
func (t *tents) of(s *tent) []float64 { return t.weights[s.weights[0]:s.weights[1]] }

// widest bounds the samples of a span.
func widest(m, n int) int { return 2*max(m, n)/n + 1 }

// Smoother resamples with antialiasing: rows first, of which it keeps as many as an output row needs.
type Smoother struct {
	y, x tents
	// rows holds of the last input rows, each at its number modulo kept, the sums of weighted samples for every
	// column of the output, and then the sums of the weights.
	Rows  []float64
	whole []bool // of the same rows: no sample is missing
	kept  int
	sums  []float64 // the same of an output row
}

// smootherBytes bounds the memory of a smoother of windows of m by w pixels that become h by n.
func smootherBytes(m, w, h, n int) int64 {
	return 16*int64(min(widest(m, h), m)+1)*int64(n) + 32*(int64(m)+int64(w)+int64(h)+int64(n)) + 8*int64(widest(m, h))*int64(h) + 8*int64(widest(w, n))*int64(n)
}

// Prepare makes room for windows of m by w pixels that become h by n.
func (s *Smoother) Prepare(m, w, h, n int, limit int64) error {
	s.kept = min(widest(m, h), m)
	if BoundedBytes(limit, s.kept, n, 16) < 0 || BoundedBytes(limit, m+w+h+n, 32) < 0 {
		return fault.New(fault.Limit, "window", fault.NoOffset, "%d by %d pixels to resample to %d by %d are over %d bytes", m, w, h, n, limit)
	}
	s.y.set(m, h)
	s.x.set(w, n)
	s.Rows = slices.Grow(s.Rows[:0], s.kept*2*n)[:s.kept*2*n]
	s.whole = slices.Grow(s.whole[:0], s.kept)[:s.kept]
	s.sums = slices.Grow(s.sums[:0], 2*n)[:2*n]
	return nil
}

// plane resamples a band of rows of w samples. A sample of the result is missing, and 0, where missing ones have more
// than half of the weight.
func (s *Smoother) plane(in []float32, valid []byte, w int, out []float32, outValid []byte) {
	n, next := len(s.x.spans), 0
	for i := range s.y.spans {
		t := &s.y.spans[i]
		weights := s.y.of(t)
		for ; next < t.from+len(weights); next++ {
			s.whole[next%s.kept] = s.row(s.sumsOf(next), in[next*w:][:w], valid[next*w:][:w])
		}
		s.column(t)
		for j := range n {
			sum, weight, all := s.sums[j], s.sums[n+j], float64(t.sum*s.x.spans[j].sum)
			at := i*n + j
			if out[at], outValid[at] = 0, 0; float64(2*weight) >= all {
				out[at], outValid[at] = float32(float64(sum/weight)), 1
			}
		}
	}
}

// column adds up the rows of an output row.
func (s *Smoother) column(t *tent) {
	n, weights, whole := len(s.x.spans), s.y.of(t), true
	for k := range weights {
		whole = whole && s.whole[(t.from+k)%s.kept]
	}
	sums := s.sums
	if whole { // sums of weights are whole numbers: that of all is their product, where no sum of them is rounded
		sums = s.sums[:n]
		for j := range s.x.spans {
			all := float64(t.sum * s.x.spans[j].sum)
			if s.sums[n+j] = all; all > 1<<53 {
				sums = s.sums
			}
		}
	}
	clear(sums)
	for k, weight := range weights {
		from := s.sumsOf(t.from + k)[:len(sums)]
		for j, v := range from {
			sums[j] += float64(weight * v)
		}
	}
}

// sumsOf returns where the sums of an input row are.
func (s *Smoother) sumsOf(y int) []float64 {
	n := 2 * len(s.x.spans)
	return s.Rows[y%s.kept*n:][:n]
}

// row fills to with the sums of a row, and reports whether no sample of it is missing.
func (s *Smoother) row(to []float64, in []float32, valid []byte) (whole bool) {
	n := len(s.x.spans)
	whole = bytes.IndexByte(valid, 0) < 0
	for j := range s.x.spans {
		t := &s.x.spans[j]
		weights := s.x.of(t)
		if whole {
			to[j], to[n+j] = weighted(weights, in[t.from:]), t.sum
		} else {
			to[j], to[n+j] = weightedValid(weights, in[t.from:], valid[t.from:])
		}
	}
	return whole
}

// weighted returns the sum of weighted samples, every operation rounded to float64. in is as long as weights at
// least.
func weighted(weights []float64, in []float32) (sum float64) {
	in = in[:len(weights)]
	for j, w := range weights {
		sum += float64(w * float64(in[j]))
	}
	return sum
}

// weightedValid is weighted for the samples that are there, and the sum of their weights.
func weightedValid(weights []float64, in []float32, valid []byte) (sum, weight float64) {
	in, valid = in[:len(weights)], valid[:len(weights)]
	for j, w := range weights {
		if valid[j] != 0 {
			sum += float64(w * float64(in[j]))
			weight += w
		}
	}
	return sum, weight
}

// Antialias fills out from in, as smooth was prepared.
func (s *Resampler) Antialias(from, to *Raster) {
	bands, plane, result := len(from.Picked), from.H*from.W, to.H*to.W
	s.Out, s.OutValid = Grown(s.Out, 4*bands*result), Grown(s.OutValid, bands*result)
	in, seen := cast.Of[float32](s.In)
	out, _ := cast.Of[float32](s.Out)
	if !seen {
		in, out = floatsOf(s.In), make([]float32, len(s.Out)/4)
	}
	for b := range bands {
		i, o := b*plane, b*result
		s.Smooth.plane(in[i:][:plane], s.InValid[i:][:plane], from.W, out[o:][:result], s.OutValid[o:][:result])
	}
	if !seen {
		for i, v := range out {
			binary.LittleEndian.PutUint32(s.Out[4*i:], math.Float32bits(v))
		}
	}
}

func floatsOf(b []byte) []float32 {
	out := make([]float32, len(b)/4)
	for i := range out {
		out[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
	}
	return out
}
