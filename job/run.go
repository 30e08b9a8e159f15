package job

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/crash"
	"github.com/chaski-eo/chaski/loader/resources"
	"github.com/chaski-eo/chaski/source"
)

// States of a run.
const (
	Running = "running" // or killed since
	Done    = "done"
	Failed  = "failed"
)

// record is what runs/SHARD.json holds about the last run of a shard. A copy of only the results lacks it, and the
// output does not depend on it.
type record struct {
	State   string  `json:"state"`
	Host    string  `json:"host"`
	Started int64   `json:"started"` // seconds since 1970
	Seconds float64 `json:"seconds"`
	Skipped int64   `json:"skipped"`
	// Requests and Read are what all tries read: source.Meter.
	Requests int64  `json:"requests"`
	Read     int64  `json:"read"` // bytes
	Error    string `json:"error,omitempty"`
	Kind     string `json:"kind,omitempty"` // of the error; "" if it has none
}

const (
	// maxRecord bounds a record, in bytes: an error has at most maxError, each byte at most 6 as JSON.
	maxRecord = 64 << 10
	maxError  = 8 << 10
	// maxSeconds is longer than any shard takes: some 30 years. The sum of MaxShards of it is finite, as JSON needs it.
	maxSeconds = 1e9
	// maxRead is more bytes and requests than a shard has: a year at 300 MB/s. The sum of MaxShards of it is an int64.
	maxRead = 1e13
)

func recordName(shard int) string { return fmt.Sprintf("%s/%d.json", runsName, shard) }

// possible reports whether a shard can have r.
func (r *record) possible(s Shard) bool {
	upTo := func(n, most int64) bool { return 0 <= n && n <= most }
	known := r.State == Running || r.State == Done || r.State == Failed
	return known && r.Seconds >= 0 && r.Seconds <= maxSeconds &&
		upTo(r.Skipped, s.Count) && upTo(r.Requests, maxRead) && upTo(r.Read, maxRead)
}

// RunOptions say how shards are run.
type RunOptions struct {
	Again    bool // also a shard that has its result
	Retry    int  // how often a shard is tried again after an error that is not of a file: see Retryable
	Resource resources.Options
	// Progress, if not nil, is called after every item, by one goroutine at a time.
	Progress func(done, total int64)
}

// Run does one shard. A shard that has its result is skipped, unless Again is set. If Run ends early, it leaves no
// result.
func (j *Job) Run(ctx context.Context, shard int, o RunOptions) error {
	if _, err := j.shard(shard); err != nil {
		return err
	}
	var names []string
	if !o.Again {
		results, err := j.resultsThat(ctx, strconv.Itoa(shard)+".")
		if err != nil {
			return err
		}
		names = results[shard]
	}
	return j.run(ctx, shard, names, o)
}

// run does a shard that has the given results, and those need not count.
func (j *Job) run(ctx context.Context, shard int, names []string, o RunOptions) error {
	if !o.Again {
		if _, err := j.find(ctx, shard, names); err == nil || !errors.Is(err, errMissing) {
			return err
		}
	}
	// Before anything is read: hours of work must not end with a folder that cannot be written.
	if err := j.folder.probe(ctx); err != nil {
		return err
	}
	r := record{State: Running, Started: time.Now().Unix()}
	r.Host, _ = os.Hostname() // it only helps people
	if err := j.note(ctx, shard, r); err != nil {
		return err
	}
	start := time.Now()
	var meter source.Meter
	metered := source.WithMeter(ctx, &meter)
	for try := 0; ; try++ {
		skipped, err := j.do(metered, shard, o)
		r.Seconds, r.Skipped = time.Since(start).Seconds(), skipped
		r.Requests, r.Read = min(meter.Requests(), maxRead), min(meter.Bytes(), maxRead)
		switch {
		case err == nil:
			r.State = Done
			return j.note(ctx, shard, r)
		case ctx.Err() != nil:
			return err // interrupted, as if it was killed
		case try < o.Retry && Retryable(err):
			continue
		}
		r.State, r.Error = Failed, fault.Line(err)
		r.Error = r.Error[:min(len(r.Error), maxError)]
		if k := fault.KindOf(err); k != 0 {
			r.Kind = k.Error()
		}
		return errors.Join(err, j.note(ctx, shard, r))
	}
}

// Retryable reports whether an error may go away by itself. Faults of files do not, faults of networks and systems may.
func Retryable(err error) bool { return fault.KindOf(err) == 0 }

// note writes the record of a run of a shard.
func (j *Job) note(ctx context.Context, shard int, r record) error {
	data, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return j.folder.write(ctx, recordName(shard), func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
}

// do does a shard and saves its result.
func (j *Job) do(ctx context.Context, shard int, o RunOptions) (skipped int64, err error) {
	bodies, err := j.bodies(ctx, j.Shards[shard])
	if err != nil {
		return 0, err
	}
	task := &Task{Shard: j.Shards[shard], Number: shard, Bodies: bodies, Options: o.Resource, Progress: o.Progress}
	if task.Progress == nil {
		task.Progress = func(int64, int64) {}
	}
	body := newScratch()
	defer func() { err = errors.Join(err, body.Close()) }()
	var tally any
	err = crash.Call(func() (err error) {
		tally, err = j.kind.Run(ctx, task, &limited{body, maxResult})
		return err
	})
	if err != nil {
		return 0, err
	}
	return j.save(ctx, shard, tally, body)
}
