package pixels

import (
	"context"
	"encoding/binary"
	"math"

	"github.com/chaski-eo/chaski/chunk"
	"github.com/chaski-eo/chaski/einops"
	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/cast"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/shuffle"
	"github.com/chaski-eo/chaski/store/catalog"
)

// Planes is the pattern of what is resampled.
var Planes = func() *einops.Pattern {
	p, err := einops.Parse("n b y x")
	if err != nil {
		panic(err)
	}
	return p
}()

// Resampler holds a window before and after it is resampled: bands, rows, columns, with one byte a sample
// that says whether it is there.
type Resampler struct {
	In, Out           []byte
	InValid, OutValid []byte
	y, x              []tap
	Smooth            Smoother
}

// tap says which of m samples on a side make sample i of n, and with which weight the second one counts.
type tap struct {
	a, b, near int
	weight     float32
}

// taps fills a table for n samples of m. See docs/order.md, Resampling.
func taps(t []tap, m, n int) []tap {
	t = t[:0]
	for i := range n {
		num, den := (2*i+1)*m-n, 2*n
		at := num / den
		if num < 0 { // floor
			at = -1
		}
		rest := num - at*den
		t = append(t, tap{
			a: min(max(at, 0), m-1), b: min(max(at+1, 0), m-1), near: min((2*i+1)*m/den, m-1),
			weight: float32(rest) / float32(den),
		})
	}
	return t
}

// setResample picks how the field comes to another size, and the casts for that.
func (r *Raster) setResample() error {
	real := r.Native.Components() == 1
	blends := isFloat(r.To)
	r.smooths = real && blends && r.Resample == spec.Antialias
	r.Blends = r.smooths || real && (r.Resample == spec.Bilinear || r.Resample == "" && blends)
	switch {
	case r.Resample == spec.Bilinear && !r.Blends:
		return fault.New(fault.Unsupported, "resample", fault.NoOffset, "bilinear of %s", r.Native)
	case r.Resample == spec.Antialias && !r.smooths:
		return fault.New(fault.Unsupported, "resample", fault.NoOffset, "antialias of %s to %s: only to float32, float16 and bfloat16", r.Native, r.To)
	}
	r.raw.Base = einops.Convert{From: r.Native, To: r.Native}
	r.raw.Nodata = r.Final.Nodata
	if !r.Blends {
		return nil
	}
	r.raw.Base.To = chunk.Float32
	c := r.Final.Base
	c.From = chunk.Float32
	var err error
	r.blended, err = einops.NewConverter(c)
	return err
}

// Resampled reads the window of an asset and writes it to a row of the tensor at the tensor's size: as many
// bands at once as limit has room for.
func (r *Reader) Resampled(ctx context.Context, a catalog.Asset, win shuffle.Box, to *Row, limit int) error {
	f, x, bands := to.Field, a.Index, to.picked().Picked
	size, k := f.resampledAtOnce(win, limit)
	if k == 0 {
		return a.Fault(fault.New(fault.Limit, "window", fault.NoOffset, "%d by %d pixels to resample are over %d bytes", win.H, win.W, limit))
	}
	cv, err := f.raw.Get(x)
	if err != nil {
		return a.Fault(err)
	}
	if f.smooths {
		if err := r.Resample.Smooth.Prepare(win.H, win.W, f.H, f.W, int64(limit)); err != nil {
			return a.Fault(err)
		}
	}
	for b := 0; b < len(f.Picked); b += k {
		sub := &Raster{PickedBands: PickedBands{Picked: bands[b:min(b+k, len(bands))]}, H: win.H, W: win.W}
		sub.PlaceBands()
		plan, err := Planes.Plan(sub.Axes(1), nil)
		if err != nil {
			return err
		}
		s := &r.Resample
		s.In, s.InValid = Grown(s.In, plan.Len()*size), Grown(s.InValid, plan.Len())
		from := &Row{Field: sub, Plan: plan, Dst: einops.Target{Data: s.In, Mask: s.InValid}, Cv: cv, Win: win}
		from.Pad(x.Height, x.Width)
		in := Inside(win, x.Height, x.Width)
		if err := r.Read(ctx, a, in, sub.Picked, from, from.Masked(&f.raw, in)); err != nil {
			return err
		}
		if f.smooths {
			s.Antialias(sub, f)
		} else {
			s.Resample(sub, f, size)
		}
		to.whole(b, len(sub.Picked), s, size)
	}
	return nil
}

// resampledAtOnce returns the size of a sample that is resampled, and how many bands of a window are at once: 0 if
// limit has no room for one.
func (r *Raster) resampledAtOnce(win shuffle.Box, limit int) (size, bands int) {
	size = r.Native.Size()
	if r.Blends {
		size = 4
	}
	one := BoundedBytes(int64(limit), win.H, win.W, size+1)
	if one < 0 {
		return size, 0
	}
	return size, min(len(r.Picked), max(1, int(int64(limit)/max(one, 1))))
}

// ResampledBytes returns the memory in which a window is resampled.
func (r *Raster) ResampledBytes(win shuffle.Box, limit int) int64 {
	size, bands := r.resampledAtOnce(win, limit)
	n := int64(bands) * int64(size+1) * (int64(win.H)*int64(win.W) + int64(r.H)*int64(r.W))
	if r.smooths {
		n += smootherBytes(win.H, win.W, r.H, r.W)
	}
	return n
}

// Grown returns a slice of n bytes, of b if that has room.
func Grown(b []byte, n int) []byte {
	if cap(b) < n {
		return cast.Aligned(n)
	}
	return b[:n]
}

// Resample fills out from in.
func (s *Resampler) Resample(from, to *Raster, size int) {
	s.y, s.x = taps(s.y, from.H, to.H), taps(s.x, from.W, to.W)
	n := len(from.Picked) * to.H * to.W
	s.Out, s.OutValid = Grown(s.Out, n*size), Grown(s.OutValid, n)
	at := 0
	samples, seen := cast.Of[float32](s.In)
	out, _ := cast.Of[float32](s.Out)
	for b := range from.Picked {
		plane := b * from.H * from.W
		for _, y := range s.y {
			if seen && to.Blends {
				s.blendRow(out[at:at+to.W], s.OutValid[at:at+to.W], samples, plane, from.W, &y)
				at += to.W
				continue
			}
			for _, x := range s.x {
				near := plane + y.near*from.W + x.near
				s.OutValid[at] = s.InValid[near]
				if to.Blends {
					binary.LittleEndian.PutUint32(s.Out[4*at:], math.Float32bits(s.blend(plane, from.W, near, &y, &x)))
				} else {
					copy(s.Out[at*size:(at+1)*size], s.In[near*size:])
				}
				at++
			}
		}
	}
}

// blendRow is blend for a row of samples that can be seen as numbers.
func (s *Resampler) blendRow(out []float32, valid []byte, samples []float32, plane, w int, y *tap) {
	a, b := samples[plane+y.a*w:][:w], samples[plane+y.b*w:][:w]
	va, vb := s.InValid[plane+y.a*w:][:w], s.InValid[plane+y.b*w:][:w]
	near := plane + y.near*w
	for i := range s.x {
		x := &s.x[i]
		valid[i] = s.InValid[near+x.near]
		if va[x.a]&va[x.b]&vb[x.a]&vb[x.b] == 0 { // each is 0 or 1
			out[i] = s.blend(plane, w, near+x.near, y, x)
			continue
		}
		top := between(a[x.a], a[x.b], x.weight)
		bottom := between(b[x.a], b[x.b], x.weight)
		out[i] = between(top, bottom, y.weight)
	}
}

// blend returns the bilinear value of four samples; one that is missing counts as the nearest, and
// where that is missing too, it is the value.
func (s *Resampler) blend(plane, w, near int, y, x *tap) float32 {
	nearest := s.Float(near)
	if s.InValid[near] == 0 {
		return nearest
	}
	at := func(row, col int) float32 {
		i := plane + row*w + col
		if s.InValid[i] == 0 {
			return nearest
		}
		return s.Float(i)
	}
	top := between(at(y.a, x.a), at(y.a, x.b), x.weight)
	bottom := between(at(y.b, x.a), at(y.b, x.b), x.weight)
	return between(top, bottom, y.weight)
}

func (s *Resampler) Float(i int) float32 {
	return math.Float32frombits(binary.LittleEndian.Uint32(s.In[4*i:]))
}

// between returns a + w(b-a), every operation rounded to float32; a where the weight is 0 or both are equal.
func between(a, b, w float32) float32 {
	if w == 0 || a == b {
		return a
	}
	return float32(a + float32(w*float32(b-a)))
}

// whole writes bands of a row that were resampled, from band first on.
func (r *Row) whole(first, bands int, s *Resampler, size int) {
	f := r.Field
	blk := einops.Block{Data: s.Out, DType: f.Native, StrideB: f.H * f.W, StrideY: f.W, StrideX: 1}
	cv := r.Cv
	if f.Blends {
		blk.DType, cv = chunk.Float32, f.blended
	}
	to := r.turned(&blk, einops.Box{N: r.N, T: r.T, Y1: f.H, X1: f.W})
	to.B0, to.B1 = first, first+bands
	r.Plan.Scatter(r.Dst, cv, to, blk)
	if !f.Final.Nodata {
		return
	}
	for b := range bands {
		for y := range f.H {
			line := s.OutValid[(b*f.H+y)*f.W:][:f.W]
			for at := 0; ; {
				from, end := zeros(line, at)
				if from == len(line) {
					break
				}
				gone := r.turned(nil, einops.Box{N: r.N, T: r.T, Y0: y, Y1: y + 1, X0: from, X1: end})
				gone.B0, gone.B1 = first+b, first+b+1
				r.Plan.MaskBox(r.Dst, cv, gone)
				at = end
			}
		}
	}
}
