package client_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/proto"

	"github.com/chaski-eo/chaski/grpc/client"
	"github.com/chaski-eo/chaski/loader"
	"github.com/chaski-eo/chaski/loader/batch"
	chaskiv1 "github.com/chaski-eo/chaski/proto/chaski/v1"
	"github.com/chaski-eo/chaski/shuffle/steps"
)

// clocked is a server of pools that takes perBatch for every batch, on the clock of a synctest
// bubble.
type clocked struct {
	chaskiv1.UnimplementedChaskiServer
	pool, samples int64
	mu            sync.Mutex     // of what follows, for streams that one has after the other
	pools         map[int64]bool // that it was asked for
	most          int            // tickets that it owed at a time
	tickets       int            // that it got
	streams       int            // that were opened
	silent        int64          // it says nothing from this position on; 0: it never does so
	until         time.Duration  // after the test began, of that silence; 0: it lasts
	mute          bool           // it describes nothing
	// refuse returns the fault in place of the batch at a position, some time after the test began.
	refuse func(since time.Duration, first int64) *chaskiv1.Fault
	began  time.Time
}

const perBatch = 100 * time.Millisecond

func (c *clocked) Describe(ctx context.Context, r *chaskiv1.DescribeRequest) (*chaskiv1.DescribeReply, error) {
	if c.mute {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return &chaskiv1.DescribeReply{
		SpecHash: "h", Handle: "h", Samples: c.samples, Spec: r.GetSpec(), Groups: &chaskiv1.Groups{Pool: c.pool},
	}, nil
}

func (c *clocked) Stream(g grpc.BidiStreamingServer[chaskiv1.StreamRequest, chaskiv1.StreamReply]) error {
	c.mu.Lock()
	c.streams++
	c.mu.Unlock()
	tickets := make(chan *chaskiv1.Ticket, 4096)
	go func() {
		defer close(tickets)
		for {
			r, err := g.Recv()
			if err != nil {
				return
			}
			if t := r.GetTicket(); t != nil {
				tickets <- t
			}
		}
	}()
	for t := range tickets {
		c.mu.Lock()
		c.tickets++
		c.most = max(c.most, len(tickets)+1)
		c.pools[t.GetFirst()/c.pool] = true
		c.mu.Unlock()
		if c.silent > 0 && t.GetFirst() >= c.silent && (c.until == 0 || time.Since(c.began) < c.until) {
			<-g.Context().Done()
			return nil
		}
		time.Sleep(perBatch)
		if c.refuse != nil {
			if f := c.refuse(time.Since(c.began), t.GetFirst()); f != nil {
				f.Ticket = t.GetId()
				if err := g.Send(&chaskiv1.StreamReply{Kind: &chaskiv1.StreamReply_Fault{Fault: f}}); err != nil {
					return err
				}
				continue
			}
		}
		p := encoded(t.GetEpoch(), t.GetFirst(), int(t.GetCount()))
		if err := g.Send(part(&chaskiv1.Part{Ticket: t.GetId(), Total: uint64(len(p)), Data: p})); err != nil {
			return err
		}
	}
	return nil
}

// onClock receives an epoch of pools of ten steps each from some servers, and returns how long that
// took on a clock on which only the servers' work takes time.
func onClock(t *testing.T, servers, pools int, o batch.LoaderOptions) (took time.Duration, all []*clocked) {
	took, all, err := clockedRun(t, servers, pools, client.Options{}, o, func(*clocked) {})
	if err != nil {
		t.Fatal(err)
	}
	return took, all
}

// clockedRun is onClock for servers that change may alter, and for a run that may fail.
func clockedRun(
	t *testing.T, servers, pools int, co client.Options, o batch.LoaderOptions,
	change func(*clocked),
) (took time.Duration, all []*clocked, err error) {
	synctest.Test(t, func(t *testing.T) {
		listeners := map[string]*bufconn.Listener{}
		var targets []string
		for i := range servers {
			name := fmt.Sprint("s", i)
			c := &clocked{pool: 100, samples: int64(100 * pools), pools: map[int64]bool{}, began: time.Now()}
			change(c)
			all = append(all, c)
			l := bufconn.Listen(1 << 20)
			listeners[name], targets = l, append(targets, "passthrough:///"+name)
			s := grpc.NewServer(grpc.WaitForHandlers(true))
			chaskiv1.RegisterChaskiServer(s, c)
			go func() { _ = s.Serve(l) }()
			defer s.Stop()
		}
		dial := grpc.WithContextDialer(func(ctx context.Context, name string) (net.Conn, error) {
			return listeners[name].DialContext(ctx)
		})
		co.Dial, co.Logger = []grpc.DialOption{dial}, cmp.Or(co.Logger, quiet)
		c, cerr := client.Dial(strings.Join(targets, ","), co)
		if cerr != nil {
			t.Fatal(cerr)
		}
		defer c.Close()
		begun := time.Now()
		var r *client.Run
		if r, err = c.Open(t.Context(), loader.Spec{Source: "x", BatchSize: 10}); err != nil {
			took = time.Since(begun)
			return
		}
		o.Epochs = 1
		l, lerr := r.Loader(o)
		if lerr != nil {
			t.Fatal(lerr)
		}
		defer l.Close()
		begun = time.Now()
		got := 0
		for ; ; got++ {
			var b *batch.Batch
			if b, err = l.Next(t.Context()); err != nil {
				break
			}
			if b.First != int64(10*got) {
				t.Errorf("step %d is at position %d", got, b.First)
			}
			b.Release()
		}
		took = time.Since(begun)
		if !errors.Is(err, io.EOF) {
			return
		}
		err = nil
		if want := int(steps.Count(r.Len(), 10, false)); got != want {
			t.Errorf("%d steps of %d", got, want)
		}
	})
	return took, all, err
}

// TestSilenceIsBounded: servers that describe a run and then stay silent are asked again while patience lasts, from the
// first silence on, and then end it; so do servers that do not even describe it, since opening asks each once. The
// error names a server.
func TestSilenceIsBounded(t *testing.T) {
	o := client.Options{Timeout: time.Minute, Patience: 150 * time.Second}
	for name, change := range map[string]func(*clocked){
		"no batches":     func(c *clocked) { c.silent = 130 },
		"no description": func(c *clocked) { c.mute = true },
	} {
		for servers := 1; servers <= 3; servers++ {
			took, all, err := clockedRun(t, servers, 6, o, batch.LoaderOptions{}, change)
			if name == "no description" {
				if err == nil || took < o.Timeout || took > o.Timeout+10*time.Second {
					t.Errorf("%s of %d servers: %v after %v", name, servers, err, took)
				}
				continue
			}
			// The last connection begins before the end of patience, and is silent for a timeout of its own.
			if err == nil || took < o.Timeout+o.Patience || took > o.Patience+2*o.Timeout+20*time.Second {
				t.Errorf("%s of %d servers: %v after %v", name, servers, err, took)
			}
			if !strings.Contains(err.Error(), "no answer") || !strings.Contains(err.Error(), "passthrough:///s") {
				t.Errorf("%d servers: %v", servers, err)
			}
			if n := all[0].streams; servers == 1 && n != 4 { // at 0, 60, 120 and 180 s
				t.Errorf("one server had %d streams, want 4", n)
			}
		}
	}
}

// TestAllServersStall: servers that are silent for longer than a timeout end nothing while patience lasts, and the run
// goes on in its order.
func TestAllServersStall(t *testing.T) {
	o := client.Options{Timeout: time.Minute}
	for servers := 1; servers <= 2; servers++ {
		took, _, err := clockedRun(t, servers, 6, o, batch.LoaderOptions{}, func(c *clocked) {
			c.silent, c.until = 130, 200*time.Second
		})
		if err != nil || took < 200*time.Second || took > 320*time.Second {
			t.Errorf("%d servers: %v after %v", servers, err, took)
		}
	}
}

// TestStalledServer: if one server stops sending, the other one is asked after the timeout.
func TestStalledServer(t *testing.T) {
	var stuck *clocked
	_, all, err := clockedRun(t, 2, 6, client.Options{Timeout: time.Second}, batch.LoaderOptions{},
		func(c *clocked) {
			if stuck == nil {
				stuck, c.silent = c, 250
			}
		})
	if err != nil || stuck.tickets == 0 || all[1].tickets < 30 {
		t.Errorf("%v after %d tickets to the server that stalls, %d to the other", err, stuck.tickets, all[1].tickets)
	}
}

// faults are what servers say that are sick: all but "unavailable" is said at once where every server says it.
var faults = []*chaskiv1.Fault{
	{Kind: "unavailable", File: "s3://b/c", Message: "s3://b/c: 403 ExpiredToken"},
	{Kind: "internal", Message: "panic: index out of range"},
	{Kind: "access", Message: "the token is not known"},
	{Kind: "limit", Part: "memory", Message: "memory: 99 bytes are needed at once"},
	{Kind: "of the future", Message: "what this client does not know"},
}

// TestSickServer: a server that refuses every ticket rests for longer and longer, and the others give all batches.
func TestSickServer(t *testing.T) {
	for _, f := range faults {
		var sick *clocked
		took, all, err := clockedRun(t, 3, 30, client.Options{}, batch.LoaderOptions{}, func(c *clocked) {
			if sick == nil {
				sick = c
				c.refuse = func(time.Duration, int64) *chaskiv1.Fault { return proto.CloneOf(f) }
			}
		})
		// Rests of .1, .2, .4 s and so on: eight are more than 25 s.
		if err != nil || sick.streams < 3 || sick.streams > 10 || took > 25*time.Second {
			t.Errorf("%s: %v after %v, with %d streams of the sick server", f.GetKind(), err, took, sick.streams)
		}
		if n := all[1].tickets + all[2].tickets; n < 300 || n > 330 {
			t.Errorf("%s: the others had %d tickets for 300 batches", f.GetKind(), n)
		}
	}
}

// TestAllServersRefuse: while all servers refuse for a minute, a run waits and then goes on in its order; the log has
// one line of the wait, with what each server says. With less patience the run ends, and the error has the same.
func TestAllServersRefuse(t *testing.T) {
	const from, to = 5 * time.Second, 65 * time.Second
	change := func(c *clocked) {
		c.refuse = func(since time.Duration, _ int64) *chaskiv1.Fault {
			if since < from || since > to {
				return nil
			}
			return proto.CloneOf(faults[0])
		}
	}
	for servers := 1; servers <= 3; servers++ {
		var log bytes.Buffer
		o := client.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))}
		took, all, err := clockedRun(t, servers, 30, o, batch.LoaderOptions{}, change)
		if err != nil || took < to || took > to+12*time.Second+30*time.Second {
			t.Errorf("%d servers: %v after %v", servers, err, took)
		}
		if n := strings.Count(log.String(), "no server answers"); n != 1 {
			t.Errorf("%d servers: %d lines:\n%s", servers, n, &log)
		}
		for i, c := range all {
			if c.streams > 16 {
				t.Errorf("server %d of %d was asked by %d streams", i, servers, c.streams)
			}
		}
		o = client.Options{Patience: 30 * time.Second}
		took, _, err = clockedRun(t, servers, 30, o, batch.LoaderOptions{}, change)
		if err == nil || took < from+o.Patience || took > from+o.Patience+12*time.Second {
			t.Errorf("%d servers: %v after %v", servers, err, took)
			continue
		}
		for i := range servers {
			said := fmt.Sprintf("chaski at passthrough:///s%d: s3://b/c: 403 ExpiredToken", i)
			if !strings.Contains(err.Error(), said) {
				t.Errorf("%d servers: %v", servers, err)
			}
		}
	}
}

// TestAllServersRefuseForGood: what waiting does not change is said at once, in the turn of its ticket, after each
// server was asked for it.
func TestAllServersRefuseForGood(t *testing.T) {
	for servers := 1; servers <= 3; servers++ {
		for _, f := range faults[1:] {
			var asked atomic.Int64
			took, _, err := clockedRun(t, servers, 6, client.Options{}, batch.LoaderOptions{}, func(c *clocked) {
				c.refuse = func(_ time.Duration, first int64) *chaskiv1.Fault {
					if first != 130 {
						return nil
					}
					asked.Add(1)
					return proto.CloneOf(f)
				}
			})
			if n := int(asked.Load()); err == nil || took > 10*time.Second || n < servers || n > servers+2 {
				t.Errorf("%s: %v of %d servers, asked %d times, after %v", f.GetKind(), err, servers, n, took)
				continue
			}
			for i := range servers {
				if !strings.Contains(err.Error(), fmt.Sprintf("chaski at passthrough:///s%d: %s", i, f.GetMessage())) {
					t.Errorf("%s of %d servers: %v", f.GetKind(), servers, err)
				}
			}
		}
	}
}

// TestServersShareTheWork: three servers get as many tickets each, and none twice.
func TestServersShareTheWork(t *testing.T) {
	_, three, err := clockedRun(t, 3, 30, client.Options{}, batch.LoaderOptions{Prefetch: 4},
		func(c *clocked) { c.pool = 10 }) // one batch each
	if err != nil {
		t.Fatal(err)
	}
	sum := 0
	for i, c := range three {
		if sum += c.tickets; c.tickets < 50 {
			t.Errorf("server %d got %d of 300 tickets", i, c.tickets)
		}
	}
	if sum != 300 {
		t.Errorf("%d tickets for 300 batches", sum)
	}
}

// TestThroughputGrowsWithServers: with the default options, m servers answer a tile-aware order
// nearly m times as fast as one, and each pool is on one server. With fewer bytes, the client works
// on fewer pools at a time.
func TestThroughputGrowsWithServers(t *testing.T) {
	const pools = 60
	one, _ := onClock(t, 1, pools, batch.LoaderOptions{})
	if want := 10 * pools * perBatch; one != want {
		t.Fatalf("one server takes %v for %v of work", one, want)
	}
	for _, servers := range []int{2, 3, 5} {
		if testing.Short() && servers != 3 {
			continue
		}
		for _, c := range []struct {
			o     batch.LoaderOptions
			least float64 // times as fast
			most  float64
		}{
			{batch.LoaderOptions{}, 0.95 * float64(servers), float64(servers)},
			{batch.LoaderOptions{Prefetch: 12}, 0.95 * float64(servers), float64(servers)},
			{batch.LoaderOptions{PrefetchBytes: 10 * 170}, min(float64(servers), 1.9), min(float64(servers), 2.2)},
			{batch.LoaderOptions{PrefetchBytes: -1}, 1, 1.5},
		} {
			took, all := onClock(t, servers, pools, c.o)
			faster := float64(one) / float64(took)
			t.Logf("%d servers, %+v: %.2f times as fast", servers, c.o, faster)
			if faster < c.least || faster > c.most+0.01 {
				t.Errorf("%d servers with %+v are %.2f times as fast as one, not %g to %g",
					servers, c.o, faster, c.least, c.most)
			}
			seen := 0
			for _, s := range all {
				seen += len(s.pools)
				if least := max(c.o.Prefetch, batch.DefaultPrefetch); s.most > least+1 {
					t.Errorf("a server owes %d tickets of %d", s.most, least)
				}
			}
			if seen != pools {
				t.Errorf("%d pools are at %d servers", pools, seen)
			}
		}
	}
}
