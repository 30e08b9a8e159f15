package moments

import "github.com/chaski-eo/chaski/fault"

// histBins is the number of fine bins. A range that barely needs a width uses more than half of
// them, so a percentile is off by less than 1/4095 of the range; their 64 KiB fit into a
// processor's cache.
const histBins = 8192

// hist has the number of values, their range, and counts of them in bins of width 2^k: bin i holds the values from
// i·2^k up to (i+1)·2^k. k is as small as the range of the values allows. While all values are equal there are no bins:
// the first values must not decide on a width.
type hist[T int64 | float64] struct {
	n        uint64
	min, max T
	k        int
	base     int64 // the bin of counts[0]
	counts   []uint64

	width func(lo, hi T) int     // the k for values from lo to hi
	bin   func(v T, k int) int64 // the bin of v
}

// extend extends the range to lo and hi, and the bins to the range.
func (h *hist[T]) extend(lo, hi T) {
	first := lo
	if h.n > 0 {
		if h.min <= lo && hi <= h.max {
			return
		}
		lo, hi, first = min(lo, h.min), max(hi, h.max), h.min
	}
	h.min, h.max = lo, hi
	if lo != hi {
		h.fit(h.width(lo, hi), first)
	}
}

// fit changes the width to 2^k, which must not shrink, and makes room for the bins of the range. If there were no bins,
// the values so far are all first.
func (h *hist[T]) fit(k int, first T) {
	lo, hi := h.bin(h.min, k), h.bin(h.max, k)
	if h.counts != nil && k == h.k && uint64(lo-h.base) < histBins && uint64(hi-h.base) < histBins {
		return
	}
	// The range is placed in the middle, so one that grows on both sides seldom has to move.
	// Differences of bins may wrap around in between, but come out right.
	old := *h
	h.k, h.base, h.counts = k, lo-(histBins-1-(hi-lo))/2, make([]uint64, histBins)
	h.take(&old, first)
}

// take adds the counts of another hist, whose bins must not be wider and must lie inside these. If it has no bins, its
// values are all first.
func (h *hist[T]) take(o *hist[T], first T) {
	if o.counts == nil {
		h.counts[h.bin(first, h.k)-h.base] += o.n
		return
	}
	for i, n := range o.counts {
		if n > 0 {
			h.counts[(o.base+int64(i))>>(h.k-o.k)-h.base] += n
		}
	}
}

// merge adds the values of another hist.
func (h *hist[T]) merge(o *hist[T]) {
	if o.n == 0 {
		return
	}
	h.extend(o.min, o.max)
	h.n += o.n
	if h.counts != nil { // or all values are still equal
		h.take(o, o.min)
	}
}

// each visits the non-empty bins, in order.
func (h *hist[T]) each(visit func(bin int64, n uint64)) {
	for i, n := range h.counts {
		if n > 0 {
			visit(h.base+int64(i), n)
		}
	}
}

// bins codes the bins of the n values, whose range is known, if there are any.
func (h *hist[T]) bins(s *stateCoder) {
	if h.min == h.max || s.in != nil && s.in.Err != nil {
		return
	}
	if s.in != nil {
		h.fit(h.width(h.min, h.max), h.min)
		clear(h.counts)
	}
	first, last := int(h.bin(h.min, h.k)-h.base), int(h.bin(h.max, h.k)-h.base)
	sum, least, greatest := s.counts(h.counts, first)
	if s.good() && (sum != h.n || least != first || greatest != last) {
		s.in.Fail(fault.Corrupt, "bins that %d samples of this range cannot have", h.n)
	}
}
