package stats

// histBins is the number of fine bins.
const histBins = 8192

// hist counts values in bins of width 2^k: bin i holds the values from i·2^k up to (i+1)·2^k. Its owner
// keeps k the smallest that the range of the values allows. As long as all values are equal there are
// no bins, so that the first few do not decide on a width.
type hist struct {
	k      int
	base   int64 // the bin of counts[0]
	counts []uint64
}

// fit makes the bins 2^k wide and counts hold bins lo to hi, which include all that were counted; k is
// not smaller than before. If there were no bins, n values so far go to bin at.
func (h *hist) fit(k int, lo, hi int64, n uint64, at int64) {
	if h.counts != nil && k == h.k && uint64(lo-h.base) < histBins && uint64(hi-h.base) < histBins {
		return
	}
	// In the middle, so that a range that grows on both sides seldom moves. Differences of bins may
	// wrap around on the way, and come out right.
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

// merge adds another's counts, whose bins are not wider and lie within these. If it has no bins, n
// values of it go to bin at.
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

// each visits the bins that are not empty, in order.
func (h *hist) each(visit func(bin int64, n uint64)) {
	for i, n := range h.counts {
		if n > 0 {
			visit(h.base+int64(i), n)
		}
	}
}
