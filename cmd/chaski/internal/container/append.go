package container

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/chaski-eo/chaski/cmd/chaski/internal/console"
	"github.com/chaski-eo/chaski/cmd/chaski/internal/open"
	"github.com/chaski-eo/chaski/store/taco/build"
)

// NewAppend returns the command append.
func NewAppend(env console.Env) *cobra.Command {
	var f packFlags
	cmd := &cobra.Command{
		Use:   "append [flags] FOLDER DIR | CONTAINER...",
		Short: "Add samples to a container in parts",
		Long: `Add samples to a container in parts: a folder of TACO 2 ZIPs with an index, as 'chaski pack --part-size' and
'chaski pack -o FOLDER/.tacocat FOLDER' make it. The samples of a directory of files, or of containers, become
a new ZIP beside the others, and the indexes of the folder are replaced. The other ZIPs stay as they are.

The new samples must have the tree and the columns of those that are there, and other ids. Readers see the old
container or the new one, also after a kill; what a killed run left is removed by the next one.`,
		Example: `  chaski append months/ june.tacozip
  chaski append months/ --where "score < 0.3" data.tacozip`,
		Args: cobra.MinimumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.warn(env, f.append(cmd.Context(), env, args[0], args[1:]))
		},
	}
	fl := cmd.Flags()
	fl.IntVar(&f.workers, "workers", 0, "files that are read at a time (default: the number of processors, at least 4)")
	f.columns.add(fl)
	fl.BoolVar(&f.quiet, "quiet", false, "show no progress")
	f.ofContainers = pflag.NewFlagSet("", pflag.ContinueOnError)
	f.containerFlags.add(f.ofContainers)
	f.Filter.Add(f.ofContainers)
	fl.AddFlagSet(f.ofContainers)
	return cmd
}

// append adds samples to a folder.
func (f *packFlags) append(ctx context.Context, env console.Env, folder string, paths []string) error {
	if err := console.AtLeast("workers", f.workers, 0); err != nil {
		return err
	}
	files := open.NewOpener(true)
	defer files.Close()
	bar := console.NewBar(env.Err, "append", 0)
	o := build.Options{Opener: files, Workers: f.workers, Form: build.ZIP}
	if !f.quiet {
		o.Progress = func(done, total int) { bar.Set(int64(done), int64(total)) }
	}
	r, err := build.Append(ctx, folder, o, func(path string, c build.Collection) (*build.Result, error) {
		f.out, f.given = path, &c
		return f.write(ctx, files, paths, o)
	})
	bar.Done()
	if err != nil {
		return console.FileError(folder, err)
	}
	f.printNotes(env, paths)
	f.columns.report(env)
	_, err = fmt.Fprintf(env.Out, "%s: %d samples, %d files, %s added\n", console.Printable(folder), r.Samples, r.Files,
		console.DecimalSize(r.Bytes))
	return err
}

// printNotes prints what is wrong with the sources, and can be read all the same.
func (f *packFlags) printNotes(env console.Env, paths []string) {
	for _, note := range f.notes {
		fmt.Fprintf(env.Err, "chaski: %s: %s\n", console.Printable(paths[0]), console.Printable(note))
	}
}
