package client_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/grpc/client"
	"github.com/chaski-eo/chaski/loader"
	"github.com/chaski-eo/chaski/loader/batch"
	chaskiv1 "github.com/chaski-eo/chaski/proto/chaski/v1"
)

// host is a server that answers tickets of 100 samples an epoch, and can be stopped and started
// again.
type host struct {
	chaskiv1.UnimplementedChaskiServer
	t       *testing.T
	path    string
	hash    atomic.Pointer[string]
	silent  atomic.Bool // descriptions do not come
	marks   string      // of its descriptions
	fault   func(first int64) *chaskiv1.Fault
	tickets atomic.Int64

	mu     sync.Mutex
	server *grpc.Server
	done   chan struct{}
}

func newHost(t *testing.T) *host { return newHostAt(t, filepath.Join(t.TempDir(), "s")) }

// newHostAt returns a host at a path, or at an IP address and a port, which may be 0.
func newHostAt(t *testing.T, path string) *host {
	h := &host{t: t, path: path}
	hash := "h"
	h.hash.Store(&hash)
	h.start()
	t.Cleanup(h.stop)
	return h
}

func (h *host) target() string { return "unix:" + h.path }

func (h *host) start() {
	h.mu.Lock()
	defer h.mu.Unlock()
	network := "tcp"
	if filepath.IsAbs(h.path) {
		network = "unix"
		_ = os.Remove(h.path)
	}
	l, err := net.Listen(network, h.path)
	if err != nil {
		h.t.Error(err)
		return
	}
	h.path = l.Addr().String()
	h.server, h.done = grpc.NewServer(grpc.WaitForHandlers(true)), make(chan struct{})
	chaskiv1.RegisterChaskiServer(h.server, h)
	go func(g *grpc.Server, done chan struct{}) {
		defer close(done)
		if err := g.Serve(l); err != nil && !errors.Is(err, grpc.ErrServerStopped) {
			h.t.Error(err)
		}
	}(h.server, h.done)
}

func (h *host) stop() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.server.Stop()
	<-h.done
}

func (h *host) Describe(ctx context.Context, r *chaskiv1.DescribeRequest) (*chaskiv1.DescribeReply, error) {
	if h.silent.Load() {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	hash := *h.hash.Load()
	return &chaskiv1.DescribeReply{SpecHash: hash, Handle: hash, Samples: 100, Spec: r.GetSpec(), Marks: h.marks}, nil
}

func (h *host) Stream(g grpc.BidiStreamingServer[chaskiv1.StreamRequest, chaskiv1.StreamReply]) error {
	for {
		r, err := g.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		t := r.GetTicket()
		if t == nil {
			continue
		}
		h.tickets.Add(1)
		if h.fault != nil {
			if f := h.fault(t.GetFirst()); f != nil {
				f.Ticket = t.GetId()
				if err := g.Send(&chaskiv1.StreamReply{Kind: &chaskiv1.StreamReply_Fault{Fault: f}}); err != nil {
					return err
				}
				continue
			}
		}
		p := encoded(t.GetEpoch(), t.GetFirst(), 10)
		if err := g.Send(part(&chaskiv1.Part{Ticket: t.GetId(), Total: uint64(len(p)), Data: p})); err != nil {
			return err
		}
	}
}

func hosts(t *testing.T, n int) ([]*host, string) {
	var all []*host
	var targets []string
	for range n {
		h := newHost(t)
		all, targets = append(all, h), append(targets, h.target())
	}
	return all, strings.Join(targets, ",")
}

// iterate iterates over epochs of ten steps, checks their order, and calls at before every step,
// which may end it.
func iterate(t *testing.T, target string, o client.Options, epochs uint64, at func(step int) bool) error {
	t.Helper()
	r, err := dial(t, target, o).Open(t.Context(), loader.Spec{Source: "x", BatchSize: 10})
	if err != nil {
		return err
	}
	l, err := r.Loader(batch.LoaderOptions{Epochs: epochs, Prefetch: 4})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	i := 0
	for ; ; i++ {
		if at != nil && !at(i) {
			return errEnough
		}
		b, err := l.Next(t.Context())
		if errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return fmt.Errorf("step %d: %w", i, err)
		}
		if b.Epoch != uint64(i/10) || b.First != int64(i%10*10) {
			t.Fatalf("step %d is epoch %d, position %d", i, b.Epoch, b.First)
		}
		b.Release()
	}
	if i != int(epochs)*10 {
		t.Errorf("%d steps of %d", i, epochs*10)
	}
	return nil
}

// TestServersDieAndReturn: a run survives servers that stop one at a time at random moments and
// start again.
func TestServersDieAndReturn(t *testing.T) {
	three, target := hosts(t, 3)
	rng := rand.New(rand.NewPCG(1, 2))
	var down *host
	err := iterate(t, target, client.Options{}, 60, func(step int) bool {
		if step%7 != 3 {
			return true
		}
		if down != nil {
			down.start()
		}
		down = three[rng.IntN(3)]
		down.stop()
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	down.start()
}

func TestServersAllDie(t *testing.T) {
	two, target := hosts(t, 2)
	err := iterate(t, target, client.Options{Patience: 300 * time.Millisecond}, 10, func(step int) bool {
		if step == 20 {
			two[0].stop()
			two[1].stop()
		}
		return true
	})
	for _, h := range two {
		if err == nil || !strings.Contains(err.Error(), h.target()) {
			t.Error(err)
		}
	}
	two[0].start()
	two[1].start()
}

func TestOneServerIsMissing(t *testing.T) {
	two, target := hosts(t, 2)
	two[0].stop()
	if err := iterate(t, target, client.Options{}, 3, nil); err != nil {
		t.Error(err)
	}
	two[0].start()
}

// TestSilentDescription: if one server does not describe the spec, or hangs from the beginning, the
// run begins with the other one long before the timeout, and the first joins once it answers.
func TestSilentDescription(t *testing.T) {
	two, target := hosts(t, 2)
	two[0].silent.Store(true)
	start := time.Now()
	err := iterate(t, target, client.Options{Timeout: time.Hour}, 3, func(step int) bool {
		if step == 0 && time.Since(start) > 10*time.Minute {
			t.Errorf("the run began after %v", time.Since(start))
		}
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	if n := two[0].tickets.Load(); n != 0 {
		t.Errorf("%d tickets for a server that has not described the run", n)
	}
	two[1].silent.Store(true)
	if err := iterate(t, target, client.Options{Timeout: 100 * time.Millisecond}, 1, nil); err == nil {
		t.Error("a run that nobody describes")
	}
}

// TestClosedClient: a loader that outlives its client fails and leaves nothing behind.
func TestClosedClient(t *testing.T) {
	_, target := hosts(t, 2)
	c, err := client.Dial(target, client.Options{Backoff: time.Millisecond, Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	r, err := c.Open(t.Context(), loader.Spec{Source: "x", BatchSize: 10})
	if err != nil {
		t.Fatal(err)
	}
	l, err := r.Loader(batch.LoaderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if b, err := l.Next(t.Context()); err == nil {
		b.Release()
		t.Error("a batch from a closed client")
	}
}

// TestFaultComesInTurn: Next returns a fault when its step comes, although another server was
// faster.
func TestFaultComesInTurn(t *testing.T) {
	two, target := hosts(t, 2)
	var seen atomic.Int64
	for _, h := range two {
		h.fault = func(first int64) *chaskiv1.Fault {
			if first != 70 {
				return nil
			}
			seen.Add(1)
			return &chaskiv1.Fault{Kind: "corrupt", File: "a.tif", Message: "a.tif: tile 3: corrupt"}
		}
	}
	err := iterate(t, target, client.Options{}, 1, nil)
	if fault.KindOf(err) != fault.Corrupt || !strings.Contains(err.Error(), "step 7:") {
		t.Error(err)
	}
	if seen.Load() != 1 {
		t.Errorf("%d servers were asked for a broken file", seen.Load())
	}
}

// TestServersOfANameMove: a run goes on while all servers of a name are replaced, one after the other, and the new ones
// get work without a failure of the old ones.
func TestServersOfANameMove(t *testing.T) {
	var mu sync.Mutex
	var ips []string
	lookUp := func(_ context.Context, host string) ([]string, error) {
		mu.Lock()
		defer mu.Unlock()
		if len(ips) == 0 {
			return nil, fmt.Errorf("%s: no such host", host)
		}
		return slices.Clone(ips), nil
	}
	defer client.SetLookUp(lookUp, 10*time.Millisecond)()
	now := func(all ...string) {
		mu.Lock()
		defer mu.Unlock()
		ips = all
	}
	// Addresses of one port: of systems that have but one loopback address there is no test.
	first := newHostAt(t, "127.0.0.1:0")
	port := first.path[strings.LastIndexByte(first.path, ':'):]
	if l, err := net.Listen("tcp", "127.0.0.2:0"); err != nil {
		t.Skip(err)
	} else {
		l.Close()
	}
	all := []*host{first}
	for i := 2; i <= 4; i++ {
		all = append(all, newHostAt(t, fmt.Sprintf("127.0.0.%d%s", i, port)))
	}
	ip := func(h *host) string { return strings.TrimSuffix(h.path, port) }
	now(ip(all[0]), ip(all[1]))
	begun := time.Now()
	stage := 0
	err := iterate(t, "dns:servers.invalid"+port, client.Options{}, 1<<40, func(int) bool {
		if time.Since(begun) > 10*time.Minute {
			t.Fatalf("stage %d does not end", stage)
		}
		time.Sleep(time.Millisecond)
		switch {
		case stage == 0 && all[0].tickets.Load() > 0 && all[1].tickets.Load() > 0:
			now(ip(all[0]), ip(all[1]), ip(all[2])) // it joins, and nobody leaves
			stage++
		case stage == 1 && all[2].tickets.Load() > 0:
			now(ip(all[2]), ip(all[3]))
			all[0].stop()
			all[1].stop()
			stage++
		case stage == 2 && all[3].tickets.Load() > 0:
			now() // names cannot be looked up for a while: the servers stay
			all[2].stop()
			all[2].start()
			all[2].tickets.Store(0)
			stage++
		case stage == 3 && all[2].tickets.Load() > 0:
			return false
		}
		return true
	})
	if !errors.Is(err, errEnough) {
		t.Errorf("at stage %d: %v", stage, err)
	}
	all[0].start()
	all[1].start()
}

var errEnough = errors.New("enough")

// TestServersOfOtherData: servers with other data are refused, at once and when one comes back.
func TestServersOfOtherData(t *testing.T) {
	other := "other"
	two, target := hosts(t, 2)
	start := time.Now()
	err := iterate(t, target, client.Options{}, 1<<40, func(step int) bool {
		if time.Since(start) > 10*time.Minute {
			t.Fatal("the server with other data is not noticed")
		}
		if step == 15 {
			two[1].stop()
			two[1].hash.Store(&other)
			two[1].start()
		}
		time.Sleep(time.Millisecond)
		return true
	})
	if err == nil || !strings.Contains(err.Error(), "other data now") ||
		!strings.Contains(err.Error(), two[1].target()) {
		t.Error(err)
	}
	told := "other data than " + two[0].target()
	for range 20 { // of one that takes a second to describe it, a run hears later, in other words or not at all
		if err = iterate(t, target, client.Options{}, 1, nil); err != nil && strings.Contains(err.Error(), told) {
			return
		}
	}
	t.Errorf("%v, want one that says %q", err, told)
}

// TestServersOfOtherContents: of files with equal names and sizes, other entity tags and tensors are refused, and other
// times are logged once. Marks that cannot be compared are neither.
func TestServersOfOtherContents(t *testing.T) {
	for _, c := range []struct {
		marks   [3]string
		refused bool
		logged  int
	}{
		{[3]string{"etag:a", "etag:a", "etag:a"}, false, 0},
		{[3]string{"etag:a", "etag:a", "etag:b"}, true, 0},
		{[3]string{"bytes:a", "bytes:a", "bytes:b"}, true, 0},
		{[3]string{"mtime:a", "mtime:b", "mtime:c"}, false, 1},
		{[3]string{"etag:a", "", "mtime:b"}, false, 0},
	} {
		three, target := hosts(t, 3)
		for i, h := range three {
			h.marks = c.marks[i]
		}
		var log bytes.Buffer
		o := client.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))}
		made, err := client.Dial(target, o)
		if err != nil {
			t.Fatal(err)
		}
		for ok := true; ok; { // a server that takes a second is heard later
			_, err = made.Open(t.Context(), loader.Spec{Source: "x", BatchSize: 10})
			ok = c.refused && err == nil && t.Context().Err() == nil
		}
		if errors.Is(err, client.ErrChanged) != c.refused || err != nil && !c.refused {
			t.Errorf("%v: %v", c.marks, err)
		}
		if n := strings.Count(log.String(), "other times"); n != c.logged {
			t.Errorf("%v: %d lines", c.marks, n)
		}
		if err := made.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestAddressesAreChecked(t *testing.T) {
	for _, target := range []string{"", "unix:a,,unix:b", ","} {
		if _, err := client.Dial(target, client.Options{}); err == nil {
			t.Errorf("%q is taken", target)
		}
	}
}
