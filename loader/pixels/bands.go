package pixels

import "slices"

// PickedBands says which bands of a file a field has, and where they go in the tensor. In a file with steps of
// time the bands of each step are planes of their own, numbered step by step.
type PickedBands struct {
	Picked []int // for each plane of the tensor, the number of the file's plane; a plane may repeat
	// TimeSteps is the number of steps of time that Picked has, each with the same number of bands. 0 means 1.
	TimeSteps int
	// StepBands is the number of bands of a step of the file; 0 if it has no steps.
	StepBands int
	// Lacking are the steps of the tensor that the file does not have. Picked has planes of another step for them, and
	// Row.PadSteps fills them.
	Lacking []int

	// Of a part of a stack: into gives the tensor's plane for each plane of Picked, and all is how many bands a step of
	// the tensor has. Otherwise into is nil: the planes are the tensor's.
	into []int
	all  int

	spans []bandSpan
	at    map[int][]int // for each plane of the file, its planes of the tensor
}

// bandSpan is a run of planes of one step that are contiguous both in the file and in the tensor: planes
// from, ..., from+n-1 of the file are bands to, ..., to+n-1 of step t of the tensor.
type bandSpan struct{ from, t, to, n int }

// bands returns the number of bands of a step of the tensor.
func (r *PickedBands) bands() int {
	if r.into != nil {
		return r.all
	}
	return len(r.Picked) / max(r.TimeSteps, 1)
}

// plane returns the plane of the tensor that plane j of Picked becomes.
func (r *PickedBands) plane(j int) int {
	if r.into != nil {
		return r.into[j]
	}
	return j
}

// PickPlanes returns the planes of some bands at some steps of time, of a file with a number of steps and of bands in
// each. With times nil they are the bands themselves.
func PickPlanes(bands, times []int, steps, stepBands int) PickedBands {
	if times == nil {
		return PickedBands{Picked: bands}
	}
	picked := PickedBands{TimeSteps: len(times), StepBands: stepBands, Picked: make([]int, 0,
		len(times)*len(bands))}
	some := min(slices.Min(times), steps-1)
	for i, t := range times {
		if t >= steps {
			picked.Lacking, t = append(picked.Lacking, i), some
		}
		for _, b := range bands {
			picked.Picked = append(picked.Picked, t*stepBands+b)
		}
	}
	return picked
}

// PlaceBands computes from Picked where the planes of the file go, so Put does not search all planes
// for every chunk. The caller calls it again whenever Picked changes.
func (r *PickedBands) PlaceBands() {
	r.at, r.spans = make(map[int][]int, len(r.Picked)), nil
	for i, plane := range r.Picked {
		j := r.plane(i)
		r.at[plane] = append(r.at[plane], j)
		step, band := j/r.bands(), j%r.bands()
		// One span is one call of Scatter, so joining contiguous bands avoids a call for each.
		if k := len(r.spans) - 1; k >= 0 && band > 0 && plane == r.spans[k].from+r.spans[k].n &&
			band == r.spans[k].to+r.spans[k].n && (r.StepBands == 0 || plane%r.StepBands > 0) {
			r.spans[k].n++
			continue
		}
		r.spans = append(r.spans, bandSpan{plane, step, band, 1})
	}
}
