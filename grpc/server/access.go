package server

import (
	"context"
	"io"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/grpc/auth"
	"github.com/chaski-eo/chaski/loader"
	"github.com/chaski-eo/chaski/loader/containers"
	"github.com/chaski-eo/chaski/loader/resources"
	"github.com/chaski-eo/chaski/source"
)

// view is the part of the files that a client may read, and what is kept open of it. Clients with equal roots share
// one.
type view struct {
	key        string         // names the roots; "" of the server's own
	loader     loader.Options // of engines
	asked      loader.Options // of questions
	containers *containers.Cache
}

// newView makes a view of what lies below o.Roots. o.Opener must be source.Below these.
func newView(key string, o loader.Options) *view {
	o.Members = &resources.Members{} // for all datasets, since several may use the same container
	asked := o.WithDefaults()
	return &view{key: key, loader: o, asked: asked, containers: containers.NewCache(asked)}
}

func (v *view) close() {
	v.containers.Close()
	if files, ok := v.loader.Opener.(io.Closer); ok {
		_ = files.Close() // the files were only read
	}
	v.loader.Members.Close()
}

// maxViews bounds the views of a server. Each keeps containers and files open, and stays until the server ends. Lists
// of tokens have fewer roots; the bound is for issuers of JSON Web Tokens that give every user a root.
const maxViews = 1024

// views are those of a server.
type views struct {
	whole *view
	base  source.Opener // of all

	mu    sync.Mutex
	byKey map[string]*view
}

func newViews(o loader.Options) *views {
	base := o.Opener
	// One for all requests, which keeps files open between them.
	o.Opener = source.Below(base, o.Roots)
	return &views{whole: newView("", o), base: base, byKey: map[string]*view{}}
}

// of returns the view of a client with these roots. Roots that do not lie below the server's allow nothing.
func (v *views) of(s *Server, roots []string) (*view, error) {
	if roots == nil {
		return v.whole, nil
	}
	var key strings.Builder
	for _, r := range roots {
		key.WriteString(strconv.Quote(r))
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if one := v.byKey[key.String()]; one != nil {
		return one, nil
	}
	if len(v.byKey) >= maxViews {
		return nil, fault.New(fault.Limit, "server", fault.NoOffset, "clients have more than %d sets of roots",
			maxViews)
	}
	o := v.whole.loader
	o.Roots = []string{} // nil would allow everything
	for _, r := range roots {
		at, err := source.RootsOf(v.whole.loader.Opener).Allow(r)
		if err != nil {
			s.options.Logger.Warn("the root of a client is not below a root of this server", "root", r)
			continue
		}
		o.Roots = append(o.Roots, at)
	}
	o.Opener = source.Below(v.base, o.Roots)
	one := newView("\x00"+key.String(), o)
	v.byKey[key.String()] = one
	return one, nil
}

func (v *views) close() {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, one := range v.byKey {
		one.close()
	}
	v.whole.close()
}

// guest is the client of a call that was let in.
type guest struct {
	*auth.Pass
	view *view
}

type guestKey struct{}

// viewOf returns what the client of a call may read.
func (s *Server) viewOf(ctx context.Context) *view {
	if g, ok := ctx.Value(guestKey{}).(*guest); ok {
		return g.view
	}
	return s.views.whole
}

// isHealth reports whether a call asks for the health of the server.
func isHealth(method string) bool {
	return strings.HasPrefix(method, "/"+healthpb.Health_ServiceDesc.ServiceName+"/")
}

// admit returns the context of a call, with the client that makes it, or the status of one that is not let in.
func (s *Server) admit(ctx context.Context, method string) (context.Context, error) {
	// Whoever asks for the health of a server, such as Kubernetes, has no token, and learns nothing else.
	if isHealth(method) {
		return ctx, nil
	}
	p, err := s.options.Gate.Check(ctx)
	if err != nil {
		return ctx, status.Error(codes.Unauthenticated, err.Error())
	}
	v, err := s.views.of(s, p.Roots)
	if err != nil {
		return ctx, failed(err)
	}
	if p.Name != "" {
		ctx = withClient(ctx, p.Name)
	}
	return context.WithValue(ctx, guestKey{}, &guest{p, v}), nil
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
		if about := aboutOf(m); about != "" {
			g.about.Store(about)
		}
	}
	if c, ok := g.ctx.Value(guestKey{}).(*guest); ok && !c.Valid() {
		return status.Error(codes.Unauthenticated, auth.ErrUnknown.Error())
	}
	return nil
}
