package dataset

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/chaski-eo/chaski/cmd/chaski/internal/console"
	"github.com/chaski-eo/chaski/cmd/chaski/internal/flags"
	"github.com/chaski-eo/chaski/cmd/chaski/internal/quarantine"
	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/loader"
)

type quarantineFlags struct {
	run flags.Run
	met []string
	out string
	max int
}

func NewQuarantine(env console.Env) *cobra.Command {
	var f quarantineFlags
	cmd := &cobra.Command{
		Use:   "quarantine [flags] [SPEC.json|DATASET]",
		Short: "List the samples that cannot be read",
		Long: `List the samples that cannot be read, and why.

With a dataset (with the flags of 'chaski bench load'), or a spec in JSON such as Python's loader.spec, all
samples that the run uses are read, wholly and in parallel, in the bands it picks, with masks and what
rides along. With --met FILE the list has what runs met: 'chaski serve --quarantine FILE' and Python's
load(..., quarantine=FILE) append to such files; several processes may share one.

A list is lines of JSON: dataset (its fingerprint), source (of a mixture), id, row, sample, uri, part,
offset, kind, message, first_seen, count; and instead (id, row, sample), what stood in its place when it
was met first. -o writes what was found and met as such a list, every thing
once. Bad samples do not make the exit code 1: 'chaski verify' does that.`,
		Example: `  chaski quarantine chips/
  chaski quarantine -o bad.jsonl spec.json
  chaski quarantine --met bad.jsonl --json
  chaski quarantine --met bad.jsonl -o all.jsonl train.parquet`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return console.Usagef("%d arguments, where one SPEC.json or DATASET is taken", len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return f.do(cmd.Context(), env, args) },
	}
	f.run.Add(cmd)
	f.run.AddJSON(cmd.Flags(), "one line of JSON instead of text")
	fl := cmd.Flags()
	fl.StringArrayVar(&f.met, "met", nil, "`FILE` with a list, as runs write it; repeatable")
	fl.StringVarP(&f.out, "output", "o", "", "`FILE` that gets the list, as lines of JSON (default: none)")
	fl.IntVar(&f.max, "max-bad", loader.DefaultMaxBad, "most bad samples listed of a dataset")
	return cmd
}

// quarantineReport is what quarantine prints.
type quarantineReport struct {
	Dataset string              `json:"dataset,omitempty"` // fingerprint
	Checked int64               `json:"checked"`           // samples
	Found   int64               `json:"found"`             // of those, bad ones
	Skipped int64               `json:"skipped"`           // lines of lists that are no records
	Bad     []quarantine.Record `json:"bad"`
}

func (f *quarantineFlags) do(ctx context.Context, env console.Env, args []string) error {
	if len(args) == 0 && len(f.met) == 0 {
		return console.Usagef("neither a dataset nor --met is named")
	}
	if f.max < 1 {
		return console.Usagef("--max-bad is at least 1")
	}
	var list quarantine.List
	for _, name := range f.met {
		if err := readList(&list, name); err != nil {
			return err
		}
	}
	var r quarantineReport
	if len(args) == 1 {
		if err := f.check(ctx, env, args[0], &list, &r); err != nil {
			return err
		}
	}
	r.Skipped, r.Bad = list.Skipped, list.Records()
	if f.out != "" {
		if err := console.WriteFile(f.out, env.Out, func(w io.Writer) error { return quarantine.Write(w, r.Bad) }); err != nil {
			return err
		}
		if f.out == "-" {
			return nil
		}
	}
	if f.run.Json {
		return console.PrintJSON(env.Out, r)
	}
	r.print(env.Out, len(args) == 1)
	return nil
}

func readList(l *quarantine.List, name string) error {
	file, err := os.Open(name)
	if err != nil {
		return console.FileError(name, err)
	}
	defer file.Close()
	if err := l.Read(file); err != nil {
		return fault.WithFile(console.FileError(name, err), name)
	}
	return nil
}

// check reads the samples of a dataset.
func (f *quarantineFlags) check(ctx context.Context, env console.Env, path string, list *quarantine.List, r *quarantineReport) error {
	e, closeAll, err := f.run.Open(ctx, env, path, func(spec *loader.Spec, _ *loader.Options) {
		spec.BadSamples = loader.BadSkip // or a bad first sample would end this
	})
	if err != nil {
		return err
	}
	defer closeAll()
	bar := console.NewBar(env.Err, "reading", -1)
	found, err := e.Check(ctx, loader.CheckOptions{MaxBad: f.max, Progress: bar.Set})
	bar.Done()
	if err != nil {
		return err
	}
	r.Dataset, r.Checked, r.Found = e.Fingerprint(), found.Samples, found.Bad
	for _, b := range found.List {
		rec := quarantine.New(r.Dataset, b.Err)
		rec.Source, rec.ID, rec.Row = b.Source, b.ID, &b.Row
		rec.Count = 1
		if err := list.Add(rec); err != nil {
			return err
		}
	}
	return nil
}

func (r *quarantineReport) print(w io.Writer, checked bool) {
	if checked {
		fmt.Fprintf(w, "dataset %s: %d samples read, %d of them bad\n", r.Dataset, r.Checked, r.Found)
	}
	for i := range r.Bad {
		b := &r.Bad[i]
		fmt.Fprintf(w, "%s %6dx  ", b.FirstSeen.Format(time.DateTime), b.Count)
		if b.Source != "" {
			fmt.Fprintf(w, "[%s] ", console.OneLine(b.Source))
		}
		if b.ID != "" {
			fmt.Fprintf(w, "%s  ", console.OneLine(b.ID))
		}
		fmt.Fprint(w, console.OneLine(b.Message))
		if b.Instead != nil {
			fmt.Fprintf(w, "  (in its place: %s)", cmp.Or(console.OneLine(b.Instead.ID), fmt.Sprint("row ", b.Instead.Row)))
		}
		fmt.Fprintln(w)
	}
	if r.Skipped > 0 {
		fmt.Fprintf(w, "%d lines of the lists are no records\n", r.Skipped)
	}
}
