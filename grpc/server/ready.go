package server

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	chaskiv1 "github.com/chaski-eo/chaski/proto/chaski/v1"
	"github.com/chaski-eo/chaski/source"
)

// Service names for gRPC health. Readiness also answers for the name of the service and the empty name.
const (
	// Readiness says whether new clients should come: see Server.Ready.
	Readiness = "readiness"
	// Liveness says that the process answers, also while it is not ready.
	Liveness = "liveness"
)

const (
	// readyEvery is how often the status of the gRPC health service is updated. Kubernetes asks every 10 s by default.
	readyEvery = 2 * time.Second
	// rootTimeout bounds the look at the roots: a network file system that hangs holds its callers for ever.
	rootTimeout = 5 * time.Second
	// readyAfter is how long a request waits for memory until new clients should go elsewhere. Any server that uses
	// its memory has requests that wait for a moment, until a batch or an array is sent. Clients that do not read are
	// cut after DefaultStallTimeout, which is shorter. So a request that waits for longer waits for clients that use
	// their memory. It is refused after a minute, which leaves time to send new clients elsewhere.
	readyAfter = 10 * time.Second
)

// Errors of Ready. They leave out paths, because health probes have no token.
var (
	errMemory = fmt.Errorf("requests have waited for memory for more than %v", readyAfter)
	errHangs  = errors.New("a root does not answer")
)

// Drain makes the server say that it is not ready, while it goes on serving. What sends it clients has time to notice
// before it stops.
func (s *Server) Drain() {
	s.draining.Store(true)
	s.tellHealth(errStopping)
}

// Ready returns why new clients should go elsewhere, or nil: the server is stopping, a local root cannot be listed, or
// a request has waited for memory for long.
func (s *Server) Ready(ctx context.Context) error {
	if s.draining.Load() || s.serving.Err() != nil {
		return errStopping
	}
	if s.options.Loader.Budget.Waited() > readyAfter {
		return errMemory
	}
	ctx, cancel := context.WithTimeout(ctx, rootTimeout)
	defer cancel()
	// One look at a time: those that hang would otherwise pile up.
	look := s.looks.DoChan("", func() (any, error) { return nil, reachable(s.options.Roots) })
	select {
	case looked := <-look:
		return looked.Err
	case <-ctx.Done():
		return errHangs
	}
}

// reachable returns an error about the first local root that cannot be listed. Remote roots are not checked: each
// check would cost a request, and one failing file server must not take all servers of a dataset out of use.
func reachable(roots []string) error {
	for i, root := range roots {
		if source.IsRemote(root) {
			continue
		}
		file, err := os.Open(source.LocalPath(root))
		if err != nil {
			return fmt.Errorf("root %d of %d cannot be opened", i+1, len(roots))
		}
		st, err := file.Stat()
		file.Close()
		if err != nil || !st.IsDir() {
			return fmt.Errorf("root %d of %d is not a directory", i+1, len(roots))
		}
	}
	return nil
}

// tellHealth sets the status that the gRPC health service reports: serving if err, the answer of Ready, is nil.
func (s *Server) tellHealth(err error) {
	status := healthpb.HealthCheckResponse_SERVING
	if err != nil {
		status = healthpb.HealthCheckResponse_NOT_SERVING
	}
	for _, name := range []string{"", Readiness, chaskiv1.Chaski_ServiceDesc.ServiceName} {
		s.health.SetServingStatus(name, status)
	}
}

// watchReady updates the status of the gRPC health service until ctx ends.
func (s *Server) watchReady(ctx context.Context) {
	ticker := time.NewTicker(readyEvery)
	defer ticker.Stop()
	was := ""
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		err := s.Ready(ctx)
		if ctx.Err() != nil {
			return
		}
		s.tellHealth(err)
		now := ""
		if err != nil {
			now = err.Error()
		}
		if now != was {
			was = now
			s.options.Logger.Warn("readiness has changed", "ready", err == nil, "reason", now)
		}
	}
}
