package job

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/durable"
	"github.com/chaski-eo/chaski/internal/pathname"
	"github.com/chaski-eo/chaski/loader/resources"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/loader/survey"
)

// Names in a job's folder.
const (
	manifestName = "job.json"
	resultsName  = "results"
	metricsName  = "metrics"
)

const (
	// Version is that of job.json and of results.
	Version = 1
	// MaxShards bounds the shards of a job: a manifest of them takes some 30 MB.
	MaxShards = 1_000_000
	// maxManifest bounds job.json, in bytes: the largest spec, of 1 MiB (spec.ParseSpec), and MaxShards of 60 bytes,
	// since the numbers of a shard have at most 19 digits.
	maxManifest = 1<<20 + 60*MaxShards
	// maxResult bounds the result of a shard, in bytes: the largest state of a field (stats.ParseState) in base64.
	maxResult = 4 << 30 / 3
)

// Stats is the kind of job whose result is the report of survey.Stats.
const Stats = "stats"

// Kinds are the kinds of jobs.
var Kinds = []string{Stats}

// Manifest is what job.json holds.
type Manifest struct {
	Version int           `json:"version"` // Version
	Kind    string        `json:"kind"`    // one of Kinds
	Spec    spec.Spec     `json:"spec"`    // of the dataset, with its fields, conditions and split
	Extent  survey.Extent `json:"extent"`  // of the dataset when the job was planned
	Shards  []Shard       `json:"shards"`  // in the order of the samples, which each is in one of
}

// Shard is a run of samples, in the order of the dataset's rows that the conditions leave.
type Shard struct {
	First int64 `json:"first"`
	Count int64 `json:"count"`
}

// Job is an open job. Its methods are safe for concurrent use, also by several processes.
type Job struct {
	Manifest
	ID string // the SHA-256 of job.json, in hexadecimal digits

	folder string
}

// PlanOptions say how a job is divided.
type PlanOptions struct {
	Shards    int // how many; 0: as many as ShardRows needs
	ShardRows int // the most samples of a shard; 0: DefaultShardRows
}

// DefaultShardRows is the most samples of a shard unless PlanOptions say something else: of chips that decode in a
// millisecond, some ten seconds, beside which the start of a process is short.
const DefaultShardRows = 10_000

// Plan writes a new job into folder, which must not hold one. It opens the dataset and reads no pixels.
func Plan(ctx context.Context, folder, kind string, sp spec.Spec, o PlanOptions, r resources.Options) (*Job, error) {
	if kind != Stats {
		return nil, fmt.Errorf("job: kind is %q, not one of %q", kind, Kinds)
	}
	extent, err := survey.Measurable(ctx, sp, r)
	if err != nil {
		return nil, err
	}
	if extent.Rows < 1 {
		return nil, fault.WithFile(fault.New(fault.NotFound, "dataset", fault.NoOffset, "no samples"), sp.Source)
	}
	shards, err := divide(extent.Rows, o)
	if err != nil {
		return nil, err
	}
	sp = sp.WithDefaults()
	sp.BatchSize = max(sp.BatchSize, 1) // what reads a spec needs one, although nothing here makes batches
	b, err := json.Marshal(Manifest{Version: Version, Kind: kind, Spec: sp, Extent: extent, Shards: shards})
	if err != nil {
		return nil, err
	}
	// A job that cannot be opened must not be written.
	if err := new(Job).parse(b); err != nil {
		return nil, err
	}
	name := pathname.Join(folder, manifestName)
	if _, err := os.Lstat(name); err == nil {
		return nil, fmt.Errorf("%s: there is a job already", name)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, sub := range []string{resultsName, metricsName} {
		if err := durable.MkdirAll(pathname.Join(folder, sub)); err != nil {
			return nil, err
		}
	}
	if err := writeFile(name, append(b, '\n')); err != nil {
		return nil, err
	}
	return Open(folder)
}

func writeFile(name string, b []byte) error {
	return durable.WriteFile(name, func(f *os.File) error {
		_, err := f.Write(b)
		return err
	})
}

// divide returns shards of equal numbers of rows, or one less. There is at least one row.
func divide(rows int64, o PlanOptions) ([]Shard, error) {
	if o.Shards < 0 || o.ShardRows < 0 || o.Shards > 0 && o.ShardRows > 0 {
		return nil, fmt.Errorf("job: %d shards of at most %d samples: one of both is needed", o.Shards, o.ShardRows)
	}
	most := int64(o.ShardRows)
	if most == 0 {
		most = DefaultShardRows
	}
	n := min(int64(o.Shards), rows)
	if n == 0 {
		n = (rows-1)/most + 1
	}
	if n > MaxShards {
		return nil, fault.New(fault.Limit, "job", fault.NoOffset, "%d shards, at most %d", n, MaxShards)
	}
	shards := make([]Shard, n)
	for i := range shards {
		first := int64(i) * (rows / n)
		first += min(int64(i), rows%n) // the first rows%n shards have one more
		shards[i].First = first
		if i > 0 {
			shards[i-1].Count = first - shards[i-1].First
		}
	}
	shards[n-1].Count = rows - shards[n-1].First
	return shards, nil
}

// Open reads a job's manifest. Errors are faults of the file job.json.
func Open(folder string) (*Job, error) {
	name := pathname.Join(folder, manifestName)
	b, err := readFile(name, maxManifest)
	if err != nil {
		return nil, err
	}
	j := &Job{folder: folder}
	if err := j.parse(b); err != nil {
		return nil, fault.WithFile(err, name)
	}
	sum := sha256.Sum256(b)
	j.ID = hex.EncodeToString(sum[:])
	return j, nil
}

func (j *Job) parse(b []byte) error {
	var head struct{ Version int }
	if err := json.Unmarshal(b, &head); err != nil {
		return corrupt("%v", err)
	}
	if head.Version != Version {
		return fault.New(fault.Unsupported, "job", fault.NoOffset, "version %d, not %d", head.Version, Version)
	}
	// The spec is left to ParseSpec, which bounds what is in it.
	m := struct {
		*Manifest
		Spec json.RawMessage `json:"spec"`
	}{Manifest: &j.Manifest}
	if err := json.Unmarshal(b, &m); err != nil {
		return corrupt("%v", err)
	}
	var err error
	if j.Spec, err = spec.ParseSpec(m.Spec); err != nil {
		return corrupt("%v", err)
	}
	if j.Kind != Stats {
		return fault.New(fault.Unsupported, "job", fault.NoOffset, "kind %q", j.Kind)
	}
	next := int64(0)
	for i, s := range j.Shards {
		if s.First != next || s.Count < 1 || s.Count > j.Extent.Rows-next {
			return corrupt("shard %d has samples %d to %d, of %d", i, s.First, s.First+s.Count, j.Extent.Rows)
		}
		next += s.Count
	}
	if next != j.Extent.Rows || len(j.Shards) < 1 || len(j.Shards) > MaxShards {
		return corrupt("%d shards have %d of %d samples", len(j.Shards), next, j.Extent.Rows)
	}
	return nil
}

func corrupt(format string, args ...any) error {
	return fault.New(fault.Corrupt, "job", fault.NoOffset, format, args...)
}

// readFile reads a file of at most most bytes.
func readFile(name string, most int64) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, missing(name, err)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(b)) > most {
		err = fault.New(fault.Limit, "job", fault.NoOffset, "over %d bytes", most)
	}
	if err != nil {
		return nil, fault.WithFile(err, name)
	}
	return b, nil
}

// missing makes a fault of the error of a file that is not there.
func missing(name string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fault.WithFile(fault.New(fault.NotFound, "job", fault.NoOffset, "no such file"), name)
	}
	return err
}
