package measure

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/chaski-eo/chaski/bench/peers"
	"github.com/chaski-eo/chaski/cmd/chaski/internal/console"
	"github.com/chaski-eo/chaski/draw"
	"github.com/chaski-eo/chaski/fault"
)

type peersFlags struct {
	out, work     string
	pythons       []string
	pythonPath    string
	engine, full  string
	imagery       []string
	peers, shapes []string
	rounds        int
	seconds       float64
	workers       int
	quick         bool
}

func newBenchPeers(env console.Env) *cobra.Command {
	var f peersFlags
	var long strings.Builder
	long.WriteString(`Measure chaski side by side with other loaders of satellite-image chips in a PyTorch training loop:
samples per second, CPU time, memory, and how long the consumer waits. The command makes a Python
environment for the loaders, cuts samples from imagery, writes them in each loader's own format and checks
that each loader yields them. Then it measures the loaders in turns, each in its own process. After each
shape it writes peers.md, peers.json, peers.png and peers.svg into the directory -o.

All loaders yield batches of normalised float32 as torch tensors. All have the same number of workers, and
at most 32 MB of decoded tiles in caches. If a loader cannot be installed, fails, or yields other samples
than were written, its row says so.

Without --python the command makes an environment once, with pip, in the user's cache directory
(XDG_CACHE_HOME). On Linux it downloads about 3 GB and stores 7 GB. --python PY uses an interpreter that has
the packages already. --python rumi1=PY uses one with rumi-eo 0.8.3 for rumi files of generation 1; that
version conflicts with newer ones, so that the command otherwise installs it into a small environment over
the first.

Samples are cut from --imagery: directories with files whose names contain s2 (or sentinel), naip and
landsat (or l8, l9), as .npy of (bands, y, x) or in a format that GDAL reads, uint8 or uint16. Missing
imagery is replaced by mirrored files from testdata of the checkout, and the report says so. Samples stay in
--work (default: the cache directory), about 1.5 GB for each shape with all formats, and are used again.

Shapes (default: all; each takes about 15 minutes with all peers, 3 rounds and 10 s):

`)
	for _, shape := range peers.Shapes() {
		fmt.Fprintf(&long, "  %-19s %s\n", shape.Name, shape)
	}
	long.WriteString("\nPeers (default: all):\n\n")
	for _, p := range peers.Peers() {
		fmt.Fprintf(&long, "  %-19s %s\n", p.Name, p.About)
	}
	cmd := &cobra.Command{
		Use:   "peers [flags] -o DIR",
		Short: "Measure chaski and other loaders side by side",
		Long:  strings.TrimRight(long.String(), "\n"),
		Example: `  chaski bench peers -o report/
  chaski bench peers --quick --shapes chips --peers chaski,rasterio -o report/
  chaski bench peers --shapes chips,windows,naip-3x256 --peers chaski,chaski-grpc,chaski-load,rasterio,mds --seconds 5 -o report/
  chaski bench peers --python /opt/py312/bin/python --imagery scenes/ --rounds 5 -o report/`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd, env) },
	}
	fl := cmd.Flags()
	fl.StringVarP(&f.out, "output", "o", "", "`DIR` of the report, which the command makes if necessary")
	fl.StringVar(&f.work, "work", "", "`DIR` of samples (default: peers/work in chaski's cache directory)")
	fl.StringArrayVar(&f.pythons, "python", nil,
		"interpreter `PY` that has the packages, or rumi1=PY; repeatable (default: the command makes an environment)")
	fl.StringVar(&f.pythonPath, "python-path", "",
		"`DIR` to put before PYTHONPATH (default: python/src of the checkout, if there is one)")
	fl.StringVar(&f.engine, "engine", "", "the chaski `COMMAND` that serves (default: this one)")
	fl.StringVar(&f.full, "full", "",
		"the chaski `COMMAND` with libzstd (default: chaski-full beside the engine, if it exists)")
	fl.StringArrayVar(&f.imagery, "imagery", nil, "`DIR` with imagery; repeatable (default: testdata of the checkout)")
	fl.StringSliceVar(&f.peers, "peers", nil, "`NAMES` of loaders, separated by commas (default: all)")
	fl.StringSliceVar(&f.shapes, "shapes", nil, "`NAMES` of shapes, separated by commas (default: all)")
	fl.IntVar(&f.rounds, "rounds", 3, "number of rounds; each measures every loader once")
	fl.Float64Var(&f.seconds, "seconds", 10, "shortest time of a measurement, in seconds")
	fl.IntVar(&f.workers, "workers", 2, "decoding workers of each loader: processes or threads")
	fl.BoolVar(&f.quick, "quick", false,
		"use few small files, and one round of 1 s unless --rounds or --seconds is set: to see that all works, "+
			"not for figures")
	return cmd
}

func (f *peersFlags) run(cmd *cobra.Command, env console.Env) error {
	if f.quick && !cmd.Flags().Changed("rounds") {
		f.rounds = 1
	}
	if f.quick && !cmd.Flags().Changed("seconds") {
		f.seconds = 1
	}
	options, err := f.options()
	if err != nil {
		return err
	}
	if err := f.ready(); err != nil {
		return err
	}
	if options.Environment, err = f.environment(cmd, env, options.Peers); err != nil {
		return err
	}
	bar := console.NewBar(env.Err, "", 1)
	defer bar.Done()
	options.Progress = func(done, total int, what string) {
		bar.Describe(what)
		bar.Set(int64(done), int64(total))
	}
	options.Shaped = f.write
	report, err := peers.Run(cmd.Context(), *options)
	bar.Done()
	if err != nil {
		return err
	}
	return report.WriteMarkdown(env.Out)
}

// options checks the flags and finds the files that they leave out.
func (f *peersFlags) options() (*peers.Options, error) {
	options := &peers.Options{Rounds: f.rounds, Seconds: f.seconds, Workers: f.workers, Quick: f.quick,
		Imagery: f.imagery, Work: f.work,
		PythonPath: f.pythonPath, Engine: f.engine, Full: f.full}
	switch {
	case f.out == "":
		return nil, console.Usagef("-o DIR is missing")
	case !(f.seconds > 0 && f.seconds <= 3600): // also refuses NaN
		return nil, console.Usagef("--seconds is %v: it must be above 0 and at most 3600", f.seconds)
	}
	// Each loader starts a process for each worker, so that a mistyped number would exhaust the machine.
	err := console.FirstError(console.Between("rounds", f.rounds, 1, 1000),
		console.Between("workers", f.workers, 1, 1024))
	if err != nil {
		return nil, err
	}
	if options.Shapes, err = peers.ShapesNamed(f.shapes); err != nil {
		return nil, console.WrongUsage(err)
	}
	if options.Peers, err = peers.PeersNamed(f.peers); err != nil {
		return nil, console.WrongUsage(err)
	}
	if f.quick {
		for i := range options.Shapes {
			options.Shapes[i] = options.Shapes[i].Small()
		}
	}
	if err := f.places(options); err != nil {
		return nil, err
	}
	return options, nil
}

// places finds the files and directories that the flags leave out. It makes all paths
// absolute.
func (f *peersFlags) places(o *peers.Options) (err error) {
	if o.Engine == "" {
		if o.Engine, err = os.Executable(); err != nil {
			return err
		}
	}
	if o.Full == "" {
		if full := filepath.Join(filepath.Dir(o.Engine), "chaski-full"); isFile(full) {
			o.Full = full
		}
	}
	if root := checkout(o.Engine); root != "" {
		o.Testdata = filepath.Join(root, "testdata")
		if o.PythonPath == "" {
			o.PythonPath = filepath.Join(root, "python", "src")
		}
	}
	if o.Work == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			return console.Usagef("there is no cache directory (%v): --work DIR is needed", err)
		}
		o.Work = filepath.Join(cache, "chaski", "peers", "work")
		if f.quick {
			o.Work += "-quick"
		}
	}
	for _, path := range []*string{&o.Work, &o.Engine, &o.Full, &o.PythonPath} {
		if *path != "" {
			if *path, err = filepath.Abs(*path); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkout returns the directory of the sources, above the working directory or the command, or "".
func checkout(command string) string {
	here, err := os.Getwd()
	if err != nil {
		here = "."
	}
	for _, dir := range []string{here, filepath.Dir(command)} {
		for {
			if isFile(filepath.Join(dir, "python", "src", "chaski", "__init__.py")) &&
				isFile(filepath.Join(dir, "testdata", "README.md")) {
				return dir
			}
			up := filepath.Dir(dir)
			if up == dir {
				break
			}
			dir = up
		}
	}
	return ""
}

func isFile(path string) bool {
	st, err := os.Stat(path)
	return err == nil && st.Mode().IsRegular()
}

// ready checks interpreters and directories, before the command downloads gigabytes and measures for an
// hour.
func (f *peersFlags) ready() error {
	for _, p := range f.pythons {
		p = strings.TrimPrefix(p, "rumi1=")
		if _, err := exec.LookPath(p); err != nil {
			return fault.WithFile(fault.New(fault.NotFound, "interpreter", fault.NoOffset, "no such program"), p)
		}
	}
	for _, dir := range f.imagery {
		if st, err := os.Stat(dir); err != nil || !st.IsDir() {
			return fault.WithFile(fault.New(fault.NotFound, "imagery", fault.NoOffset, "no such directory"), dir)
		}
	}
	return os.MkdirAll(f.out, 0o755)
}

// environment finds or makes the Python environment of the loaders.
func (f *peersFlags) environment(cmd *cobra.Command, env console.Env, list []peers.Peer) (*peers.Environment, error) {
	o := peers.EnvironmentOptions{
		NeedRumi1: slices.ContainsFunc(list, func(p peers.Peer) bool { return p.Format == "rumi1" }),
		Log:       func(format string, args ...any) { fmt.Fprintf(env.Err, "chaski: "+format+"\n", args...) },
	}
	for _, p := range f.pythons {
		if rumi1, ok := strings.CutPrefix(p, "rumi1="); ok {
			o.Rumi1 = rumi1
		} else {
			o.Python = p
		}
	}
	if o.Python == "" || o.Rumi1 == "" && o.NeedRumi1 {
		cache, err := os.UserCacheDir()
		if err != nil {
			return nil, console.Usagef("there is no cache directory (%v) for an environment: --python PY is needed",
				err)
		}
		o.Cache = filepath.Join(cache, "chaski", "peers")
	}
	return peers.Prepare(cmd.Context(), o)
}

// write writes the report so far.
func (f *peersFlags) write(r *peers.Report) error {
	if err := os.MkdirAll(f.out, 0o755); err != nil {
		return err
	}
	for name, write := range map[string]func(io.Writer) error{
		"peers.md":   r.WriteMarkdown,
		"peers.json": func(w io.Writer) error { return console.PrintJSON(w, r) },
		"peers.png":  func(w io.Writer) error { return r.WriteFigure(w, draw.PNG) },
		"peers.svg":  func(w io.Writer) error { return r.WriteFigure(w, draw.SVG) },
	} {
		if err := console.WriteFile(filepath.Join(f.out, name), nil, write); err != nil {
			return err
		}
	}
	return nil
}
