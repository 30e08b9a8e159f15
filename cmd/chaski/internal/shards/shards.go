// Package shards divides the work of a command over processes, on any machines. With --shard K/N the command does one
// of N shares of its inputs, and writes a part beside its output. With --merge N it joins the parts into the output,
// which has the bytes that one process writes, and removes them.
//
// Each process lists the inputs itself, in the order that the command has anyway, and a share is a run of them. A part
// says what it was made of: with the same settings, and inputs that have not changed, it is kept when the shard is done
// again, and otherwise it is written anew. A part is there as a whole or not at all, also after a kill. A merge leaves
// OUTPUT.merged, which lets one that is run again succeed.
package shards

import (
	"archive/zip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/chaski-eo/chaski/cmd/chaski/internal/console"
	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/pathname"
	"github.com/chaski-eo/chaski/source"
)

// maxShards bounds N. An indexed Job of Kubernetes has the same bound.
const maxShards = 100_000

// Flags are the flags --shard and --merge.
type Flags struct {
	shard string
	merge int

	isSet         bool
	number, count int // of --shard; of --merge only count
}

// Add declares the flags.
func (f *Flags) Add(fl *pflag.FlagSet) {
	console.Var(fl, &f.shard, "shard", "")
	console.Var(fl, &f.merge, "merge", 0)
}

// Check checks the flags of a command with an output, the value of its flag -o.
func (f *Flags) Check(fl *pflag.FlagSet, output string) (err error) {
	sharing, merging := fl.Changed("shard"), fl.Changed("merge")
	f.isSet = sharing || merging
	flag := "merge"
	switch {
	case !f.isSet:
		return nil
	case sharing && merging:
		return console.Usagef("--shard and --merge exclude each other")
	case merging:
		f.count = f.merge
		err = console.Between("merge", f.merge, 1, maxShards)
	default:
		flag = "shard"
		err = f.parse()
	}
	isPath := output != "" && output != "-" && source.LocalPath(output) == output
	if err == nil && !isPath {
		err = console.Usagef("-o is %q: --%s needs the name of an output, beside which the parts lie", output, flag)
	}
	return err
}

// parse parses --shard.
func (f *Flags) parse() error {
	number, count, _ := strings.Cut(f.shard, "/")
	k, err := strconv.ParseUint(number, 10, 31)
	n, wrong := strconv.ParseUint(count, 10, 31)
	if err != nil || wrong != nil || k >= n || n > maxShards {
		return console.Usagef("--shard is %q: it must be K/N, with K from 0 to N-1 and N up to %d", f.shard, maxShards)
	}
	f.number, f.count = int(k), int(n)
	return nil
}

// Given reports whether --shard or --merge is given.
func (f *Flags) Given() bool { return f.isSet }

// Merging reports whether --merge is given.
func (f *Flags) Merging() bool { return f.merge > 0 }

// Work is what a command does in shards.
type Work struct {
	Output   string // its path
	Settings any    // what all parts must have been made with, as JSON
	Inputs   string // a hash of the inputs, which all parts must have been made of
	Items    int64  // the number of inputs
	// Env writes, reads and removes parts. All must have been made by its version of the command.
	Env console.Env
	// Files, if set, tell whether inputs are still what a part was made of.
	Files Files
	// Outcome, if set, is what the caller tells of the output beside it. A merge that is run again sets it to what it
	// was.
	Outcome *string
	// Check, if set, returns an error if something that a part tells of is gone. The part then counts as absent.
	Check func(ctx context.Context, p *Part) error
}

// Share is a run of the inputs.
type Share struct {
	Number       int // of the shard
	First, Count int64
}

// share returns share k of n of the inputs.
func (w *Work) share(k, n int) Share {
	// Not k * w.Items / n, which would overflow on the way for many items.
	begin := func(k int) int64 {
		whole, rest := w.Items/int64(n), w.Items%int64(n)
		return int64(k)*whole + int64(k)*rest/int64(n)
	}
	return Share{k, begin(k), begin(k+1) - begin(k)}
}

// Part is what a shard has written.
type Part struct {
	Share
	Tally  json.RawMessage // what write has returned
	Body   *io.SectionReader
	member *zip.File // of the body
	marks  *zip.File
}

// Do does the share of --shard, or with --merge joins the parts. write writes the body of a part and returns a tally,
// which is kept as JSON; a share without inputs has an empty body. join is handed the parts of all shares that have
// inputs, in their order. It may pass over them more than once, and a part is valid until the next one. Afterwards
// the parts are removed.
func (f *Flags) Do(ctx context.Context, w Work, write func(s Share, body io.Writer) (tally any, err error),
	join func(parts iter.Seq2[*Part, error]) error) error {
	divided, err := w.divided(f.count)
	if err != nil {
		return err
	}
	if f.Merging() {
		return divided.merge(ctx, join)
	}
	return divided.do(ctx, w.share(f.number, f.count), write)
}

// divided divides the work.
func (w *Work) divided(count int) (*dividedWork, error) {
	settings, err := json.Marshal(w.Settings)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(settings)
	version, _, _ := strings.Cut(w.Env.Version, ", go") // machines of one job may differ
	return &dividedWork{*w, count, version, hex.EncodeToString(sum[:]), newMarker(w)}, nil
}

// dividedWork is work in a number of shards.
type dividedWork struct {
	Work
	count    int
	version  string
	settings string // a hash
	marker   *marker
}

// beside returns the path that the names of parts begin with. The output may be a folder, with or without "/" at its
// end.
func (d *dividedWork) beside() string {
	output := pathname.Trim(d.Output)
	if _, key, remote := strings.Cut(output, "://"); remote && !strings.Contains(key, "/") {
		return output + "/output" // it is a bucket
	}
	if base := filepath.Base(output); base == "." || base == ".." || output == "" {
		output = pathname.Join(d.Output, "output")
	}
	return output
}

// name returns the name of a part.
func (d *dividedWork) name(shard int) string {
	return fmt.Sprintf("%s.part-%d-of-%d", d.beside(), shard, d.count)
}

// do does a share, unless its part is there.
func (d *dividedWork) do(ctx context.Context, s Share, write func(Share, io.Writer) (any, error)) error {
	name := d.name(s.Number)
	if d.check(ctx, s) == nil {
		return nil
	}
	if !source.IsRemote(name) {
		if err := console.Writable(name); err != nil {
			return err // before the share is done
		}
	}
	return d.Env.WriteFile(ctx, name, func(file io.Writer) error { return d.write(ctx, file, s, write) })
}

// merge checks that all parts are there, hands them to join, and removes them.
func (d *dividedWork) merge(ctx context.Context, join func(iter.Seq2[*Part, error]) error) error {
	var missing []string
	for k := range d.count {
		if err := d.check(ctx, d.share(k, d.count)); err != nil {
			if fault.KindOf(err) != fault.NotFound {
				return err
			}
			missing = append(missing, strconv.Itoa(k))
		}
	}
	if len(missing) == d.count && d.merged(ctx) {
		return nil
	}
	if len(missing) > 0 {
		const most = 20
		others := ""
		if n := len(missing) - most; n > 0 {
			others = fmt.Sprintf(" and %d more", n)
		}
		return fault.WithFile(fault.New(fault.NotFound, "parts", "%d of %d shards have none: %s%s",
			len(missing), d.count, strings.Join(missing[:min(len(missing), most)], ", "), others), d.Output)
	}
	reading := "" // the part that join has
	err := join(func(yield func(*Part, error) bool) {
		for k := range d.count {
			share := d.share(k, d.count)
			if share.Count == 0 {
				continue
			}
			if reading = d.name(k); !d.with(ctx, share, yield) {
				return
			}
			reading = ""
		}
	})
	if err != nil && reading != "" {
		err = fault.WithFile(err, reading)
	}
	if err != nil {
		return err
	}
	if err := d.tellMerged(ctx); err != nil {
		return err
	}
	for k := range d.count {
		if err := d.Env.Remove(ctx, d.name(k)); err != nil {
			return err
		}
	}
	return nil
}

// with opens a part for yield.
func (d *dividedWork) with(ctx context.Context, s Share, yield func(*Part, error) bool) bool {
	if err := ctx.Err(); err != nil {
		yield(nil, err)
		return false
	}
	part, closed, err := d.open(ctx, s)
	if err != nil {
		yield(nil, err)
		return false
	}
	defer closed()
	return yield(part, nil)
}
