package chunk

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/kernel"
)

// MaxNoData bounds the nodata values of one band, since each sample is compared with all of them.
const MaxNoData = 16

// HasNoData reports whether some samples are nodata by their value.
func (x *Index) HasNoData() bool {
	return x.NoData != nil || x.NoDataBits != nil || x.BandNoData != nil
}

// OneNoData reports whether NoData, or NoDataBits, is the one nodata value of all bands but alpha, or none has any.
func (x *Index) OneNoData() bool {
	common := x.ownNoData()
	for band := range x.DataBands() {
		if x.BandNoData != nil && !sameValues(x.NoDataOf(band), common) {
			return false
		}
	}
	return true
}

// NoDataOf returns the nodata values of a band of a step of time.
func (x *Index) NoDataOf(band int) []float64 {
	switch len(x.BandNoData) {
	case 0:
		return x.ownNoData()
	case 1:
		return x.BandNoData[0]
	}
	return x.BandNoData[band]
}

// ownNoData returns NoData or NoDataBits as a list, rounded to float64.
func (x *Index) ownNoData() []float64 {
	switch {
	case x.NoDataBits != nil && x.DType == Int64:
		return []float64{float64(int64(*x.NoDataBits))}
	case x.NoDataBits != nil:
		return []float64{float64(*x.NoDataBits)}
	case x.NoData != nil:
		return []float64{*x.NoData}
	}
	return nil
}

// NoData is a nodata value as Index.NoData and Index.NoDataBits have it.
type NoData struct {
	Value *float64
	Bits  *uint64
}

// number returns the value for samples of a type, rounded to float64, and whether it was exact.
func (n NoData) number(t DType) (v float64, exact bool) {
	v = (&Index{DType: t, NoData: n.Value, NoDataBits: n.Bits}).ownNoData()[0]
	return v, n.Bits == nil || math.Abs(v) < 1<<53
}

// Is reports whether two values are one.
func (n NoData) Is(o NoData) bool {
	same := func(a, b float64) bool { return a == b || a != a && b != b }
	return (n.Bits == nil) == (o.Bits == nil) && (n.Bits == nil || *n.Bits == *o.Bits) &&
		(n.Value == nil) == (o.Value == nil) && (n.Value == nil || same(*n.Value, *o.Value))
}

// SetEachNoData sets the nodata values of each band of a step of time, or of all bands if there is one list. Integers
// of 64 bits that a float64 does not hold are fault.Unsupported where one value is not enough.
func (x *Index) SetEachNoData(bands [][]NoData) error {
	single := len(bands[0]) < 2
	for _, list := range bands {
		single = single && slices.EqualFunc(list, bands[0], NoData.Is)
	}
	if single {
		if x.SetNoData(nil); len(bands[0]) > 0 {
			x.NoData, x.NoDataBits = bands[0][0].Value, bands[0][0].Bits
		}
		return nil
	}
	lists := make([][]float64, len(bands))
	for band, list := range bands {
		for _, value := range list {
			v, exact := value.number(x.DType)
			if !exact {
				return fault.New(fault.Unsupported, "nodata", "several values, of which one is over 2^53: "+
					"Field(nodata=...) says what is missing")
			}
			lists[band] = append(lists[band], v)
		}
	}
	x.SetNoData(lists)
	return nil
}

// SetNoData sets the nodata values of each band of a step of time, or of all if there is one list. If all bands have
// the same one, that is NoData, or NoDataBits where integers of 64 bits need it. Otherwise NoData is the first value of
// the first band.
func (x *Index) SetNoData(bands [][]float64) {
	x.NoData, x.NoDataBits, x.BandNoData = nil, nil, nil
	if len(bands) == 0 {
		return
	}
	if first := bands[0]; len(first) > 0 {
		value := first[0]
		x.NoData = &value
	}
	differs := func(values []float64) bool { return !sameValues(values, bands[0]) }
	switch {
	case slices.ContainsFunc(bands, differs):
		x.BandNoData = bands
	case len(bands[0]) > 1:
		x.BandNoData = bands[:1]
	}
}

// sameValues reports whether two lists have the same numbers. NaN is one of them.
func sameValues(a, b []float64) bool {
	return slices.EqualFunc(a, b, func(a, b float64) bool { return a == b || a != a && b != b })
}

// bandNoDataFits reports whether BandNoData has a number of lists that fits, in the form that SetNoData makes.
func (x *Index) bandNoDataFits() bool {
	lists := x.BandNoData
	if len(lists) != 1 && len(lists) != x.StepBands() ||
		slices.ContainsFunc(lists, func(values []float64) bool { return len(values) > MaxNoData }) {
		return false
	}
	made := *x
	made.SetNoData(lists)
	return len(made.BandNoData) == len(lists)
}

// Masking returns the image whose samples are 0 in pixels without data: the mask or, behind a nodata value as in GDAL,
// x itself, whose last band is alpha. It is nil if there is neither.
func (x *Index) Masking() *Index {
	if x.Mask == nil && x.Alpha && x.NoData == nil && x.NoDataBits == nil {
		return x
	}
	return x.Mask
}

// Missing returns the nodata value of the pixels that hold no data, as NoData and NoDataBits are. It is nil where a
// mask says which they are, which counts alone, as in GDAL.
func (x *Index) Missing() (value *float64, bits *uint64) {
	if x.Mask != nil {
		return nil, nil
	}
	return x.NoData, x.NoDataBits
}

// fillSparse writes nodata, or 0, to every sample of dst.
func fillSparse(dst []byte, x *Index) {
	clear(dst)
	var sample [16]byte
	if n := x.nodataSample(&sample); n > 0 {
		kernel.Fill(dst[:len(dst)/n*n], sample[:n])
	}
}

// NoDataSample returns the nodata value as one little-endian sample, or nil.
func (x *Index) NoDataSample() []byte {
	var sample [16]byte
	if n := x.nodataSample(&sample); n > 0 {
		return sample[:n:n]
	}
	return nil
}

// nodataSample writes the nodata value as one little-endian sample and returns its size, or 0 if
// x has no nodata or all its bytes are zero.
func (x *Index) nodataSample(s *[16]byte) int {
	if x.NoData == nil && x.NoDataBits == nil {
		return 0
	}
	size := x.DType.Size()
	if x.NoDataBits != nil && size == 8 {
		binary.LittleEndian.PutUint64(s[:], *x.NoDataBits)
		return size
	}
	if x.NoData == nil {
		return 0
	}
	x.DType.PutNumber(s[:size], *x.NoData)
	return size
}

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
