package loader

import (
	"context"

	"github.com/chaski-eo/chaski/loader/resources"
	"github.com/chaski-eo/chaski/loader/rows"
	"github.com/chaski-eo/chaski/loader/spec"
)

// Package spec defines what a user asks for. These are its names that most programs need.
type (
	// Spec says everything that decides the batches: see spec.Spec.
	Spec = spec.Spec
	// Field is one field of a sample: see spec.Field.
	Field = spec.Field
	// Sampler says which windows an asset gives: see spec.Sampler.
	Sampler = spec.Sampler
	// Normalize is the arithmetic of a raster field: see spec.Normalize.
	Normalize = spec.Normalize
	// Source is a dataset of a spec: see spec.Source.
	Source = spec.Source
	// Subset selects rows of a dataset: see spec.Subset.
	Subset = spec.Subset
	// Condition selects rows: see spec.Condition.
	Condition = spec.Condition
	// Split divides rows into named parts: see spec.Split.
	Split = spec.Split
	// Group is containers with conditions of their own: see spec.Group.
	Group = spec.Group
	// Strata draw the values of a column in fixed shares: see spec.Strata.
	Strata = spec.Strata
	// Container is the name of a container's path in a source: see spec.Container.
	Container = spec.Container
	// Float is a number that may be NaN or infinite in JSON: see spec.Float.
	Float = spec.Float
	// Timestamp is a range of times at which an array is read: see spec.Timestamp.
	Timestamp = spec.Timestamp
)

// Policies for bad samples and kinds of windows: see package spec.
const (
	BadError     = spec.BadError
	BadSkip      = spec.BadSkip
	BadReplace   = spec.BadReplace
	BadFill      = spec.BadFill
	WholeChip    = spec.WholeChip
	RandomWindow = spec.RandomWindow
	GridWindow   = spec.GridWindow
	TileWindow   = spec.TileWindow
)

// ParseSpec reads the JSON of a spec, and checks it: see spec.ParseSpec.
func ParseSpec(b []byte) (Spec, error) { return spec.ParseSpec(b) }

// Schema returns the JSON Schema of a spec: see spec.Schema.
func Schema() []byte { return spec.Schema() }

// Package resources defines what an engine may use. These are its names that most programs need.
type (
	// Options configure an engine: see resources.Options.
	Options = resources.Options
	// Stages counts where the time of workers goes: see resources.Stages.
	Stages = resources.Stages
	// Buffer is memory for one batch: see resources.Buffer.
	Buffer = resources.Buffer
	// Members keeps containers open: see resources.Members.
	Members = resources.Members
)

// Defaults of Options.
const (
	DefaultMaxChunkBytes = resources.DefaultMaxChunkBytes
	DefaultMemoryBytes   = resources.DefaultMemoryBytes
	DefaultCacheBytes    = resources.DefaultCacheBytes
	NoIndexCache         = resources.NoIndexCache
)

// NewHeap returns n bytes that the garbage collector frees: see resources.NewHeap.
func NewHeap(n int) Buffer { return resources.NewHeap(n) }

// Table is an open dataset: see rows.Table.
type Table = rows.Table

// OpenTable opens the dataset of a spec that has one source: see rows.OpenTable.
func OpenTable(ctx context.Context, s Spec, o Options) (Table, error) {
	return rows.OpenTable(ctx, s, o)
}
