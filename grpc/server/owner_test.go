package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"runtime"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/chaski-eo/chaski/grpc/client"
	"github.com/chaski-eo/chaski/internal/shm"
	"github.com/chaski-eo/chaski/loader"
	"github.com/chaski-eo/chaski/loader/batch"
	chaskiv1 "github.com/chaski-eo/chaski/proto/chaski/v1"
)

// scribbler is a client that returns all leases at once, but keeps its mappings and writes into them.
type scribbler struct {
	conn   *grpc.ClientConn
	leases *leaseClient
	stop   chan struct{}
	done   sync.WaitGroup

	mu    sync.Mutex
	given map[uint64]*shm.Segment
}

// scribble asks for tickets of a spec and spoils all memory that it is ever given, until stopped.
func scribble(t *testing.T, target string, how []grpc.DialOption, sp loader.Spec, tickets int) *scribbler {
	t.Helper()
	conn, err := grpc.NewClient(target, append(how, grpc.WithTransportCredentials(insecure.NewCredentials()))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	stub := chaskiv1.NewChaskiClient(conn)
	text, err := json.Marshal(sp)
	if err != nil {
		t.Fatal(err)
	}
	d, err := stub.Describe(t.Context(), &chaskiv1.DescribeRequest{Spec: text})
	if err != nil {
		t.Fatal(err)
	}
	s, err := stub.Stream(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	r := &raw{t, stub, s, d.GetHandle()}
	in, secret := enter(t, d.GetShared())
	x := &scribbler{conn: conn, leases: in, stop: make(chan struct{}), given: map[uint64]*shm.Segment{}}
	r.attach(secret[:])
	for i := range tickets {
		r.ticket(&chaskiv1.Ticket{Id: uint64(i), Handle: r.hash, Epoch: uint64(int64(i) / d.GetSamples()),
			First: int64(i) % d.GetSamples(), Count: 1, RowStride: 1})
	}
	r.credit(uint32(tickets))
	x.done.Go(func() {
		for {
			m, file, err := in.conn.Receive()
			if err != nil {
				return
			}
			if m.Kind != shm.Give {
				continue // a segment is kept after FORGET
			}
			g, err := shm.Open(file, int(m.B))
			if err != nil {
				t.Error(err)
				return
			}
			x.mu.Lock()
			x.given[m.A] = g
			x.mu.Unlock()
		}
	})
	x.done.Go(func() {
		for range tickets {
			m, err := s.Recv()
			if err != nil {
				return
			}
			if l := m.GetLease(); l != nil && in.conn.Send(shm.Message{Kind: shm.Return, A: l.GetId()}, -1) != nil {
				return
			}
		}
	})
	x.done.Go(func() {
		for v := byte(0); ; v++ {
			select {
			case <-x.stop:
				return
			default:
			}
			x.mu.Lock()
			for _, g := range x.given {
				b := g.Bytes()
				for i := int(v); i < len(b); i += 256 {
					b[i] ^= 0xa5
				}
			}
			x.mu.Unlock()
			runtime.Gosched()
		}
	})
	eventually(t, "the attacker has segments", func() bool {
		x.mu.Lock()
		defer x.mu.Unlock()
		return len(x.given) > 0
	})
	return x
}

// leave closes the connection. The mappings stay, and are written to until end.
func (x *scribbler) leave() { x.leases.conn.Close() }

func (x *scribbler) end(t *testing.T) {
	x.leave()
	x.conn.Close() // a server that stops waits 30 s for a stream that nobody reads any more
	close(x.stop)
	x.done.Wait()
	for _, g := range x.given {
		if err := g.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestReturnedMemoryIsNotShared: a client that keeps its mappings, and writes into them after it returned all leases,
// changes no batch of another client over either transport, neither while it is there nor after it left. The batches
// are those of an engine that shares no memory with anybody.
func TestReturnedMemoryIsNotShared(t *testing.T) {
	dir, _ := chipFolder(t, 4)
	sp := loader.Spec{Source: dir, BatchSize: 1, Sampler: loader.Sampler{Kind: "random_window", Height: 96, Width: 96}}
	e, err := loader.Open(t.Context(), sp, loader.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	epochs := uint64(10)
	if testing.Short() { // the attacker writes all the time, and takes a processor from each batch
		epochs = 3
	}
	var want [][]byte
	own, err := loader.NewLoader(e, loader.LoaderOptions{Epochs: epochs})
	if err != nil {
		t.Fatal(err)
	}
	defer own.Close()
	for {
		b, err := own.Next(t.Context())
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, bytes.Clone(b.Tensors[0].Data))
		b.Release()
	}
	l, target, how := listenBuf(t)
	if !shm.Supported {
		t.Skip("no shared memory on this system")
	}
	r := start(t, l, Options{SharedMemory: true})
	defer r.stop(t)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Minute)
	defer cancel()
	for _, leaves := range []bool{false, true} {
		x := scribble(t, target, how, sp, 40)
		if leaves {
			x.leave()
		}
		var group sync.WaitGroup
		for _, transport := range []client.Transport{client.Shm, client.GRPC} {
			group.Go(func() {
				c := dialShared(t, transport, target, how...)
				defer c.Close()
				run, err := c.Open(ctx, sp)
				if err != nil {
					t.Error(err)
					return
				}
				l, err := run.Loader(batch.LoaderOptions{Epochs: epochs})
				if err != nil {
					t.Error(err)
					return
				}
				defer l.Close()
				spoiled := 0
				for i := range want {
					b, err := l.Next(ctx)
					if err != nil {
						t.Error(err)
						return
					}
					if !bytes.Equal(b.Tensors[0].Data, want[i]) {
						spoiled++
					}
					b.Release()
				}
				if spoiled > 0 {
					t.Errorf("transport %v, attacker gone: %v: %d of %d batches are spoiled",
						transport, leaves, spoiled,
						len(want))
				}
			})
		}
		group.Wait()
		x.end(t)
	}
	nothingLeased(t, r)
	// What belonged to clients that are gone is freed, also while the dataset stays open.
	eventually(t, "segments of clients that are gone are freed", func() bool {
		r.server.shared.mu.Lock()
		defer r.server.shared.mu.Unlock()
		return r.server.shared.owned == 0
	})
}
