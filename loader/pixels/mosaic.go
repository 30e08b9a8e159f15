package pixels

import (
	"bytes"
	"context"
	"slices"

	"github.com/chaski-eo/chaski/einops"
	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/internal/crs"
	"github.com/chaski-eo/chaski/internal/crs/warp"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/shuffle"
	"github.com/chaski-eo/chaski/store/catalog"
)

// OnGround makes nodata count in a field of any dtype: another scene may have the pixel.
func (r *Raster) OnGround() {
	r.raw.Nodata = true
	for _, p := range r.Parts {
		if p != nil {
			p.raw.Nodata = true
		}
	}
}

// OnGround returns the mapping from a window on the ground to a scene. It fails with kind unsupported if the scene's
// place is unknown, or its CRS cannot be converted.
func OnGround(window warp.Raster, a *catalog.Asset) (*warp.Mapping, error) {
	if err := a.Unplaced("windows on the ground need"); err != nil {
		return nil, a.Fault(err)
	}
	system, err := crs.Lookup(a.Place.EPSG)
	if err != nil {
		return nil, a.Fault(err)
	}
	h, w := a.Index.Height, a.Index.Width
	mapping, err := warp.NewMapping(window, warp.Raster{CRS: system, Transform: a.Place.Transform(h, w), Height: h,
		Width: w})
	if err != nil {
		return nil, a.Fault(err)
	}
	return mapping, nil
}

// Mosaic composes a window on the ground from scenes. Add adds a scene: its pixels fill those missing so far or, by the
// rules mean and median, all its pixels count. End writes the window to a row.
type Mosaic struct {
	r       *Reader
	to      *Row
	size    int // of a sample
	missing int // samples
	any     bool
	done    bool   // the row is written
	all     *blend // of the rules mean and median; nil otherwise
	// settled says which samples the row has from scenes of other dtypes; nil if all so far are of one.
	settled []byte
}

// Mosaic begins a window of a row by a rule (spec.MosaicFirst). A field whose samples are not blended, such as one of
// labels, has the first ones by every rule.
func (r *Reader) Mosaic(to *Row, rule string) *Mosaic {
	field := to.Field
	mosaic := &Mosaic{r: r, to: to, size: field.rawSize(), missing: len(field.Picked) * field.H * field.W}
	if field.BlendsScenes(rule) {
		mosaic.all = &r.Resample.scenes
		mosaic.all.begin(mosaic.missing, rule == spec.MosaicMedian)
	}
	return mosaic
}

// BlendsScenes reports whether a rule for mosaics takes samples of all scenes for the field.
func (r *Raster) BlendsScenes(rule string) bool {
	return r.Blends && (rule == spec.MosaicMean || rule == spec.MosaicMedian)
}

// Full reports whether further scenes have no say.
func (m *Mosaic) Full() bool { return m.missing == 0 && m.all == nil }

// Add reads the part of the window that a scene covers, of the field for its dtype. last says that no scene follows.
// Add holds as many bands at a time as fit into limit bytes, and fails with kind limit if one does not.
func (m *Mosaic) Add(ctx context.Context, field *Raster, a catalog.Asset, bands []int, at *warp.Mapping, last bool,
	limit int) error {
	taken, copied := field.Taken(at)
	if taken.Y0 >= taken.Y1 || taken.X0 >= taken.X1 {
		return nil
	}
	if err := m.change(field); err != nil {
		return a.Fault(err)
	}
	if m.all != nil && !m.all.grow(limit) {
		return a.Fault(fault.New(fault.Limit, "window",
			"the samples of %d scenes to take the median of are over %d bytes", m.all.scenes, limit))
	}
	if copied && !m.any && m.all == nil && m.settled == nil && field.copies(a.Index, taken, last) {
		return m.copy(ctx, a, bands, taken)
	}
	err := m.r.inGroups(ctx, a, bands, windowOf(taken), field, limit, func(first, n, size int) error {
		resampler, plane := &m.r.Resample, field.H*field.W
		if first == 0 && !field.Blends && !copied {
			resampler.pickAll(at, taken, plane)
		}
		samples := len(field.Picked) * plane // after the first bands of the first scene there is room for all
		resampler.Out, resampler.OutValid = Grown(resampler.Out, samples*size), Grown(resampler.OutValid, samples)
		return m.bands(first, n, taken, at)
	})
	m.any = m.any || err == nil
	return err
}

// change makes field, of the next scene, the field of the samples that follow. If they are as stored, samples of
// other dtypes go to the row first.
func (m *Mosaic) change(field *Raster) error {
	if field.Native == m.to.Field.Native {
		return nil
	}
	if field.coded != nil {
		return fault.New(fault.Unsupported, "asset", "its dtype is %s: other scenes of the field %q have %s, and "+
			"colours of a mosaic need one", field.Native, field.Name, m.to.Field.Native)
	}
	if m.any && field.blended == nil {
		m.settle()
		if err := m.to.CheckRange(); err != nil {
			return err
		}
		m.any = false
	}
	row, err := *m.to, error(nil)
	if row.Cv, err = field.Final.Get(&chunk.Index{}, nil); err != nil {
		return err
	}
	row.Field, row.probe = field, nil
	m.to, m.size = &row, field.rawSize()
	return m.r.Probe(&row)
}

// settle writes the samples so far to the row.
func (m *Mosaic) settle() {
	resampler, planes := &m.r.Resample, len(m.to.Field.Picked)
	if m.settled == nil {
		m.to.putPlanes(0, planes, resampler, m.size)
		m.settled = slices.Clone(resampler.OutValid)
		return
	}
	m.to.putValid(planes, resampler, m.size)
	for i, valid := range resampler.OutValid {
		m.settled[i] |= valid
	}
}

// putValid writes those resampled samples s.Out of some planes to the row that are valid.
func (r *Row) putValid(planes int, s *Resampler, size int) {
	field := r.Field
	for line := range planes * field.H {
		valid := s.OutValid[line*field.W:][:field.W]
		for pos := 0; pos < len(valid); {
			start := pos + max(bytes.IndexByte(valid[pos:], 1), 0)
			end, _ := zeros(valid, start)
			if start == end { // no other one is valid
				break
			}
			plane := field.plane(line / field.H)
			blk := einops.Block{DType: field.Native, StrideB: field.H * field.W, StrideY: field.W, StrideX: 1,
				Data: s.Out[(line*field.W+start)*size:]}
			box := r.turnBox(&blk, einops.Box{N: r.N, Y0: line % field.H, Y1: line%field.H + 1, X0: start, X1: end})
			box.T, box.B0 = r.step(plane/field.bands()), plane%field.bands()
			box.B1 = box.B0 + 1
			r.scatter(r.Cv, box, blk)
			pos = end
		}
	}
}

// Taken returns the pixels of a scene that the field takes for a mapping, without bands, and whether they are the
// pixels of the window, so that resampling is unnecessary.
func (r *Raster) Taken(m *warp.Mapping) (in chunk.Box, copied bool) {
	down, right, ok := m.Shift()
	if !ok {
		return r.Source(m), false
	}
	h, w := m.Raster()
	return Inside(shuffle.Box{Y: down, X: right, H: r.H, W: r.W}, h, w), true
}

// copies reports whether box in of a scene, which lies on the window's grid, may go straight into the batch: all pixels
// of the window are in it, no other scene contributes, and casting stored samples gives the same values as casting to
// resampled samples and back.
func (r *Raster) copies(x *chunk.Index, in chunk.Box, last bool) bool {
	if in.Y1-in.Y0 < r.H || in.X1-in.X0 < r.W {
		return false
	}
	whole, mask := !r.raw.Miss(x), x.Masking()
	switch {
	case r.IsPhysical(): // Normalize rounds otherwise in one step than after physical values
		return false
	case !whole && !last, mask != nil && !r.Final.Nodata:
		return false
	case !r.Blends:
		return true
	}
	// Resampled samples are float32, in which larger integers and float64 are rounded, and 0 where one is missing.
	exact := r.Native.Size() <= 2 || r.Native == chunk.Float32
	return exact && (whole || r.Final.Base.FillNoData)
}

// copy reads box in of a scene, which has all pixels of the window, straight into the row.
func (m *Mosaic) copy(ctx context.Context, a catalog.Asset, bands []int, in chunk.Box) error {
	field, target := m.to.Field, *m.to
	if !slices.Equal(bands, field.Picked) {
		target.Bands = &PickedBands{Picked: bands}
		target.Bands.PlaceBands()
	}
	convert, err := field.Final.Get(a.Index, target.picked())
	if err != nil {
		return a.Fault(err)
	}
	target.Cv, target.Win = convert, shuffle.Box{Y: in.Y0, X: in.X0, H: field.H, W: field.W}
	m.missing, m.done = 0, true // full: no other scene is read
	return m.r.Read(ctx, a, in, bands, &target, target.Masked(field.Final, in))
}

// valid1 is the validity of a sample that is there.
var valid1 = []byte{1}

// bands adds the bands of a scene in Resample.In, the first as band number first of the field. They hold box in of the
// scene.
func (m *Mosaic) bands(first, bands int, in chunk.Box, at *warp.Mapping) error {
	field := m.to.Field
	resampler, plane, size := &m.r.Resample, field.H*field.W, m.size
	for band := range bands {
		begin := (first + band) * plane
		out, valid := resampler.Out[begin*size:][:plane*size], resampler.OutValid[begin:][:plane]
		taken, takenValid := out, valid
		if m.all == nil && m.any {
			resampler.next, resampler.nextValid = Grown(resampler.next, plane*size), Grown(resampler.nextValid, plane)
			taken, takenValid = resampler.next, resampler.nextValid
		}
		if err := resampler.take(field, at, in, band, size, taken, takenValid); err != nil {
			return err
		}
		if m.settled != nil {
			for i, done := range m.settled[begin:][:plane] {
				takenValid[i] &^= done
			}
		}
		switch {
		case m.all != nil:
			m.all.add(begin, out, valid)
		case m.any:
			m.missing -= merge(out, valid, taken, takenValid, size)
		default:
			m.missing -= bytes.Count(valid, valid1)
		}
	}
	return nil
}

// take fills a plane of samples and their validity from plane p of In and InValid, which holds box in of a scene. It
// copies where the scene lies on the window's grid.
func (s *Resampler) take(f *Raster, at *warp.Mapping, in chunk.Box, p, size int, out, outValid []byte) error {
	down, right, copied := at.Shift()
	if !copied {
		return s.warp(f, at, in, p, size, out, outValid)
	}
	height, width := in.Y1-in.Y0, in.X1-in.X0
	n := height * width
	data, valid := s.In[p*n*size:][:n*size], s.InValid[p*n:][:n]
	if height < f.H || width < f.W {
		clear(out)
		clear(outValid)
	}
	for i := range height {
		end := (in.Y0-down+i)*f.W + in.X0 - right
		copy(out[end*size:(end+width)*size], data[i*width*size:])
		copy(outValid[end:end+width], valid[i*width:])
	}
	if f.Blends && bytes.IndexByte(outValid, 0) >= 0 { // as the kernels leave missing samples
		for i, v := range outValid {
			if v == 0 {
				clear(out[i*size:][:size])
			}
		}
	}
	return nil
}

// merge copies samples that are missing in out and valid in next, and returns how many. A sample missing in both keeps
// the stored value of a scene, or 0 if no scene covers it.
func merge(out, valid, next, nextValid []byte, size int) (n int) {
	for start, end := zeros(valid, 0); start < len(valid); start, end = zeros(valid, end) {
		for i := start; i < end; {
			if nextValid[i] != 0 { // and so are the next ones
				many := bytes.IndexByte(nextValid[i:end], 0)
				if many < 0 {
					many = end - i
				}
				copy(out[i*size:(i+many)*size], next[i*size:])
				copy(valid[i:i+many], nextValid[i:])
				n, i = n+many, i+many
				continue
			}
			sample := out[i*size:][:size]
			stored := byte(0)
			for _, b := range sample {
				stored |= b
			}
			if stored == 0 {
				copy(sample, next[i*size:])
			}
			i++
		}
	}
	return n
}

// End writes the window. It fails as CheckRange does.
func (m *Mosaic) End() error {
	switch {
	case m.done:
	case m.settled != nil:
		m.settle()
	case !m.any:
		m.to.Clear()
	default:
		if m.all != nil {
			m.all.end(m.r.Resample.Out, m.r.Resample.OutValid)
		}
		m.to.putPlanes(0, len(m.to.Field.Picked), &m.r.Resample, m.size)
	}
	return m.to.CheckRange()
}

// MosaicBytes returns how many bytes of memory a worker needs to add box in of the last of some scenes by a rule, if it
// holds at most limit bytes of its samples at a time.
func (r *Raster) MosaicBytes(in chunk.Box, limit int, rule string, scenes int) int64 {
	size := int64(max(r.Native.Size(), 4))
	total := int64(r.H) * int64(r.W)
	out := r.WarpedBytes(in, limit) + total*(size+1)*int64(len(r.Picked)+1)
	if r.BlendsScenes(rule) {
		each := int64(12) // a sum of float64 and a count
		if rule == spec.MosaicMedian {
			each = 4 * int64(scenes)
		}
		out += total * each * int64(len(r.Picked))
	}
	return out
}
