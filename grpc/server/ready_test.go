package server

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/chaski-eo/chaski/internal/budget"
	"github.com/chaski-eo/chaski/loader"
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

// TestReadiness promises that a server is not ready without one of its roots, and while it drains, when it still serves
// and lives; and that it says no path to those who ask.
func TestReadiness(t *testing.T) {
	a, b := t.TempDir(), filepath.Join(t.TempDir(), "b")
	if err := os.Mkdir(b, 0o700); err != nil {
		t.Fatal(err)
	}
	l, target, _ := listenTCP(t)
	r := start(t, l, Options{Roots: []string{a, "s3://bucket/x", b}})
	defer r.stop(t)
	conn, err := grpc.NewClient(target, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	health := func(name string) healthpb.HealthCheckResponse_ServingStatus {
		t.Helper()
		a, err := healthpb.NewHealthClient(conn).Check(t.Context(), &healthpb.HealthCheckRequest{Service: name},
			grpc.WaitForReady(true))
		if err != nil {
			t.Fatal(err)
		}
		return a.GetStatus()
	}
	const yes, no = healthpb.HealthCheckResponse_SERVING, healthpb.HealthCheckResponse_NOT_SERVING
	check := func(when string, ready bool) {
		t.Helper()
		err := r.server.Ready(t.Context())
		r.server.tellHealth(err)
		want := no
		if ready {
			want = yes
		}
		if (err == nil) != ready || err != nil && strings.Contains(err.Error(), b) {
			t.Errorf("%s: %v", when, err)
		}
		for _, name := range []string{"", Readiness, "chaski.v1.Chaski"} {
			if got := health(name); got != want {
				t.Errorf("%s: %q is %v", when, name, got)
			}
		}
		if got := health(Liveness); got != yes {
			t.Errorf("%s: liveness is %v", when, got)
		}
	}
	check("at first", true)
	if err := os.Remove(b); err != nil {
		t.Fatal(err)
	}
	check("without a root", false)
	testfile.Write(t, b, nil)
	check("with a file in its place", false)
	if err := os.Remove(b); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(b, 0o700); err != nil {
		t.Fatal(err)
	}
	check("with the root again", true)
	r.server.Drain()
	check("draining", false)
	c := dialTo(t, target)
	chip := filepath.Join(a, "a.tif")
	copyFile(t, chip, "raster", "tog", "tog-odd-16.tif")
	if _, err := c.Info(t.Context(), chip); err != nil {
		t.Errorf("a draining server does not serve: %v", err)
	}
}

// TestReadinessIsNoMoment promises that a server whose requests wait for memory for a moment, again and again, is
// ready, and that it is not ready once one of them has waited for readyAfter, until that one has its memory.
func TestReadinessIsNoMoment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := budget.New(800)
		s, err := New(Options{Logger: quiet, Loader: loader.Options{Budget: b}})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		ready := func(want bool) {
			t.Helper()
			if err := s.Ready(t.Context()); (err == nil) != want {
				t.Errorf("ready: %v", err)
			}
		}
		moment := func(d time.Duration) {
			if !b.TryAcquire(700) {
				t.Fatal("no memory")
			}
			var wait sync.WaitGroup
			wait.Go(func() {
				if err := b.Acquire(t.Context(), 1); err != nil {
					t.Error(err)
				}
				b.Release(1)
			})
			time.Sleep(d)
			ready(d <= readyAfter)
			b.Release(700)
			wait.Wait()
		}
		for range 20 {
			moment(time.Second)
		}
		moment(readyAfter)
		ready(true)
		moment(readyAfter + time.Millisecond)
		ready(true)
	})
}
