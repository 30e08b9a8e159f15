package pixels

import (
	"bytes"
	"slices"

	"github.com/chaski-eo/chaski/fault"
)

// tents holds the weights by which the m samples of a side make n resampled ones. The filter is a
// triangle (a tent) whose half is as wide as one pixel of the coarser side. See docs/order.md,
// Resampling.
type tents struct {
	spans   []tentSpan // one for each of the n samples
	weights []float64  // of all spans, one after the other
	// Weights are whole numbers, over one denominator for all, so float64 holds them and their
	// sums exactly, and missing samples can be left out without a rounding error.
}

// tentSpan is the part of tents for one resampled sample.
type tentSpan struct {
	from    int     // the first sample with a weight
	weights [2]int  // begin and end in tents.weights
	sum     float64 // of the weights
}

// set computes the weights that make n samples of m.
func (t *tents) set(m, n int) {
	t.spans, t.weights = t.spans[:0], t.weights[:0]
	top := 2 * max(m, n)
	for i := range n {
		// In units of 1/(2mn) of the side, sample i of n has its centre at (2i+1)m, and sample j of m
		// at (2j+1)n. The weight falls from top, at the centre, to 0, at a distance of top.
		centre := (2*i + 1) * m
		span := tentSpan{weights: [2]int{len(t.weights)}}
		if below := centre - top - n; below >= 0 { // else sample 0 already has a weight
			span.from = below/(2*n) + 1
		}
		for j := span.from; j < m; j++ {
			off := (2*j+1)*n - centre
			weight := float64(top - max(off, -off))
			if weight <= 0 { // past the triangle: samples from s.from on have weights without a gap
				break
			}
			t.weights = append(t.weights, weight)
			span.sum += weight
		}
		span.weights[1] = len(t.weights)
		t.spans = append(t.spans, span)
	}
}

// of returns the weights of span s.
func (t *tents) of(s *tentSpan) []float64 { return t.weights[s.weights[0]:s.weights[1]] }

// widest returns the most samples that a span of tents for n samples of m can have. The triangle covers
// 2*top = 4*max(m, n) units (see set), and samples are 2n units apart.
func widest(m, n int) int { return 2*max(m, n)/n + 1 }

// Smoother resamples with antialiasing. It sums each row of the window along its columns first, and then
// the rows, so the work follows the sum of both sides of the filter and not their product. It
// serves one worker.
type Smoother struct {
	y, x tents
	// Rows is a ring of summed rows of the window: row y is at y modulo ringRows. Each has the weighted sums
	// of samples for every column of the result, and then the sums of their weights. It holds only as
	// many rows as one row of the result needs, so memory does not follow the window's height.
	Rows     []float64
	allValid []bool    // for each row of the ring: no sample is missing
	ringRows int       // of the ring
	sums     []float64 // of one row of the result, as a row of the ring
}

// smootherBytes returns a bound on the memory, in bytes, of a Smoother for windows of m by w pixels that
// become h by n.
func smootherBytes(m, w, h, n int) int64 {
	// Two float64 for each column of the ring and of sums; 32 bytes, the size of a tent, for each row
	// and column; and the weights, 8 bytes each.
	return 16*int64(min(widest(m, h), m)+1)*int64(n) + 32*(int64(m)+int64(w)+int64(h)+int64(n)) +
		8*int64(widest(m, h))*int64(h) + 8*int64(widest(w, n))*int64(n)
}

// Prepare computes weights and makes room for windows of m by w pixels that become h by n. It fails with
// kind limit if the ring of rows, or the tents, need more than limit bytes.
func (s *Smoother) Prepare(m, w, h, n int, limit int64) error {
	s.ringRows = min(widest(m, h), m)
	if BoundedBytes(limit, s.ringRows, n, 16) < 0 || BoundedBytes(limit, m+w+h+n, 32) < 0 {
		return fault.New(fault.Limit, "window",
			"%d by %d pixels to resample to %d by %d are over %d bytes", m, w, h, n, limit)
	}
	s.y.set(m, h)
	s.x.set(w, n)
	s.Rows, s.allValid, s.sums = sized(s.Rows, s.ringRows*2*n), sized(s.allValid, s.ringRows), sized(s.sums, 2*n)
	return nil
}

// sized returns n elements of any content, in the memory of s if that has room.
func sized[T any](s []T, n int) []T { return slices.Grow(s[:0], n)[:n] }

// plane resamples one band. in and valid are rows of w samples, out and outValid the result. A sample
// of the result is missing, and 0, if missing samples have more than half of its weight. If one valid
// sample sufficed, the valid area would grow at every edge.
func (s *Smoother) plane(in []float32, valid []byte, w int, out []float32, outValid []byte) {
	width, next := len(s.x.spans), 0
	for i := range s.y.spans {
		tent := &s.y.spans[i]
		weights := s.y.of(tent)
		// Spans begin in ascending order, so each row of the window is summed once.
		for ; next < tent.from+len(weights); next++ {
			s.allValid[next%s.ringRows] = s.row(s.sumsOf(next), in[next*w:][:w], valid[next*w:][:w])
		}
		s.column(tent)
		for j := range width {
			sum, weight, total := s.sums[j], s.sums[width+j], float64(tent.sum*s.x.spans[j].sum)
			pos := i*width + j
			if out[pos], outValid[pos] = 0, 0; float64(2*weight) >= total {
				out[pos], outValid[pos] = float32(float64(sum/weight)), 1
			}
		}
	}
}

// column sums the rows of span t into s.sums.
func (s *Smoother) column(t *tentSpan) {
	width, weights, allValid := len(s.x.spans), s.y.of(t), true
	for k := range weights {
		allValid = allValid && s.allValid[(t.from+k)%s.ringRows]
	}
	sums := s.sums
	// If all samples are there, the sums of weights need no loop: they are products of whole numbers.
	// But that is only the same in every bit up to 2^53, past which float64 rounds each sum on the way,
	// so larger sums are added up as if samples were missing.
	if allValid {
		sums = s.sums[:width]
		for j := range s.x.spans {
			total := float64(t.sum * s.x.spans[j].sum)
			if s.sums[width+j] = total; total > 1<<53 {
				sums = s.sums
			}
		}
	}
	clear(sums)
	for k, weight := range weights {
		line := s.sumsOf(t.from + k)[:len(sums)]
		for j, v := range line {
			sums[j] += float64(weight * v)
		}
	}
}

// sumsOf returns the place in the ring of the sums of row y of the window.
func (s *Smoother) sumsOf(y int) []float64 {
	n := 2 * len(s.x.spans)
	return s.Rows[y%s.ringRows*n:][:n]
}

// row fills to with the sums of one row of the window, and reports whether no sample of it is missing.
func (s *Smoother) row(to []float64, in []float32, valid []byte) (allValid bool) {
	width := len(s.x.spans)
	allValid = bytes.IndexByte(valid, 0) < 0
	for j := range s.x.spans {
		tent := &s.x.spans[j]
		weights := s.x.of(tent)
		if allValid {
			to[j], to[width+j] = weighted(weights, in[tent.from:]), tent.sum
		} else {
			to[j], to[width+j] = weightedValid(weights, in[tent.from:], valid[tent.from:])
		}
	}
	return allValid
}

// weighted returns the sum of samples times weights, with each operation rounded to float64. in must be
// at least as long as weights.
func weighted(weights []float64, in []float32) (sum float64) {
	in = in[:len(weights)]
	for j, w := range weights {
		// The conversion prevents a fused multiply-add, whose result differs between machines.
		sum += float64(w * float64(in[j]))
	}
	return sum
}

// weightedValid returns the same sum over the valid samples only, and the sum of their weights.
func weightedValid(weights []float64, in []float32, valid []byte) (sum, weight float64) {
	in, valid = in[:len(weights)], valid[:len(weights)]
	for j, w := range weights {
		// Not a weight of 0, since 0 times a NaN or an infinite nodata value would be NaN.
		if valid[j] != 0 {
			sum += float64(w * float64(in[j]))
			weight += w
		}
	}
	return sum, weight
}

// Antialias is Resample with antialiasing. Smooth must be prepared for these sizes.
func (s *Resampler) Antialias(planes, height, width int, to *Raster) {
	plane, result := height*width, to.H*to.W
	s.Out, s.OutValid = Grown(s.Out, 4*planes*result), Grown(s.OutValid, planes*result)
	in, _ := floats(s.In)
	out, done := floats(s.Out)
	for p := range planes {
		i, o := p*plane, p*result
		s.Smooth.plane(in[i:][:plane], s.InValid[i:][:plane], width, out[o:][:result], s.OutValid[o:][:result])
	}
	done()
}
