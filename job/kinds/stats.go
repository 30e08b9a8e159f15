package kinds

import (
	"context"
	"encoding/json"
	"io"

	"github.com/chaski-eo/chaski/job"
	"github.com/chaski-eo/chaski/loader/resources"
	"github.com/chaski-eo/chaski/loader/survey"
	"github.com/chaski-eo/chaski/stats"
)

const statsName = "stats"

// Stats is the kind whose output is the report of survey.Stats, as JSON. An item is a sample that the conditions and
// the split leave.
type Stats struct {
	Dataset Dataset `json:"dataset"`
}

// Name implements job.Kind.
func (*Stats) Name() string { return statsName }

// Items implements job.Kind.
func (k *Stats) Items(ctx context.Context, o resources.Options) (job.Items, error) {
	return k.Dataset.items(ctx, o, survey.Measurable)
}

// statsTally counts the samples of a shard.
type statsTally struct {
	Samples int64 `json:"samples"`
	Skipped int64 `json:"skipped"`
}

// statsField is survey.PartField. The body of a result is a list of them, as JSON.
type statsField struct {
	Name  string   `json:"name"`
	Bands []string `json:"bands"`
	State []byte   `json:"state"` // stats.Field.AppendState
}

// maxStats bounds the body of a shard's result, in bytes: the largest state of a field (stats.ParseState) in base64.
const maxStats = 4 << 30 / 3

// Run implements job.Kind.
func (k *Stats) Run(ctx context.Context, t *job.Task, body io.Writer) (any, error) {
	part, err := survey.StatsPart(ctx, k.Dataset.Spec, t.Options, k.Dataset.Extent, t.First, t.Count, t.Progress)
	if err != nil {
		return nil, err
	}
	fields := []statsField{}
	for _, f := range part.Fields {
		fields = append(fields, statsField{f.Name, f.Bands, f.Stats.AppendState(nil)})
	}
	data, err := json.Marshal(fields)
	if err != nil {
		return nil, err
	}
	// Merge would refuse it only after all other shards were done: one with too many bands, for example.
	if _, err := parseStats(data); err != nil {
		return nil, err
	}
	_, err = body.Write(data)
	return statsTally{part.Samples, part.Skipped}, err
}

// Check implements job.Kind.
func (k *Stats) Check(tally json.RawMessage, s job.Shard) (int64, error) {
	t, err := parseTally[statsTally](tally)
	if err == nil && (min(t.Samples, t.Skipped) < 0 || t.Samples != s.Count-t.Skipped) {
		err = corrupt("%d samples and %d skipped, of %d", t.Samples, t.Skipped, s.Count)
	}
	return t.Skipped, err
}

// Merge implements job.Kind.
func (k *Stats) Merge(_ context.Context, m *job.Merging, out io.Writer) (job.Outcome, error) {
	var total *survey.Part
	for p, err := range m.Parts {
		if err != nil {
			return job.Outcome{}, err
		}
		part, err := statsPart(p)
		switch {
		case err != nil:
			return job.Outcome{}, m.Job.InPart(p.Number, err)
		case total == nil:
			total = part
			continue
		}
		if err := total.Merge(part); err != nil {
			return job.Outcome{}, m.Job.InPart(p.Number, corrupt("%v", err))
		}
	}
	return job.Outcome{}, writeJSON(out, total.Report(k.Dataset.Spec.Fields))
}

// statsPart parses the result of a shard.
func statsPart(p *job.Part) (*survey.Part, error) {
	t, err := parseTally[statsTally](p.Tally)
	if err != nil {
		return nil, err
	}
	data, err := readBody(p, maxStats)
	if err != nil {
		return nil, err
	}
	fields, err := parseStats(data)
	return &survey.Part{Samples: t.Samples, Skipped: t.Skipped, Fields: fields}, err
}

func parseStats(b []byte) ([]survey.PartField, error) {
	var fields []statsField
	if err := json.Unmarshal(b, &fields); err != nil {
		return nil, corrupt("%v", err)
	}
	states := make([][]byte, len(fields))
	for i, f := range fields {
		states[i] = f.State
	}
	parsed, err := stats.ParseStates(states)
	if err != nil {
		return nil, err
	}
	var out []survey.PartField
	for i, f := range fields {
		out = append(out, survey.PartField{Name: f.Name, Bands: f.Bands, Stats: parsed[i]})
	}
	return out, nil
}
