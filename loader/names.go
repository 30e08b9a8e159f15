package loader

import (
	"github.com/chaski-eo/chaski/loader/resources"
	"github.com/chaski-eo/chaski/loader/spec"
)

// These are the names of packages spec and resources that most programs need.
type (
	// Spec says everything that decides the batches: see spec.Spec.
	Spec = spec.Spec
	// Field is one field of a sample: see spec.Field.
	Field = spec.Field
	// Sampler says which windows an asset gives: see spec.Sampler.
	Sampler = spec.Sampler
	// GridWindows are the members of a grid's Sampler: see spec.GridWindows.
	GridWindows = spec.GridWindows
	// ResizedWindows are the members of a Sampler of resized windows: see spec.ResizedWindows.
	ResizedWindows = spec.ResizedWindows
	// WeightedWindows are the members of a Sampler by weights: see spec.WeightedWindows.
	WeightedWindows = spec.WeightedWindows
	// TileWindows are the members of a Sampler tile by tile: see spec.TileWindows.
	TileWindows = spec.TileWindows
	// RowWindows are the members of a Sampler by boxes of rows: see spec.RowWindows.
	RowWindows = spec.RowWindows
	// GeoWindows are the members of a Sampler of windows on the ground: see spec.GeoWindows.
	GeoWindows = spec.GeoWindows
	// Source is a dataset of a spec: see spec.Source.
	Source = spec.Source
	// Subset selects rows of a dataset: see spec.Subset.
	Subset = spec.Subset
	// Condition selects rows: see spec.Condition.
	Condition = spec.Condition
	// Options configure an engine: see resources.Options.
	Options = resources.Options
)

// ParseSpec reads the JSON of a spec, and checks it: see spec.ParseSpec.
func ParseSpec(b []byte) (Spec, error) { return spec.ParseSpec(b) }
