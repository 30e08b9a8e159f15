package pixels

// PickedBands are the bands of a file that a field has, and where they go in the tensor.
type PickedBands struct {
	Picked []int // source band of every band of the tensor
	spans  []bandSpan
	at     map[int][]int // places in the tensor of a source band
}

// bandSpan is bands that follow each other both in the file and in the tensor: the tensor's to up to
// to+n are the file's from up to from+n.
type bandSpan struct{ from, to, n int }

// PlaceBands notes where source bands go, so that a chunk finds its own without looking at all.
func (r *PickedBands) PlaceBands() {
	r.at, r.spans = make(map[int][]int, len(r.Picked)), nil
	for j, b := range r.Picked {
		r.at[b] = append(r.at[b], j)
		if k := len(r.spans) - 1; k >= 0 && b == r.spans[k].from+r.spans[k].n {
			r.spans[k].n++
			continue
		}
		r.spans = append(r.spans, bandSpan{b, j, 1})
	}
}
