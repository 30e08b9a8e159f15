package dataset

import (
	"context"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/chaski-eo/chaski/cmd/chaski/internal/console"
	"github.com/chaski-eo/chaski/cmd/chaski/internal/flags"
	"github.com/chaski-eo/chaski/cmd/chaski/internal/quarantine"
	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/loader"
	"github.com/chaski-eo/chaski/loader/spec"
)

type quarantineFlags struct {
	run flags.Run
	met []string
	out string
	max int
}

func NewQuarantine(env console.Env) *cobra.Command {
	var f quarantineFlags
	cmd := console.Command("quarantine [flags] [SPEC.json|DATASET]", func(_ *cobra.Command, args []string) error {
		if len(args) > 1 {
			return console.Usagef("there are %d arguments: the command takes one SPEC.json or DATASET", len(args))
		}
		return nil
	}, func(cmd *cobra.Command, args []string) error { return f.do(cmd.Context(), env, args) })
	f.run.Add(cmd)
	f.run.AddJSON(cmd.Flags())
	fl := cmd.Flags()
	console.Var(fl, &f.met, "met", nil)
	console.Var(fl, &f.out, "output,o", "")
	console.CountVar(fl, &f.max, "max-bad", loader.DefaultMaxBad, 1)
	return cmd
}

// quarantineReport is what quarantine prints.
type quarantineReport struct {
	Dataset string              `json:"dataset,omitempty"` // fingerprint
	Checked int64               `json:"checked"`           // samples read
	Found   int64               `json:"found"`             // bad samples among them
	Skipped int64               `json:"skipped"`           // lines of --met that are not records
	Bad     []quarantine.Record `json:"bad"`
}

func (f *quarantineFlags) do(ctx context.Context, env console.Env, args []string) error {
	if len(args) == 0 && len(f.met) == 0 {
		return console.Usagef("SPEC.json, DATASET or --met FILE is missing")
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
		if err := console.WriteFile(f.out, env.Out, func(w io.Writer) error {
			return quarantine.Write(w, r.Bad)
		}); err != nil {
			return err
		}
		if f.out == "-" {
			return nil
		}
	}
	return console.Print(env.Out, r, f.run.JSON)
}

// readList adds the records of a file to l.
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

// check reads all samples of a run and adds the bad ones to list and r.
func (f *quarantineFlags) check(ctx context.Context, env console.Env, path string, list *quarantine.List,
	r *quarantineReport) error {
	engine, err := f.run.Open(ctx, env, path, func(sp *loader.Spec, _ *loader.Options) {
		// With the policy error, the first bad sample would end the check.
		sp.BadSamples = spec.BadSkip
	})
	if err != nil {
		return err
	}
	defer engine.Close()
	bar := console.NewBar(env.Err, "reading", -1)
	found, err := engine.Check(ctx, loader.CheckOptions{MaxBad: f.max, Progress: bar.Set})
	bar.Done()
	if err != nil {
		return err
	}
	r.Dataset, r.Checked, r.Found = engine.Fingerprint(), found.Samples, found.Bad
	for _, b := range found.List {
		rec := quarantine.New(r.Dataset, b.Err)
		rec.Source, rec.ID, rec.Row = b.Source, b.ID, &b.Row
		if err := list.Add(rec); err != nil {
			return err
		}
	}
	return nil
}
