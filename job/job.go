package job

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"slices"
	"syscall"

	"github.com/chaski-eo/chaski/fault"
)

// Names in a job's folder.
const (
	manifestName = "job.json"
	resultsName  = "results"
	runsName     = "runs"
)

const (
	// Version is the version of job.json and of results.
	Version = 1
	// MaxShards bounds the shards of a job: every run reads the whole manifest, which takes some 10 MB for so many
	// shards. An indexed Job of Kubernetes has the same bound.
	MaxShards = 100_000
	// maxWork bounds the description of the work, in bytes of JSON: the largest spec has 1 MiB (spec.ParseSpec), and
	// 30,000 paths of 100 bytes have 3 MB.
	maxWork = 4 << 20
	// maxManifest bounds job.json, in bytes: the work, and 200 bytes for each shard. A number in a shard has at most
	// 19 digits, its name 9 and its hash 32.
	maxManifest = maxWork + 200*MaxShards
	// MaxTally bounds a tally, in bytes: 100,000 lines of 640 bytes.
	MaxTally = 64 << 20
)

// Manifest is what job.json holds.
type Manifest struct {
	Version int             `json:"version"` // Version
	Kind    string          `json:"kind"`
	Work    json.RawMessage `json:"work"`  // the Kind as JSON
	Items   int64           `json:"items"` // of all shards
	Bytes   int64           `json:"bytes"` // of the items whose size is known
	List    string          `json:"list,omitempty"`
	Shards  []Shard         `json:"shards"`
}

// Shard is a run of consecutive items. Each item lies in exactly one shard.
type Shard struct {
	First int64 `json:"first"` // number of its first item
	Count int64 `json:"count"`
	Bytes int64 `json:"bytes,omitempty"` // of its items whose size is known
	// Offset, Length and Sum say where the bodies of its items are in the list, and their hash.
	Offset int64  `json:"offset,omitempty"`
	Length int64  `json:"length,omitempty"`
	Sum    string `json:"sum,omitempty"`
}

// Job is an open job. Its methods are safe for concurrent use, also by several processes.
type Job struct {
	Manifest
	ID string // the SHA-256 of job.json, in hexadecimal digits

	kind   Kind
	folder folder
}

// Open opens the job in a folder of a file system. Errors are faults of the file job.json.
func Open(ctx context.Context, path string, kinds Kinds) (*Job, error) {
	return OpenIn(ctx, Dir(path), kinds)
}

// OpenIn is Open for any folder.
func OpenIn(ctx context.Context, f Folder, kinds Kinds) (*Job, error) {
	data, err := f.read(ctx, manifestName, maxManifest)
	if err != nil {
		return nil, err
	}
	job := &Job{folder: f}
	if err := job.parse(data, kinds); err != nil {
		return nil, fault.WithFile(err, f.name(manifestName))
	}
	sum := sha256.Sum256(data)
	job.ID = hex.EncodeToString(sum[:])
	return job, nil
}

func (j *Job) parse(b []byte, kinds Kinds) error {
	var head struct{ Version int }
	if err := json.Unmarshal(b, &head); err != nil {
		return corrupt("%v", err)
	}
	if head.Version != Version {
		return fault.New(fault.Unsupported, "job", fault.NoOffset, "version %d, not %d", head.Version, Version)
	}
	if err := json.Unmarshal(b, &j.Manifest); err != nil {
		return corrupt("%v", err)
	}
	empty := kinds[j.Kind]
	if empty == nil {
		return fault.New(fault.Unsupported, "job", fault.NoOffset, "kind %q", j.Kind)
	}
	if len(j.Work) > maxWork {
		return fault.New(fault.Limit, "job", fault.NoOffset, "%d bytes of work, at most %d", len(j.Work), maxWork)
	}
	j.kind = empty()
	if err := json.Unmarshal(j.Work, j.kind); err != nil {
		return corrupt("work: %v", err)
	}
	return j.checkShards()
}

// checkShards checks that each item lies in exactly one shard, and that no two shards share a part of the list.
func (j *Job) checkShards() error {
	if len(j.Shards) < 1 || len(j.Shards) > MaxShards {
		return corrupt("%d shards, at least 1 and at most %d", len(j.Shards), MaxShards)
	}
	if j.List != "" && !isList(j.List) {
		return corrupt("list %q", j.List)
	}
	next, pos := int64(0), int64(0)
	for i, shard := range j.Shards {
		switch {
		case shard.First != next || shard.Count < 1 || shard.Count > j.Items-next:
			return corrupt("shard %d has the items %d to %d, of %d", i, shard.First, shard.First+shard.Count, j.Items)
		case shard.Bytes < 0 || shard.Bytes > j.Bytes:
			return corrupt("shard %d reads %d of %d bytes", i, shard.Bytes, j.Bytes)
		case shard.Offset != pos || shard.Length < 0 || shard.Length > maxBlock || (shard.Length > 0) != (j.List != ""):
			return corrupt("shard %d has %d bytes of the list at %d", i, shard.Length, shard.Offset)
		}
		next += shard.Count
		pos += shard.Length
	}
	if next != j.Items {
		return corrupt("%d shards have %d of %d items", len(j.Shards), next, j.Items)
	}
	return nil
}

// shard returns a shard by its number.
func (j *Job) shard(number int) (Shard, error) {
	if number < 0 || number >= len(j.Shards) {
		return Shard{}, fault.WithFile(fault.New(fault.NotFound, "job", fault.NoOffset, "no shard %d among %d", number,
			len(j.Shards)), j.folder.name(manifestName))
	}
	return j.Shards[number], nil
}

// Names returns the names of the kinds, sorted.
func (k Kinds) Names() []string {
	return slices.Sorted(maps.Keys(k))
}

func corrupt(format string, args ...any) error {
	return fault.New(fault.Corrupt, "job", fault.NoOffset, format, args...)
}

// missing makes a fault of the error of a file that is not there. A path below a file gives ENOTDIR.
func missing(name string, err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return fault.WithFile(fault.New(fault.NotFound, "job", fault.NoOffset, "no such file"), name)
	}
	return err
}

// errThere returns the error for a folder that already holds a job.
func errThere(name string) error {
	return fault.WithFile(fault.New(fault.Unsupported, "job", fault.NoOffset, "there is a job already"), name)
}
