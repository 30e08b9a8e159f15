package server

import (
	"context"
	"fmt"
	"net"
	"os"
	"regexp"
	"runtime"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
)

// asks returns who two connections to a listener are, as the server sees it.
func asks(t *testing.T, l net.Listener, target string, dial []grpc.DialOption, token string) (a, b clientID) {
	t.Helper()
	s, err := New(Options{Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	seen := make(chan clientID, 2)
	g := grpc.NewServer(append(s.GRPCOptions(), grpc.ChainUnaryInterceptor(func(ctx context.Context, r any,
		_ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
		if token != "" {
			ctx = withClient(ctx, token)
		}
		seen <- clientOf(ctx)
		return next(ctx, r)
	}))...)
	s.Register(g)
	done := make(chan error, 1)
	go func() { done <- g.Serve(namedListener{l}) }()
	defer func() {
		g.Stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}()
	for range 2 {
		c, err := grpc.NewClient(target, append(dial, grpc.WithTransportCredentials(insecure.NewCredentials()))...)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := healthpb.NewHealthClient(c).Check(t.Context(), &healthpb.HealthCheckRequest{}); err != nil {
			t.Fatal(err)
		}
	}
	return <-seen, <-seen
}

// TestClientsHaveNames: a client is a token, else a host, else a process, else a connection.
func TestClientsHaveNames(t *testing.T) {
	process := fmt.Sprintf("process %d of user %d", os.Getpid(), os.Geteuid())
	if runtime.GOOS != "linux" {
		process = `connection \d+`
	}
	for name, c := range map[string]struct {
		listen func(t *testing.T) (net.Listener, string, []grpc.DialOption)
		token  string
		want   string
	}{
		"token":      {listenTCP, "ci", "token ci"},
		"host":       {listenTCP, "", "host 127.0.0.1"},
		"process":    {listenUnix, "", process},
		"connection": {listenBuf, "", `connection \d+`},
	} {
		t.Run(name, func(t *testing.T) {
			l, target, dial := c.listen(t)
			a, b := asks(t, l, target, dial, c.token)
			for _, got := range []clientID{a, b} {
				if !regexp.MustCompile("^" + c.want + "$").MatchString(string(got)) {
					t.Errorf("the client is %q, want %q", got, c.want)
				}
			}
			apart := name == "connection" || name == "process" && runtime.GOOS != "linux"
			if apart != (a != b) {
				t.Errorf("two connections are %q and %q", a, b)
			}
		})
	}
}
