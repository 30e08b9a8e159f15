// Package serve has the command serve, which serves batches over gRPC.
package serve

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/chaski-eo/chaski/cmd/chaski/internal/console"
	"github.com/chaski-eo/chaski/cmd/chaski/internal/flags"
	"github.com/chaski-eo/chaski/cmd/chaski/internal/open"
	"github.com/chaski-eo/chaski/format/tables"
	"github.com/chaski-eo/chaski/grpc/client"
	"github.com/chaski-eo/chaski/grpc/server"
	"github.com/chaski-eo/chaski/grpc/upstream"
	"github.com/chaski-eo/chaski/internal/procs"
	"github.com/chaski-eo/chaski/internal/trace/export"
	"github.com/chaski-eo/chaski/loader"
	chaskiv1 "github.com/chaski-eo/chaski/proto/chaski/v1"
)

type serveFlags struct {
	server.Options
	access    access
	listen    string
	redirects bool
	requester bool // pays for requests to S3
	engine    flags.Engine
	upstream  bool
	contents  bool // --verify-contents
	noShared  bool
	sql       tables.QueryLimits
	metrics   string
	health    string
	stopOnEOF bool
	heldAt    string
	delay     time.Duration // --drain-delay
	logLevel  string
}

func NewServe(env console.Env) *cobra.Command {
	var f serveFlags
	cmd := console.Command("serve [flags]", func(_ *cobra.Command, args []string) error {
		if len(args) > 0 {
			return console.Usagef("serve takes no argument %q: --root DIR names what to serve", args[0])
		}
		return nil
	}, func(cmd *cobra.Command, _ []string) error {
		// Goroutines that send need places of their own while others compute.
		procs.Spare()
		return export.During(cmd.Context(), func(ctx context.Context) error { return f.run(ctx, env) })
	})
	f.add(cmd.Flags())
	return cmd
}

// add declares the flags.
func (f *serveFlags) add(fl *pflag.FlagSet) {
	console.Var(fl, &f.listen, "listen", "127.0.0.1:7447")
	f.access.add(fl)
	console.Var(fl, &f.Reflection, "reflection", false)
	console.Var(fl, &f.Roots, "root", nil)
	console.Var(fl, &f.redirects, "allow-redirects", false)
	console.Var(fl, &f.requester, "requester-pays", false)
	console.Var(fl, &f.upstream, "allow-upstream", false)
	f.engine.Add(fl)
	console.NumberVar(fl, &f.PartBytes, "part-bytes", server.DefaultPartBytes, 1, server.MaxPartBytes)
	console.CountVar(fl, &f.MaxOpenings, "max-openings", server.DefaultMaxOpenings, 1)
	console.CountVar(fl, &f.MaxQueuedOpenings, "max-queued-openings", server.DefaultMaxQueuedOpenings, 1)
	flags.AddSQLLimits(fl, &f.sql)
	console.Var(fl, &f.noShared, "no-shared-memory", false)
	console.Var(fl, &f.metrics, "metrics", "")
	console.Var(fl, &f.health, "health", "")
	console.Var(fl, &f.stopOnEOF, "stop-on-eof", false)
	console.Var(fl, &f.heldAt, "held-at", "")
	console.DurationVar(fl, &f.DrainTimeout, "grace", server.DefaultDrainTimeout)
	console.DurationVar(fl, &f.IdleTimeout, "idle-timeout", server.DefaultIdleTimeout)
	console.CountVar(fl, &f.MaxStreams, "max-streams", server.DefaultMaxStreams, 1)
	console.CountVar(fl, &f.MaxEngines, "max-datasets", server.DefaultMaxEngines, 1)
	console.CountVar(fl, &f.MaxClientStreams, "max-client-streams", 0, 0)
	console.CountVar(fl, &f.MaxClientEngines, "max-client-datasets", 0, 0)
	console.CountVar(fl, &f.MaxClientOpenings, "max-client-openings", 0, 0)
	console.CountVar(fl, &f.ClientRate, "client-rate", 0, 0)
	console.Var(fl, &f.delay, "drain-delay", 0)
	console.Var(fl, &f.contents, "verify-contents", false)
	console.ChoiceVar(fl, &f.logLevel, "log-level", "info", "debug", "info", "warn", "error")
}

func (f *serveFlags) check() (slog.Level, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(f.logLevel)); err != nil {
		return level, err
	}
	// Programs of one user alone have the token that is made.
	oneUser := (f.stopOnEOF || f.heldAt != "") && !f.access.insecure && !f.access.asks()
	switch {
	case f.delay < 0:
		return level, console.Usagef("--drain-delay is %v: it must not be negative", f.delay)
	case f.heldAt != "" && !onlyUser(f.heldAt):
		return level, console.Usagef("--held-at is %q: it must be unix:PATH or unix-abstract:NAME", f.heldAt)
	case f.upstream && !onlyUser(f.listen) && !oneUser:
		// It is refused, since other clients could make this process connect to any address in its own network.
		return level, console.Usagef("--allow-upstream needs --listen unix:PATH or unix-abstract:NAME, not %q, or "+
			"--stop-on-eof or --held-at, and the token that is made", f.listen)
	}
	if err := f.access.check(); err != nil {
		return level, err
	}
	for _, r := range f.Roots {
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
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	holders, err := f.openHolders(ctx, env.Err, cancel)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil // another server is held there
	}
	if err != nil {
		return err
	}
	if holders != nil {
		defer holders.close()
		defer context.AfterFunc(ctx, holders.close)()
		env.Err = holders
	}
	if f.stopOnEOF {
		// The end of the input is the end of the parent process.
		go func() {
			defer cancel()
			_, _ = io.Copy(io.Discard, env.In) // an error is an end, too
		}()
	}
	return f.runHeld(ctx, holders, level, env)
}

// runHeld serves until ctx ends. h is nil without --held-at.
func (f *serveFlags) runHeld(ctx context.Context, h *holderSet, level slog.Level, env console.Env) error {
	engine, err := f.engine.Options()
	if err != nil {
		return err
	}
	log := console.NewLog(env.Err, level)
	slog.SetDefault(log) // packages without a logger of their own say something, too, such as the cache on disk
	// The folder is opened here: a wrong one fails now and not at the first read.
	folder, err := env.Cache.Get()
	if err != nil {
		return err
	}
	registry := newRegistry()
	opener := open.NewOpener(f.redirects, env.Cache, f.requester)
	defer opener.Close()
	engine.Logger, engine.SQLLimits = log, f.sql
	options := f.serverOptions(env, level, log)
	options.Loader = engine
	options.Loader.Opener, options.Metrics, options.Cache = opener, registry, folder
	options.Loader.Disk, options.Loader.VerifyContents = env.Cache, f.contents
	listener, addr, err := listen(ctx, f.listen)
	if err != nil {
		return err
	}
	defer listener.Close()
	metrics, err := listenHTTP(ctx, "metrics", f.metrics)
	if err != nil {
		return err
	}
	if metrics != nil {
		defer metrics.Close()
	}
	probes, err := listenHTTP(ctx, "health", f.health)
	if err != nil {
		return err
	}
	if probes != nil {
		defer probes.Close()
	}
	srv, doors, err := f.server(options, listener, metrics)
	if err != nil {
		return err
	}
	defer srv.Close()
	if metrics != nil {
		defer serveMetrics(metrics, doors, registry, srv.Ready, log)()
	}
	if probes != nil {
		defer serveHealth(probes, srv.Ready, log)()
	}
	if len(f.Roots) == 0 {
		log.Warn("there is no --root: the server will serve no files")
	}
	if err := f.announce(addr, doors.token, h, env); err != nil {
		return err
	}
	log.Info("listening", "address", addr, "roots", f.Roots)
	if err := f.serve(ctx, srv, listener); err != nil {
		return err
	}
	log.Info("stopped")
	return nil
}

// announce prints where the server listens, and the token that was made for it, if any. It tells holders, too.
func (f *serveFlags) announce(address, token string, h *holderSet, env console.Env) error {
	ready := map[string]any{"listen": address}
	switch {
	case token == "":
	case f.stopOnEOF || h != nil: // the program that started this one reads that line
		ready["token"] = token
	default:
		fmt.Fprintf(env.Err, "Clients need this token, which is shown only once:\nexport %s=%s\n",
			client.TokenVariable, token)
	}
	if h == nil {
		return console.PrintJSON(env.Out, ready)
	}
	ready["pid"] = os.Getpid()
	var line bytes.Buffer
	if err := console.PrintJSON(&line, ready); err != nil {
		return err
	}
	go h.serve(line.Bytes())
	_, err := env.Out.Write(line.Bytes())
	return err
}

// serve serves until ctx ends, and for --drain-delay after it.
func (f *serveFlags) serve(ctx context.Context, srv *server.Server, l net.Listener) error {
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	defer context.AfterFunc(ctx, func() {
		srv.Drain()
		time.AfterFunc(f.delay, stop)
	})()
	return srv.Serve(serving, l)
}

// server returns the server and its doors, which authenticate clients at the listeners. m is nil without --metrics.
func (f *serveFlags) server(o server.Options, l, m net.Listener) (*server.Server, *serverDoors, error) {
	addresses := []net.Addr{l.Addr()}
	if m != nil {
		addresses = append(addresses, m.Addr())
	}
	doors, err := f.access.open(addresses, o.Logger)
	if err != nil {
		return nil, nil, err
	}
	o.Credentials = doors.grpc()
	// A token that was made is for TCP, since only this user can connect to a Unix socket.
	if o.Gate = doors.gate; onlyUser(f.listen) && !f.access.asks() {
		o.Gate = nil
	}
	srv, err := server.New(o)
	return srv, doors, console.UsageUnlessFault(err)
}

func (f *serveFlags) serverOptions(env console.Env, level slog.Level, log *slog.Logger) server.Options {
	options := f.Options
	options.SharedMemory, options.Logger = !f.noShared, log
	if f.upstream {
		// Messages of a client about servers that come and go matter to its user, so they are shown at every level.
		clients := console.NewLog(env.Err, min(level, slog.LevelInfo))
		options.Upstream = func(ctx context.Context, s loader.Spec, u *chaskiv1.Upstream, rows int,
			o loader.Options) (server.Engine, error) {
			o.Logger = clients
			return upstream.Open(ctx, s, u, rows, o)
		}
	}
	return options
}
