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
	run := spec.Spec{Source: place(r.Source), BatchSize: 1, Seed: r.Windows.Seed, BadSamples: spec.BadSkip, Geo: true}
	run.Missing = r.Missing
	for _, p := range r.Parts {
		run.Parts = append(run.Parts, place(p))
	}
	if r.Where != "" {
		run.Where = append(run.Where, spec.Condition{SQL: r.Where})
	}
	if r.BBox != nil {
		run.Where = append(run.Where, spec.Condition{BBox: (*[4]float64)(r.BBox)})
	}
	if r.Datetime != "" {
		run.Where = append(run.Where, spec.Condition{Datetime: r.Datetime})
	}
	windows := r.Windows
	run.Sampler = windows.Sampler
	run.Sampler.Kind, run.Sampler.PerAsset = kinds[windows.Kind], windows.PerFile
	if windows.Weights != "" {
		run.Sampler.Weights = place(windows.Weights)
	}
	if roi := strings.TrimSpace(string(windows.ROI)); roi != "" && !strings.HasPrefix(roi, "{") { // GeoJSON itself
		run.Sampler.ROI = spec.GeoJSON(place(roi))
	}
	if windows.Kind == Ground && r.BadSamples == "error" {
		// An error here, because scenes without a place are left out when the run is opened, before there is a window
		// that could say so.
		run.BadSamples = spec.BadError
	}
	for i := range r.Fields {
		run.Fields = append(run.Fields, r.Fields[i].spec(windows.Pad, place))
	}
	run = run.WithDefaults()
	return run, run.Validate()
}

// spec returns the field of the run.
func (f *Field) spec(pad bool, at func(path string) string) spec.Field {
	field := f.pixels()
	field.Fill = f.NoData
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
func (f *Field) options(height, width int) (o convert.Options, err error) {
	codec := f.Codec
	tile := codec.Tile
	if tile == 0 {
		// 16 is the least tile of a TOG, and its unit.
		tile = min(512, (max(height, width)+15)/16*16)
	}
	o = convert.Options{Format: codec.Format, Tile: tile, Level: codec.Level, Graph: codec.Graph, MaxCost: codec.Cost,
		Geozl: codec.Geozl, Unit: codec.Unit, Strict: *codec.Strict, Workers: 1, MaxBytes: 1}
	if codec.Time != "" {
		o.Trailer.Kind, o.Trailer.Times, err = rumi.ParseTimes([]string{codec.Time})
	}
	return o, err
}

// collection returns COLLECTION.json without the members that depend on the chips.
func (r *Recipe) collection() (*build.Collection, error) {
	data, err := json.Marshal(r.Collection)
	if err != nil {
		return nil, fmt.Errorf("collection: %w", err)
	}
	collection := &build.Collection{}
	if err := collection.SetYAML(data); err != nil {
		return nil, err
	}
	return collection, collection.Check()
}

// Title returns the title of the collection, or its id if it has none.
func (r *Recipe) Title() string {
	collection, err := r.collection()
	if err != nil {
		return "" // Parse refuses such a collection
	}
	return cmp.Or(collection.Title, collection.ID)
}

// hash returns the shares of the split, in the order of their names.
func (s *Split) hash() (shuffle.Split, error) {
	names := slices.SortedFunc(maps.Keys(s.Shares), func(a, b string) int { return cmp.Compare(a, b) })
	weights := make([]float64, len(names))
	for i, name := range names {
		weights[i] = s.Shares[name]
	}
	split, err := shuffle.NewSplit(s.Seed, names, weights)
	if err == nil {
		err = split.Check()
	}
	return split, err
}
