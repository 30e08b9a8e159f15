package job

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/loader/resources"
)

// MergeOptions say how results are merged.
type MergeOptions struct {
	Name string // of the file or folder that the output becomes; "" if it has none
	// Output says how a Placing kind writes the output, in a type of that kind. nil: as the name says.
	Output     any
	Statistics bool // Outcome.Statistics is needed: without them it is an error
	Resource   resources.Options
}

// Results are the results of all shards of a job, which were checked.
type Results struct {
	job   *Job
	names []string // by shard
}

// Results finds the result of every shard. A shard without one is a fault of kind not found, which says how many have
// none, and results that differ are one of kind corrupt.
func (j *Job) Results(ctx context.Context) (*Results, error) {
	results, err := j.results(ctx)
	if err != nil {
		return nil, err
	}
	r := &Results{job: j, names: make([]string, len(j.Shards))}
	absent, first, torn := 0, 0, ""
	for shard := range j.Shards {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		name, err := j.find(ctx, shard, results[shard])
		switch {
		case errors.Is(err, errMissing):
			if absent++; absent == 1 {
				first = shard
				if len(results[shard]) > 0 {
					torn = ", whose file is damaged"
				}
			}
		case err != nil:
			return nil, err
		}
		r.names[shard] = name
	}
	if absent > 0 {
		return nil, fault.WithFile(fault.New(fault.NotFound, "job", fault.NoOffset,
			"%d of %d shards have no result; the first is %d%s", absent, len(j.Shards), first, torn), j.folder.name(""))
	}
	return r, nil
}

// Merge joins the results into one output.
func (r *Results) Merge(ctx context.Context, out io.Writer, o MergeOptions) (Outcome, error) {
	return r.job.kind.Merge(ctx, r.merging(ctx, o), out)
}

// Places reports whether the output of a job is written by Place, and not by Merge.
func (j *Job) Places() bool {
	_, is := j.kind.(Placing)
	return is
}

// Place joins the results into the file or folder o.Name: see Placing.
func (r *Results) Place(ctx context.Context, o MergeOptions) (Outcome, error) {
	placing, is := r.job.kind.(Placing)
	if !is || o.Name == "" {
		return Outcome{}, fmt.Errorf("job: the output of kind %s at %q: it has a name if the kind places it",
			r.job.Kind, o.Name)
	}
	return placing.Place(ctx, r.merging(ctx, o))
}

func (r *Results) merging(ctx context.Context, o MergeOptions) *Merging {
	merging := &Merging{MergeOptions: o, Job: r.job}
	merging.Parts = func(yield func(*Part, error) bool) {
		for shard, name := range r.names {
			if err := ctx.Err(); err != nil {
				yield(nil, err)
				return
			}
			openResult, err := r.job.openPart(ctx, shard, name)
			if err != nil {
				yield(nil, err)
				return
			}
			goesOn := yield(&openResult.Part, nil)
			_ = openResult.file.Close() // it was read only
			if !goesOn {
				return
			}
		}
	}
	return merging
}

// InPart names the result of a shard in an error about it.
func (j *Job) InPart(shard int, err error) error {
	return fault.WithFile(fault.Wrap(fault.Corrupt, fmt.Sprintf("shard %d", shard), fault.NoOffset, err),
		j.folder.name(resultsName))
}
