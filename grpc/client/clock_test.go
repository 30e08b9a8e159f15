package client_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/test/bufconn"

	"github.com/chaski-eo/chaski/grpc/client"
	"github.com/chaski-eo/chaski/loader"
	chaskiv1 "github.com/chaski-eo/chaski/proto/chaski/v1"
	"github.com/chaski-eo/chaski/shuffle"
)

// clocked is a server of pools of positions that takes perBatch for every batch, on the clock of a bubble.
type clocked struct {
	chaskiv1.UnimplementedChaskiServer
	pool, samples int64
	pools         map[int64]bool // that it was asked for
	most          int            // tickets that it owed at a time
}

const perBatch = 100 * time.Millisecond

func (c *clocked) Describe(_ context.Context, r *chaskiv1.DescribeRequest) (*chaskiv1.DescribeReply, error) {
	return &chaskiv1.DescribeReply{
		SpecHash: "h", Handle: "h", Samples: c.samples, Spec: r.GetSpec(), Groups: &chaskiv1.Groups{Pool: c.pool},
	}, nil
}

func (c *clocked) Stream(g grpc.BidiStreamingServer[chaskiv1.StreamRequest, chaskiv1.StreamReply]) error {
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
		c.most = max(c.most, len(tickets)+1)
		c.pools[t.GetFirst()/c.pool] = true
		time.Sleep(perBatch)
		p := encoded(t.GetEpoch(), t.GetFirst(), int(t.GetCount()))
		if err := g.Send(part(&chaskiv1.Part{Ticket: t.GetId(), Total: uint64(len(p)), Data: p})); err != nil {
			return err
		}
	}
	return nil
}

// onClock receives an epoch of pools of ten steps each from some servers, and returns how long that took on a clock on
// which nothing but the servers' work takes time.
func onClock(t *testing.T, servers, pools int, o client.LoaderOptions) (took time.Duration, all []*clocked) {
	synctest.Test(t, func(t *testing.T) {
		doors := map[string]*bufconn.Listener{}
		var targets []string
		for i := range servers {
			name := fmt.Sprint("s", i)
			c := &clocked{pool: 100, samples: int64(100 * pools), pools: map[int64]bool{}}
			all = append(all, c)
			door := bufconn.Listen(1 << 20)
			doors[name], targets = door, append(targets, "passthrough:///"+name)
			s := grpc.NewServer(grpc.WaitForHandlers(true))
			chaskiv1.RegisterChaskiServer(s, c)
			go func() { _ = s.Serve(door) }()
			defer s.Stop()
		}
		dial := grpc.WithContextDialer(func(ctx context.Context, name string) (net.Conn, error) { return doors[name].DialContext(ctx) })
		c, err := client.Dial(strings.Join(targets, ","), client.Options{Dial: []grpc.DialOption{dial}, Hedge: -1, Logger: quiet})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		r, err := c.Open(t.Context(), loader.Spec{Source: "x", BatchSize: 10})
		if err != nil {
			t.Fatal(err)
		}
		o.Epochs = 1
		l, err := r.Loader(o)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		begun := time.Now()
		steps := 0
		for ; ; steps++ {
			b, err := l.Next(t.Context())
			if errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatal(err)
			}
			b.Release()
		}
		took = time.Since(begun)
		if want := int(shuffle.Steps(r.Len(), 10, false)); steps != want {
			t.Errorf("%d steps of %d", steps, want)
		}
	})
	return took, all
}

// TestThroughputGrowsWithServers: with the default options, m servers answer a tile-aware order nearly m times as fast
// as one, and every pool is at one of them. With fewer bytes they reach over fewer pools.
func TestThroughputGrowsWithServers(t *testing.T) {
	const pools = 60
	one, _ := onClock(t, 1, pools, client.LoaderOptions{})
	if want := 10 * pools * perBatch; one != want {
		t.Fatalf("one server takes %v for %v of work", one, want)
	}
	for _, servers := range []int{2, 3, 5} {
		for _, c := range []struct {
			o     client.LoaderOptions
			least float64 // times as fast
			most  float64
		}{
			{client.LoaderOptions{}, 0.95 * float64(servers), float64(servers)},
			{client.LoaderOptions{Prefetch: 12}, 0.95 * float64(servers), float64(servers)},
			{client.LoaderOptions{PrefetchBytes: 10 * 170}, min(float64(servers), 1.9), min(float64(servers), 2.2)},
			{client.LoaderOptions{PrefetchBytes: -1}, 1, 1.5},
		} {
			took, all := onClock(t, servers, pools, c.o)
			faster := float64(one) / float64(took)
			t.Logf("%d servers, %+v: %.2f times as fast", servers, c.o, faster)
			if faster < c.least || faster > c.most+0.01 {
				t.Errorf("%d servers with %+v are %.2f times as fast as one, not %g to %g", servers, c.o, faster, c.least, c.most)
			}
			seen := 0
			for _, s := range all {
				seen += len(s.pools)
				if least := max(c.o.Prefetch, loader.DefaultPrefetch); s.most > least+1 {
					t.Errorf("a server owes %d tickets of %d", s.most, least)
				}
			}
			if seen != pools {
				t.Errorf("%d pools are at %d servers", pools, seen)
			}
		}
	}
}
