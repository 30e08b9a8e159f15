package stats

// histBins is the number of fine bins. A range that barely needs a width uses more than half of
// them, so that a percentile is off by less than 1/4095 of the range; their 64 KiB fit into a
// processor's cache.
const histBins = 8192

// hist counts values in bins of width 2^k: bin i holds the values from i·2^k up to (i+1)·2^k. Its
// owner keeps k as small as the range of the values allows. While all values are equal there are no
// bins, so that the first values do not decide on a width.
type hist struct {
	k      int
	base   int64 // the bin of counts[0]
	counts []uint64
}

// fit changes the width to 2^k and makes room for bins lo to hi, which must include all counted
// ones; k must not shrink. If there were no bins, the n values so far go to bin at.
func (h *hist) fit(k int, lo, hi int64, n uint64, at int64) {
	if h.counts != nil && k == h.k && uint64(lo-h.base) < histBins && uint64(hi-h.base) < histBins {
		return
	}
	// The range is placed in the middle, so that one that grows on both sides seldom has to move.
	// Differences of bins may wrap around in between, but come out right.
	base := lo - (histBins-1-(hi-lo))/2
	counts := make([]uint64, histBins)
	if h.counts == nil {
		if n > 0 {
			counts[at-base] = n
		}
	} else {
		for i, n := range h.counts {
			if n > 0 {
				counts[(h.base+int64(i))>>(k-h.k)-base] += n
			}
		}
	}
	h.k, h.base, h.counts = k, base, counts
}

// merge adds the counts of another hist, whose bins must not be wider and must lie inside these. If
// it has no bins, its n values go to bin at.
func (h *hist) merge(o *hist, n uint64, at int64) {
	if h.counts == nil {
		return // all values are still equal
	}
	if o.counts == nil {
		h.counts[at-h.base] += n
		return
	}
	for i, n := range o.counts {
		if n > 0 {
			h.counts[(o.base+int64(i))>>(h.k-o.k)-h.base] += n
		}
	}
}

// each visits the non-empty bins, in order.
func (h *hist) each(visit func(bin int64, n uint64)) {
	for i, n := range h.counts {
		if n > 0 {
			visit(h.base+int64(i), n)
		}
	}
}
