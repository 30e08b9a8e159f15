package pixels

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"github.com/chaski-eo/chaski/einops"
	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/internal/cast"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/shuffle"
)

// NewRaster compiles field f, whose assets are in the given column of the table, from the index x of its
// first asset. It fails with fault.NotFound if the asset lacks a band, and with fault.Unsupported if the field cannot
// be resampled as asked. Ratio, H, W and Steps are left to the caller.
func NewRaster(f spec.Field, column int, x *chunk.Index) (*Raster, error) {
	if f.LUT.OfColours() {
		return newColoured(f, column, x)
	}
	return newRaster(f, column, x)
}

// newColoured is NewRaster of a field whose look-up table has colours or masks: the raster has the bands as they are
// stored, and the tensor, a raster of one band, the numbers of the colours in the table, or of the bands from 1.
func newColoured(f spec.Field, column int, x *chunk.Index) (*Raster, error) {
	stored, table := f, f
	stored.LUT, stored.Normalize, stored.Fill, stored.Clip, stored.DType = nil, nil, nil, false, "native"
	r, err := newRaster(stored, column, x)
	if err != nil {
		return nil, err
	}
	colours, wrong := f.LUT.Colours, ""
	if f.LUT.Masks {
		table.LUT = &spec.LUT{Masks: true}
		for number := range len(r.bandList) + 1 {
			table.LUT.To = append(table.LUT.To, spec.Values{float64(number)})
		}
	} else {
		r.codes = make(map[uint64]uint16, len(colours))
	}
	if err := r.holdsColours(x.DType); err != nil {
		return nil, err
	}
	switch {
	case !f.LUT.Masks && len(r.bandList) != len(colours[0]):
		wrong = fmt.Sprintf("its colours have %d numbers, and the field has %d bands: pick as many", len(colours[0]),
			len(r.bandList))
	case r.TimeSteps > 1:
		wrong = "the raster has several steps of time: pick one"
	}
	if wrong != "" {
		return nil, fault.New(fault.Unsupported, "look-up table", "%s", wrong)
	}
	r.Final.Nodata, r.raw.Nodata = true, true // a missing pixel has no colour
	for code, colour := range colours {
		key := uint64(0)
		for _, number := range colour {
			key = key<<16 | uint64(number)
		}
		r.codes[key] = uint16(code)
	}
	table.Bands, table.BandNames, table.Times, table.NoData = nil, nil, nil, nil
	if r.keepsDType = table.DType == "native"; r.keepsDType {
		table.DType = x.DType.String()
	}
	if r.coded, err = newRaster(table, column, &chunk.Index{DType: chunk.Uint16, Bands: 1}); err != nil {
		return nil, err
	}
	r.coded.TimeAxis = r.TimeAxis
	return r, r.coded.setLayout()
}

// Coloured reports whether the raster's bands are colours, which become the numbers of a look-up table.
func (r *Raster) Coloured() bool { return r.coded != nil }

// Tensor returns the raster as the tensor has it: the numbers of its colours, or the raster itself.
func (r *Raster) Tensor() *Raster {
	if r.coded == nil {
		return r
	}
	out := *r.coded
	out.H, out.W, out.Steps, out.TimeAxis = r.H, r.W, r.Steps, r.TimeAxis
	if r.Views > 0 {
		out.Views, out.LayoutPattern, out.Sizes = r.Views, r.LayoutPattern, r.Sizes
	}
	return &out
}

// ColourBytes returns how many bytes of memory a worker needs to make numbers of the raster's colours or masks.
func (r *Raster) ColourBytes() int64 {
	if r.coded == nil {
		return 0
	}
	each := len(r.Picked)*(r.Native.Size()+1) + len(r.coded.Picked)*3 // 3: a uint16 and its validity
	return int64(each) * int64(r.H) * int64(r.W)
}

// PlanPlanes returns the plan of one row of some bands, of each step of time, as planes of a height and width.
func PlanPlanes(p *PickedBands, height, width int) (*einops.Plan, error) {
	whole := &Raster{H: height, W: width, axes: axes{TimeAxis: p.TimeSteps > 0}}
	whole.Picked, whole.TimeSteps = p.Picked, p.TimeSteps
	if whole.TimeAxis {
		return seriesOfPlanes.Plan(whole.Axes(1), nil)
	}
	return planes.Plan(whole.Axes(1), nil)
}

// Coloured calls read with a row of the bands of field f as they are stored, and writes what their colours stand for
// to row to. x is the index of the asset. For other fields it calls read with to and c, the casts of the field.
func (r *Reader) Coloured(f *Raster, x *chunk.Index, to *Row, c *Converters,
	read func(to *Row, c *Converters) error) error {
	if f.coded == nil {
		return read(to, c)
	}
	convert, err := f.Final.Get(x, &f.PickedBands)
	if err != nil {
		return err
	}
	plan, err := PlanPlanes(&PickedBands{Picked: f.Picked}, f.H, f.W)
	if err != nil {
		return err
	}
	r.colours = Grown(r.colours, plan.Len()*(f.Native.Size()+1))
	split := plan.Len() * f.Native.Size()
	dst := einops.Target{Data: r.colours[:split], Mask: r.colours[split:]}
	if err := read(&Row{Field: f, Plan: plan, Dst: dst, Cv: convert, Win: to.Win}, f.Final); err != nil {
		return err
	}
	code := r.Resample.code
	if f.codes == nil {
		code = r.Resample.number
	}
	if err := code(f, dst); err != nil {
		return err
	}
	// The codes are of the size of the tensor, also where the window of the asset was resampled.
	made := *to
	made.Win = shuffle.Box{H: f.H, W: f.W}
	made.putPlanes(0, len(made.Field.Picked), &r.Resample, 2)
	return nil
}

// code fills Out with the numbers of the colours of a window of field f, and OutValid with which pixels have one. A
// colour that has no number is fault.Unsupported, unless the field has a fill.
func (s *Resampler) code(f *Raster, from einops.Target) error {
	plane, bands, size := f.H*f.W, len(f.coded.Picked), f.Native.Size()
	s.Out, s.OutValid = Grown(s.Out, 2*plane*bands), Grown(s.OutValid, plane*bands)
	unknown, first := 0, 0
	numberOf := func(key uint64) uint16 {
		if number, known := f.codes[key]; known {
			return number
		}
		return uint16(len(f.codes)) // which has no value
	}
	last, code := uint64(0), numberOf(0) // pixels beside each other mostly have one colour
	for i := range plane {
		key, valid := uint64(0), byte(0)
		for pos := i; pos < len(from.Mask); pos += plane {
			key, valid = key<<16|uint64(numberAt(from.Data, size, pos)), valid|from.Mask[pos]
		}
		if key != last {
			last, code = key, numberOf(key)
		}
		if int(code) == len(f.codes) && valid != 0 {
			if unknown++; unknown == 1 {
				first = i
			}
		}
		binary.LittleEndian.PutUint16(s.Out[2*i:], code)
		s.OutValid[i] = valid
	}
	for band := 1; band < bands; band++ {
		copy(s.Out[2*plane*band:], s.Out[:2*plane])
		copy(s.OutValid[plane*band:], s.OutValid[:plane])
	}
	if unknown == 0 || f.coded.Fill != nil {
		return nil
	}
	var colour []string
	for pos := first; pos < len(from.Mask); pos += plane {
		colour = append(colour, fmt.Sprint(numberAt(from.Data, size, pos)))
	}
	return fault.New(fault.Unsupported, "pixels",
		"%d pixels of the window have colours without a value in lut, the first (%s) at row %d, column %d: give them "+
			"values, or the field a fill", unknown, strings.Join(colour, ", "), first/f.W, first%f.W)
}

// number fills Out with the number of the last band, or raster of a stack, from 1, in which each pixel of a window of
// field f is not 0, or 0, and OutValid with which pixels are valid in a band. A band with two numbers besides 0 is
// fault.Unsupported.
func (s *Resampler) number(f *Raster, from einops.Target) error {
	plane, size := f.H*f.W, f.Native.Size()
	s.Out, s.OutValid = Grown(s.Out, 2*plane), Grown(s.OutValid, plane)
	clear(s.Out)
	clear(s.OutValid)
	said := f.Parts != nil || f.Dims != "" || f.Bands != nil || f.BandNames != nil // that bands are masks
	if grey := from.Data[:plane*size]; !said && len(from.Mask) == 3*plane && !isZero(grey) &&
		bytes.Equal(grey, from.Data[plane*size:][:plane*size]) && bytes.Equal(grey, from.Data[2*plane*size:]) {
		return fault.New(fault.Unsupported, "pixels", "its three bands are equal, as of a picture in grey, and each "+
			"would be the mask of a class: bands=[0] picks one, and bands=[0, 1, 2] says that each is one")
	}
	negativeZero := uint64(0) // which is 0, too
	if f.Native.Num().IsFloat() {
		negativeZero = 1 << (8*size - 1)
	}
	for band := range len(from.Mask) / plane {
		class, first := uint16(band+1), uint64(0) // the number of the band's pixels that are not 0
		for k, part := range f.Parts {
			if part != nil && slices.Contains(part.inStack, band) {
				class = uint16(k + 1)
			}
		}
		for i := range plane {
			pos := band*plane + i
			if from.Mask[pos] == 0 {
				continue
			}
			s.OutValid[i] = 1
			value := cast.Uint(from.Data[pos*size:], size)
			if value == 0 || value == negativeZero {
				continue
			}
			if first == 0 {
				first = value
			}
			if value != first {
				return fault.New(fault.Unsupported, "pixels", "band %d has two numbers besides 0, the second at "+
					"row %d, column %d: a mask of a class has one", band, i/f.W, i%f.W)
			}
			binary.LittleEndian.PutUint16(s.Out[2*i:], class)
		}
	}
	return nil
}

// isZero reports whether all bytes are 0.
func isZero(b []byte) bool { return !slices.ContainsFunc(b, func(c byte) bool { return c != 0 }) }

// numberAt returns sample i of samples of 1 or 2 bytes.
func numberAt(data []byte, size, i int) uint16 {
	if size == 2 {
		return binary.LittleEndian.Uint16(data[2*i:])
	}
	return uint16(data[i])
}
