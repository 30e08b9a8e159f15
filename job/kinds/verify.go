package kinds

import (
	"context"
	"encoding/json"
	"io"

	"github.com/chaski-eo/chaski/job"
	"github.com/chaski-eo/chaski/loader/resources"
	"github.com/chaski-eo/chaski/ops/verify"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/tiledb"
)

const verifyName = "verify"

// Verify is the kind whose output is the report of verify.Paths. An item is a file, container or array.
type Verify struct {
	Paths     []string `json:"paths"`
	MaxFaults int      `json:"max_faults"` // how many faults the report lists
}

// verifyTally is the result of a shard, which has no body.
type verifyTally struct {
	Report verify.Report `json:"report"`
	firstFault
}

// Name implements job.Kind.
func (*Verify) Name() string { return verifyName }

// Items implements job.Kind. Local paths become absolute, so that shards find them wherever they run.
func (k *Verify) Items(ctx context.Context, o resources.Options) (items job.Items, err error) {
	paths := make([]string, len(k.Paths))
	for i, p := range k.Paths {
		if paths[i], err = source.Abs(p); err != nil {
			return items, err
		}
	}
	files, err := verify.Expand(ctx, paths, verify.Options{Opener: o.Opener})
	if err != nil {
		return items, err
	}
	items = job.Items{Count: int64(len(files)), Lists: true}
	for _, f := range files {
		items.Bytes += f.Bytes
	}
	items.Each = func(_ context.Context, add func(job.Item) error) error {
		for _, file := range files {
			b, err := json.Marshal(file)
			if err == nil {
				err = add(job.Item{Body: b, Bytes: file.Bytes})
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
	return items, nil
}

// Run implements job.Kind.
func (k *Verify) Run(ctx context.Context, t *job.Task, _ io.Writer) (any, error) {
	files, err := parseBodies[verify.File](t)
	if err != nil {
		return nil, err
	}
	if k.MaxFaults < 1 {
		return nil, corrupt("max_faults is %d: it must be at least 1", k.MaxFaults)
	}
	key, err := tiledb.KeyFromEnv()
	if err != nil {
		return nil, err
	}
	options, done := opened(t.Options)
	defer done()
	report, err := verify.Files(ctx, files, verify.Options{Workers: options.Workers, MaxChunk: options.MaxChunkBytes,
		Key:       key,
		MaxFaults: k.MaxFaults, Opener: options.Opener,
		Progress: func(done, total int) { t.Progress(int64(done), int64(total)) }})
	if err != nil {
		return nil, err
	}
	return verifyTally{*report, newFirstFault(report.Err())}, nil
}

// Check implements job.Kind. A fault leaves out nothing: the file was checked.
func (k *Verify) Check(tally json.RawMessage, s job.Shard) (int64, error) {
	t, err := parseTally[verifyTally](tally)
	report := &t.Report
	if err == nil && (report.Files < s.Count || report.Faulty < 0 || report.Faulty > report.Files+report.Rows ||
		int64(len(report.Faults)) != min(report.Faulty, int64(k.MaxFaults))) {
		err = corrupt("%d files and %d faults, of which %d are listed, of %d files", report.Files, report.Faulty,
			len(report.Faults),
			s.Count)
	}
	return 0, err
}

// Merge implements job.Kind.
func (k *Verify) Merge(_ context.Context, m *job.Merging, out io.Writer) (o job.Outcome, err error) {
	total := &verify.Report{Faults: []string{}}
	for p, err := range m.Parts {
		if err != nil {
			return o, err
		}
		t, err := parseTally[verifyTally](p.Tally)
		if err != nil {
			return o, m.Job.InPart(p.Number, err)
		}
		total.Add(&t.Report, k.MaxFaults)
		if o.Fault == nil && len(t.Report.Faults) > 0 {
			o.Fault = t.of(t.Report.Faults[0])
		}
	}
	return o, writeJSON(out, total)
}
