package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/singleflight"
	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/reflection"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/grpc/internal/parts"
	"github.com/chaski-eo/chaski/internal/accept"
	"github.com/chaski-eo/chaski/internal/crash"
	"github.com/chaski-eo/chaski/loader"
	"github.com/chaski-eo/chaski/loader/batch"
	chaskiv1 "github.com/chaski-eo/chaski/proto/chaski/v1"
	"github.com/chaski-eo/chaski/shuffle"
	"github.com/chaski-eo/chaski/shuffle/steps"
)

// Server is the service chaski.v1.Chaski. It is safe for concurrent use.
type Server struct {
	chaskiv1.UnimplementedChaskiServer

	options Options
	engines *engines
	shared  *leaseTable // nil: none
	arrays  *arrays
	health  *health.Server

	audit    *audit
	draining atomic.Bool
	looks    singleflight.Group // at the roots

	metrics *metrics
	clients *clients
	reads   *places
	started time.Time
	serving context.Context // ends when streams are to end
	stop    context.CancelFunc

	pipes *pipes
	plans *places
	views *views // what clients may read

	answering sync.WaitGroup // goroutines that send
}

// New returns a server that waits to be registered, to be closed with Close if it is not given to
// Serve. The error is about the options.
func New(o Options) (*Server, error) {
	o = o.withDefaults()
	if err := o.validate(); err != nil {
		return nil, err
	}
	memory := openShared(&o)
	server := &Server{
		options: o,
		engines: newEngines(o),
		shared:  memory,
		arrays:  newArrays(memory, &o),
		health:  health.NewServer(),
		reads:   newPlaces(o.MaxReads),
		audit:   newAudit(o.Logger),
		pipes:   newPipes(),
		plans:   newPlaces(min(o.MaxReads, o.computing())),
		views:   newViews(o.Loader),
		started: time.Now(),
	}
	server.clients = server.engines.clients
	server.serving, server.stop = context.WithCancel(context.Background())
	server.shared.onEnd(func(c *leaseConn) {
		server.engines.forget(c)
		server.arrays.forget(c)
	})
	var err error
	if server.metrics, err = newMetrics(server); err != nil {
		server.shared.close()
		return nil, err
	}
	server.engines.metrics = server.metrics
	return server, nil
}

// openShared opens the lease socket, if the options name one and the system supports it, and lets engines make their
// batches in shared memory.
func openShared(o *Options) *leaseTable {
	if !o.SharedMemory {
		return nil
	}
	memory, err := newShared(o.Logger, o.Loader.Budget)
	if err != nil {
		o.Logger.Info("batches do not go in shared memory", "error", err)
		return nil
	}
	o.Loader.Alloc = memory.alloc
	return memory
}

// Register adds the service, health and, if Options.Reflection says so, reflection to g, which must have been made with
// GRPCOptions.
func (s *Server) Register(g *grpc.Server) {
	chaskiv1.RegisterChaskiServer(g, s)
	healthpb.RegisterHealthServer(g, s.health)
	s.tellHealth(nil)
	s.health.SetServingStatus(Liveness, healthpb.HealthCheckResponse_SERVING)
	if s.options.Reflection {
		reflection.Register(g)
	}
}

// Bounds and buffers of connections.
const (
	// writeBuffer is how many bytes a connection writes at once: 8 frames of 16 KiB, so a batch of 24 MiB takes
	// 200 system calls in place of 1,500.
	writeBuffer    = 128 << 10
	maxConnStreams = 256 // calls of one connection at a time
	// minConnections and connectionsEach bound connections, by MaxStreams: a rank has one for its stream and one for
	// other calls. Each takes some 60 KiB without a call.
	minConnections  = 1024
	connectionsEach = 2
	// connectionsPart is the part of the descriptors for connections: a quarter, because others are for idle files and
	// shared memory.
	connectionsPart = 4
	// handshakeTimeout bounds TLS and the first frame: 25 round trips of 200 ms.
	handshakeTimeout = 5 * time.Second
	connWindow       = 1 << 20 // 16 of callWindow
	maxHeaderBytes   = 64 << 10
	idlePing         = 30 * time.Second // pings are needed to find peers that are gone without a word
	pingTimeout      = 20 * time.Second
	fastestPing      = 10 * time.Second // clients may ping this often
)

// GRPCOptions returns the options that a grpc.Server needs for Register: the codec that sends parts of
// batches, what lets clients in, sizes and keepalive.
func (s *Server) GRPCOptions() []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.Creds(handshakes{s.options.Credentials, s.pipes}),
		grpc.InTapHandle(s.tap),
		grpc.ConnectionTimeout(handshakeTimeout),
		grpc.InitialWindowSize(callWindow),
		grpc.InitialConnWindowSize(connWindow),
		grpc.ForceServerCodecV2(parts.NewCodec()),
		grpc.ChainUnaryInterceptor(s.unary),
		grpc.ChainStreamInterceptor(s.streamed),
		grpc.StatsHandler(connections{}),
		grpc.MaxRecvMsgSize(maxRequest),
		grpc.MaxSendMsgSize(MaxPartBytes + maxRequest),
		grpc.MaxHeaderListSize(maxHeaderBytes),
		grpc.MaxConcurrentStreams(maxConnStreams),
		grpc.WriteBufferSize(writeBuffer),
		grpc.WaitForHandlers(true),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: idlePing, Timeout: pingTimeout,
			MaxConnectionIdle: s.options.IdleTimeout}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: fastestPing, PermitWithoutStream: true}),
	}
}

// unary lets a client in, logs its call, and turns a panic in the handler into the status of the call.
func (s *Server) unary(
	ctx context.Context, r any, i *grpc.UnaryServerInfo, next grpc.UnaryHandler,
) (reply any, err error) {
	begun := time.Now()
	ctx, leave, err := s.admit(ctx, i.FullMethod)
	if err == nil {
		defer leave()
		err = s.handled(func() (err error) {
			reply, err = next(ctx, r)
			return err
		})
	}
	if !isHealth(i.FullMethod) {
		s.audit.call(ctx, i.FullMethod, func() string { return aboutOf(r) }, begun, err)
	}
	return reply, err
}

// streamed is unary for calls that stream.
func (s *Server) streamed(srv any, g grpc.ServerStream, i *grpc.StreamServerInfo, next grpc.StreamHandler) error {
	begun := time.Now()
	ctx, leave, err := s.admit(g.Context(), i.FullMethod)
	call := &guarded{ServerStream: g, ctx: ctx}
	if err == nil {
		defer leave()
		err = s.handled(func() error { return next(srv, call) })
	}
	if !isHealth(i.FullMethod) {
		owner, _ := call.about.Load().(string)
		s.audit.call(ctx, i.FullMethod, func() string { return owner }, begun, err)
	}
	return err
}

func (s *Server) handled(next func() error) error {
	err := crash.Call(next)
	if !crash.Is(err) {
		return err
	}
	crash.Report(s.options.Logger, err)
	return failed(err)
}

// Serve serves on l until ctx ends, then stops as Stop does. It closes l. It returns nil if ctx ended it.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	server := grpc.NewServer(s.GRPCOptions()...)
	s.Register(server)
	defer s.Close()
	stopped := make(chan struct{})
	serving, cancel := context.WithCancel(ctx)
	go s.watchReady(serving)
	go func() {
		defer close(stopped)
		<-serving.Done()
		s.Stop(server)
	}()
	maxConnections := max(minConnections, connectionsEach*s.options.MaxStreams)
	err := server.Serve(accept.NewListener(namedListener{l}, accept.Descriptors(maxConnections, connectionsPart)))
	cancel()
	<-stopped
	if ctx.Err() != nil && (err == nil || errors.Is(err, grpc.ErrServerStopped)) {
		return nil
	}
	return err
}

// Stop stops g in good order: health says not serving, streams end after the batch that is being sent, and calls that
// are left after Options.DrainTimeout are cut.
func (s *Server) Stop(g *grpc.Server) {
	s.Drain()
	s.stop()
	cut := time.AfterFunc(s.options.DrainTimeout, g.Stop)
	defer cut.Stop()
	g.GracefulStop()
}

// whileServing returns a context that also ends, by errStopping, when streams are to end.
func (s *Server) whileServing(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(s.serving, func() { cancel(errStopping) })
	return ctx, func() {
		stop()
		cancel(nil)
	}
}

// Close closes the datasets. Call it once the grpc.Server has stopped; Serve does it by itself.
func (s *Server) Close() {
	s.health.Shutdown()
	s.stop()
	s.pipes.close()
	s.answering.Wait()
	s.engines.shut()
	s.views.close()
	s.shared.close() // with all clients, and so all idle arrays
	s.arrays.leave()
}

// Describe implements chaski.v1.Chaski.
func (s *Server) Describe(ctx context.Context, r *chaskiv1.DescribeRequest) (*chaskiv1.DescribeReply, error) {
	start := time.Now()
	reply, err := s.describe(ctx, r)
	s.metrics.observe("chaski_server_describe_seconds", time.Since(start).Seconds())
	if err != nil {
		s.options.Logger.Info("describe", "error", fault.Line(err)) // the client has it, as an error
		return nil, failed(err)
	}
	return reply, nil
}

func (s *Server) describe(ctx context.Context, r *chaskiv1.DescribeRequest) (*chaskiv1.DescribeReply, error) {
	spec, err := s.parse(ctx, r.GetSpec())
	if err != nil {
		return nil, err
	}
	view := s.viewOf(ctx)
	if err := s.mayOpen(view, spec, r.GetUpstream()); err != nil {
		return nil, err
	}
	entry, err := s.engines.open(ctx, view, spec, r.GetUpstream(), int(min(r.GetRows(), math.MaxInt32)))
	if err != nil {
		return nil, askedWrong(err)
	}
	defer s.engines.put(entry)
	s.engines.expect(clientOf(ctx), entry)
	full, err := json.Marshal(entry.engine.Spec())
	if err != nil {
		return nil, err
	}
	reply := &chaskiv1.DescribeReply{
		SpecHash: entry.engine.Hash(), Fingerprint: entry.engine.Fingerprint(), Samples: entry.engine.Len(), Spec: full,
		Shared: s.shared.describe(), Handle: entry.handle, Pipe: s.pipes.token[:],
	}
	if n, ok := entry.engine.(interface{ BatchesFit(int) (int64, error) }); ok && r.GetRows() > 0 &&
		r.GetRows() <= math.MaxInt32 {
		if reply.Batches, err = n.BatchesFit(int(r.GetRows())); err != nil {
			return nil, fault.WithFile(err, spec.Source)
		}
	}
	if ahead, ok := entry.engine.(interface{ Prefetch(int) int }); ok {
		// As for all ranks together, since they may share this engine.
		reply.Prefetch = uint32(ahead.Prefetch(1))
	}
	if marked, ok := entry.engine.(interface {
		Marks(ctx context.Context) (string, error)
	}); ok {
		if reply.Marks, err = marked.Marks(ctx); err != nil {
			return nil, err
		}
	}
	if s, ok := entry.engine.(interface{ State() steps.State }); ok {
		reply.Run = []byte(s.State().Run)
	}
	if spec.BadLimit != nil && r.GetWorldSize() > 0 {
		if r.GetRank() >= r.GetWorldSize() {
			return nil, invalid{fmt.Errorf("rank is %d, but world_size is %d", r.GetRank(), r.GetWorldSize())}
		}
		bad := spec.BadCounter(entry.engine.Len(), int(r.GetRank()), int(r.GetWorldSize()))
		reply.BadLimit = new(bad.Limit())
	}
	reply.Fields = fieldInfos(entry.engine.Fields())
	if s, ok := entry.engine.(interface{ Sources() []batch.SourceInfo }); ok && len(spec.Sources) > 0 {
		for _, source := range s.Sources() {
			info := &chaskiv1.SourceInfo{Name: source.Name, Fields: fieldInfos(source.Fields)}
			reply.Sources = append(reply.Sources, info)
		}
	}
	reply.Groups = groups(entry.engine)
	return reply, nil
}

// parse parses a spec as one of the client's decoders: one of 1 MB takes 0.2 s, and of 340,000 empty objects 0.9 s.
func (s *Server) parse(ctx context.Context, b []byte) (loader.Spec, error) {
	client := any(clientOf(ctx))
	s.options.Loader.Decoders.Begin(client)
	defer s.options.Loader.Decoders.End(client)
	spec, err := loader.ParseSpec(b)
	if err != nil {
		return spec, invalid{err}
	}
	return spec, nil
}

// mayOpen refuses what this server was not started for.
func (s *Server) mayOpen(v *fileView, spec loader.Spec, u *chaskiv1.Upstream) error {
	switch {
	case u != nil && s.options.Upstream == nil:
		return fault.New(fault.Unsupported, "upstream", "this server is not a client of other servers")
	case u == nil && len(v.loader.Roots) == 0:
		return fault.WithFile(errNoRoot, spec.Source)
	}
	return nil
}

// groups describes which tickets are best served by one server. It returns nil if that is unknown or makes no
// difference.
func groups(e Engine) *chaskiv1.Groups {
	planned, ok := e.(interface{ Plan() *shuffle.Plan }) // *loader.Engine has one
	if !ok {
		return nil
	}
	known, ok := planned.Plan().Groups()
	if !ok {
		return nil
	}
	out := &chaskiv1.Groups{Lanes: known.Lanes, Dataset: uint32(known.Dataset), Pool: known.Pool}
	for _, level := range known.Levels {
		out.Levels = append(out.Levels, &chaskiv1.Groups_Level{Drawn: level.Drawn, Samples: level.Samples})
	}
	return out
}

func fieldInfos(fields []batch.FieldInfo) []*chaskiv1.FieldInfo {
	out := make([]*chaskiv1.FieldInfo, len(fields))
	for i, field := range fields {
		out[i] = &chaskiv1.FieldInfo{Name: field.Name, Kind: field.Kind, Shape: field.Shape, Axes: field.Axes,
			Bands: field.Bands, Wavelengths: field.Wavelengths, Gsd: field.GSD,
			Classes: field.Classes, Palette: field.Palette}
		if field.DType.Valid() {
			out[i].Dtype = field.DType.String()
		}
	}
	return out
}

// Stream implements chaski.v1.Chaski.
func (s *Server) Stream(g grpc.BidiStreamingServer[chaskiv1.StreamRequest, chaskiv1.StreamReply]) error {
	closed, err := s.clients.stream(clientOf(g.Context()), limitsOf(g.Context()))
	if err != nil {
		return err
	}
	defer closed()
	served := &stream{server: s, grpc: g, wake: make(chan struct{}, 1)}
	return served.serve()
}
