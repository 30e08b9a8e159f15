package server

import (
	"context"
	"strings"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/tap"

	"github.com/chaski-eo/chaski/grpc/auth"
	"github.com/chaski-eo/chaski/loader/resources"
	chaskiv1 "github.com/chaski-eo/chaski/proto/chaski/v1"
)

// guest is the client of a call that was let in.
type guest struct {
	*auth.Pass
	view *fileView
}

type guestKey struct{}

// viewOf returns the view of the files that the client of a call may read.
func (s *Server) viewOf(ctx context.Context) *fileView {
	if g, ok := ctx.Value(guestKey{}).(*guest); ok {
		return g.view
	}
	return s.views.server
}

// limitsOf returns the limits that come with the token of a call.
func limitsOf(ctx context.Context) auth.Limits {
	if g, ok := ctx.Value(guestKey{}).(*guest); ok {
		return g.Limits
	}
	return auth.Limits{}
}

// isHealth reports whether a call asks for the health of the server.
func isHealth(method string) bool {
	return strings.HasPrefix(method, "/"+healthpb.Health_ServiceDesc.ServiceName+"/")
}

type passKey struct{}

// tap refuses a call without a valid token at its headers, before gRPC keeps anything of its message. It returns the
// context of the others, with their pass.
func (s *Server) tap(ctx context.Context, i *tap.Info) (context.Context, error) {
	if isHealth(i.FullMethodName) {
		_, err := s.clients.call(ctx, "health for "+clientOf(ctx), maxHealthCalls)
		return ctx, err
	}
	begun := time.Now()
	var requests *places
	pass, err := s.options.Gate.Check(ctx)
	if err != nil {
		connectionOf(ctx).refuse()
		err = status.Error(codes.Unauthenticated, err.Error())
	} else {
		connectionOf(ctx).letIn()
		requests, err = s.clients.call(ctx, clientWith(ctx, pass), maxClientCalls)
	}
	if err != nil {
		s.audit.call(ctx, i.FullMethodName, func() string { return "" }, begun, err)
		return ctx, err
	}
	streams := i.FullMethodName == chaskiv1.Chaski_Stream_FullMethodName
	ctx = context.WithValue(ctx, requestKey{}, &request{places: requests, streams: streams})
	return context.WithValue(ctx, passKey{}, pass), nil
}

// clientWith returns who sent a request with a pass.
func clientWith(ctx context.Context, pass *auth.Pass) clientID {
	if pass.Name != "" {
		ctx = withClient(ctx, pass.Name)
	}
	return clientOf(ctx)
}

// admit returns the context of a call, with the client that makes it, or the status of one that is not let in. An
// admitted client leaves at the end of the call.
func (s *Server) admit(ctx context.Context, method string) (admitted context.Context, leave func(), err error) {
	// Health probes, such as Kubernetes sends, have no token, and get these answers only.
	if isHealth(method) {
		return ctx, func() {}, nil
	}
	pass, ok := ctx.Value(passKey{}).(*auth.Pass)
	if !ok { // another option of the gRPC server took the place of tap
		if pass, err = s.options.Gate.Check(ctx); err != nil {
			return ctx, nil, status.Error(codes.Unauthenticated, err.Error())
		}
	}
	view, leave := s.views.of(s.options.Logger, pass.Roots)
	if pass.Name != "" {
		ctx = withClient(ctx, pass.Name)
	}
	ctx = resources.WithCaller(ctx, resources.Caller{Client: clientOf(ctx)})
	return context.WithValue(ctx, guestKey{}, &guest{pass, view}), leave, nil
}

// guarded is a call of a client that was let in. It ends at the first message after its token is not valid any more.
type guarded struct {
	grpc.ServerStream
	ctx   context.Context
	about atomic.Value // string: what its first request that says so is about
}

// Context implements grpc.ServerStream.
func (g *guarded) Context() context.Context { return g.ctx }

// RecvMsg implements grpc.ServerStream.
func (g *guarded) RecvMsg(m any) error {
	if err := g.ServerStream.RecvMsg(m); err != nil {
		return err
	}
	if g.about.Load() == nil {
		if owner := aboutOf(m); owner != "" {
			g.about.Store(owner)
		}
	}
	if c, ok := g.ctx.Value(guestKey{}).(*guest); ok && !c.Valid() {
		return status.Error(codes.Unauthenticated, auth.ErrUnknown.Error())
	}
	return nil
}
