// Package cli assembles the command chaski from the packages below cmd/chaski/internal.
package cli

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/chaski-eo/chaski/cmd/chaski/internal/array"
	"github.com/chaski-eo/chaski/cmd/chaski/internal/cache"
	"github.com/chaski-eo/chaski/cmd/chaski/internal/console"
	"github.com/chaski-eo/chaski/cmd/chaski/internal/container"
	"github.com/chaski-eo/chaski/cmd/chaski/internal/dataset"
	"github.com/chaski-eo/chaski/cmd/chaski/internal/flags"
	"github.com/chaski-eo/chaski/cmd/chaski/internal/inspect"
	"github.com/chaski-eo/chaski/cmd/chaski/internal/ledger"
	"github.com/chaski-eo/chaski/cmd/chaski/internal/measure"
	"github.com/chaski-eo/chaski/cmd/chaski/internal/open"
	"github.com/chaski-eo/chaski/cmd/chaski/internal/raster"
	"github.com/chaski-eo/chaski/cmd/chaski/internal/serve"
	"github.com/chaski-eo/chaski/cmd/chaski/internal/suggest"
	"github.com/chaski-eo/chaski/internal/procs"
	"github.com/chaski-eo/chaski/internal/zstd"
	_ "github.com/chaski-eo/chaski/loader/formats"
	"github.com/chaski-eo/chaski/source/diskcache"
)

// version is set with -ldflags "-X github.com/chaski-eo/chaski/cmd/chaski/cli.version=v1.2.3". Without
// that, buildVersion takes the version of the build information.
var version string

// Main runs the process's command line and ends the process.
//
// Exit codes: 0 on success; 1 if an input is wrong, with one line on stderr (see console.Report); 2 if the
// command line is wrong; 130 or 143 if the command was interrupted.
func Main() {
	// A thread in C holds its processor while it decodes, so one more keeps the rest of Go running.
	if zstd.InC {
		procs.Spare()
	}
	// The first signal cancels the context. Then signals have their default effect, so a second one kills
	// a command that does not end.
	ctx, cancel := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		s := <-signals
		signal.Stop(signals)
		cancel(console.Interrupt{Signal: s})
	}()
	args, in, err := wordsOf(os.Args[1:], os.Stdin, stop(cancel))
	if err != nil {
		fmt.Fprintln(os.Stderr, "chaski: standard input has no words of the command:", err)
		os.Exit(console.ExitUsage)
	}
	os.Exit(run(ctx, args, console.Env{In: in, Out: os.Stdout, Err: os.Stderr, Version: buildVersion()}))
}

// run runs one command line and returns its exit code.
func run(ctx context.Context, args []string, env console.Env) int {
	env.Cache = new(diskcache.Ref)
	defer env.Cache.Close()
	files := open.NewOpener(true, env.Cache, false)
	defer files.Close()
	env.Files = files
	root, addTexts := newRoot(env)
	if len(args) > 0 && strings.HasPrefix(args[0], cobra.ShellCompRequestCmd) {
		addTexts()
	}
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		return 0
	}
	return console.Report(ctx, env.Err, cmd, err)
}

// Command returns the command with all below it. The pages of the site are made from it.
func Command() *cobra.Command {
	root, addTexts := newRoot(console.Env{})
	addTexts()
	return root
}

// newRoot returns the command with all below it. They have no texts before a help is shown or addTexts is called: texts
// take twice as long as the rest, and most runs show none.
func newRoot(env console.Env) (root *cobra.Command, addTexts func()) {
	printVersion := func() error {
		_, err := fmt.Fprintln(env.Out, "chaski", env.Version)
		return err
	}
	root = &cobra.Command{
		Use:           "chaski",
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          console.Verb,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if version, _ := cmd.Flags().GetBool("version"); version {
				return printVersion()
			}
			return cmd.Help()
		},
	}
	// The flag is made here, because cobra's own prints through a template, and linking one costs 12 MB
	// (docs/decisions/build.md).
	root.Flags().BoolP("version", "v", false, "")
	var disk flags.DiskCache
	disk.Add(root.PersistentFlags())
	root.SetIn(env.In)
	root.SetOut(env.Out)
	root.SetErr(env.Err)
	root.SetFlagErrorFunc(console.FlagError)
	// cobra runs this once it has accepted the command line: see console.Started.
	root.PersistentPreRunE = func(cmd *cobra.Command, args []string) error {
		cmd.Root().Annotations = map[string]string{console.Started: ""}
		flags.LimitHeap()
		if err := console.NotAnInput(cmd.Flags(), args); err != nil {
			return err
		}
		return disk.Set(env.Cache)
	}
	addGroup(root, "Train:", dataset.NewStats(env), dataset.NewPlan(env), dataset.NewExplain(env), dataset.NewSpec(env),
		ledger.NewLedger(env))
	addGroup(root, "Look at data:", suggest.NewSuggest(env), inspect.NewInfo(env), raster.NewCat(env),
		container.NewLs(env), container.NewSQL(env), container.NewLocate(env), container.NewExtract(env),
		array.NewArray(env), raster.NewFrame(env))
	addGroup(root, "Prepare data:", raster.NewIndex(env), raster.NewConvert(env), container.NewPack(env),
		raster.NewVerify(env), raster.NewPaste(env))
	addGroup(root, "Serve:", serve.NewServe(env), serve.NewToken(env), cache.NewCache(env))
	addGroup(root, "Measure:", serve.NewTop(env), measure.NewBench(env))
	root.AddCommand(&cobra.Command{
		Use:  "version",
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return printVersion() },
	})
	addTexts = sync.OnceFunc(func() { describe(root, sharedFlags()) })
	showHelp := root.HelpFunc()
	root.SetHelpFunc(func(cmd *cobra.Command, args []string) {
		addTexts()
		showHelp(cmd, args)
	})
	wrapFlags(root)
	root.InitDefaultHelpCmd()
	if help, _, err := root.Find([]string{"help"}); err == nil {
		help.Args = topic
	}
	return root, addTexts
}

// addGroup adds commands, which the help lists below a title.
func addGroup(root *cobra.Command, title string, commands ...*cobra.Command) {
	root.AddGroup(&cobra.Group{ID: title, Title: title})
	for _, cmd := range commands {
		cmd.GroupID = title
	}
	root.AddCommand(commands...)
}

// topic checks the arguments of help, because cobra prints the general help for a command that does not
// exist.
func topic(help *cobra.Command, args []string) error {
	cmd, rest, err := help.Root().Find(args)
	if err != nil {
		return err
	}
	return console.Verb(cmd, rest)
}
