package kinds

import (
	"context"
	"encoding/json"
	"io"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/job"
	"github.com/chaski-eo/chaski/loader/resources"
	"github.com/chaski-eo/chaski/ops/recipe"
	"github.com/chaski-eo/chaski/source"
)

const makeName = "make"

// Make is the kind whose output is the container that recipe.Make writes. An item is a window. The result of a shard is
// a part: the chips of its windows.
type Make struct {
	Recipe string `json:"recipe"` // its text
	// Base is the directory that relative paths of the recipe start from, an absolute path or a URL.
	Base   string        `json:"base"`
	Extent recipe.Extent `json:"extent"` // of the source when the job was planned

	recipe *recipe.Recipe
}

// NewMake returns the kind of the recipe with a text.
func NewMake(text []byte, base string) (*Make, error) {
	k := &Make{Recipe: string(text), Base: base}
	return k, k.parse()
}

// Name implements job.Kind.
func (*Make) Name() string { return makeName }

// UnmarshalJSON implements json.Unmarshaler. It checks the recipe.
func (k *Make) UnmarshalJSON(b []byte) error {
	type plain Make
	if err := json.Unmarshal(b, (*plain)(k)); err != nil {
		return err
	}
	return k.parse()
}

func (k *Make) parse() (err error) {
	k.recipe, err = recipe.Parse([]byte(k.Recipe))
	return err
}

// options returns the options of the recipe.
func (k *Make) options(o resources.Options) recipe.Options {
	return recipe.Options{Base: k.Base, Loader: o}
}

// Items implements job.Kind.
func (k *Make) Items(ctx context.Context, o resources.Options) (items job.Items, err error) {
	if k.Base, err = source.Abs(k.Base); err != nil {
		return items, err
	}
	if k.Extent, err = recipe.Survey(ctx, k.recipe, k.options(o)); err != nil {
		return items, err
	}
	if k.Extent.Windows < 1 {
		return items, fault.WithFile(fault.New(fault.NotFound, "dataset", fault.NoOffset, "no windows"),
			k.recipe.Source)
	}
	return job.Items{Count: k.Extent.Windows}, nil
}

// Run implements job.Kind.
func (k *Make) Run(ctx context.Context, t *job.Task, body io.Writer) (any, error) {
	o := k.options(t.Options)
	o.Progress = t.Progress
	return recipe.WritePart(ctx, body, k.recipe, k.Extent, t.First, t.Count, o)
}

// Check implements job.Kind.
func (k *Make) Check(tally json.RawMessage, s job.Shard) (int64, error) {
	counts, err := parseTally[recipe.Counts](tally)
	if err != nil {
		return 0, err
	}
	left := s.Count
	for _, part := range []int64{counts.Chips, counts.Bad, counts.Misplaced, counts.Empty, counts.Unlabelled} {
		if part < 0 || part > left {
			return 0, corrupt("%d chips and %d windows without one, of %d", counts.Chips, counts.Left(), s.Count)
		}
		left -= part
	}
	if left != 0 {
		return 0, corrupt("%d windows of %d are not accounted for", left, s.Count)
	}
	return counts.Left(), nil
}

// Merge implements job.Kind.
func (*Make) Merge(context.Context, *job.Merging, io.Writer) (job.Outcome, error) {
	return job.Outcome{}, fault.New(fault.Unsupported, "container", fault.NoOffset,
		"it needs the name of a file or folder: -o NAME")
}

// Place implements job.Placing, with a recipe.Output. Merging opens the source for the columns of the container, and
// reads no pixels.
func (k *Make) Place(ctx context.Context, m *job.Merging) (o job.Outcome, err error) {
	if m.Statistics && !*k.recipe.Statistics {
		return o, fault.New(fault.Unsupported, "recipe", fault.NoOffset, "it turns statistics off")
	}
	opt := k.options(m.Resource)
	opt.Output, _ = m.Output.(recipe.Output)
	pos, inside := 0, false
	res, err := recipe.Merge(ctx, k.recipe, m.Name, k.Extent, func(yield func(*recipe.Part, error) bool) {
		for p, err := range m.Parts {
			if err != nil {
				yield(nil, err)
				return
			}
			pos, inside = p.Number, true
			if !yield(&recipe.Part{First: p.Shard.First, Count: p.Shard.Count, Body: p.Body}, nil) {
				return
			}
			inside = false
		}
	}, opt)
	switch {
	case err != nil && inside && fault.KindOf(err) != 0:
		return o, m.Job.InPart(pos, err)
	case err != nil:
		return o, err
	}
	o.Notes = append(o.Notes, res.Remarks()...)
	if res.Report != nil {
		o.Statistics = res.Report
	}
	return o, nil
}
