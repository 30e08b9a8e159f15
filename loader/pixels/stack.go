package pixels

import (
	"context"
	"math"
	"slices"
	"sync"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/internal/cast"
	"github.com/chaski-eo/chaski/internal/crs"
	"github.com/chaski-eo/chaski/internal/crs/warp"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/shuffle"
	"github.com/chaski-eo/chaski/store/catalog"
)

// CompileParts compiles the parts of a stack from the field's first asset. It does nothing for other assets. It fails
// with kind unsupported if the dtypes of the parts do not suit the field.
func (r *Raster) CompileParts(a *catalog.Asset) error {
	first := 0
	for part := range a.Parts {
		index := a.Parts[part].Index
		if r.DType == "native" && index.DType != r.Native {
			way := "give the field a dtype"
			if r.coded != nil {
				way = "masks of one map have one dtype"
			}
			return a.Parts[part].Fault(fault.New(fault.Unsupported, "asset",
				"dtype %s; the first raster of field %q has %s: %s", index.DType, r.Name, r.Native, way))
		}
		field := &Raster{Field: r.Field, TableColumn: r.TableColumn, Native: index.DType, To: r.To,
			palette: index.Classes, variants: new(variants), keepsDType: r.keepsDType,
			casts: casts{Final: &Converters{}, Wire: &Converters{}, raw: &Converters{}}}
		n := index.DataBands()
		field.allBands, field.allTimes, field.timeList = n, r.allTimes, r.timeList
		field.all = len(r.bandList)
		for j, b := range r.bandList {
			if b >= first && b < first+n {
				field.bandList, field.inStack = append(field.bandList, b-first), append(field.inStack, j)
			}
		}
		first += n
		if len(field.bandList) == 0 {
			r.Parts = append(r.Parts, nil)
			continue
		}
		field.PickedBands = field.planesIn(field.bandList, index)
		field.PlaceBands()
		err := field.setArithmetic()
		field.Final.Nodata = field.Final.Nodata || r.coded != nil // a missing pixel is in no mask
		field.raw.Nodata = field.raw.Nodata || r.coded != nil
		if err == nil {
			_, err = field.Final.Get(index, &field.PickedBands)
		}
		if err != nil {
			return a.Parts[part].Fault(err)
		}
		field.Expect(&a.Parts[part])
		field.Partial = new(sync.Once)
		r.Parts = append(r.Parts, field)
	}
	return nil
}

// SetSize sets the size of the tensor.
func (r *Raster) SetSize(height, width int) {
	r.H, r.W = height, width
	for _, p := range r.Parts {
		if p != nil {
			p.H, p.W = height, width
		}
	}
}

// Sized returns the field for windows of another size.
func (r *Raster) Sized(height, width int) *Raster {
	out := *r
	out.variants = new(variants)
	out.Parts = slices.Clone(r.Parts)
	for i, p := range out.Parts {
		if p != nil {
			part := *p
			part.variants = new(variants) // which have the size, too
			out.Parts[i] = &part
		}
	}
	out.SetSize(height, width)
	return &out
}

// CopiesParts reports whether all parts of a stack, wherever they lie, keep their samples as stored. It is true for
// other fields.
func (r *Raster) CopiesParts() bool {
	for _, p := range r.Parts {
		if p != nil && (p.blended != nil || p.Native != r.Native) {
			return false
		}
	}
	return true
}

// Lay says how the pixels of a part lie among the pixels of its stack.
type Lay struct {
	// Same: pixel (0, 0) of the stack is pixel (Y, X) of the part, and the grids are equal. Otherwise pixels are
	// resampled.
	Same bool
	Y, X int

	stack, part warp.Raster
	low, high   crs.Point // the corners of the box around the part, in pixels of the stack
}

// Share returns which share of the stack the box around the part covers: 1 if it lacks at most half a pixel of the
// coarser of the two at each side.
func (l *Lay) Share() float64 {
	share := 1.0
	for axis, sides := range [...][2]int{{l.stack.Width, l.part.Width}, {l.stack.Height, l.part.Height}} {
		size, pixel := float64(sides[0]), max(1, (l.high[axis]-l.low[axis])/float64(sides[1]))
		if l.low[axis] > catalog.GroundTolerance*pixel || l.high[axis] < size-catalog.GroundTolerance*pixel {
			share *= (min(l.high[axis], size) - max(l.low[axis], 0)) / size
		}
	}
	return share
}

// Whole reports whether the part has the grid and the size of the stack.
func (l *Lay) Whole() bool {
	sameSize := l.stack.Height == l.part.Height && l.stack.Width == l.part.Width
	return l.Same && sameSize && l.Y == 0 && l.X == 0
}

// snap is in pixels of the stack. Grids that differ by less are equal: a hundredth of a pixel changes a value that is
// resampled by at most a hundredth of the difference of its neighbours, and bounds in tables are rounded.
const snap = 0.01

// sameCRS stands for a CRS that is the same for both rasters and need not be known. It is one that package crs has.
var sameCRS, _ = crs.ByCode(32631)

// NewLay returns how part k of stack a lies in it. It fails with kind misplaced if they have no pixel in common, and
// with kind unsupported if a CRS cannot be converted to the other one.
func (r *Raster) NewLay(a *catalog.Asset, k int) (l Lay, err error) {
	asset := &a.Parts[k]
	l.stack = warp.Raster{CRS: sameCRS, Height: a.Index.Height, Width: a.Index.Width, Transform: [6]float64{1: 1, 5: 1}}
	l.part = warp.Raster{CRS: sameCRS, Height: asset.Index.Height, Width: asset.Index.Width}
	if r.Ground == spec.IgnoreGround || a.Place == nil || asset.Place == nil { // by their sizes
		l.part.Transform[1] = float64(l.stack.Width) / float64(l.part.Width)
		l.part.Transform[5] = float64(l.stack.Height) / float64(l.part.Height)
	} else {
		l.stack.Transform = a.Place.Transform(l.stack.Height, l.stack.Width)
		l.part.Transform = asset.Place.Transform(l.part.Height, l.part.Width)
		if (a.Place.EPSG == 0 || asset.Place.EPSG == 0) && !a.Place.SameCRS(asset.Place) {
			return l, asset.Fault(fault.New(fault.Misplaced, "place", "it lies at %s and %s at %s: the CRSs differ, "+
				"and only those with a code can be converted", asset.Place, a.URI, a.Place))
		}
		if start, end := a.Place.EPSG, asset.Place.EPSG; start != end && start != 0 && end != 0 {
			if l.stack.CRS, err = crs.Lookup(start); err != nil {
				return l, asset.Fault(err)
			}
			if l.part.CRS, err = crs.Lookup(end); err != nil {
				return l, asset.Fault(err)
			}
		}
	}
	return l, l.place(a, asset)
}

// EachPart calls do for every part of stack a that the field takes bands of, with how it lies in the stack.
func (r *Raster) EachPart(a *catalog.Asset, do func(k int, part *Raster, l *Lay) error) error {
	for place, part := range r.Parts {
		if part == nil {
			continue
		}
		if err := part.Accepts(&a.Parts[place]); err != nil {
			return a.Parts[place].Fault(err)
		}
		part, err := part.For(a.Parts[place].Index)
		if err != nil {
			return a.Parts[place].Fault(err)
		}
		lay, err := part.NewLay(a, place)
		if err != nil {
			return err
		}
		if err := do(place, part, &lay); err != nil {
			return err
		}
	}
	return nil
}

// place finds the pixels of the part among the pixels of the stack.
func (l *Lay) place(a, p *catalog.Asset) error {
	transform, err := crs.NewTransform(l.part.CRS, l.stack.CRS)
	if err != nil {
		return p.Fault(err)
	}
	height, width := float64(l.part.Height), float64(l.part.Width)
	corners := make([]crs.Point, 0, 4)
	for _, c := range [...]crs.Point{{0, 0}, {width, 0}, {0, height}, {width, height}} {
		corners = append(corners, crs.At(&l.part.Transform, c[0], c[1]))
	}
	transform.Points(corners, corners)
	s := &l.stack.Transform
	det := float64(s[1]*s[5]) - float64(s[2]*s[4])
	low, high := crs.Point{math.Inf(1), math.Inf(1)}, crs.Point{math.Inf(-1), math.Inf(-1)}
	for i, c := range corners { // now in pixels of the stack
		x, y := c[0]-s[0], c[1]-s[3]
		corners[i] = crs.Point{(float64(x*s[5]) - float64(y*s[2])) / det, (float64(y*s[1]) - float64(x*s[4])) / det}
		for axis := range low {
			low[axis], high[axis] = min(low[axis], corners[i][axis]), max(high[axis], corners[i][axis])
		}
	}
	// The negation also refuses NaN, for which every comparison is false.
	if !(high[0] > 0 && high[1] > 0 && low[0] < float64(l.stack.Width) && low[1] < float64(l.stack.Height)) {
		return p.Fault(fault.New(fault.Misplaced, "place", "it lies at %v and the stack, whose first raster is %s, at "+
			"%v: they have no pixel in common", p.Place, a.URI, a.Place))
	}
	l.low, l.high = low, high
	left, top := math.Round(corners[0][0]), math.Round(corners[0][1])
	l.Same = transform.Same()
	for i, c := range [...]crs.Point{
		{left, top}, {left + width, top}, {left, top + height}, {left + width, top + height},
	} {
		l.Same = l.Same && math.Abs(corners[i][0]-c[0]) < snap && math.Abs(corners[i][1]-c[1]) < snap
	}
	l.Y, l.X = -int(top), -int(left)
	return nil
}

// Inside returns the part's pixels in window win of the stack that lie in both, without bands.
func (l *Lay) Inside(win shuffle.Box) chunk.Box {
	in := Inside(win, l.stack.Height, l.stack.Width)
	moved := shuffle.Box{Y: in.Y0 + l.Y, X: in.X0 + l.X, H: max(in.Y1-in.Y0, 0), W: max(in.X1-in.X0, 0)}
	return Inside(moved, l.part.Height, l.part.Width)
}

// Warp returns the mapping that makes height by width pixels of window win of the stack.
func (l *Lay) Warp(win shuffle.Box, height, width int) (*warp.Mapping, error) {
	raster, t := l.stack, &l.stack.Transform
	corner := crs.At(t, float64(win.X), float64(win.Y))
	sy, sx := float64(win.H)/float64(height), float64(win.W)/float64(width)
	raster.Height, raster.Width = height, width
	raster.Transform = [6]float64{corner[0], t[1] * sx, t[2] * sy, corner[1], t[4] * sx, t[5] * sy}
	return warp.NewMapping(raster, l.part)
}

// Source returns the pixels of the part that the field takes for a mapping, without bands.
func (r *Raster) Source(m *warp.Mapping) chunk.Box {
	b := m.Source(r.kernel())
	return chunk.Box{Y0: b.Y0, X0: b.X0, Y1: b.Y1, X1: b.X1}
}

func (r *Raster) kernel() warp.Kernel {
	switch {
	case r.smooths:
		return warp.Antialias
	case r.Blends:
		return warp.Bilinear
	}
	return warp.Nearest
}

// Aligned reads window win of a stack of a part on the same grid into a row.
func (r *Reader) Aligned(ctx context.Context, part catalog.Asset, l *Lay, win shuffle.Box, to *Row,
	masked Sink) error {
	to.Win.Y, to.Win.X = win.Y+l.Y, win.X+l.X
	inside := l.Inside(win)
	if inside.Y0 < inside.Y1 && inside.X0 < inside.X1 {
		if err := r.Read(ctx, part, inside, to.picked().Picked, to, masked); err != nil {
			return err
		}
	}
	// After the pixels, because a chunk also has pixels of the part that lie past the edge of the stack.
	to.Pad(inside)
	return nil
}

// Warped reads a part of a stack that lies on another grid into a row: m makes the field's size of window win. It
// holds as many bands at a time as fit into limit bytes, and fails with kind limit if one does not.
func (r *Reader) Warped(ctx context.Context, part catalog.Asset, l *Lay, m *warp.Mapping, win shuffle.Box, to *Row,
	limit int) error {
	field := to.Field
	taken := field.Source(m)
	if taken.Y0 >= taken.Y1 || taken.X0 >= taken.X1 {
		to.Clear()
		return nil
	}
	resampler, plane := &r.Resample, field.H*field.W
	return r.inGroups(ctx, part, to.picked().Picked, windowOf(taken), field, limit, func(first, n, size int) error {
		if first == 0 && !field.Blends {
			resampler.pickAll(m, taken, plane)
		}
		resampler.Out, resampler.OutValid = Grown(resampler.Out, n*plane*size), Grown(resampler.OutValid, n*plane)
		for band := range n {
			if err := resampler.warp(field, m, taken, band, size, resampler.Out[band*plane*size:][:plane*size],
				resampler.OutValid[band*plane:][:plane]); err != nil {
				return err
			}
			resampler.crop(field, band, size, win, l.stack.Height, l.stack.Width)
		}
		to.putPlanes(first, n, resampler, size)
		return nil
	})
}

// windowOf returns a box, which has no bands, as a window.
func windowOf(in chunk.Box) shuffle.Box {
	return shuffle.Box{Y: in.Y0, X: in.X0, H: in.Y1 - in.Y0, W: in.X1 - in.X0}
}

// warp fills a plane of samples and their validity from plane p of In and InValid, which holds box in of the part.
func (s *Resampler) warp(f *Raster, m *warp.Mapping, in chunk.Box, p, size int, out, outValid []byte) error {
	n := (in.Y1 - in.Y0) * (in.X1 - in.X0)
	data, valid := s.In[p*n*size:][:n*size], s.InValid[p*n:][:n]
	if !f.Blends {
		s.gather(out, data, size)
		s.gather(outValid, valid, 1)
		return nil
	}
	values, done := floats(out)
	src := warp.Plane[float32]{Box: boxOf(in), Pix: cast.Values[float32](data), Valid: valid}
	err := warp.Sample(m, f.kernel(), src, values, outValid)
	done()
	return err
}

// pickAll sets picks to where the nearest of n pixels lie in box in: 0 off the raster, else 1 more than their number.
// Samples of any dtype follow it, without a loop for each. It panics if the box does not hold what the mapping takes.
func (s *Resampler) pickAll(m *warp.Mapping, in chunk.Box, n int) {
	for len(s.places) < (in.Y1-in.Y0)*(in.X1-in.X0) {
		s.places = append(s.places, uint32(len(s.places)+1))
	}
	if cap(s.picks) < n {
		s.picks = make([]uint32, n)
	}
	s.picks, s.picksValid = s.picks[:n], Grown(s.picksValid, n)
	places := s.places[:(in.Y1-in.Y0)*(in.X1-in.X0)]
	if err := warp.Pick(m, warp.Plane[uint32]{Box: boxOf(in), Pix: places}, s.picks, s.picksValid); err != nil {
		panic(err)
	}
}

func boxOf(b chunk.Box) warp.Box { return warp.Box{Y0: b.Y0, X0: b.X0, Y1: b.Y1, X1: b.X1} }

// crop makes pixels of plane p of Out missing whose middle lies outside of the stack, where a part may have pixels.
func (s *Resampler) crop(f *Raster, p, size int, win shuffle.Box, height, width int) {
	if win.Y >= 0 && win.X >= 0 && win.Y+win.H <= height && win.X+win.W <= width {
		return
	}
	out := func(pos, start, length, n, side int) bool { // twice the middle of pixel at, in pixels times n
		middle := 2*start*n + (2*pos+1)*length
		return middle < 0 || middle >= 2*side*n
	}
	for y := range f.H {
		row := out(y, win.Y, win.H, f.H, height)
		for x := range f.W {
			if row || out(x, win.X, win.W, f.W, width) {
				pos := (p*f.H+y)*f.W + x
				clear(s.Out[pos*size:][:size])
				s.OutValid[pos] = 0
			}
		}
	}
}

// WarpedBytes returns how many bytes of memory a worker needs to resample box in of a part, if it holds at most limit
// bytes of its samples at a time.
func (r *Raster) WarpedBytes(in chunk.Box, limit int) int64 {
	height, width := in.Y1-in.Y0, in.X1-in.X0
	if height <= 0 || width <= 0 {
		return 0
	}
	n := r.ResampledBytes(shuffle.Box{H: height, W: width}, limit)
	if !r.Blends {
		n += 4*int64(height)*int64(width) + int64(r.H)*int64(r.W) // of places and of picksValid
	}
	return n
}
