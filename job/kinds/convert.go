package kinds

import (
	"bufio"
	"cmp"
	"context"
	"encoding/hex"
	"encoding/json"
	"io"
	"slices"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/inorder"
	"github.com/chaski-eo/chaski/internal/procs"
	"github.com/chaski-eo/chaski/job"
	"github.com/chaski-eo/chaski/loader/resources"
	"github.com/chaski-eo/chaski/ops/convert"
)

const convertName = "convert"

// Convert is the kind that writes files as convert.File does, below a directory. An item is a file. The output is a
// report, a line of JSON for each file. A shard replaces the files that it writes, so that it may be done again.
type Convert struct {
	Paths []string `json:"paths"`
	// Into is the directory of the new files, an absolute path: one that all machines see.
	Into      string `json:"into"`
	Overwrite bool   `json:"overwrite,omitempty"` // also files that existed when the job was planned
	// SkipBad leaves out files that cannot be converted.
	SkipBad bool            `json:"skip_bad,omitempty"`
	Options convert.Options `json:"options"`
}

// convertItem is a file to convert.
type convertItem struct {
	Source string `json:"source"`
	File   string `json:"file"` // the new one, below Into, with "/"
	Size   int64  `json:"size,omitempty"`
	ETag   string `json:"etag,omitempty"`
}

// Converted is a line of the report about a file.
type Converted struct {
	File   string   `json:"file"` // below the directory, with "/"
	Source string   `json:"source"`
	Bytes  int64    `json:"bytes"`
	SHA256 string   `json:"sha256,omitempty"`
	Left   []string `json:"left_out,omitempty"` // properties of the source that the file does not hold
	Error  string   `json:"error,omitempty"`    // why no file was written
}

// convertTally counts the files of a shard. The body of a result has a line of the report for each.
type convertTally struct {
	Written int64 `json:"written"`
	Skipped int64 `json:"skipped"`
}

// Name implements job.Kind.
func (*Convert) Name() string { return convertName }

// UnmarshalJSON implements json.Unmarshaler. Options are checked, since they say how much memory a file takes.
func (k *Convert) UnmarshalJSON(b []byte) error {
	type plain Convert
	if err := json.Unmarshal(b, (*plain)(k)); err != nil {
		return err
	}
	return k.check()
}

// check checks what each file is written with.
func (k *Convert) check() error {
	options := k.Options
	options.Workers = 1
	if err := options.Check(); err != nil {
		return err
	}
	if options.Format == convert.TileDB {
		return fault.New(fault.Unsupported, convertName, fault.NoOffset,
			"an array is written at once, by chaski convert: it has no shards")
	}
	return nil
}

// Items implements job.Kind.
func (k *Convert) Items(ctx context.Context, o resources.Options) (job.Items, error) {
	if err := k.check(); err != nil {
		return job.Items{}, err
	}
	o, done := opened(o)
	defer done()
	return k.list(ctx, o)
}

// Run implements job.Kind.
func (k *Convert) Run(ctx context.Context, t *job.Task, body io.Writer) (any, error) {
	files, err := parseBodies[convertItem](t)
	if err != nil {
		return nil, err
	}
	options, done := opened(t.Options)
	defer done()
	workers := cmp.Or(options.Workers, procs.Workers())
	// Workers go to files first: they need not wait for each other's slowest tile.
	atOnce := min(workers, len(files))
	c := k.Options
	c.Workers, c.MaxChunk = max(1, workers/atOnce), options.MaxChunkBytes
	tally := convertTally{}
	lines := bufio.NewWriter(body)
	err = inorder.Do(ctx, len(files), atOnce, func(ctx context.Context, i int) (Converted, error) {
		return k.convert(ctx, files[i], c, options.Opener)
	}, func(i int, line Converted) error {
		if line.Error != "" {
			tally.Skipped++
		} else {
			tally.Written++
		}
		t.Progress(int64(i)+1, int64(len(files)))
		return writeJSON(lines, line)
	}, func(Converted) {})
	if err != nil {
		return nil, err
	}
	return tally, lines.Flush()
}

// Check implements job.Kind.
func (k *Convert) Check(tally json.RawMessage, s job.Shard) (int64, error) {
	t, err := parseTally[convertTally](tally)
	counted := min(t.Written, t.Skipped) >= 0 && t.Written == s.Count-t.Skipped
	if err == nil && (!counted || t.Skipped > 0 && !k.SkipBad) {
		err = corrupt("%d files written and %d left out, of %d", t.Written, t.Skipped, s.Count)
	}
	return t.Skipped, err
}

// Merge implements job.Kind. A file of the report that is not there, or has another size, is an error.
func (k *Convert) Merge(ctx context.Context, m *job.Merging, out io.Writer) (o job.Outcome, err error) {
	var losses convert.Losses
	writer := bufio.NewWriter(out)
	last, n := "", 0
	for p, err := range m.Parts {
		if err != nil {
			return o, err
		}
		err := eachConverted(p, func(c *Converted) error {
			if err := ctx.Err(); err != nil {
				return err
			}
			if n > 0 && c.File <= last {
				return corrupt("the file %q comes after %q", c.File, last)
			}
			last = c.File
			n++
			if c.Error != "" {
				o.Notes = append(o.Notes, "skipped: "+c.Error)
			} else if err := k.written(c); err != nil {
				return err
			}
			losses.Add(n, c.Source, c.Left)
			return writeJSON(writer, c)
		})
		if err != nil {
			return o, m.Job.InPart(p.Number, err)
		}
	}
	o.Notes = append(o.Notes, losses.Lines()...)
	return o, writer.Flush()
}

// maxConverted bounds a line of the report, in bytes: a line of the list (job.Items), with a hash and an error.
const maxConverted = 128 << 10

// eachConverted calls each for the lines of a result.
func eachConverted(p *job.Part, each func(*Converted) error) error {
	t, err := parseTally[convertTally](p.Tally)
	if err != nil {
		return err
	}
	lines := bufio.NewScanner(p.Body)
	lines.Buffer(nil, maxConverted)
	n, skipped := int64(0), int64(0)
	for lines.Scan() {
		var c Converted
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			return corrupt("line %d: %v", n, err)
		}
		if err := c.check(); err != nil {
			return err
		}
		if n++; c.Error != "" {
			skipped++
		}
		if err := each(&c); err != nil {
			return err
		}
	}
	if err := lines.Err(); err != nil {
		return corrupt("line %d: %v", n, err)
	}
	if n != p.Shard.Count || skipped != t.Skipped {
		return corrupt("%d lines, of which %d files are left out, of %d and %d", n, skipped, p.Shard.Count, t.Skipped)
	}
	return noMore(p.Body)
}

// check returns an error for a line that a shard would not write.
func (c *Converted) check() error {
	hash, err := hex.DecodeString(c.SHA256)
	if !within(c.File) || c.Bytes < 0 || err != nil || (c.Error == "") != (len(hash) == 32) ||
		slices.Contains(c.Left, "") {
		return corrupt("%q is not a file that a shard writes", c.File)
	}
	return nil
}
