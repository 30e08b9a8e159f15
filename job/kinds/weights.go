package kinds

import (
	"context"
	"encoding/json"
	"io"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/job"
	"github.com/chaski-eo/chaski/loader/resources"
	"github.com/chaski-eo/chaski/loader/rows"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/loader/survey"
)

const weightsName = "weights"

// Weights is the kind whose output is the file of survey.Weights. An item is a row of the dataset. The result of a
// shard is a file of weights of its rows.
type Weights struct {
	Dataset Dataset   `json:"dataset"`
	Field   string    `json:"field,omitempty"` // survey.WeightOptions
	Classes []float64 `json:"classes,omitempty"`
	Cell    int       `json:"cell,omitempty"`
}

// weightsTally counts the rows of a shard that have no weight, because they cannot be read.
type weightsTally struct {
	Skipped int64 `json:"skipped"`
}

// Name implements job.Kind.
func (*Weights) Name() string { return weightsName }

func (k *Weights) options() survey.WeightOptions {
	return survey.WeightOptions{Field: k.Field, Classes: k.Classes, Cell: k.Cell}
}

// Items implements job.Kind.
func (k *Weights) Items(ctx context.Context, o resources.Options) (job.Items, error) {
	return k.Dataset.items(ctx, o, func(ctx context.Context, sp spec.Spec, o resources.Options) (survey.Extent, error) {
		return survey.WeightsExtent(ctx, sp, o, k.options())
	})
}

// Run implements job.Kind.
func (k *Weights) Run(ctx context.Context, t *job.Task, body io.Writer) (any, error) {
	skipped, err := survey.WeightsPart(ctx, body, k.Dataset.Spec, t.Options, k.options(), k.Dataset.Extent, t.First,
		t.Count, t.Progress)
	return weightsTally{skipped}, err
}

// Check implements job.Kind.
func (k *Weights) Check(tally json.RawMessage, s job.Shard) (int64, error) {
	t, err := parseTally[weightsTally](tally)
	if err == nil && (t.Skipped < 0 || t.Skipped > s.Count) {
		err = corrupt("%d rows left out, of %d", t.Skipped, s.Count)
	}
	return t.Skipped, err
}

// Merge implements job.Kind.
func (k *Weights) Merge(_ context.Context, m *job.Merging, out io.Writer) (job.Outcome, error) {
	pos := 0
	err := rows.MergeWeights(out, func(yield func(rows.WeightsPart, error) bool) {
		for p, err := range m.Parts {
			if err != nil {
				yield(rows.WeightsPart{}, err)
				return
			}
			pos = p.Number
			if !yield(rows.WeightsPart{Rows: p.Shard.Count, File: p.Body}, nil) {
				return
			}
		}
	})
	if fault.KindOf(err) != 0 {
		err = m.Job.InPart(pos, err)
	}
	return job.Outcome{}, err
}
