package job

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/chaski-eo/chaski/fault"
)

// Status says how far a job is.
type Status struct {
	Kind      string  `json:"kind"`
	Shards    int     `json:"shards"`
	Done      int     `json:"done"`    // shards with a result of the right name; only Merge reads its content
	Failed    []int   `json:"failed"`  // shards without a result whose last run ended with an error
	Running   []int   `json:"running"` // shards without a result whose last run has not ended, or was killed
	Missing   []int   `json:"missing"` // shards without a result: those that failed or run, and all others
	Items     int64   `json:"items"`
	ItemsDone int64   `json:"items_done"`
	Skipped   int64   `json:"items_skipped"`
	Bytes     int64   `json:"bytes"` // of the items whose size is known
	BytesDone int64   `json:"bytes_done"`
	Read      int64   `json:"bytes_read"` // by the runs of done shards that have a record: source.Meter
	Requests  int64   `json:"requests"`
	Seconds   float64 `json:"seconds"`          // that all done shards took, one after the other
	ItemsRate float64 `json:"items_per_second"` // of the done shards since the first of them began; 0 if not known
	Slowest   int     `json:"slowest"`          // the shard that took longest; -1 if none is done
	Runs      []Run   `json:"runs"`             // the last run of every shard that has one, in the order of the shards

	longest    float64 // seconds of the slowest shard
	firstStart int64
	lastEnd    float64
}

// Run is the last run of a shard.
type Run struct {
	Shard    int       `json:"shard"`
	Items    int64     `json:"items"`
	State    string    `json:"state"` // Done, Failed or Running
	Host     string    `json:"host"`
	Started  time.Time `json:"started"`
	Seconds  float64   `json:"seconds"`
	Skipped  int64     `json:"items_skipped"`
	Read     int64     `json:"bytes_read"`
	Requests int64     `json:"requests"`
	Error    string    `json:"error,omitempty"`
	Kind     string    `json:"kind,omitempty"` // of the error
}

// Status returns how far the job is. With check it reads all results, and damaged ones do not count; otherwise a result
// counts by its name.
func (j *Job) Status(ctx context.Context, check bool) (*Status, error) {
	results, err := j.results(ctx)
	if err != nil {
		return nil, err
	}
	status := &Status{Kind: j.Kind, Shards: len(j.Shards), Items: j.Items, Bytes: j.Bytes, Slowest: -1,
		Failed: []int{}, Running: []int{}, Missing: []int{}, Runs: []Run{}}
	records, err := j.records(ctx)
	if err != nil {
		return nil, err
	}
	for i, shard := range j.Shards {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		record, known := records[i]
		done := len(results[i]) > 0
		if done && check {
			if _, err := j.find(ctx, i, results[i]); errors.Is(err, errMissing) {
				done = false
			} else if err != nil {
				return nil, err
			}
		}
		status.add(i, shard, done, record, known)
	}
	if took := status.lastEnd - float64(status.firstStart); took > 0 {
		status.ItemsRate = float64(status.ItemsDone) / took
	}
	return status, nil
}

// readers is how many records are read at a time: each is a request where the folder is in a store.
const readers = 32

// records returns the last recorded run of each shard.
func (j *Job) records(ctx context.Context) (map[int]record, error) {
	names, err := j.folder.list(ctx, runsName, "")
	if err != nil && fault.KindOf(err) != fault.NotFound { // a copy of only the results has none
		return nil, err
	}
	out := map[int]record{}
	var mu sync.Mutex
	group, gctx := errgroup.WithContext(ctx)
	group.SetLimit(readers)
	for _, name := range names {
		i, err := strconv.Atoi(strings.TrimSuffix(name, ".json"))
		if err != nil || i < 0 || i >= len(j.Shards) || recordName(i) != runsName+"/"+name {
			continue
		}
		group.Go(func() error {
			var r record
			b, err := j.folder.read(gctx, recordName(i), maxRecord)
			if err == nil && json.Unmarshal(b, &r) == nil && r.possible(j.Shards[i]) {
				mu.Lock()
				defer mu.Unlock()
				out[i] = r
			}
			return gctx.Err()
		})
	}
	return out, group.Wait()
}

// add adds a shard, with the record of its last run if that is known.
func (s *Status) add(i int, shard Shard, done bool, r record, known bool) {
	switch {
	case done:
		s.Done++
		s.ItemsDone += shard.Count
		s.BytesDone += shard.Bytes
		r.State = Done
	default:
		s.Missing = append(s.Missing, i)
		switch {
		case known && r.State == Failed:
			s.Failed = append(s.Failed, i)
		case known && r.State == Running:
			s.Running = append(s.Running, i)
		default:
			known = false // it was done, and the result is gone
		}
	}
	if !known {
		return
	}
	s.Runs = append(s.Runs, Run{Shard: i, Items: shard.Count, State: r.State, Host: r.Host,
		Started: time.Unix(r.Started, 0).UTC(), Seconds: r.Seconds, Skipped: r.Skipped, Read: r.Read,
		Requests: r.Requests, Error: r.Error, Kind: r.Kind})
	if !done {
		return
	}
	s.Skipped += r.Skipped
	s.Seconds += r.Seconds
	s.Read += r.Read
	s.Requests += r.Requests
	if s.Slowest < 0 || r.Seconds > s.longest {
		s.longest, s.Slowest = r.Seconds, i
	}
	if s.firstStart == 0 || r.Started < s.firstStart {
		s.firstStart = r.Started
	}
	s.lastEnd = max(s.lastEnd, float64(r.Started)+r.Seconds)
}
