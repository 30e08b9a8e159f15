package pixels

import (
	"context"
	"encoding/binary"
	"math"

	"github.com/chaski-eo/chaski/einops"
	"github.com/chaski-eo/chaski/einops/pattern"
	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/internal/cast"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/shuffle"
	"github.com/chaski-eo/chaski/store/catalog"
)

// planes is the layout of samples that are resampled: one plane of rows and columns for each band. This pattern parses.
var planes, _ = pattern.Parse("n b y x")

// seriesOfPlanes is the same for steps of time.
var seriesOfPlanes, _ = pattern.Parse("n t b y x")

// Resampler holds a window before and after it is resampled. It serves one worker.
type Resampler struct {
	In, Out           []byte    // samples by band, row and column, in the field's native dtype or float32
	InValid, OutValid []byte    // one byte for each sample: 1 valid, 0 missing (nodata, masked, padding)
	y, x              []sideTap // of each row and each column of Out
	places, picks     []uint32  // see pickAll; picks are the nearest samples of Resample, too
	picksValid        []byte    // the validity of picks, which 0 says too
	next, nextValid   []byte    // of a mosaic: a plane of the next scene
	scenes            blend     // of a mosaic of all scenes
	Smooth            Smoother
}

// sideTap says which of the m samples on a side make one of the n resampled samples.
type sideTap struct {
	a, b   int     // the two neighbours for bilinear; equal at the edge
	near   int     // the nearest sample
	weight float32 // of b, from 0 to below 1; a has the rest
}

// taps fills t with the taps that make n samples of m. The arithmetic is in whole numbers, so
// every machine picks the same samples. See docs/order.md, Resampling.
func taps(t []sideTap, m, n int) []sideTap {
	t = t[:0]
	for i := range n {
		num, den := (2*i+1)*m-n, 2*n
		pos := num / den
		// Go rounds towards 0, and this needs the floor; num > -den, since m is at least 1.
		if num < 0 {
			pos = -1
		}
		rest := num - pos*den
		t = append(t, sideTap{
			a: min(max(pos, 0), m-1), b: min(max(pos+1, 0), m-1), near: min((2*i+1)*m/den, m-1),
			weight: float32(rest) / float32(den),
		})
	}
	return t
}

// setResample chooses how windows are resampled to the tensor's size, and the casts before and after. It
// fails with kind unsupported if the field asks for a way that its dtypes rule out.
func (r *Raster) setResample() error {
	real := r.Native.Components() == 1
	blends := isFloat(r.To) && r.LUT == nil // numbers in between mean nothing to a table
	r.smooths = real && blends && r.Resample == spec.Antialias
	bilinear := r.Resample == spec.Bilinear || r.Resample == "" && blends && !r.palette
	r.Blends = r.smooths || real && bilinear
	switch {
	case r.Resample == spec.Bilinear && !r.Blends:
		return fault.New(fault.Unsupported, "resample", "bilinear of %s", r.Native)
	case r.Resample == spec.Antialias && !r.smooths:
		return fault.New(fault.Unsupported, "resample",
			"antialias of %s to %s: only to float32, float16 and bfloat16", r.Native, r.To)
	}
	// The nearest sample is copied as stored, because a label's bits must not change. Values in between
	// need floats; scale, offset and clip come after them.
	r.raw.Base = einops.Convert{From: r.Native, To: r.Native}
	r.raw.Nodata, r.raw.Said, r.raw.NaN = r.Final.Nodata, r.Final.Said, r.Final.NaN
	if r.into != nil && len(r.raw.Said) > 1 { // the bands of the part
		r.raw.Said = nil
		for _, band := range r.inStack {
			r.raw.Said = append(r.raw.Said, r.Final.Said[band])
		}
	}
	if !r.Blends && !r.IsPhysical() {
		return nil
	}
	// Files may have other scales, so physical values are what samples of several have in common.
	r.raw.Base.To, r.raw.Physical = chunk.Float32, r.IsPhysical()
	convert := r.Final.Base
	convert.From = chunk.Float32
	var err error
	r.blended, err = einops.NewConverter(convert)
	if !isFloat(r.To) && (err != nil || r.Blends && r.To == chunk.Int64) { // which has no numbers in between
		return fault.New(fault.Unsupported, "resample", "%s makes float32 of %s, and dtype says %s: choose dtype "+
			"float32 or resample nearest", r.Resample, r.Native, r.To)
	}
	return err
}

// Resampled reads window win of asset a, resamples it to the tensor's size and writes it to a row of the
// tensor. It holds as many bands at a time as fit into limit bytes, and fails with kind limit if one
// does not. Its errors name the asset's file, except for errors of a plan.
func (r *Reader) Resampled(ctx context.Context, a catalog.Asset, win shuffle.Box, to *Row, limit int) error {
	field := to.Field
	return r.inGroups(ctx, a, to.picked().Picked, win, field, limit, func(first, n, size int) error {
		if field.smooths {
			if first == 0 {
				if err := r.Resample.Smooth.Prepare(win.H, win.W, field.H, field.W, int64(limit)); err != nil {
					return a.Fault(err)
				}
			}
			r.Resample.Antialias(n, win.H, win.W, field)
		} else {
			r.Resample.Resample(n, win.H, win.W, field, size)
		}
		to.putPlanes(first, n, &r.Resample, size)
		return nil
	})
}

// inGroups reads window win of bands of asset a to resample for field f into r.Resample, as many bands at a time as fit
// into limit bytes. It calls do for each group, with the place of its first band, how many it has, and the size of a
// sample in bytes. It fails with kind limit if not even one band fits.
func (r *Reader) inGroups(ctx context.Context, a catalog.Asset, bands []int, win shuffle.Box, f *Raster, limit int,
	do func(first, n, size int) error) error {
	if a.Index.Classes && f.Blends && f.Resample == "" {
		return a.Fault(fault.New(fault.Unsupported, "palette", "its pixels are classes, and other rasters of field %q "+
			"have none: give the field a resample, or a dtype of integers", f.Name))
	}
	size, most := f.resampledAtOnce(win, limit)
	if most == 0 {
		return a.Fault(fault.New(fault.Limit, "window",
			"%d by %d pixels to resample are over %d bytes", win.H, win.W, limit))
	}
	for first := 0; first < len(bands); first += most {
		group := bands[first:min(first+most, len(bands))]
		if err := r.Planes(ctx, a, group, win, f.raw.Of(first, len(group)), size); err != nil {
			return err
		}
		if err := do(first, len(group), size); err != nil {
			return err
		}
	}
	return nil
}

// Planes reads window win of some bands of asset a into In and InValid of r.Resample, one plane of rows and columns
// after the other, as samples of size bytes that c casts.
func (r *Reader) Planes(ctx context.Context, a catalog.Asset, bands []int, win shuffle.Box, c *Converters,
	size int) error {
	field := &Raster{H: win.H, W: win.W}
	field.Picked, field.StepBands = bands, a.Index.StepBands()
	field.PlaceBands()
	convert, err := c.Get(a.Index, &field.PickedBands)
	if err != nil {
		return a.Fault(err)
	}
	plan, err := planes.Plan(field.Axes(1), nil)
	if err != nil {
		return err
	}
	s := &r.Resample
	s.In, s.InValid = Grown(s.In, plan.Len()*size), Grown(s.InValid, plan.Len())
	row := &Row{Field: field, Plan: plan, Dst: einops.Target{Data: s.In, Mask: s.InValid}, Cv: convert, Win: win}
	in := Inside(win, a.Index.Height, a.Index.Width)
	row.Pad(in) // s.In still holds an earlier window
	return r.Read(ctx, a, in, bands, row, row.Masked(c, in))
}

// rawSize returns the size in bytes of a sample that is resampled.
func (r *Raster) rawSize() int { return r.raw.Base.To.Size() }

// resampledAtOnce returns the size in bytes of a sample that is resampled, and how many bands of window
// win fit into limit bytes at a time: 0 if not even one fits.
func (r *Raster) resampledAtOnce(win shuffle.Box, limit int) (size, bands int) {
	size = r.rawSize()
	// One byte more for each sample, for InValid.
	single := BoundedBytes(int64(limit), win.H, win.W, size+1)
	if single < 0 {
		return size, 0
	}
	return size, min(len(r.Picked), max(1, int(int64(limit)/max(single, 1))))
}

// ResampledBytes returns how many bytes of memory a worker needs to resample window win, if it holds at
// most limit bytes of its samples at a time.
func (r *Raster) ResampledBytes(win shuffle.Box, limit int) int64 {
	size, bands := r.resampledAtOnce(win, limit)
	total := int64(bands) * int64(size+1) * (int64(win.H)*int64(win.W) + int64(r.H)*int64(r.W))
	if r.smooths {
		total += smootherBytes(win.H, win.W, r.H, r.W)
	}
	if !r.Blends {
		total += 4 * int64(r.H) * int64(r.W) // of picks
	}
	return total
}

// Grown returns n bytes, in the memory of b if that has room. Their content is arbitrary.
func Grown(b []byte, n int) []byte {
	if cap(b) < n {
		// The memory is aligned, so cast.Of can view the bytes as float32.
		return cast.Aligned(n)
	}
	return b[:n]
}

// Resample fills Out and OutValid from In and InValid, which have some planes of height by width samples: bilinear if
// to.Blends, otherwise with the nearest samples. to has the size of the tensor. size is the size of a sample, in bytes.
func (s *Resampler) Resample(planes, height, width int, to *Raster, size int) {
	s.y, s.x = taps(s.y, height, to.H), taps(s.x, width, to.W)
	n := planes * to.H * to.W
	s.Out, s.OutValid = Grown(s.Out, n*size), Grown(s.OutValid, n)
	if to.Blends {
		pos := 0
		samples, _ := floats(s.In)
		out, done := floats(s.Out)
		for p := range planes {
			for _, tap := range s.y {
				s.blendRow(out[pos:pos+to.W], s.OutValid[pos:pos+to.W], samples, p*height*width, width, &tap)
				pos += to.W
			}
		}
		done()
		return
	}
	s.picks = s.picks[:0]
	for _, y := range s.y {
		for _, x := range s.x {
			s.picks = append(s.picks, uint32(y.near*width+x.near+1))
		}
	}
	before, after := height*width, len(s.picks) // samples of a plane
	for p := range planes {
		s.gather(s.Out[p*after*size:][:after*size], s.In[p*before*size:][:before*size], size)
		s.gather(s.OutValid[p*after:][:after], s.InValid[p*before:][:before], 1)
	}
}

// gather fills out with the samples of in that picks name, 0 where they name none. A sample has size bytes.
func (s *Resampler) gather(out, in []byte, size int) {
	done := false
	switch size {
	case 1:
		pickNumbers(out, in, s.picks)
		done = true
	case 2:
		done = pickAligned[uint16](out, in, s.picks)
	case 4:
		done = pickAligned[uint32](out, in, s.picks)
	case 8:
		done = pickAligned[uint64](out, in, s.picks)
	}
	if done {
		return
	}
	for i, pos := range s.picks {
		if pos == 0 {
			clear(out[i*size:][:size])
		} else {
			copy(out[i*size:][:size], in[(int(pos)-1)*size:])
		}
	}
}

// pickAligned is pickNumbers of numbers in bytes, if both are aligned. It reports whether they are.
func pickAligned[T cast.Number](out, in []byte, picks []uint32) (aligned bool) {
	target, first := cast.Of[T](out)
	source, second := cast.Of[T](in)
	if first && second {
		pickNumbers(target, source, picks)
	}
	return first && second
}

// pickNumbers fills out with the numbers of in that picks name: 0 for none, else one more than their place.
func pickNumbers[T cast.Number](out, in []T, picks []uint32) {
	out = out[:len(picks)]
	for i, pos := range picks {
		var sample T
		if pos != 0 {
			sample = in[pos-1]
		}
		out[i] = sample
	}
}

// floats returns the float32 samples in some bytes. The caller calls done when it has changed them: without package
// unsafe (see internal/cast) they are a copy, which done writes back.
func floats(b []byte) (samples []float32, done func()) {
	samples, seen := cast.Of[float32](b)
	if seen {
		return samples, func() {}
	}
	samples = cast.Values[float32](b)
	return samples, func() {
		for i, v := range samples {
			binary.LittleEndian.PutUint32(b[4*i:], math.Float32bits(v))
		}
	}
}

// blendRow calls blend for each sample of one row of the result, or does the same faster where no
// neighbour is missing. samples has the samples of s.In, plane is where the band begins in them, and w is the
// width of the window.
func (s *Resampler) blendRow(out []float32, valid []byte, samples []float32, plane, w int, y *sideTap) {
	above, below := samples[plane+y.a*w:][:w], samples[plane+y.b*w:][:w]
	validAbove, validBelow := s.InValid[plane+y.a*w:][:w], s.InValid[plane+y.b*w:][:w]
	near := plane + y.near*w
	for i := range s.x {
		tap := &s.x[i]
		valid[i] = s.InValid[near+tap.near]
		// Each is 0 or 1: this is 0 if one is missing.
		if validAbove[tap.a]&validAbove[tap.b]&validBelow[tap.a]&validBelow[tap.b] == 0 {
			out[i] = s.blend(plane, w, near+tap.near, y, tap)
			continue
		}
		top := between(above[tap.a], above[tap.b], tap.weight)
		bottom := between(below[tap.a], below[tap.b], tap.weight)
		out[i] = between(top, bottom, y.weight)
	}
}

// blend returns the bilinear value of four samples. The nearest sample, at index near, stands in for
// missing ones, so nodata neither bleeds into results nor removes the pixels beside it. If the
// nearest one is missing too, the result is its value, which is masked afterwards.
func (s *Resampler) blend(plane, w, near int, y, x *sideTap) float32 {
	nearest := s.Float(near)
	if s.InValid[near] == 0 {
		return nearest
	}
	pixel := func(row, col int) float32 {
		i := plane + row*w + col
		if s.InValid[i] == 0 {
			return nearest
		}
		return s.Float(i)
	}
	top := between(pixel(y.a, x.a), pixel(y.a, x.b), x.weight)
	bottom := between(pixel(y.b, x.a), pixel(y.b, x.b), x.weight)
	return between(top, bottom, y.weight)
}

// Float returns sample i of In, which must be float32.
func (s *Resampler) Float(i int) float32 {
	return math.Float32frombits(binary.LittleEndian.Uint32(s.In[4*i:]))
}

// between returns a + w(b-a), with each operation rounded to float32, or a if w is 0 or both are equal.
func between(a, b, w float32) float32 {
	// Otherwise 0 times an infinite difference, or inf - inf, would give NaN.
	if w == 0 || a == b {
		return a
	}
	// The conversions prevent a fused multiply-add, which rounds once and not on every machine.
	return float32(a + float32(w*float32(b-a)))
}

// putPlanes writes the resampled samples s.Out to planes first to first+planes-1 of the row, and masks those
// that are missing.
func (r *Row) putPlanes(first, planes int, s *Resampler, size int) {
	field := r.Field
	blk := einops.Block{DType: field.Native, StrideB: field.H * field.W, StrideY: field.W, StrideX: 1}
	convert := r.Cv
	if field.blended != nil {
		blk.DType, convert = chunk.Float32, field.blended
	}
	target := r.turnBox(&blk, einops.Box{N: r.N, Y1: field.H, X1: field.W})
	for plane := 0; plane < planes; plane += target.B1 - target.B0 { // the planes of one step at a time
		j := field.plane(first + plane)
		target.T, target.B0 = r.step(j/field.bands()), j%field.bands()
		target.B1 = min(target.B0+planes-plane, field.bands())
		if field.into != nil { // the bands of a part of a stack need not follow each other
			target.B1 = target.B0 + 1
		}
		blk.Data = s.Out[plane*field.H*field.W*size:]
		r.scatter(convert, target, blk)
	}
	if !field.Final.Nodata {
		return
	}
	// Missing samples are masked after the cast, because a resampled value need not equal the nodata
	// value that the cast looks for.
	for p := range planes {
		band := field.plane(first + p)
		for y := range field.H {
			line := s.OutValid[(p*field.H+y)*field.W:][:field.W]
			for pos := 0; ; {
				start, end := zeros(line, pos)
				if start == len(line) {
					break
				}
				hole := r.turnBox(nil, einops.Box{N: r.N, Y0: y, Y1: y + 1, X0: start, X1: end})
				hole.T, hole.B0 = r.step(band/field.bands()), band%field.bands()
				hole.B1 = hole.B0 + 1
				r.maskBox(convert, hole)
				pos = end
			}
		}
	}
}
