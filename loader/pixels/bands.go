package pixels

// PickedBands says which bands of a file a field has, and where they go in the tensor.
type PickedBands struct {
	Picked []int // for each band of the tensor, the number of the file's band; a band may repeat
	spans  []bandSpan
	at     map[int][]int // for each band of the file, its bands of the tensor
}

// bandSpan is a run of bands that are contiguous both in the file and in the tensor: bands from, ...,
// from+n-1 of the file are bands to, ..., to+n-1 of the tensor.
type bandSpan struct{ from, to, n int }

// PlaceBands computes from Picked where the bands of the file go, so that Put does not search all bands
// for every chunk. The caller calls it again whenever Picked changes.
func (r *PickedBands) PlaceBands() {
	r.at, r.spans = make(map[int][]int, len(r.Picked)), nil
	for j, b := range r.Picked {
		r.at[b] = append(r.at[b], j)
		// One span is one call of Scatter, so joining contiguous bands avoids a call for each.
		if k := len(r.spans) - 1; k >= 0 && b == r.spans[k].from+r.spans[k].n {
			r.spans[k].n++
			continue
		}
		r.spans = append(r.spans, bandSpan{b, j, 1})
	}
}
