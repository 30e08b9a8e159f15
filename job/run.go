package job

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/pathname"
	"github.com/chaski-eo/chaski/loader/resources"
	"github.com/chaski-eo/chaski/loader/survey"
	"github.com/chaski-eo/chaski/stats"
)

// metrics is what metrics/SHARD.json holds.
type metrics struct {
	Seconds float64 `json:"seconds"`
	Host    string  `json:"host"`
	Skipped int64   `json:"skipped"`
}

// maxSeconds is longer than any shard takes: some 30 years. The sum of MaxShards of it is finite, as JSON needs it.
const maxSeconds = 1e9

// possible reports whether a shard can have m.
func (m *metrics) possible(s Shard) bool {
	return m.Seconds >= 0 && m.Seconds <= maxSeconds && m.Skipped >= 0 && m.Skipped <= s.Count
}

// Run does one shard. A shard that has its result is done and costs nothing, unless again is set. progress, if not nil,
// is called after every sample, by one goroutine at a time. Whatever ends Run early leaves no result.
func (j *Job) Run(ctx context.Context, shard int, again bool, o resources.Options,
	progress func(done, total int64)) error {
	if shard < 0 || shard >= len(j.Shards) {
		return fault.WithFile(fault.New(fault.NotFound, "job", fault.NoOffset, "no shard %d among %d", shard,
			len(j.Shards)), pathname.Join(j.folder, manifestName))
	}
	if !again {
		all, err := j.results()
		if err != nil {
			return err
		}
		if _, err := j.result(shard, all[shard]); err == nil || !isMissing(err) {
			return err
		}
	}
	start := time.Now()
	s := j.Shards[shard]
	p, err := survey.StatsPart(ctx, j.Spec, o, j.Extent, s.First, s.Count, progress)
	if err != nil {
		return err
	}
	host, err := os.Hostname()
	if err != nil {
		host = "" // it only helps people
	}
	b, err := json.Marshal(metrics{time.Since(start).Seconds(), host, p.Skipped})
	if err != nil {
		return err
	}
	// Before the result: a shard that is done has its metrics.
	if err := writeFile(pathname.Join(j.folder, metricsName, fmt.Sprint(shard)+".json"), b); err != nil {
		return err
	}
	return j.write(shard, p)
}

// errMissing says that a shard has no result that can be read.
var errMissing = fault.New(fault.NotFound, "job", fault.NoOffset, "no result")

func isMissing(err error) bool { return errors.Is(err, errMissing) }

// result returns the result of a shard, of which the given files are. Torn files, whose content is not that which the
// name says, count as absent. Two results that differ are a fault of kind corrupt: the same work on the same files
// gives the same bytes, so that one of them is wrong.
func (j *Job) result(shard int, names []string) (*survey.Part, error) {
	var found *survey.Part
	var torn error
	for _, name := range names {
		p, err := j.read(shard, name)
		switch {
		case err != nil && fault.KindOf(err) != fault.Corrupt:
			return nil, err
		case err != nil:
			torn = err
		case found != nil:
			return nil, fault.WithFile(corrupt("shard %d has results that differ", shard),
				pathname.Join(j.folder, resultsName, name))
		default:
			found = p
		}
	}
	if found == nil {
		return nil, errors.Join(errMissing, torn)
	}
	return found, nil
}

// Merge joins the results of all shards. A shard without a result is a fault of kind not found, which says how many.
func (j *Job) Merge(ctx context.Context) (*stats.Report, error) {
	all, err := j.results()
	if err != nil {
		return nil, err
	}
	var total *survey.Part
	absent, firstAbsent := 0, 0
	for shard := range j.Shards {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		p, err := j.result(shard, all[shard])
		switch {
		case isMissing(err):
			if absent++; absent == 1 {
				firstAbsent = shard
			}
			continue
		case err != nil:
			return nil, err
		case total == nil:
			total = p
			continue
		}
		if err := total.Merge(p); err != nil {
			return nil, fault.WithFile(corrupt("shard %d: %v", shard, err), j.folder)
		}
	}
	if absent > 0 {
		return nil, fault.WithFile(fault.New(fault.NotFound, "job", fault.NoOffset,
			"%d of %d shards have no result; the first is %d", absent, len(j.Shards), firstAbsent), j.folder)
	}
	return total.Report(), nil
}

// Status says how far a job is.
type Status struct {
	Kind    string  `json:"kind"`
	Shards  int     `json:"shards"`
	Done    int     `json:"done"` // shards that have a result of the right name; Merge reads what is in it
	Samples int64   `json:"samples"`
	Sampled int64   `json:"samples_done"`
	Skipped int64   `json:"samples_skipped"`
	Seconds float64 `json:"seconds"` // that all done shards took, one after the other
	Missing []int   `json:"missing"` // shards without a result
	Slowest int     `json:"slowest"` // the shard that took longest; -1 if none is done
}

// Status returns how far the job is.
func (j *Job) Status() (s Status, err error) {
	all, err := j.results()
	if err != nil {
		return s, err
	}
	s = Status{Kind: j.Kind, Shards: len(j.Shards), Samples: j.Extent.Rows, Missing: []int{}, Slowest: -1}
	longest := -1.0
	for i, shard := range j.Shards {
		if len(all[i]) == 0 {
			s.Missing = append(s.Missing, i)
			continue
		}
		s.Done++
		s.Sampled += shard.Count
		var m metrics
		b, err := readFile(pathname.Join(j.folder, metricsName, fmt.Sprint(i)+".json"), 1<<16)
		if err != nil || json.Unmarshal(b, &m) != nil || !m.possible(shard) {
			continue // whoever copied only the results has none
		}
		s.Skipped += m.Skipped
		s.Seconds += m.Seconds
		if m.Seconds > longest {
			longest, s.Slowest = m.Seconds, i
		}
	}
	return s, nil
}
