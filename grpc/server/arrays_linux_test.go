package server

import (
	"bytes"
	"context"
	"errors"
	"io"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/chaski-eo/chaski/internal/budget"
	"github.com/chaski-eo/chaski/internal/pages"
	"github.com/chaski-eo/chaski/internal/shm"
	"github.com/chaski-eo/chaski/loader"
	"github.com/chaski-eo/chaski/loader/raster"
	"github.com/chaski-eo/chaski/loader/resources"
	chaskiv1 "github.com/chaski-eo/chaski/proto/chaski/v1"
	"github.com/chaski-eo/chaski/tools/testkit/corpus"
)

// arrayReader is a client of Read on this host.
type arrayReader struct {
	t      *testing.T
	stub   chaskiv1.ChaskiClient
	leases *leaseClient
	secret shm.Token
	stream uint64
	given  map[uint64][]byte // segments, mapped
}

// arrayServer starts a server whose arrays lie in shared memory, and returns a function that makes a client of it. One
// array of request is four times 176 KiB.
func arrayServer(t *testing.T, o Options) (r *running, client func() *arrayReader) {
	t.Helper()
	l, target, dial := listenUnix(t)
	o.Roots, o.SharedMemory = []string{"/"}, true
	r = start(t, l, o)
	dial = append(dial, grpc.WithTransportCredentials(insecure.NewCredentials()))
	return r, func() *arrayReader {
		conn, err := grpc.NewClient(target, dial...)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		a := &arrayReader{t: t, stub: chaskiv1.NewChaskiClient(conn), given: map[uint64][]byte{}}
		a.leases, a.secret = enter(t, a.ask(&chaskiv1.Attach{}, 4)[0].GetShared())
		return a
	}
}

func arrayRequest(t *testing.T, files int) []string {
	return slices.Repeat([]string{filepath.Join(corpus.Testdata(t), "raster", "rumi-v1", "qa-1b.tif")}, files)
}

// ask returns the replies of a Read of a file, so many times.
func (a *arrayReader) ask(to *chaskiv1.Attach, files int) (all []*chaskiv1.StreamReply) {
	a.t.Helper()
	s, err := a.stub.Read(a.t.Context(), &chaskiv1.ReadRequest{Paths: arrayRequest(a.t, files), Attach: to})
	for err == nil {
		var reply *chaskiv1.StreamReply
		if reply, err = s.Recv(); err == nil {
			all = append(all, reply)
		}
	}
	if !errors.Is(err, io.EOF) {
		a.t.Fatal(err)
	}
	return all
}

// read asks with the secret, and returns the lease, or nil and the parts.
func (a *arrayReader) read(files int) (*chaskiv1.Lease, []*chaskiv1.StreamReply) {
	a.t.Helper()
	a.stream++
	all := a.ask(&chaskiv1.Attach{Secret: a.secret[:], Stream: a.stream}, files)
	return all[0].GetLease(), all
}

// memory returns the memory of a lease. It takes all packets until the recall of the last Read.
func (a *arrayReader) memory(l *chaskiv1.Lease) []byte {
	a.t.Helper()
	for {
		m, file, err := a.leases.conn.Receive()
		if err != nil {
			a.t.Fatal(err)
		}
		switch m.Kind {
		case shm.Give:
			g, err := shm.Open(file, int(m.B))
			if err != nil {
				a.t.Fatal(err)
			}
			a.t.Cleanup(func() { _ = g.Close() })
			a.given[m.A] = g.Bytes()
		case shm.Forget:
			delete(a.given, m.A)
		case shm.Recall:
			if m.A == l.GetId() && m.B == a.stream {
				return a.given[l.GetSegment()]
			}
		default:
			a.t.Fatalf("packet %+v", m)
		}
	}
}

func (a *arrayReader) give(k shm.Kind, l *chaskiv1.Lease) {
	a.leases.send(shm.Message{Kind: k, A: l.GetId()}, -1)
}

func idle(r *running) int {
	a := r.server.arrays
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.idle.Len()
}

// TestArraysInSharedMemory: a lease has the bytes that Read gives without a server. What a client returns holds its
// next array, and never that of another client; what it discards holds none. All that is charged comes back.
func TestArraysInSharedMemory(t *testing.T) {
	total := resources.NewBudget(64 << 20)
	r, client := arrayServer(t, Options{Loader: loader.Options{Budget: total}})
	want, err := raster.Read(t.Context(), arrayRequest(t, 4), raster.ReadOptions{})
	if err != nil || len(want.Data) < minArray {
		t.Fatal(len(want.Data), err)
	}
	a, b := client(), client()
	one, _ := a.read(4)
	first := a.memory(one)
	if !bytes.HasPrefix(first, want.Data) || total.Used() != int64(len(want.Data)) {
		t.Fatalf("%d bytes are not those of the array; %d are charged", len(first), total.Used())
	}
	two, _ := a.read(4)
	if second := a.memory(two); two.GetSegment() == one.GetSegment() || !bytes.HasPrefix(second, want.Data) {
		t.Error("the memory of a lease is used again")
	}
	for i := range first { // the next array must be there whatever the client leaves
		first[i] = 0xaa
	}
	a.give(shm.Return, one)
	eventually(t, "the memory is idle", func() bool { return idle(r) == 1 })
	other, _ := b.read(4)
	if other.GetSegment() == one.GetSegment() || !bytes.HasPrefix(b.memory(other), want.Data) {
		t.Error("a client has the memory of another one")
	}
	again, _ := a.read(4)
	if again.GetSegment() != one.GetSegment() || !bytes.HasPrefix(a.memory(again), want.Data) || idle(r) != 0 {
		t.Errorf("segment %d, want %d", again.GetSegment(), one.GetSegment())
	}
	a.give(shm.Discard, again)
	a.give(shm.Return, two)
	eventually(t, "one segment is idle", func() bool { return idle(r) == 1 && r.leases() == 1 })
	a.leases.conn.Close()
	eventually(t, "the memory of a client that is gone is freed", func() bool { return idle(r) == 0 })
	b.give(shm.Return, other)
	eventually(t, "one segment is idle", func() bool { return idle(r) == 1 })
	r.server.arrays.Reclaim(budget.Unused)
	if idle(r) != 1 {
		t.Error("memory that the next read uses is taken for unused")
	}
	r.server.arrays.Reclaim(budget.Idle)
	if idle(r) != 0 {
		t.Errorf("%d idle", idle(r))
	}
	// An array is idle before the read that lent it gives its own charge back.
	eventually(t, "all is given back", func() bool { return total.Used() == 0 && pages.Held() == 0 })
	b.leases.conn.Close()
	r.stop(t)
	eventually(t, "all segments are freed", func() bool { _, n, _ := r.server.shared.figures(); return n == 0 })
}

func (r *running) leases() int {
	n, _, _ := r.server.shared.figures()
	return n
}

// TestArraysInLargerMemory: an array lies in the memory of a larger one that its client has returned, and all bytes of
// that memory are charged as long as it is there.
func TestArraysInLargerMemory(t *testing.T) {
	total := resources.NewBudget(64 << 20)
	r, client := arrayServer(t, Options{Loader: loader.Options{Budget: total}})
	defer r.stop(t)
	want, err := raster.Read(t.Context(), arrayRequest(t, 4), raster.ReadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	a := client()
	large, _ := a.read(5)
	size := int64(len(a.memory(large)))
	for _, end := range []shm.Kind{shm.Return, shm.Discard} {
		a.give(shm.Return, large)
		eventually(t, "the memory is idle, and charged", func() bool { return idle(r) == 1 && total.Used() == size })
		small, _ := a.read(4)
		if small.GetSegment() != large.GetSegment() || !bytes.HasPrefix(a.memory(small), want.Data) {
			t.Errorf("segment %d, want %d with the bytes of the array", small.GetSegment(), large.GetSegment())
		}
		eventually(t, "all of the memory is charged, but for a part of a page", func() bool {
			return idle(r) == 0 && total.Used() <= size && total.Used() > size-pageOf
		})
		if large = small; end == shm.Discard {
			a.give(end, small)
		}
	}
	eventually(t, "all is given back", func() bool { return idle(r) == 0 && total.Used() == 0 })
}

// TestIdleArraysAreFew: segments of ever other sizes are freed when there are too many, and all of them after a while
// without a read.
func TestIdleArraysAreFew(t *testing.T) {
	total := resources.NewBudget(256 << 20)
	r, client := arrayServer(t, Options{TrimAfter: 50 * time.Millisecond, Loader: loader.Options{Budget: total}})
	defer r.stop(t)
	a := client()
	r.server.arrays.mu.Lock()
	r.server.arrays.after = time.Hour
	r.server.arrays.mu.Unlock()
	for k := range maxIdleArrays + 2 {
		l, _ := a.read(4 + k)
		a.memory(l)
		if k == maxIdleArrays+1 {
			r.server.arrays.mu.Lock()
			r.server.arrays.after = time.Millisecond
			r.server.arrays.mu.Unlock()
		}
		a.give(shm.Return, l)
		eventually(t, "the lease is back", func() bool { return r.leases() == 0 })
		if n := idle(r); n > maxIdleArrays {
			t.Fatalf("%d segments are idle", n)
		}
	}
	eventually(t, "all is freed", func() bool { return idle(r) == 0 && total.Used() == 0 })
}

// TestArraysThatAreKept: a client that keeps its arrays has as many as fit into a quarter of the budget; the others
// come in parts, with the same bytes.
func TestArraysThatAreKept(t *testing.T) {
	total := resources.NewBudget(16 << 20)
	r, client := arrayServer(t, Options{Loader: loader.Options{Budget: total}})
	defer r.stop(t)
	a, lent := client(), 0
	want, err := raster.Read(t.Context(), arrayRequest(t, 4), raster.ReadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for range 16 {
		l, all := a.read(4)
		if l != nil {
			lent++
			continue
		}
		var got []byte
		for _, reply := range all {
			got = append(got, reply.GetPart().GetData()...)
		}
		if !bytes.Contains(got, want.Data) {
			t.Fatal("the parts are not the array")
		}
	}
	if _, _, n := r.server.shared.figures(); lent < 2 || n > total.Limit()/4 {
		t.Errorf("%d arrays of %d bytes are lent", lent, n)
	}
	small, all := a.read(1)
	if small != nil || all[0].GetPart() == nil {
		t.Error("a small array is lent")
	}
	a.leases.conn.Close()
	nothingLeased(t, r)
	eventually(t, "memory is not given back", func() bool { return total.Used() == 0 })
}

// TestArraysNobodyTakes: the lease of a Read that was cancelled is recalled, and a client that does not know it gives
// it back. Wrong secrets get parts, and where the lease socket is; those of a wrong length are refused.
func TestArraysNobodyTakes(t *testing.T) {
	total := resources.NewBudget(64 << 20)
	r, client := arrayServer(t, Options{Loader: loader.Options{Budget: total}})
	defer r.stop(t)
	a := client()
	ctx, cancel := context.WithCancel(t.Context())
	s, err := a.stub.Read(ctx, &chaskiv1.ReadRequest{Paths: arrayRequest(t, 4),
		Attach: &chaskiv1.Attach{Secret: a.secret[:], Stream: 9}})
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "a lease", func() bool { return r.leases() == 1 })
	cancel()
	_, _ = s.Recv()
	m := a.leases.receive()
	for m.Kind == shm.Give {
		m = a.leases.receive()
	}
	if m.Kind != shm.Recall || m.B != 9 {
		t.Fatalf("%+v", m)
	}
	a.leases.send(shm.Message{Kind: shm.Return, A: m.A}, -1)
	nothingLeased(t, r)

	wrong := a.ask(&chaskiv1.Attach{Secret: make([]byte, 16)}, 4)
	if wrong[0].GetShared() == nil || wrong[1].GetPart() == nil {
		t.Errorf("%v", wrong[0])
	}
	s, err = a.stub.Read(t.Context(), &chaskiv1.ReadRequest{Paths: arrayRequest(t, 4),
		Attach: &chaskiv1.Attach{Secret: make([]byte, 15)}})
	if err == nil {
		_, err = s.Recv()
	}
	if status.Code(err) != codes.InvalidArgument {
		t.Errorf("a secret of 15 bytes: %v", err)
	}
	a.leases.conn.Close()
	eventually(t, "memory is not given back", func() bool { return total.Used() == 0 })
}
