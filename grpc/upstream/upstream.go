// Package upstream is an engine whose batches come from other servers. The local engine of a Python process serves it:
// revival, groups and TLS then come from package client, and batches go on in shared memory, converted.
package upstream

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/grpc/auth"
	"github.com/chaski-eo/chaski/grpc/client"
	"github.com/chaski-eo/chaski/grpc/internal/wire"
	"github.com/chaski-eo/chaski/grpc/report"
	"github.com/chaski-eo/chaski/grpc/server"
	"github.com/chaski-eo/chaski/loader"
	"github.com/chaski-eo/chaski/loader/batch"
	"github.com/chaski-eo/chaski/loader/resources"
	chaskiv1 "github.com/chaski-eo/chaski/proto/chaski/v1"
)

// Engine is a run at other servers, as a server serves it. It is safe for concurrent use.
type Engine struct {
	*client.Run
	spec    loader.Spec
	client  *client.Client
	options client.TicketOptions
	memory  *batch.Pool
	rows    int
	target  string
}

// Open opens a spec at the servers of u. It is server.Options.Upstream.
func Open(
	ctx context.Context, spec loader.Spec, u *chaskiv1.Upstream, rows int, o loader.Options,
) (server.Engine, error) {
	if len(u.GetTargets()) == 0 {
		return nil, wire.Remote(wire.Spec, errors.New("target is empty: it must name a server"))
	}
	engine := &Engine{
		target:  strings.Join(u.GetTargets(), ","),
		options: client.TicketOptions{Prefetch: int(u.GetPrefetch()), PrefetchBytes: u.GetPrefetchBytes()},
		memory:  &batch.Pool{Alloc: o.Alloc},
		rows:    rows,
	}
	if engine.options.PrefetchBytes == 0 {
		engine.options.PrefetchBytes = -1 // here 0 means none, there it means the default
	}
	options, err := clientOptions(u, o)
	if err != nil {
		return nil, wire.Remote(wire.Spec, err)
	}
	options.Rows, options.Memory = rows, engine.memory
	if engine.client, err = client.Dial(engine.target, options); err != nil {
		return nil, wire.Remote(wire.Unavailable, err)
	}
	if engine.Run, err = engine.client.Open(ctx, spec); err != nil {
		return nil, errors.Join(classify(err), engine.client.Close())
	}
	if engine.spec, err = loader.ParseSpec(engine.Run.Spec()); err != nil {
		return nil, errors.Join(wire.Remote(wire.Payload, err), engine.client.Close())
	}
	engine.options.Prefetch = cmp.Or(engine.options.Prefetch, engine.Run.Prefetch(1))
	engine.spec.BadLimit = spec.BadLimit // of this run: it is not part of the hash
	engine.memory.Bound = max(resources.DefaultMemoryBytes,
		engine.BatchBytes()*int64(engine.options.Prefetch+keptBatches))
	return engine, nil
}

// keptBatches is for how many batches, beside those asked for ahead, a user may hold on to before shared memory is
// full and batches are copied: one that a training step works on, one that it keeps from the step before, and two as
// with an engine that decodes (loader.Options.MemoryBytes holds four).
const keptBatches = 4

func clientOptions(u *chaskiv1.Upstream, o loader.Options) (client.Options, error) {
	options := client.Options{
		MaxBatchBytes: u.GetMaxBatchBytes(),
		Timeout:       time.Duration(u.GetTimeoutSeconds() * float64(time.Second)),
		// Here 0 means none, there it means the default. 2^32 s, which are 136 years, fit into a Duration.
		Patience: cmp.Or(time.Duration(min(u.GetPatienceSeconds(), 1<<32)*float64(time.Second)), -1),
		Logger:   o.Logger,
	}
	switch u.GetTransport() {
	case "shm":
		options.Transport = client.Shm
	case "grpc":
		options.Transport = client.GRPC
	}
	options.PlainToken = u.GetPlainToken()
	var err error
	switch {
	case u.GetToken() != "":
		options.Token, err = client.Token(u.GetToken())
	case u.GetTokenFile() != "":
		options.Token, err = client.TokenFile(u.GetTokenFile())
	}
	if err != nil || u.GetTls() == nil {
		return options, err
	}
	config, err := auth.ClientTLS(u.GetTls().GetRoots(), u.GetTls().GetCertificate(), u.GetTls().GetKey())
	if err != nil {
		return options, fmt.Errorf("credentials: %w", err)
	}
	options.Credentials = credentials.NewTLS(config)
	return options, nil
}

// Spec returns the spec with its defaults filled in.
func (e *Engine) Spec() loader.Spec { return e.spec }

// BatchesFit returns how many batches the memory of a server holds. The rows are those that Open was given.
func (e *Engine) BatchesFit(int) (int64, error) { return e.Batches(), nil }

// BatchBytes returns the bytes of a batch, without what differs from row to row.
func (e *Engine) BatchBytes() int64 { return e.RowBytes() * int64(max(e.rows, 1)) }

// MemoryBytes returns the bytes within which batches are lent to a client.
func (e *Engine) MemoryBytes() int64 { return e.memory.Bound }

// Report returns what the servers have counted about the ranks that they work for.
func (e *Engine) Report(ctx context.Context) (all report.Figures, err error) {
	figures, err := report.ParseAll(e.client.Report(ctx))
	for _, address := range slices.Sorted(maps.Keys(figures)) {
		all.Join(figures[address])
	}
	return all, err
}

// Trim frees the memory that no batch is in.
func (e *Engine) Trim() { e.memory.Trim() }

// Forget frees the idle memory of an owner that is gone.
func (e *Engine) Forget(o batch.Owner) { e.memory.Forget(o) }

// Close ends the connections.
func (e *Engine) Close() error {
	e.memory.Close()
	return e.client.Close()
}

// Sequence implements server.Sequencer.
func (e *Engine) Sequence(owner batch.Owner) (server.Sequence, error) {
	options := e.options
	options.Memory = batch.OwnedPool{Pool: e.memory, Owner: owner}
	tickets, err := e.Tickets(options)
	if err != nil {
		return nil, wire.Remote(wire.Spec, err)
	}
	return sequence{tickets}, nil
}

// sequence names the errors of tickets.
type sequence struct{ *client.Tickets }

// Next implements server.Sequence.
func (s sequence) Next(ctx context.Context) (*batch.Batch, error) {
	batch, err := s.Tickets.Next(ctx)
	if err != nil && ctx.Err() == nil {
		err = classify(err)
	}
	return batch, err
}

// classify gives an error about the servers the kind by which clients recognise it. It leaves faults of files and
// samples that a server sent unchanged.
func classify(err error) error {
	code := status.Code(err)
	var st interface{ GRPCStatus() *status.Status }
	if errors.As(err, &st) {
		code = st.GRPCStatus().Code()
	}
	kind := wire.Internal
	switch {
	case errors.Is(err, client.ErrChanged):
		kind = wire.State
	case errors.Is(err, client.ErrProtocol):
		kind = wire.Payload
	case errors.Is(err, client.ErrSilent), code == codes.DeadlineExceeded:
		kind = wire.Deadline
	case code == codes.Unauthenticated:
		kind = wire.Access
	case code == codes.InvalidArgument:
		// The server's own words are enough, since the user wrote the spec and not the address.
		return wire.Remote(wire.Spec, wire.Cause(err))
	case wire.IsRemote(err) && code != codes.Unavailable: // a server that stops says so as a fault, too
		return wire.Named(err)
	case code == codes.Unavailable, code == codes.Canceled, errors.Is(err, client.ErrNoShared):
		kind = wire.Unavailable
	case code == codes.Unimplemented:
		kind = fault.Unsupported.Error()
	case code == codes.NotFound:
		kind = fault.NotFound.Error()
	case code == codes.ResourceExhausted:
		kind = fault.Limit.Error()
	}
	return wire.Remote(kind, err)
}
