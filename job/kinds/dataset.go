package kinds

import (
	"context"
	"encoding/json"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/job"
	"github.com/chaski-eo/chaski/loader/resources"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/loader/survey"
)

// Dataset is what kinds over the samples of a spec have in common.
type Dataset struct {
	Spec   spec.Spec     `json:"spec"`   // of the dataset, with its fields, conditions and split
	Extent survey.Extent `json:"extent"` // of the dataset when the job was planned
}

// UnmarshalJSON implements json.Unmarshaler. It parses the spec with spec.ParseSpec, which enforces its
// limits.
func (d *Dataset) UnmarshalJSON(b []byte) (err error) {
	var raw struct {
		Spec   json.RawMessage `json:"spec"`
		Extent survey.Extent   `json:"extent"`
	}
	if err := json.Unmarshal(b, &raw); err != nil {
		return err
	}
	d.Extent = raw.Extent
	d.Spec, err = spec.ParseSpec(raw.Spec)
	return err
}

// items lists the samples of an extent. It opens the dataset and reads no pixels.
func (d *Dataset) items(ctx context.Context, o resources.Options,
	extent func(context.Context, spec.Spec, resources.Options) (survey.Extent, error)) (items job.Items, err error) {
	if d.Extent, err = extent(ctx, d.Spec, o); err != nil {
		return items, err
	}
	if d.Extent.Rows < 1 {
		return items, fault.WithFile(fault.New(fault.NotFound, "dataset", fault.NoOffset, "no samples"), d.Spec.Source)
	}
	d.Spec = d.Spec.WithDefaults()
	d.Spec.BatchSize = max(d.Spec.BatchSize, 1) // what reads a spec needs one, although nothing here makes batches
	return job.Items{Count: d.Extent.Rows}, nil
}
