package recipe

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/chaski-eo/chaski/internal/pathname"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/ops/convert"
	"github.com/chaski-eo/chaski/rumi"
	"github.com/chaski-eo/chaski/shuffle"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/taco/build"
)

// validity is the suffix of the tensor with a field's valid pixels. No name of a user's field has it.
const validity = "\x00valid"

// spec returns the run whose rows are the chips. base is the directory of relative paths.
func (r *Recipe) spec(base string) (spec.Spec, error) {
	place := func(path string) string {
		return source.ResolveFrom(path, func(name string) string {
			if base == "" || filepath.IsAbs(name) || source.IsRemote(name) {
				return name
			}
			return pathname.Join(base, name)
		})
	}
	s := spec.Spec{Source: place(r.Source), BatchSize: 1, Seed: r.Windows.Seed, BadSamples: spec.BadSkip, Geo: true}
	s.Missing = r.Missing
	for _, p := range r.Parts {
		s.Parts = append(s.Parts, place(p))
	}
	if r.Where != "" {
		s.Where = append(s.Where, spec.Condition{SQL: r.Where})
	}
	if r.BBox != nil {
		s.Where = append(s.Where, spec.Condition{BBox: (*[4]float64)(r.BBox)})
	}
	if r.Datetime != "" {
		s.Where = append(s.Where, spec.Condition{Datetime: r.Datetime})
	}
	w := r.Windows
	switch w.Kind {
	case Grid:
		s.Sampler = spec.Sampler{Kind: spec.GridWindow, Height: w.Size.H, Width: w.Size.W, StrideY: w.Stride.H,
			StrideX: w.Stride.W, Pad: w.Pad}
	case Random:
		s.Sampler = spec.Sampler{Kind: spec.RandomWindow, Height: w.Size.H, Width: w.Size.W, PerAsset: w.PerFile}
	case Weighted:
		s.Sampler = spec.Sampler{Kind: spec.WeightedWindow, Height: w.Size.H, Width: w.Size.W, PerAsset: w.PerFile,
			Weights: place(w.Weights)}
	case Ground:
		s.Sampler = spec.Sampler{Kind: spec.GroundWindow, Ground: w.Ground}
		if g := &s.Sampler.Ground; g.ROI != "" && !strings.HasPrefix(strings.TrimSpace(string(g.ROI)), "{") { // GeoJSON
			g.ROI = spec.GeoJSON(place(string(g.ROI)))
		}
		// Scenes without a place are left out when the run is opened, before there is a window that could say so.
		s.BadSamples = cmp.Or(map[string]string{"error": spec.BadError}[r.BadSamples], s.BadSamples)
	}
	for i := range r.Fields {
		s.Fields = append(s.Fields, r.Fields[i].spec(w.Pad, place))
	}
	s = s.WithDefaults()
	return s, s.Validate()
}

// spec returns the field of the run.
func (f *Field) spec(pad bool, at func(path string) string) spec.Field {
	field := spec.Field{Name: f.Name, Column: f.Column, Pattern: f.Pattern, Columns: f.Columns, Patterns: f.Patterns,
		Bands: f.Bands, BandNames: f.BandNames, DType: f.DType, Clip: f.Clip, Resample: f.Resample, Ground: f.Ground}
	if f.NoData != nil {
		fill := spec.Float(*f.NoData)
		field.Fill = &fill
	}
	if f.Vector != nil {
		v := *f.Vector
		v.Path = at(v.Path)
		field.Vector = &v
		return field
	}
	field.Kind, field.Layout, field.Pad, field.Validity = spec.RasterField, spec.DefaultLayout, pad, f.Name+validity
	return field
}

// options returns the options of the codec for a chip of a size, without its time if the recipe does not say it.
func (f *Field) options(size Pair) (o convert.Options, err error) {
	c := f.Codec
	tile := c.Tile
	if tile == 0 {
		// 16 is the least tile of a TOG, and its unit.
		tile = min(512, (max(size.H, size.W)+15)/16*16)
	}
	o = convert.Options{Format: c.Format, Tile: tile, Level: c.Level, Graph: c.Graph, MaxCost: c.Cost, Geozl: c.Geozl,
		Unit: c.Unit, Strict: *c.Strict, Workers: 1, MaxBytes: 1}
	if c.Time != "" {
		o.Trailer.Kind, o.Trailer.Times, err = rumi.ParseTimes([]string{c.Time})
	}
	return o, err
}

// collection returns COLLECTION.json without the members that depend on the chips.
func (r *Recipe) collection() (*build.Collection, error) {
	b, err := json.Marshal(r.Collection)
	if err != nil {
		return nil, fmt.Errorf("collection: %w", err)
	}
	c := &build.Collection{}
	if err := c.SetYAML(b); err != nil {
		return nil, err
	}
	return c, c.Check()
}

// hash returns the shares of the split, in the order of their names.
func (s *Split) hash() (shuffle.Split, error) {
	names := slices.SortedFunc(maps.Keys(s.Shares), func(a, b string) int { return cmp.Compare(a, b) })
	weights := make([]float64, len(names))
	for i, name := range names {
		weights[i] = s.Shares[name]
	}
	h, err := shuffle.NewSplit(s.Seed, names, weights)
	if err == nil {
		err = h.Check()
	}
	return h, err
}
