// Package client is a Go client of the service chaski.v1.Chaski: batches of a spec from a server,
// iterated over as package loader does in one process.
//
//	c, err := client.Dial("unix:/run/chaski.sock", client.Options{})
//	run, err := c.Open(ctx, loader.Spec{Source: "/data/chips", BatchSize: 64, Shuffle: true})
//	l, err := run.Loader(client.LoaderOptions{Rank: 0, World: 1, Epochs: 10})
//	for {
//		b, err := l.Next(ctx) // io.EOF after the last epoch
//		...
//		b.Release()
//	}
//
// A connection that breaks is made again, and what was asked for is asked for again: a server keeps
// nothing between tickets, so it may be another one. Several servers behind one target are left to
// gRPC's name resolution and balancing.
package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"

	"github.com/chaski-eo/chaski/chunk"
	"github.com/chaski-eo/chaski/grpc/internal/wire"
	"github.com/chaski-eo/chaski/grpc/payload"
	"github.com/chaski-eo/chaski/internal/view"
	"github.com/chaski-eo/chaski/loader"
	chaskiv1 "github.com/chaski-eo/chaski/proto/chaski/v1"
	"github.com/chaski-eo/chaski/shuffle"
)

// Defaults of Options.
const (
	DefaultMaxBatchBytes = 1 << 30
	DefaultTimeout       = 2 * time.Minute
	DefaultAttempts      = 8
	DefaultBackoff       = 100 * time.Millisecond
)

// Options say how a client talks to its server.
type Options struct {
	// Credentials of the connection. Default: none, plain text.
	Credentials credentials.TransportCredentials
	// Transport is how batches come. Default Auto.
	Transport Transport
	// MaxBatchBytes bounds the payload of one batch, in bytes. Default DefaultMaxBatchBytes.
	MaxBatchBytes int64
	// Timeout bounds every wait for the server: for a batch, from when it was asked for or from the
	// last sign of life, and for a Describe. Default DefaultTimeout.
	Timeout time.Duration
	// Attempts is how often in a row a connection is made without getting a batch, before the error
	// is given to the caller. Default DefaultAttempts.
	Attempts int
	// Backoff is the pause before the second attempt; it doubles up to a hundredfold. Default
	// DefaultBackoff.
	Backoff time.Duration
	// Dial are further options of the connection.
	Dial []grpc.DialOption
	// Logger gets what is worth telling. Default: slog.Default.
	Logger *slog.Logger
}

func (o Options) withDefaults() Options {
	if o.Credentials == nil {
		o.Credentials = insecure.NewCredentials()
	}
	if o.MaxBatchBytes == 0 {
		o.MaxBatchBytes = DefaultMaxBatchBytes
	}
	if o.Timeout == 0 {
		o.Timeout = DefaultTimeout
	}
	if o.Attempts == 0 {
		o.Attempts = DefaultAttempts
	}
	if o.Backoff == 0 {
		o.Backoff = DefaultBackoff
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	return o
}

func (o Options) validate() error {
	if t := o.Transport; t != Auto && t != Shm && t != GRPC {
		return fmt.Errorf("client: transport %q", t)
	}
	if o.MaxBatchBytes < 1 || o.Timeout < 0 || o.Attempts < 1 || o.Backoff < 0 {
		return fmt.Errorf("client: batches of at most %d bytes, timeout %v, %d attempts, backoff %v", o.MaxBatchBytes, o.Timeout, o.Attempts, o.Backoff)
	}
	return nil
}

// Bounds and buffers of a connection, in bytes.
const (
	maxMessage = 18 << 20 // the largest part a server sends, and its frame
	window     = 8 << 20  // what a server may send ahead, of one stream and of all
	readBuffer = 256 << 10
)

// Client is a connection to a server. It is safe for concurrent use.
type Client struct {
	target  string
	options Options
	conn    *grpc.ClientConn
	stub    chaskiv1.ChaskiClient

	mu      sync.Mutex
	door    *side  // nil if there is none
	refused string // token for which noDoor holds
	noDoor  error  // why there is none
}

// Dial makes a client of the server at target: "unix:PATH", "HOST:PORT", or what else gRPC can
// resolve. It does not wait for the connection.
func Dial(target string, o Options) (*Client, error) {
	o = o.withDefaults()
	if err := o.validate(); err != nil {
		return nil, err
	}
	dial := []grpc.DialOption{
		grpc.WithTransportCredentials(o.Credentials),
		grpc.WithDefaultCallOptions(grpc.ForceCodecV2(wire.NewCodec()), grpc.MaxCallRecvMsgSize(maxMessage)),
		grpc.WithReadBufferSize(readBuffer),
		grpc.WithStaticStreamWindowSize(window),
		grpc.WithStaticConnWindowSize(window),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 30 * time.Second, Timeout: 20 * time.Second}),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: o.Backoff, Multiplier: 2, Jitter: 0.2, MaxDelay: 20 * o.Backoff},
			MinConnectTimeout: 5 * time.Second,
		}),
	}
	conn, err := grpc.NewClient(target, append(dial, o.Dial...)...)
	if err != nil {
		return nil, fmt.Errorf("chaski at %s: %w", target, err)
	}
	return &Client{target: target, options: o, conn: conn, stub: chaskiv1.NewChaskiClient(conn)}, nil
}

// Close closes the connection. Loaders that still use it fail; batches stay valid until Release.
func (c *Client) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.door != nil {
		c.door.close()
		c.door = nil
	}
	return c.conn.Close()
}

// Target returns what Dial was given.
func (c *Client) Target() string { return c.target }

// failed names the server in an error, and brings back the fault that its status tells of.
func (c *Client) failed(err error) error {
	return fmt.Errorf("chaski at %s: %w", c.target, wire.StatusError(err))
}

// Info returns what a file is, as JSON (the type loader.FileInfo).
func (c *Client) Info(ctx context.Context, path string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, c.options.Timeout)
	defer cancel()
	r, err := c.stub.Info(ctx, &chaskiv1.InfoRequest{Path: path})
	if err != nil {
		return nil, c.failed(err)
	}
	return r.GetJson(), nil
}

// Read decodes windows of one or several files at the server. Errors about files have a *fault.Error
// in their chain.
func (c *Client) Read(ctx context.Context, r *chaskiv1.ReadRequest) (*loader.Array, error) {
	ctx, cancel := context.WithTimeout(ctx, c.options.Timeout)
	defer cancel()
	stream, err := c.stub.Read(ctx, r)
	if err != nil {
		return nil, c.failed(err)
	}
	var in assembly
	for reply := (&wire.Reply{}); !in.whole(); reply.Free() {
		if err := stream.RecvMsg(reply); err != nil {
			return nil, c.failed(err)
		}
		if reply.Fault != nil {
			return nil, c.failed(wire.FaultError(reply.Fault))
		}
		if reply.Lease != nil {
			return nil, c.failed(fmt.Errorf("%w: the answer is a lease", errFinal))
		}
		if err := in.add(reply, 0, c.options.MaxBatchBytes, view.Aligned); err != nil {
			return nil, c.failed(err)
		}
	}
	b, err := payload.Decode(in.buf)
	if err != nil {
		return nil, c.failed(err)
	}
	if len(b.Tensors) != 1 || b.Tensors[0].Kind != loader.Dense || b.Tensors[0].Convert != nil {
		return nil, c.failed(fmt.Errorf("%w: the answer is not one array", errFinal))
	}
	t := &b.Tensors[0]
	a := &loader.Array{DType: t.DType, Axes: t.Axes, Data: t.Data}
	for _, n := range t.Shape {
		a.Shape = append(a.Shape, int(n))
	}
	return a, nil
}

// Run is a spec that a server has opened. It is safe for concurrent use.
type Run struct {
	client      *Client
	request     []byte // the spec as it was asked for
	spec        loader.Spec
	hash        string
	handle      string // what tickets carry; that of the last server
	fingerprint string
	samples     int64
	fields      []loader.FieldInfo
	shared      *chaskiv1.Shared
}

// Open opens a spec at the server. Errors about files have a *fault.Error in their chain.
func (c *Client) Open(ctx context.Context, spec loader.Spec) (*Run, error) {
	b, err := json.Marshal(spec.WithDefaults())
	if err != nil {
		return nil, err
	}
	r := &Run{client: c, request: b}
	var d *chaskiv1.DescribeReply
	err = c.retry(ctx, func() error {
		d, err = r.describe(ctx)
		return err
	})
	if err != nil {
		return nil, c.failed(err)
	}
	return r, r.fill(d)
}

func (r *Run) describe(ctx context.Context) (*chaskiv1.DescribeReply, error) {
	ctx, cancel := context.WithTimeout(ctx, r.client.options.Timeout)
	defer cancel()
	return r.client.stub.Describe(ctx, &chaskiv1.DescribeRequest{Spec: r.request})
}

// fill takes what the server told, which is checked as far as this side relies on it.
func (r *Run) fill(d *chaskiv1.DescribeReply) error {
	spec, err := loader.ParseSpec(d.GetSpec())
	if err != nil {
		return r.client.failed(fmt.Errorf("the server's description: %w", err))
	}
	if d.GetSamples() < 0 || d.GetSamples() > 1<<62 || d.GetSpecHash() == "" || d.GetHandle() == "" {
		return r.client.failed(fmt.Errorf("the server's description: %d samples, spec hash %q, handle %q", d.GetSamples(), d.GetSpecHash(), d.GetHandle()))
	}
	r.spec, r.hash, r.fingerprint, r.samples = spec, d.GetSpecHash(), d.GetFingerprint(), d.GetSamples()
	r.handle = d.GetHandle()
	r.shared = d.GetShared()
	for _, f := range d.GetFields() {
		info := loader.FieldInfo{Name: f.GetName(), Kind: f.GetKind(), Shape: f.GetShape(), Axes: f.GetAxes()}
		if f.GetDtype() != "" {
			if info.DType, err = chunk.ParseDType(f.GetDtype()); err != nil {
				return r.client.failed(fmt.Errorf("the server's description: field %q: %w", f.GetName(), err))
			}
		}
		r.fields = append(r.fields, info)
	}
	return nil
}

// Spec returns the spec with its defaults filled in.
func (r *Run) Spec() loader.Spec { return r.spec }

// Hash returns the spec hash: equal for equal specs on equal data, at any server.
func (r *Run) Hash() string { return r.hash }

// Fingerprint returns the dataset's fingerprint.
func (r *Run) Fingerprint() string { return r.fingerprint }

// Len returns N, the samples of an epoch.
func (r *Run) Len() int64 { return r.samples }

// Steps returns the steps of an epoch.
func (r *Run) Steps() int64 { return shuffle.Steps(r.samples, r.spec.BatchSize, r.spec.DropLast) }

// Fields returns what the tensors of a batch look like, in their order.
func (r *Run) Fields() []loader.FieldInfo { return r.fields }

// retry calls f until it succeeds, fails for good, or has failed Attempts times.
func (c *Client) retry(ctx context.Context, f func() error) error {
	for attempt := 1; ; attempt++ {
		err := f()
		if err == nil || final(err) || attempt >= c.options.Attempts {
			return err
		}
		if c.pause(ctx, attempt) != nil {
			return err
		}
	}
}

// pause waits before the attempt that follows, or until ctx ends.
func (c *Client) pause(ctx context.Context, attempt int) error {
	t := time.NewTimer(c.options.Backoff * time.Duration(min(1<<min(attempt-1, 10), 100)))
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// final reports whether trying again cannot help.
func final(err error) bool {
	if errors.Is(err, errFinal) {
		return true
	}
	s, ok := status.FromError(err)
	if !ok {
		return false
	}
	switch s.Code() {
	case codes.InvalidArgument, codes.NotFound, codes.PermissionDenied, codes.Unimplemented, codes.DataLoss,
		codes.FailedPrecondition, codes.Unauthenticated, codes.OutOfRange, codes.AlreadyExists:
		return true
	}
	return false
}

// errFinal marks errors of this side for which trying again cannot help.
var errFinal = errors.New("this run cannot go on")
