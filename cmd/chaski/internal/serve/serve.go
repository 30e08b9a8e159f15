// Package serve has the command serve, which serves batches over gRPC.
package serve

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/spf13/cobra"

	"github.com/chaski-eo/chaski/bench"
	"github.com/chaski-eo/chaski/cmd/chaski/internal/console"
	"github.com/chaski-eo/chaski/cmd/chaski/internal/flags"
	"github.com/chaski-eo/chaski/cmd/chaski/internal/open"
	"github.com/chaski-eo/chaski/grpc/server"
	"github.com/chaski-eo/chaski/grpc/upstream"
	"github.com/chaski-eo/chaski/loader"
	chaskiv1 "github.com/chaski-eo/chaski/proto/chaski/v1"
)

type serveFlags struct {
	listen    string
	roots     []string
	redirects bool
	upstream  bool
	workers   int
	memory    int64
	cache     int64
	maxChunk  int
	partBytes int
	noShared  bool
	metrics   string
	stopOnEOF bool
	grace     time.Duration
	logLevel  string
	stages    string
	bad       string // the list of bad samples
}

func NewServe(env console.Env) *cobra.Command {
	var f serveFlags
	cmd := &cobra.Command{
		Use:   "serve [flags]",
		Short: "Serve batches over gRPC",
		Long: `Serve batches, windows and file information over gRPC to Python and Go clients. Only files below
the folders given with --root are served, symbolic links followed, and remote objects whose URI begins with
one; none is by default.

There is no authentication and no encryption: listen on a Unix socket (only this user can connect)
or on a loopback address, or leave access to the network in front.

When the server is ready, one line of JSON on standard output says where it listens:
{"listen":"127.0.0.1:7447"}. The log goes to standard error. SIGINT or SIGTERM stop it in good order:
streams end after the batch being sent, for at most --grace; a second signal kills.`,
		Example: `  chaski serve --root chips
  chaski serve --listen unix:/tmp/chaski.sock --root chips --root masks --stop-on-eof
  chaski serve --root s3://bucket/chips
  chaski serve --listen 127.0.0.1:0 --root chips --metrics 127.0.0.1:9447
  chaski serve --listen 127.0.0.1:0 --root chips --quarantine bad.jsonl`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd.Context(), env) },
	}
	fl := cmd.Flags()
	fl.StringVar(&f.listen, "listen", "127.0.0.1:7447", "`ADDRESS`: host:port (port 0: any free one), unix:PATH, or unix-abstract:NAME (Linux: only this user can\nconnect, and no file is left behind)")
	fl.StringArrayVar(&f.roots, "root", nil, "`FOLDER` below which files are served, or the prefix of remote URIs that are, such as s3://bucket/chips; repeatable\n(default: none, so nothing is served)")
	fl.BoolVar(&f.redirects, "allow-redirects", false, "follow redirects of http:// and https:// to other hosts, also to those of no --root (default: on the same host only)")
	fl.BoolVar(&f.upstream, "allow-upstream", false, "be the client of other servers for whoever asks, and pass their batches on: for a server that only one\nuser can reach")
	fl.IntVar(&f.workers, "workers", 0, "decoding workers of each dataset (default: the number of processors)")
	flags.AddMemory(fl, &f.memory, "batches of a dataset")
	fl.Int64Var(&f.cache, "cache", loader.DefaultCacheBytes, "parsed headers and table pages kept for a dataset, in bytes")
	flags.AddMaxChunk(fl, &f.maxChunk)
	fl.IntVar(&f.partBytes, "part-bytes", server.DefaultPartBytes, "most data in one message, in bytes")
	fl.BoolVar(&f.noShared, "no-shared-memory", false, "send batches to clients on this host as to others (default: in shared memory where that works)")
	fl.StringVar(&f.metrics, "metrics", "", "`ADDRESS` host:port for Prometheus metrics at /metrics (default: off)")
	fl.BoolVar(&f.stopOnEOF, "stop-on-eof", false, "stop when standard input closes: the parent process is gone")
	fl.DurationVar(&f.grace, "grace", server.DefaultDrainTimeout, "how long running streams may take to end")
	fl.StringVar(&f.logLevel, "log-level", "info", "debug, info, warn or error")
	fl.StringVar(&f.bad, "quarantine", "", "`FILE` that bad samples are appended to, as lines of JSON: see 'chaski quarantine' (default: none)")
	fl.StringVar(&f.stages, "stages", "", "`FILE` that gets, as JSON, where the workers' time went, when the server has stopped (default: what\n"+bench.StagesVariable+" names, or off)")
	return cmd
}

func (f *serveFlags) check() (slog.Level, error) {
	var level slog.Level
	switch {
	case level.UnmarshalText([]byte(f.logLevel)) != nil:
		return level, console.Usagef("--log-level %q is none of debug, info, warn, error", f.logLevel)
	case f.workers < 0 || f.workers > 4096:
		return level, console.Usagef("--workers is from 0 to 4096")
	case f.memory < 0 || f.cache < 1:
		return level, console.Usagef("--memory is at least 0, --cache at least 1 byte")
	case f.partBytes < 1 || f.partBytes > server.MaxPartBytes:
		return level, console.Usagef("--part-bytes is from 1 to %d", server.MaxPartBytes)
	case f.grace <= 0:
		return level, console.Usagef("--grace is a time above 0")
	}
	for _, r := range f.roots {
		if err := checkRoot(r); err != nil {
			return level, err
		}
	}
	return level, nil
}

func (f *serveFlags) run(ctx context.Context, env console.Env) error {
	level, err := f.check()
	if err != nil {
		return err
	}
	stages, err := f.openStages()
	if err != nil {
		return err
	}
	log := slog.New(slog.NewTextHandler(env.Err, &slog.HandlerOptions{Level: level}))
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()

	bad, err := openQuarantine(f.bad, log)
	if err != nil {
		return err
	}
	defer bad.close()
	opener := open.NewOpener(f.redirects)
	defer opener.Close()
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	o := f.serverOptions(env, level, log)
	o.Loader.Stages, o.Loader.Opener, o.Metrics, o.Bad = stages, opener, registry, bad.hook()
	srv, err := server.New(o)
	if err != nil {
		return console.UsageUnlessFault(err)
	}
	defer srv.Close()
	l, at, err := listen(ctx, f.listen)
	if err != nil {
		return err
	}
	defer l.Close()
	if f.metrics != "" {
		stop, err := serveMetrics(ctx, f.metrics, registry, log)
		if err != nil {
			return err
		}
		defer stop()
	}
	if f.stopOnEOF {
		go func() {
			_, err := io.Copy(io.Discard, env.In)
			log.Debug("standard input closed", "error", err)
			cancel()
		}()
	}
	if len(f.roots) == 0 {
		log.Warn("no --root is given: no file will be served")
	}
	if err := console.PrintJSON(env.Out, map[string]string{"listen": at}); err != nil {
		return err
	}
	log.Info("listening", "address", at, "roots", f.roots)
	if err := srv.Serve(ctx, l); err != nil {
		return err
	}
	log.Info("stopped")
	return f.writeStages(stages)
}

func (f *serveFlags) serverOptions(env console.Env, level slog.Level, log *slog.Logger) server.Options {
	o := server.Options{
		Roots: f.roots,
		Loader: loader.Options{
			Workers: f.workers, MemoryBytes: f.memory, CacheBytes: f.cache, MaxChunkBytes: f.maxChunk, Logger: log, SQL: env.SQL,
		},
		PartBytes: f.partBytes, SharedMemory: !f.noShared, DrainTimeout: f.grace, Logger: log,
	}
	if f.upstream {
		// What a client does about servers that come and go is of interest to its user, whatever the level of the rest.
		clients := slog.New(slog.NewTextHandler(env.Err, &slog.HandlerOptions{Level: min(level, slog.LevelInfo)}))
		o.Upstream = func(ctx context.Context, s loader.Spec, u *chaskiv1.Upstream, rows int, o loader.Options) (server.Engine, error) {
			o.Logger = clients
			return upstream.Open(ctx, s, u, rows, o)
		}
	}
	return o
}

// openStages makes what counts the workers' time, if that is asked for, and its file: now, not after a day's work.
func (f *serveFlags) openStages() (*loader.Stages, error) {
	if f.stages == "" {
		f.stages = os.Getenv(bench.StagesVariable)
	}
	if f.stages == "" {
		return nil, nil
	}
	return new(loader.Stages), os.WriteFile(f.stages, nil, 0o600)
}

// writeStages writes where the workers' time went, if that was asked for.
func (f *serveFlags) writeStages(s *loader.Stages) error {
	if s == nil {
		return nil
	}
	var b bytes.Buffer
	if err := bench.WriteStages(&b, s); err != nil {
		return err
	}
	return os.WriteFile(f.stages, b.Bytes(), 0o600)
}
