package loader

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

// planes is the pattern of what is resampled.
var planes = func() *einops.Pattern {
	p, err := einops.Parse("n b y x")
	if err != nil {
		panic(err)
	}
	return p
}()

// resampler holds a window before and after it is resampled: bands, rows, columns, with one byte a sample
// that says whether it is there.
type resampler struct {
	in, out           []byte
	inValid, outValid []byte
	y, x              []tap
	smooth            smoother
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
func (r *rasterField) setResample() error {
	real := r.native.Components() == 1
	blends := isFloat(r.to)
	r.smooths = real && blends && r.Resample == spec.Antialias
	r.blends = r.smooths || real && (r.Resample == spec.Bilinear || r.Resample == "" && blends)
	switch {
	case r.Resample == spec.Bilinear && !r.blends:
		return fault.New(fault.Unsupported, "resample", fault.NoOffset, "bilinear of %s", r.native)
	case r.Resample == spec.Antialias && !r.smooths:
		return fault.New(fault.Unsupported, "resample", fault.NoOffset, "antialias of %s to %s: only to float32, float16 and bfloat16", r.native, r.to)
	}
	r.raw.base = einops.Convert{From: r.native, To: r.native}
	r.raw.nodata = r.final.nodata
	if !r.blends {
		return nil
	}
	r.raw.base.To = chunk.Float32
	c := r.final.base
	c.From = chunk.Float32
	var err error
	r.blended, err = einops.NewConverter(c)
	return err
}

// resampled reads the window of an asset and writes it to a row of the tensor at the tensor's size: as many
// bands at once as limit has room for.
func (r *assetReader) resampled(ctx context.Context, a catalog.Asset, win shuffle.Box, to *row, limit int) error {
	f, x, bands := to.field, a.Index, to.picked().bands
	size, k := f.resampledAtOnce(win, limit)
	if k == 0 {
		return a.Fault(fault.New(fault.Limit, "window", fault.NoOffset, "%d by %d pixels to resample are over %d bytes", win.H, win.W, limit))
	}
	cv, err := f.raw.get(x)
	if err != nil {
		return a.Fault(err)
	}
	if f.smooths {
		if err := r.resample.smooth.prepare(win.H, win.W, f.h, f.w, int64(limit)); err != nil {
			return a.Fault(err)
		}
	}
	for b := 0; b < len(f.bands); b += k {
		sub := &rasterField{pickedBands: pickedBands{bands: bands[b:min(b+k, len(bands))]}, h: win.H, w: win.W}
		sub.placeBands()
		plan, err := planes.Plan(sub.axes(1), nil)
		if err != nil {
			return err
		}
		s := &r.resample
		s.in, s.inValid = grown(s.in, plan.Len()*size), grown(s.inValid, plan.Len())
		from := &row{field: sub, plan: plan, dst: einops.Target{Data: s.in, Mask: s.inValid}, cv: cv, win: win}
		from.pad(x.Height, x.Width)
		in := inside(win, x.Height, x.Width)
		if err := r.read(ctx, a, in, sub.bands, from, from.masked(&f.raw, in)); err != nil {
			return err
		}
		if f.smooths {
			s.antialias(sub, f)
		} else {
			s.resample(sub, f, size)
		}
		to.whole(b, len(sub.bands), s, size)
	}
	return nil
}

// resampledAtOnce returns the size of a sample that is resampled, and how many bands of a window are at once: 0 if
// limit has no room for one.
func (r *rasterField) resampledAtOnce(win shuffle.Box, limit int) (size, bands int) {
	size = r.native.Size()
	if r.blends {
		size = 4
	}
	one := bytesOf(int64(limit), win.H, win.W, size+1)
	if one < 0 {
		return size, 0
	}
	return size, min(len(r.bands), max(1, int(int64(limit)/max(one, 1))))
}

// resampledBytes returns the memory in which a window is resampled.
func (r *rasterField) resampledBytes(win shuffle.Box, limit int) int64 {
	size, bands := r.resampledAtOnce(win, limit)
	n := int64(bands) * int64(size+1) * (int64(win.H)*int64(win.W) + int64(r.h)*int64(r.w))
	if r.smooths {
		n += smootherBytes(win.H, win.W, r.h, r.w)
	}
	return n
}

// grown returns a slice of n bytes, of b if that has room.
func grown(b []byte, n int) []byte {
	if cap(b) < n {
		return cast.Aligned(n)
	}
	return b[:n]
}

// resample fills out from in.
func (s *resampler) resample(from, to *rasterField, size int) {
	s.y, s.x = taps(s.y, from.h, to.h), taps(s.x, from.w, to.w)
	n := len(from.bands) * to.h * to.w
	s.out, s.outValid = grown(s.out, n*size), grown(s.outValid, n)
	at := 0
	samples, seen := cast.Of[float32](s.in)
	out, _ := cast.Of[float32](s.out)
	for b := range from.bands {
		plane := b * from.h * from.w
		for _, y := range s.y {
			if seen && to.blends {
				s.blendRow(out[at:at+to.w], s.outValid[at:at+to.w], samples, plane, from.w, &y)
				at += to.w
				continue
			}
			for _, x := range s.x {
				near := plane + y.near*from.w + x.near
				s.outValid[at] = s.inValid[near]
				if to.blends {
					binary.LittleEndian.PutUint32(s.out[4*at:], math.Float32bits(s.blend(plane, from.w, near, &y, &x)))
				} else {
					copy(s.out[at*size:(at+1)*size], s.in[near*size:])
				}
				at++
			}
		}
	}
}

// blendRow is blend for a row of samples that can be seen as numbers.
func (s *resampler) blendRow(out []float32, valid []byte, samples []float32, plane, w int, y *tap) {
	a, b := samples[plane+y.a*w:][:w], samples[plane+y.b*w:][:w]
	va, vb := s.inValid[plane+y.a*w:][:w], s.inValid[plane+y.b*w:][:w]
	near := plane + y.near*w
	for i := range s.x {
		x := &s.x[i]
		valid[i] = s.inValid[near+x.near]
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
func (s *resampler) blend(plane, w, near int, y, x *tap) float32 {
	nearest := s.float(near)
	if s.inValid[near] == 0 {
		return nearest
	}
	at := func(row, col int) float32 {
		i := plane + row*w + col
		if s.inValid[i] == 0 {
			return nearest
		}
		return s.float(i)
	}
	top := between(at(y.a, x.a), at(y.a, x.b), x.weight)
	bottom := between(at(y.b, x.a), at(y.b, x.b), x.weight)
	return between(top, bottom, y.weight)
}

func (s *resampler) float(i int) float32 {
	return math.Float32frombits(binary.LittleEndian.Uint32(s.in[4*i:]))
}

// between returns a + w(b-a), every operation rounded to float32; a where the weight is 0 or both are equal.
func between(a, b, w float32) float32 {
	if w == 0 || a == b {
		return a
	}
	return float32(a + float32(w*float32(b-a)))
}

// whole writes bands of a row that were resampled, from band first on.
func (r *row) whole(first, bands int, s *resampler, size int) {
	f := r.field
	blk := einops.Block{Data: s.out, DType: f.native, StrideB: f.h * f.w, StrideY: f.w, StrideX: 1}
	cv := r.cv
	if f.blends {
		blk.DType, cv = chunk.Float32, f.blended
	}
	to := r.turned(&blk, einops.Box{N: r.n, T: r.t, Y1: f.h, X1: f.w})
	to.B0, to.B1 = first, first+bands
	r.plan.Scatter(r.dst, cv, to, blk)
	if !f.final.nodata {
		return
	}
	for b := range bands {
		for y := range f.h {
			line := s.outValid[(b*f.h+y)*f.w:][:f.w]
			for at := 0; ; {
				from, end := zeros(line, at)
				if from == len(line) {
					break
				}
				gone := r.turned(nil, einops.Box{N: r.n, T: r.t, Y0: y, Y1: y + 1, X0: from, X1: end})
				gone.B0, gone.B1 = first+b, first+b+1
				r.plan.MaskBox(r.dst, cv, gone)
				at = end
			}
		}
	}
}
