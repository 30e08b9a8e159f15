package job

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/chaski-eo/chaski/fault"
)

// LocalOptions say how a pool on this machine does shards.
type LocalOptions struct {
	RunOptions     // of each shard, but for Progress
	Shards     int // done at the same time; 0: one
	// IgnoreErrors goes on with the other shards after one that failed. The error at the end is the error of the first
	// of them, and says how many failed.
	IgnoreErrors bool
	// Progress, if not nil, is called after every item, by one goroutine at a time. Shards that have their results are
	// done from the beginning.
	Progress func(done, total int64)
}

// Local does all shards that have no result.
func (j *Job) Local(ctx context.Context, o LocalOptions) error {
	// Once for all: in the folder of a large job, a list for each shard costs the square of their number.
	results, err := j.results(ctx)
	if err != nil {
		return err
	}
	p := &pool{total: j.Items, progress: o.Progress, of: map[int]int64{}}
	failed := map[int]error{}
	group, gctx := errgroup.WithContext(ctx)
	group.SetLimit(max(1, o.Shards))
	for shard := range j.Shards {
		if gctx.Err() != nil {
			break
		}
		group.Go(func() error {
			ro := o.RunOptions
			ro.Progress = func(done, _ int64) { p.set(shard, done) }
			err := j.run(gctx, shard, results[shard], ro)
			if err == nil {
				p.set(shard, j.Shards[shard].Count)
			}
			if err == nil || !o.IgnoreErrors || gctx.Err() != nil {
				return err
			}
			p.mu.Lock()
			defer p.mu.Unlock()
			failed[shard] = err
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil || len(failed) == 0 {
		return err
	}
	return errFailed(failed)
}

// errFailed returns the error about shards that failed: the first one's, with their number.
func errFailed(failed map[int]error) error {
	first := failed[slices.Min(slices.Collect(maps.Keys(failed)))]
	if len(failed) == 1 {
		return first
	}
	note := fmt.Sprintf(" (%d shards failed, and this is the first)", len(failed))
	var f *fault.Error
	if !errors.As(first, &f) {
		return fmt.Errorf("%w%s", first, note)
	}
	told := *f
	told.Msg += note
	return &told
}

// pool adds up the progress of shards that are done at the same time.
type pool struct {
	total    int64
	progress func(done, total int64)

	mu   sync.Mutex
	done int64
	of   map[int]int64 // by shard
}

// set says how many items of a shard are done. A shard that is tried again begins at 0.
func (p *pool) set(shard int, done int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done += done - p.of[shard]
	p.of[shard] = done
	if p.progress != nil {
		p.progress(p.done, p.total)
	}
}
