package loader

import (
	"github.com/chaski-eo/chaski/loader/batch"
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

// ParseMeasured is ParseSpec for statistics and counts: see spec.ParseMeasured.
func ParseMeasured(b []byte) (Spec, error) { return spec.ParseMeasured(b) }

// ErrClosed is the error of a loader that was closed, and of tickets that were unfinished when the engine was closed.
var ErrClosed = batch.ErrClosed
