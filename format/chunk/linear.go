package chunk

import (
	"math"
	"slices"
)

// Linear says that the physical value of a sample is sample*Scale + Offset.
type Linear struct{ Scale, Offset float64 }

// Linears returns the Index.Physical of an image whose bands have these: nil if all keep the samples or a number is not
// finite, one entry if all are equal.
func Linears(bands []Linear) []Linear {
	finite := func(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }
	if slices.ContainsFunc(bands, func(l Linear) bool { return !finite(l.Scale) || !finite(l.Offset) }) {
		return nil
	}
	if len(bands) == 0 || slices.ContainsFunc(bands, func(l Linear) bool { return l != bands[0] }) {
		return bands
	}
	if bands[0] == (Linear{Scale: 1}) {
		return nil
	}
	return bands[:1]
}

// linear reports whether Physical has a number of entries that fits, in the shortest form.
func (x *Index) linear() bool {
	n := len(x.Physical)
	return (n == 1 || n == x.StepBands()) && len(Linears(x.Physical)) == n
}

// Linear returns what makes physical values of the samples of a plane.
func (x *Index) Linear(plane int) Linear {
	switch len(x.Physical) {
	case 0:
		return Linear{Scale: 1}
	case 1:
		return x.Physical[0]
	}
	return x.Physical[plane%x.StepBands()]
}
