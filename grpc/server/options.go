package server

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/chaski-eo/chaski/grpc/auth"
	"github.com/chaski-eo/chaski/internal/procs"
	"github.com/chaski-eo/chaski/loader"
	"github.com/chaski-eo/chaski/loader/batch"
	"github.com/chaski-eo/chaski/loader/resources"
	chaskiv1 "github.com/chaski-eo/chaski/proto/chaski/v1"
	"github.com/chaski-eo/chaski/shuffle/steps"
	"github.com/chaski-eo/chaski/source/diskcache"
)

// Defaults of Options.
const (
	// DefaultPartBytes leaves room for the rest of the message in the buffers of 1 MiB that gRPC keeps.
	DefaultPartBytes    = 1<<20 - 1<<10
	DefaultMaxEngines   = 32
	DefaultMaxStreams   = 1024
	DefaultDrainTimeout = 30 * time.Second
	DefaultSendTimeout  = 2 * time.Minute
	// A part of 1 MiB in 5 s is 1.7 Mbit/s, less than any link that a trainer could use. Clients read everything that
	// they gave credits for, even while their loop is busy. So a client that pauses for this long is stopped or lost.
	DefaultStallTimeout = 5 * time.Second
	DefaultIdleTimeout  = time.Hour
	DefaultMaxReads     = 4
	// An opening waits for its store most of the time, and may hold the names of all files of a directory.
	DefaultMaxOpenings = 8
	// The ranks of a large job ask for one dataset, which is one opening; these are the jobs.
	DefaultMaxQueuedOpenings = 256

	// MaxPartBytes bounds Options.PartBytes. Clients accept messages of that size and a little more.
	MaxPartBytes = 16 << 20
)

// Engine has the methods of *loader.Engine that the server uses of each engine. It is a Starter or a Sequencer.
type Engine interface {
	Spec() loader.Spec
	Hash() string
	Fingerprint() string
	Len() int64
	Fields() []batch.FieldInfo
	Close() error
}

// Starter is an Engine that makes its batches.
type Starter interface {
	Start(ctx context.Context, t steps.Ticket, native bool) Pending
}

// Pending has the methods of *loader.Pending that the server uses. Exactly one of them is called.
type Pending interface {
	Wait(ctx context.Context) (*batch.Batch, error)
	Cancel()
}

// Sequencer is an Engine whose batches come from other servers.
type Sequencer interface {
	// The batches are for an owner of memory (resources.WithOwner), or for nil.
	Sequence(owner batch.Owner) (Sequence, error)
}

// Sequence answers tickets in the order in which they are added. Add and Next may be called at the same time.
type Sequence interface {
	Add(t steps.Ticket, native bool)
	Next(ctx context.Context) (*batch.Batch, error)
	Close()
}

// Options are the options and limits of a server.
type Options struct {
	// Roots are the folders that served files may lie in. Without any, all files are refused.
	Roots []string
	// Credentials of connections, such as auth.ServerTLS gives. Default: plain text.
	Credentials credentials.TransportCredentials
	// Gate decides which clients are admitted. Default: all.
	Gate *auth.Gate
	// Reflection offers gRPC reflection.
	Reflection bool
	// Loader has the options of each engine; its Roots and Stages are not used. Its Decoders, which all engines and
	// reads share, are Workers for each client by default, or as many as there are processors.
	Loader loader.Options
	// SharedMemory offers batches in shared memory to clients of the same user on this host. It is
	// left out, with a line in the log, where the system has none.
	SharedMemory bool
	// Open opens a spec's dataset. Default: loader.Open.
	Open func(context.Context, loader.Spec, loader.Options) (Engine, error)
	// Upstream opens the dataset of a spec at other servers, for a client that expects rows of every ticket (0: it does
	// not say). Only Alloc, MemoryBytes and Logger of the loader's options are used. Default: nil, which refuses such
	// clients, since they would reach every address that this server can.
	Upstream func(ctx context.Context, s loader.Spec, u *chaskiv1.Upstream, rows int, o loader.Options) (Engine, error)
	// PartBytes is the most data in one message, in bytes, up to MaxPartBytes. Default
	// DefaultPartBytes.
	PartBytes int
	// MaxEngines bounds the datasets that are open at a time. Default DefaultMaxEngines.
	MaxEngines int
	// MaxStreams bounds the streams that are served at a time. Default DefaultMaxStreams.
	MaxStreams int
	// MaxClientStreams, MaxClientEngines and MaxClientOpenings bound the share of one client in MaxStreams, in
	// MaxEngines (with unanswered tickets), and in MaxOpenings and MaxQueuedOpenings together. Default: half, but up to
	// 64 streams, 16 datasets and 64 openings in any case.
	MaxClientStreams, MaxClientEngines, MaxClientOpenings int
	// ClientRate bounds the bytes a second that one client is sent in batches and reads, on average over its
	// answers: after each one, the next waits. The token of a client may say otherwise. Default: any.
	ClientRate int64
	// MaxTickets bounds the unanswered tickets of one stream. Default 4096.
	MaxTickets int
	// MaxReadBytes bounds the array of one Read. Default 1 GiB.
	MaxReadBytes int64
	// MaxReads bounds the Reads, and the Plans, that are answered at a time; others wait. Plans are at most half as
	// many as processors. Default DefaultMaxReads.
	MaxReads int
	// MaxOpenings bounds the openings of datasets and files (Describe and Info) that run at a time. Openings of local
	// files are at most half as many as processors. Default DefaultMaxOpenings.
	MaxOpenings int
	// MaxQueuedOpenings bounds those that wait for others; more are refused. Default DefaultMaxQueuedOpenings.
	MaxQueuedOpenings int
	// OpenTimeout bounds the opening of a dataset. Default 10 minutes.
	OpenTimeout time.Duration
	// SendTimeout bounds the wait for a client that has credits to take the next part: such a client
	// holds memory that others wait for. Its stream ends, and its connection soon after. Default DefaultSendTimeout.
	SendTimeout time.Duration
	// StallTimeout takes the place of SendTimeout while others wait for memory or a place that the client holds.
	// After the same time without a ticket and a credit for it, a stream ends while there are MaxStreams. Default
	// DefaultStallTimeout.
	StallTimeout time.Duration
	// IdleTimeout bounds for how long a stream may have no ticket and credit for it while other clients have streams,
	// and for how long a connection may have no call. Clients that want to go on connect anew. Default
	// DefaultIdleTimeout.
	IdleTimeout time.Duration
	// Reuse is for how long after a Describe of a spec with files in stores another one is answered
	// without looking at the dataset again. Default 10 s.
	Reuse time.Duration
	// TrimAfter is how long a dataset without readers keeps the memory of its batches. Default 10 s.
	TrimAfter time.Duration
	// DrainTimeout bounds how long a server that stops waits for its streams. Default
	// DefaultDrainTimeout.
	DrainTimeout time.Duration
	// Logger receives log messages. Default: slog.Default.
	Logger *slog.Logger
	// Metrics gets the server's metrics. Default: none.
	Metrics prometheus.Registerer
	// Cache, if it is not nil, is the cache on disk of Loader.Opener, whose figures are told, too.
	Cache *diskcache.Folder
}

func (o Options) withDefaults() Options {
	o.PartBytes = cmp.Or(o.PartBytes, DefaultPartBytes)
	o.MaxEngines = cmp.Or(o.MaxEngines, DefaultMaxEngines)
	o.MaxStreams = cmp.Or(o.MaxStreams, DefaultMaxStreams)
	o.MaxTickets = cmp.Or(o.MaxTickets, 4096)
	o.MaxReadBytes = cmp.Or(o.MaxReadBytes, 1<<30)
	o.MaxReads = cmp.Or(o.MaxReads, DefaultMaxReads)
	o.MaxOpenings = cmp.Or(o.MaxOpenings, DefaultMaxOpenings)
	o.MaxQueuedOpenings = cmp.Or(o.MaxQueuedOpenings, DefaultMaxQueuedOpenings)
	o.OpenTimeout = cmp.Or(o.OpenTimeout, 10*time.Minute)
	o.SendTimeout = cmp.Or(o.SendTimeout, DefaultSendTimeout)
	o.StallTimeout = cmp.Or(o.StallTimeout, DefaultStallTimeout)
	o.IdleTimeout = cmp.Or(o.IdleTimeout, DefaultIdleTimeout)
	o.MaxClientStreams = cmp.Or(o.MaxClientStreams, half(o.MaxStreams, 64))
	o.MaxClientEngines = cmp.Or(o.MaxClientEngines, half(o.MaxEngines, 16))
	o.MaxClientOpenings = cmp.Or(o.MaxClientOpenings, half(o.MaxOpenings+o.MaxQueuedOpenings, 64))
	o.Reuse = cmp.Or(o.Reuse, 10*time.Second)
	o.TrimAfter = cmp.Or(o.TrimAfter, 10*time.Second)
	o.DrainTimeout = cmp.Or(o.DrainTimeout, DefaultDrainTimeout)
	o.Credentials = cmp.Or(o.Credentials, insecure.NewCredentials())
	o.Logger = cmp.Or(o.Logger, slog.Default())
	o.Logger = slog.New(bounded{o.Logger.Handler()})
	o.Loader.Logger = cmp.Or(o.Loader.Logger, o.Logger)
	if o.Open == nil {
		o.Open = openLocal
	}
	if o.Loader.Decoders == nil {
		o.Loader.Decoders = resources.NewDecoders(o.workers())
	}
	// An empty list of roots allows nothing; nil would allow everything.
	o.Loader.Roots = append([]string{}, o.Roots...)
	return o
}

// workers returns how many processors decode.
func (o *Options) workers() int { return cmp.Or(o.Loader.Workers, procs.Workers()) }

// computing returns how many requests of one kind may compute for long, beside those that decode batches.
func (o *Options) computing() int { return max(1, o.workers()/2) }

// half returns half of the places that there are for all, but at least as many as least, if there are.
func half(all, least int) int { return max(all/2, min(all, least)) }

func (o Options) validate() error {
	switch {
	case o.PartBytes < 1 || o.PartBytes > MaxPartBytes:
		return fmt.Errorf("server: parts of %d bytes; from 1 to %d are possible", o.PartBytes, MaxPartBytes)
	case min(o.MaxEngines, o.MaxStreams, o.MaxTickets, o.MaxReads) < 1 || o.MaxReadBytes < 1:
		return fmt.Errorf("server: bounds of %d datasets, %d streams, %d tickets, %d reads of %d bytes",
			o.MaxEngines, o.MaxStreams, o.MaxTickets, o.MaxReads, o.MaxReadBytes)
	case o.MaxClientStreams < 1 || o.MaxClientEngines < 1 || o.MaxClientOpenings < 1:
		return fmt.Errorf("server: bounds of %d streams, %d datasets, %d openings for each client", o.MaxClientStreams,
			o.MaxClientEngines, o.MaxClientOpenings)
	case o.ClientRate < 0:
		return fmt.Errorf("server: a rate of %d bytes a second", o.ClientRate)
	case o.MaxOpenings < 1 || o.MaxQueuedOpenings < 1:
		return fmt.Errorf("server: a bound of %d openings, and of %d that wait", o.MaxOpenings, o.MaxQueuedOpenings)
	case min(o.OpenTimeout, o.SendTimeout, o.StallTimeout, o.IdleTimeout, o.Reuse, o.TrimAfter, o.DrainTimeout) < 0:
		return fmt.Errorf("server: negative duration")
	}
	return nil
}

// localEngine makes a *loader.Engine an Engine.
type localEngine struct {
	*loader.Engine
	*loader.Serving
}

func openLocal(ctx context.Context, s loader.Spec, o loader.Options) (Engine, error) {
	engine, err := loader.Open(ctx, s, o)
	if err != nil {
		return nil, err
	}
	return localEngine{engine, engine.Serving()}, nil
}

// Start implements Starter.
func (l localEngine) Start(ctx context.Context, t steps.Ticket, native bool) Pending {
	return l.Engine.Start(ctx, t, native)
}
