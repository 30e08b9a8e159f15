package kinds

import (
	"context"
	"encoding/json"
	"io"

	"github.com/chaski-eo/chaski/job"
	"github.com/chaski-eo/chaski/loader/resources"
	"github.com/chaski-eo/chaski/loader/survey"
)

const pairsName = "pairs"

// Pairs is the kind whose output is the report of survey.Pairs, as JSON. An item is a sample that the conditions and
// the split leave.
type Pairs struct {
	Dataset Dataset `json:"dataset"`
	Worst   int     `json:"worst"` // survey.PairOptions
}

// pairsTally is the result of a shard, which has no body.
type pairsTally struct {
	Report     survey.PairReport `json:"report"`
	firstFault                   // of the first pair of the list
}

// Name implements job.Kind.
func (*Pairs) Name() string { return pairsName }

// Items implements job.Kind.
func (k *Pairs) Items(ctx context.Context, o resources.Options) (job.Items, error) {
	// The dataset's own fields, which a spec without fields means here: the defaults of a spec have one field.
	k.Dataset.Spec.AllFields = k.Dataset.Spec.AllFields || len(k.Dataset.Spec.Fields) == 0
	return k.Dataset.items(ctx, o, survey.PairsExtent)
}

// Run implements job.Kind.
func (k *Pairs) Run(ctx context.Context, t *job.Task, _ io.Writer) (any, error) {
	report, err := survey.PairsPart(ctx, k.Dataset.Spec, t.Options, survey.PairOptions{Worst: k.Worst,
		Progress: t.Progress}, k.Dataset.Extent, t.First, t.Count)
	if err != nil {
		return nil, err
	}
	tally := pairsTally{Report: *report}
	if len(report.Worst) > 0 {
		tally.firstFault = newFirstFault(report.Worst[0].Err())
	}
	return tally, nil
}

// Check implements job.Kind. A pair that cannot be read is in the report, so that nothing is left out.
func (k *Pairs) Check(tally json.RawMessage, s job.Shard) (int64, error) {
	t, err := parseTally[pairsTally](tally)
	if err != nil {
		return 0, err
	}
	report := &t.Report
	for _, n := range []int64{report.Misplaced, report.Unplaced, report.Unreadable} {
		if n < 0 || n > report.Pairs {
			return 0, corrupt("%d of %d pairs", n, report.Pairs)
		}
	}
	if report.Samples != s.Count || report.Pairs < s.Count || len(report.Worst) > k.Worst ||
		int64(len(report.Worst)) > report.Pairs {
		err = corrupt("%d pairs of %d samples, of which %d are listed, of %d", report.Pairs, report.Samples,
			len(report.Worst),
			s.Count)
	}
	return 0, err
}

// Merge implements job.Kind.
func (k *Pairs) Merge(_ context.Context, m *job.Merging, out io.Writer) (o job.Outcome, err error) {
	var total survey.PairReport
	for p, err := range m.Parts {
		if err != nil {
			return o, err
		}
		t, err := parseTally[pairsTally](p.Tally)
		if err != nil {
			return o, m.Job.InPart(p.Number, err)
		}
		total.Add(&t.Report, k.Worst)
		// The first pair of all is the first one of its part.
		if len(t.Report.Worst) == 0 {
			continue
		}
		if first := t.Report.Worst[0]; first.Row == total.Worst[0].Row && first.Other == total.Worst[0].Other {
			o.Fault = t.of(first.Error)
		}
	}
	return o, writeJSON(out, total)
}
