package pixels

import (
	"context"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/internal/crs/warp"
	"github.com/chaski-eo/chaski/loader/resources"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/shuffle"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/catalog"
	"github.com/chaski-eo/chaski/tools/testkit/folder"
)

// scene is an image that lies on the ground, with pixels of 10 m, or of 20 m.
type scene struct {
	*image
	y, x   int   // of its upper left corner, in pixels of 10 m
	factor int   // pixels of 10 m on a side of one of its pixels
	bands  []int // for each of the tensor's, the number in this scene
}

// drawScene draws a scene of a name.
func drawScene(t *rapid.T, name string, dtype chunk.DType) *scene {
	s := &scene{drawImage(t, dtype), rapid.IntRange(-6, 4).Draw(t, "north"), rapid.IntRange(-6, 4).Draw(t, "west"),
		rapid.IntRange(1, 2).Draw(t, "factor"), nil}
	if s.asset.URI = name; s.asset.MaskFile != nil {
		s.asset.MaskFile.URI = "mask of " + name
	}
	s.place()
	return s
}

// place sets the asset's place.
func (s *scene) place() {
	index := s.asset.Index
	s.asset.Place = catalog.NewPlace(32631, &[6]float64{500000 + 10*float64(s.x), 10 * float64(s.factor), 0,
		5000000 - 10*float64(s.y), 0, -10 * float64(s.factor)}, index.Height, index.Width)
}

// at returns the value of a pixel of 10 m, whether it is valid, and whether it lies on the scene.
func (s *scene) at(f *Raster, b, y, x int, blends bool) (value float64, valid, covered bool) {
	index := s.asset.Index
	y, x = y-s.y, x-s.x
	h, w := index.Height*s.factor, index.Width*s.factor
	if y < 0 || x < 0 || y >= h || x >= w {
		return 0, false, false
	}
	band := plane{index.Height, index.Width, func(y, x int) (float64, bool) {
		value, valid := s.image.at(b, y, x)
		if valid {
			value = physical(f, index, b, value)
		}
		return value, valid
	}}
	if blends {
		if value, valid = band.bilinear(y, x, h, w); !valid {
			value = 0
		}
		return value, valid, true
	}
	value, valid = band.nearest(y, x, h, w)
	return value, valid, true
}

// files opens scenes and their masks by their names.
type files map[string][]byte

func filesOf(scenes ...*scene) files {
	out := files{}
	for _, s := range scenes {
		out[s.asset.URI], out["mask of "+s.asset.URI] = s.file, s.beside
	}
	return out
}

func (f files) Open(ctx context.Context, uri string) (source.Reader, error) {
	return folder.OneFile(f[uri]).Open(ctx, uri)
}

// slowMosaic returns a pixel of band j of a mosaic of scenes by a rule.
func slowMosaic(f *Raster, scenes []*scene, rule string, j, y, x int) (value float64, valid bool) {
	var all []float64
	for _, s := range scenes {
		v, ok, covered := s.at(f, s.bands[j], y, x, f.Blends)
		switch {
		case ok:
			all = append(all, v)
		case covered && value == 0 && !f.Blends && len(all) == 0: // of missing pixels the first one that is not 0
			value = v
		}
	}
	switch {
	case len(all) == 0:
		return value, false
	case !f.Blends || rule == spec.MosaicFirst:
		return all[0], true
	case rule == spec.MosaicMean:
		sum := 0.0
		for _, v := range all {
			sum += v
		}
		return float64(float32(sum / float64(len(all)))), true
	}
	slices.Sort(all)
	return float64(float32((all[(len(all)-1)/2] + all[len(all)/2]) / 2)), true
}

// TestMosaicAgainstSlow: a window on the ground has for each pixel the first of its scenes, their mean or their median,
// whether scenes lie on its grid or have pixels twice as large, and whatever they miss.
func TestMosaicAgainstSlow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		dtype := dtypes.Draw(t, "dtype")
		var scenes []*scene
		for i := range rapid.IntRange(1, 4).Draw(t, "scenes") {
			s := drawScene(t, string(rune('a'+i)), dtype)
			if i > 0 && s.asset.Index.Bands != scenes[0].asset.Index.Bands {
				continue
			}
			scenes = append(scenes, s)
		}
		rule := rapid.SampledFrom([]string{spec.MosaicFirst, spec.MosaicMean, spec.MosaicMedian}).Draw(t, "rule")
		f, err := drawField(t, scenes[0].asset.Index, "")
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range scenes {
			s.bands = drawBands(t, f, s.asset.Index).Picked
		}
		f.OnGround()
		most := rapid.SampledFrom([]int{3, 12}).Draw(t, "most") // small windows lie in a scene wholly
		f.SetSize(rapid.IntRange(1, most).Draw(t, "h"), rapid.IntRange(1, most).Draw(t, "w"))
		window := warp.Raster{CRS: sameCRS, Transform: [6]float64{500000, 10, 0, 5000000, 0, -10}, Height: f.H,
			Width: f.W}
		s := newTensor(t, &chunk.Index{}, f, nil, shuffle.Box{H: f.H, W: f.W}, 0)
		r := NewReader(resources.Options{Opener: filesOf(scenes...)}.WithDefaults())
		limit := 1 << 20
		if rule == spec.MosaicFirst {
			limit = 8 * 14 * 14
		}
		said := int64(0)
		for range 2 { // the second time the reader's memory is dirty
			dirty := &r.Resample
			for _, b := range [][]byte{dirty.In, dirty.InValid, dirty.Out, dirty.OutValid, dirty.next,
				dirty.nextValid} {
				for i := range b[:cap(b)] {
					b[:cap(b)][i] = 0x5a
				}
			}
			mosaic := r.Mosaic(s.row, rule)
			for i, scene := range scenes {
				mapping, err := OnGround(window, &scene.asset)
				if err != nil {
					t.Fatal(err)
				}
				in, _ := f.Taken(mapping)
				said = max(said, f.MosaicBytes(in, limit, rule, len(scenes)))
				last := i == len(scenes)-1
				if err := mosaic.Add(t.Context(), f, scene.asset, scene.bands, mapping, last, limit); err != nil {
					t.Fatal(err)
				}
				full := !f.BlendsScenes(rule)
				for pixel := range len(f.Picked) * f.H * f.W {
					j, y, x := pixel/(f.H*f.W), pixel/f.W%f.H, pixel%f.W
					_, valid := slowMosaic(f, scenes[:i+1], rule, j, y, x)
					full = full && valid
				}
				if mosaic.Full() != full && !last {
					t.Fatalf("after scene %d it is full: %v", i, !full)
				}
				if mosaic.Full() {
					break
				}
			}
			mosaic.End()
			s.check(t, func(j, y, x int) (float64, bool) {
				value, valid := slowMosaic(f, scenes, rule, j, y, x)
				if !valid && f.Final.Base.FillNoData {
					value = filled(f)
				}
				if valid {
					value = normalized(f, j, value)
				}
				return value, valid
			})
		}
		blend, resampler := &r.Resample.scenes, &r.Resample
		held := cap(resampler.In) + cap(resampler.InValid) + cap(resampler.Out) + cap(resampler.OutValid) +
			cap(resampler.picksValid) +
			4*(len(resampler.picks)+len(resampler.places)) + cap(resampler.next) + cap(resampler.nextValid) +
			8*len(blend.sums) + 4*len(blend.counts) + 4*len(blend.values)
		if said < int64(held) {
			t.Fatalf("%d bytes are held, %d were said", held, said)
		}
		kept := cap(resampler.In) + cap(resampler.InValid) + cap(resampler.Out) + cap(resampler.OutValid) +
			cap(r.Stored) + cap(r.Samples)
		if r.HeldBytes() < ReaderBytes+int64(kept) {
			t.Fatalf("%d bytes stay for the next window, %d are said", kept, r.HeldBytes())
		}
		if f.BlendsScenes(rule) && rule == spec.MosaicMedian { // all samples of all scenes are held
			mosaic, n := r.Mosaic(s.row, rule), 4*len(f.Picked)*f.H*f.W
			if !mosaic.all.grow(n) || mosaic.all.grow(2*n-1) || mosaic.all.grow(3*n-1) {
				t.Fatalf("scenes of %d bytes each are over, or not over, a limit", n)
			}
		}
	})
}

// TestStackAgainstSlow: a window of a stack has the pixels of its parts that lie in the stack, whether they have its
// grid, are moved, or are twice as large.
func TestStackAgainstSlow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		dtype := dtypes.Draw(t, "dtype")
		lead, other := drawScene(t, "a", dtype), drawScene(t, "b", dtype)
		lead.y, lead.x, lead.factor = 0, 0, 1
		lead.place()
		first := lead.asset.Index
		x := &chunk.Index{DType: dtype, Height: first.Height, Width: first.Width, ChunkB: 1, ChunkH: 1, ChunkW: 1,
			Bands: first.DataBands() + other.asset.Index.DataBands()}
		a := catalog.Asset{URI: "a", Index: x, Place: lead.asset.Place, Parts: []catalog.Asset{lead.asset, other.asset}}
		f, err := drawField(t, x, "")
		if err != nil {
			t.Fatal(err)
		}
		if err := f.CompileParts(&a); err != nil {
			t.Fatal(err)
		}
		if f.CopiesParts() != (f.To == dtype && f.To != chunk.Float32) {
			t.Fatalf("%v to %v: parts are copied: %v", dtype, f.To, f.CopiesParts())
		}
		win := shuffle.Box{
			Y: rapid.IntRange(-3, x.Height-1).Draw(t, "y"), X: rapid.IntRange(-3, x.Width-1).Draw(t, "x"),
			H: rapid.IntRange(1, 12).Draw(t, "h"), W: rapid.IntRange(1, 12).Draw(t, "w"),
		}
		f.SetSize(win.H, win.W)
		s := newTensor(t, x, f, nil, win, 0)
		r := NewReader(resources.Options{Opener: filesOf(lead, other)}.WithDefaults())
		scenes := []*scene{lead, other}
		for k, part := range f.Parts {
			if part == nil {
				continue
			}
			apart := scenes[k].y >= x.Height || scenes[k].x >= x.Width ||
				scenes[k].y+scenes[k].factor*scenes[k].asset.Index.Height <= 0 ||
				scenes[k].x+scenes[k].factor*scenes[k].asset.Index.Width <= 0
			lay, err := f.NewLay(&a, k)
			if apart != (fault.KindOf(err) == fault.Misplaced) || !apart && err != nil {
				t.Fatalf("a part that has no pixel of the stack, %v: %v", apart, err)
			}
			if apart {
				return
			}
			readPart(t, r, scenes[k], part, &lay, win, s)
			if grid := scenes[k].factor == 1; lay.Same != grid || grid && (lay.Y != -scenes[k].y ||
				lay.X != -scenes[k].x) ||
				lay.Whole() != (grid && lay.Y == 0 && lay.X == 0 && scenes[k].asset.Index.Height == x.Height &&
					scenes[k].asset.Index.Width == x.Width) {
				t.Fatalf("%+v of a part at %d, %d", lay, scenes[k].y, scenes[k].x)
			}
		}
		s.row.Field = f
		s.check(t, func(j, row, column int) (value float64, valid bool) {
			b, from, y, c := f.Picked[j], lead, win.Y+row, win.X+column
			if n := first.DataBands(); b >= n {
				b, from = b-n, other
			}
			if y >= 0 && c >= 0 && y < x.Height && c < x.Width {
				value, valid, _ = from.at(f, b, y, c, f.To == chunk.Float32 && from.factor == 2)
			}
			if !valid && f.Final.Base.FillNoData {
				value = filled(f)
			}
			if valid {
				value = normalized(f, j, value)
			}
			return value, valid
		})
	})
}

// readPart reads the part of a stack into its bands of a row. A part without a pixel in the window is not opened.
func readPart(t *rapid.T, r *Reader, s *scene, part *Raster, lay *Lay, win shuffle.Box, to *tensor) {
	convert, err := part.Final.Get(s.asset.Index, &part.PickedBands)
	if err != nil {
		t.Fatal(err)
	}
	row := *to.row
	row.Field, row.Cv = part, convert
	unopened := func(in chunk.Box) {
		if in.Y0 >= in.Y1 || in.X0 >= in.X1 {
			r.opener = without{s.asset.URI}
		}
	}
	opener := r.opener
	defer func() { r.opener = opener }()
	if lay.Same {
		in := lay.Inside(win)
		unopened(in)
		if err := r.Aligned(t.Context(), s.asset, lay, win, &row, row.Masked(part.Final, in)); err != nil {
			t.Fatal(err)
		}
		return
	}
	mapping, err := lay.Warp(win, part.H, part.W)
	if err != nil {
		t.Fatal(err)
	}
	row.Win = shuffle.Box{H: part.H, W: part.W}
	unopened(part.Source(mapping))
	if err := r.Warped(t.Context(), s.asset, lay, mapping, win, &row, 8*14*14); err != nil {
		t.Fatal(err)
	}
	resampler := &r.Resample
	buffers := cap(resampler.In) + cap(resampler.InValid) + cap(resampler.Out) + cap(resampler.OutValid) +
		cap(resampler.picksValid) + 4*(len(resampler.picks)+len(resampler.places))
	if said := part.WarpedBytes(part.Source(mapping), 8*14*14); said != int64(buffers) {
		t.Fatalf("%d bytes are held, %d were said", buffers, said)
	}
}
