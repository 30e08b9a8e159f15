package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/grpc/client"
	"github.com/chaski-eo/chaski/grpc/payload"
	"github.com/chaski-eo/chaski/loader"
	"github.com/chaski-eo/chaski/loader/batch"
	chaskiv1 "github.com/chaski-eo/chaski/proto/chaski/v1"
	"github.com/chaski-eo/chaski/shuffle/steps"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// house makes a test's engines and keeps track of them.
type house struct {
	mu      sync.Mutex
	samples int64
	elems   int
	prepare func(*fakeEngine)
	open    []*fakeEngine
}

func (h *house) Open(_ context.Context, s loader.Spec, o loader.Options) (Engine, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if s.Source == "missing" {
		return nil, fault.WithFile(fault.New(fault.NotFound, "source", "no such file"), s.Source)
	}
	e := newFake(s, h.samples, h.elems)
	e.Alloc = o.Alloc
	if h.prepare != nil {
		h.prepare(e)
	}
	h.open = append(h.open, e)
	return e, nil
}

// check fails the test if an engine is not closed, or was used against its contract.
func (h *house) check(t testing.TB) {
	t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, e := range h.open {
		for _, m := range e.Mistakes() {
			t.Error(m)
		}
		if n := e.Live.Load(); n != 0 {
			t.Errorf("%d batches are not released", n)
		}
		if !e.Closed.Load() {
			t.Error("an engine is not closed")
		}
	}
}

var quiet = slog.New(slog.DiscardHandler)

// running is a server on a listener.
type running struct {
	server *Server
	cancel context.CancelFunc
	done   chan error
}

func start(t testing.TB, l net.Listener, o Options) *running {
	t.Helper()
	return startWith(t, l, o, quiet)
}

func startWith(t testing.TB, l net.Listener, o Options, log *slog.Logger) *running {
	t.Helper()
	o.Logger = log
	if o.Roots == nil {
		o.Roots = []string{"/"}
	}
	s, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	r := &running{s, cancel, make(chan error, 1)}
	go func() { r.done <- s.Serve(ctx, l) }()
	return r
}

func (r *running) stop(t testing.TB) {
	t.Helper()
	r.cancel()
	if err := <-r.done; err != nil {
		t.Error(err)
	}
}

// each calls f with a server on every kind of listener, with the target and options to reach it.
func each(t *testing.T, o Options, f func(t *testing.T, target string, dial ...grpc.DialOption)) {
	for name, listen := range map[string]func(t *testing.T) (net.Listener, string, []grpc.DialOption){
		"unix":    listenUnix,
		"tcp":     listenTCP,
		"bufconn": listenBuf,
	} {
		t.Run(name, func(t *testing.T) {
			l, target, dial := listen(t)
			r := start(t, l, o)
			defer r.stop(t)
			f(t, target, dial...)
		})
	}
}

func listenUnix(t *testing.T) (net.Listener, string, []grpc.DialOption) {
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	return l, "unix:" + path, nil
}

func listenTCP(t *testing.T) (net.Listener, string, []grpc.DialOption) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l, l.Addr().String(), nil
}

// dialed returns a connection in plain text, which the caller closes.
func dialed(t *testing.T, target string, dial []grpc.DialOption) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient(target, append(dial, grpc.WithTransportCredentials(insecure.NewCredentials()))...)
	if err != nil {
		t.Fatal(err)
	}
	return conn
}

func listenBuf(*testing.T) (net.Listener, string, []grpc.DialOption) {
	l := bufconn.Listen(1 << 16)
	dial := func(ctx context.Context, _ string) (net.Conn, error) { return l.DialContext(ctx) }
	return l, "passthrough:buf", []grpc.DialOption{grpc.WithContextDialer(dial)}
}

func spec(g int) loader.Spec { return loader.Spec{Source: "x", BatchSize: g, Seed: 5} }

// checkBatch compares a batch with what the fake engine gives for its positions.
func checkBatch(t testing.TB, b *batch.Batch, elems int) {
	t.Helper()
	image, name := b.Tensor("image"), b.Tensor("name")
	if image == nil || name == nil {
		t.Fatal("tensors are missing")
	}
	row := make([]byte, 4*elems)
	for k, pos := range b.Positions {
		fakeRow(row, b.Epoch, pos)
		if !bytes.Equal(image.Data[k*len(row):(k+1)*len(row)], row) {
			t.Fatalf("epoch %d position %d row %d differs", b.Epoch, pos, k)
		}
		if b.Valid[k] != (pos >= 0) || b.Samples[k] != pos {
			t.Fatalf("position %d: valid %v, sample %d", pos, b.Valid[k], b.Samples[k])
		}
	}
}

// TestRanksSeeEverySampleOnce: three ranks at the same time get every sample of two epochs once.
func TestRanksSeeEverySampleOnce(t *testing.T) {
	h := &house{samples: 103, elems: 3000}
	each(t, Options{Open: h.Open, PartBytes: 1 << 14}, func(t *testing.T, target string, dial ...grpc.DialOption) {
		c := dialTo(t, target, dial...)
		const world = 3
		var mu sync.Mutex
		seen := map[[2]int64]int{}
		var wg sync.WaitGroup
		for rank := range world {
			wg.Go(func() {
				run, err := c.Open(t.Context(), spec(10))
				if err != nil {
					t.Error(err)
					return
				}
				l, err := run.Loader(batch.LoaderOptions{Rank: rank, World: world, Epochs: 2})
				if err != nil {
					t.Error(err)
					return
				}
				defer l.Close()
				last := int64(-1)
				steps := 0
				for b, err := range l.All(t.Context()) {
					if err != nil {
						t.Error(err)
						return
					}
					checkBatch(t, b, h.elems)
					if at := int64(b.Epoch)*1000 + b.First; at <= last {
						t.Errorf("rank %d: position %d after %d", rank, at, last)
					} else {
						last = at
					}
					steps++
					mu.Lock()
					for _, p := range b.Positions {
						if p >= 0 {
							seen[[2]int64{int64(b.Epoch), p}]++
						}
					}
					mu.Unlock()
				}
				if steps != 22 {
					t.Errorf("rank %d had %d steps", rank, steps)
				}
			})
		}
		wg.Wait()
		if len(seen) != 2*103 {
			t.Errorf("%d samples in two epochs of 103", len(seen))
		}
		for at, n := range seen {
			if n != 1 {
				t.Errorf("%v came %d times", at, n)
			}
		}
	})
	h.check(t)
}

func dialTo(t testing.TB, target string, dial ...grpc.DialOption) *client.Client {
	t.Helper()
	c, err := client.Dial(target, client.Options{
		Dial: dial, Logger: quiet, Backoff: time.Millisecond, Timeout: 5 * time.Minute,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// TestResumeGivesTheSameBatches: a run that stops after every step and resumes from its state gets
// the same batches.
func TestResumeGivesTheSameBatches(t *testing.T) {
	h := &house{samples: 25, elems: 10}
	l, target, dial := listenBuf(t)
	r := start(t, l, Options{Open: h.Open})
	c := dialTo(t, target, dial...)
	run, err := c.Open(t.Context(), spec(10))
	if err != nil {
		t.Fatal(err)
	}
	var state *steps.State
	for step := range 6 {
		l, err := run.Loader(batch.LoaderOptions{State: state, Epochs: 2})
		if err != nil {
			t.Fatal(err)
		}
		b, err := l.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if b.Epoch != uint64(step/3) || b.First != int64(step%3*10) {
			t.Errorf("step %d is epoch %d, position %d", step, b.Epoch, b.First)
		}
		b.Release()
		s := l.State()
		text, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		if s, err = steps.ParseState(text); err != nil {
			t.Fatal(err)
		}
		state = &s
		l.Close()
	}
	end, err := run.Loader(batch.LoaderOptions{State: state, Epochs: 2})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := end.Next(t.Context()); !errors.Is(err, io.EOF) {
		t.Errorf("after the last step: %v", err)
	}
	end.Close()
	state.Seed++
	if _, err := run.Loader(batch.LoaderOptions{State: state}); err == nil {
		t.Error("a state of another seed is taken")
	}
	r.stop(t)
	h.check(t)
}

// raw is a stream that the test controls itself, with protobuf's own codec.
type raw struct {
	t      *testing.T
	stub   chaskiv1.ChaskiClient
	stream grpc.BidiStreamingClient[chaskiv1.StreamRequest, chaskiv1.StreamReply]
	hash   string
}

func newRaw(t *testing.T, g int, target string, dial ...grpc.DialOption) *raw {
	t.Helper()
	conn, err := grpc.NewClient(target, append(dial, grpc.WithTransportCredentials(insecure.NewCredentials()))...)
	if err != nil {
		t.Fatal(err)
	}
	stub := chaskiv1.NewChaskiClient(conn)
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	t.Cleanup(func() { cancel(); _ = conn.Close() })
	b, err := json.Marshal(spec(g))
	if err != nil {
		t.Fatal(err)
	}
	d, err := stub.Describe(ctx, &chaskiv1.DescribeRequest{Spec: b})
	if err != nil {
		t.Fatal(err)
	}
	s, err := stub.Stream(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return &raw{t, stub, s, d.GetHandle()}
}

func (r *raw) ticket(t *chaskiv1.Ticket) {
	r.t.Helper()
	if err := r.stream.Send(&chaskiv1.StreamRequest{Kind: &chaskiv1.StreamRequest_Ticket{Ticket: t}}); err != nil {
		r.t.Fatal(err)
	}
}

func (r *raw) credit(n uint32) {
	r.t.Helper()
	err := r.stream.Send(&chaskiv1.StreamRequest{
		Kind: &chaskiv1.StreamRequest_Credit{Credit: &chaskiv1.Credit{Batches: n}},
	})
	if err != nil {
		r.t.Fatal(err)
	}
}

// answer receives the answer to one ticket: a batch or a fault.
func (r *raw) answer(id uint64) (*batch.Batch, *chaskiv1.Fault) {
	r.t.Helper()
	var p []byte
	for {
		m, err := r.stream.Recv()
		if err != nil {
			r.t.Fatal(err)
		}
		if f := m.GetFault(); f != nil {
			if f.GetTicket() != id {
				r.t.Fatalf("fault of ticket %d, want %d", f.GetTicket(), id)
			}
			return nil, f
		}
		part := m.GetPart()
		if part.GetTicket() != id || part.GetOffset() != uint64(len(p)) || len(part.GetData()) == 0 {
			r.t.Fatalf("part of ticket %d at %d, want ticket %d at %d", part.GetTicket(), part.GetOffset(), id, len(p))
		}
		p = append(p, part.GetData()...)
		if uint64(len(p)) == part.GetTotal() {
			b, err := payload.Copy(p, nil, heapMemory{})
			if err != nil {
				r.t.Fatal(err)
			}
			return b, nil
		}
	}
}

// TestCreditsAreKept: the server starts and sends no more batches than a client's credits.
func TestCreditsAreKept(t *testing.T) {
	h := &house{samples: 1000, elems: 2000}
	each(t, Options{Open: h.Open, PartBytes: 5000}, func(t *testing.T, target string, dial ...grpc.DialOption) {
		r := newRaw(t, 4, target, dial...)
		e := h.open[len(h.open)-1]
		for i := range 20 {
			r.ticket(&chaskiv1.Ticket{Id: uint64(i), Handle: r.hash, First: int64(i * 4), Count: 4, RowStride: 1})
		}
		given, got := int64(0), int64(0)
		for _, n := range []uint32{1, 3, 0, 1, 5, 2} {
			r.credit(n)
			given += int64(n)
			for ; got < given; got++ {
				b, f := r.answer(uint64(got))
				if f != nil {
					t.Fatal(f)
				}
				checkBatch(t, b, h.elems)
				if b.First != got*4 {
					t.Errorf("batch %d starts at %d", got, b.First)
				}
				if s := e.Started.Load(); s > given {
					t.Errorf("%d batches started for %d credits", s, given)
				}
			}
		}
		// With 12 of 20 sent and no credit left the server must be quiet. A ticket that needs no
		// credit would be answered after the others, so this one has its own stream.
		if s := e.Started.Load(); s != given {
			t.Errorf("%d batches started for %d credits", s, given)
		}
		if err := r.stream.CloseSend(); err != nil {
			t.Fatal(err)
		}
		if _, err := r.stream.Recv(); status.Code(err) != codes.FailedPrecondition {
			t.Errorf("closed with tickets and no credit: %v", err)
		}
	})
	h.check(t)
}

// TestHostileTickets: each hostile ticket gets a fault, in order, and the stream goes on.
func TestHostileTickets(t *testing.T) {
	h := &house{samples: 100, elems: 4}
	h.prepare = func(e *fakeEngine) {
		e.Fail = func(pos int64) error {
			if pos == 50 {
				return fault.WithFile(fault.At(fault.Corrupt, "tile 7", 1234, "checksum"), "a.tif")
			}
			return nil
		}
	}
	each(t, Options{Open: h.Open}, func(t *testing.T, target string, dial ...grpc.DialOption) {
		r := newRaw(t, 4, target, dial...)
		good := &chaskiv1.Ticket{Handle: r.hash, Count: 4, RowStride: 1}
		for i, c := range []struct {
			ticket *chaskiv1.Ticket
			kind   string
		}{
			{&chaskiv1.Ticket{Handle: r.hash, Count: math.MaxUint32, RowStride: 1}, "limit"},
			{&chaskiv1.Ticket{Handle: r.hash, Count: 4}, "unsupported"},
			{&chaskiv1.Ticket{Handle: r.hash, Count: 4, RowStride: 1, First: -1}, "unsupported"},
			{&chaskiv1.Ticket{Handle: r.hash, Count: 4, RowStride: 1, First: math.MinInt64}, "unsupported"},
			{&chaskiv1.Ticket{Handle: r.hash, Count: 4, RowStride: 1, First: math.MaxInt64}, "unsupported"},
			{&chaskiv1.Ticket{Handle: r.hash, RowStride: 1}, "unsupported"},
			{&chaskiv1.Ticket{Handle: "?", Count: 4, RowStride: 1}, "unknown spec"},
			{&chaskiv1.Ticket{}, "unknown spec"},
			{&chaskiv1.Ticket{Handle: r.hash, First: 48, Count: 4, RowStride: 1}, "corrupt"},
		} {
			id := math.MaxUint64 - uint64(2*i)
			c.ticket.Id, good.Id = id, id-1
			r.ticket(c.ticket)
			r.ticket(good)
			r.credit(1) // a fault costs none
			if _, f := r.answer(id); f.GetKind() != c.kind {
				t.Errorf("%v: %v", c.ticket, f)
			} else if c.kind == "corrupt" &&
				(f.GetFile() != "a.tif" || f.GetPart() != "tile 7" || f.GetOffset() != 1234) {
				t.Errorf("%v", f)
			}
			if b, f := r.answer(id - 1); f != nil || b.Rows != 4 {
				t.Errorf("after %v: %v", c.ticket, f)
			}
		}
	})
	h.check(t)
}

// TestTooManyNamedPositions: the positions and corners that tickets name are kept until they are answered, so a stream
// that names more than it may ends.
func TestTooManyNamedPositions(t *testing.T) {
	h := &house{samples: 100, elems: 4}
	l, target, dial := listenBuf(t)
	s := start(t, l, Options{Open: h.Open})
	for _, c := range []struct{ positions, corners int }{{1 << 15, 1 << 16}, {1 << 15, 0}, {0, 1 << 16}} {
		r := newRaw(t, 4, target, dial...)
		for i := range 3 {
			r.ticket(&chaskiv1.Ticket{Id: uint64(i), Handle: r.hash, Positions: make([]int64, c.positions),
				Corners: make([]uint32, c.corners)})
		}
		if _, err := r.stream.Recv(); status.Code(err) != codes.ResourceExhausted {
			t.Errorf("3 tickets of %d positions and %d corners: %v", c.positions, c.corners, err)
		}
	}
	s.stop(t)
	h.check(t)
}

func TestTooManyTickets(t *testing.T) {
	h := &house{samples: 100, elems: 4}
	l, target, dial := listenBuf(t)
	s := start(t, l, Options{Open: h.Open, MaxTickets: 10})
	r := newRaw(t, 4, target, dial...)
	for i := range 11 {
		r.ticket(&chaskiv1.Ticket{Id: uint64(i), Handle: r.hash, Count: 4, RowStride: 1})
	}
	if _, err := r.stream.Recv(); status.Code(err) != codes.ResourceExhausted {
		t.Error(err)
	}
	s.stop(t)
	h.check(t)
}

func TestRequestThatIsNothing(t *testing.T) {
	h := &house{samples: 100, elems: 4}
	l, target, dial := listenBuf(t)
	s := start(t, l, Options{Open: h.Open})
	r := newRaw(t, 4, target, dial...)
	if err := r.stream.Send(&chaskiv1.StreamRequest{}); err != nil {
		t.Fatal(err)
	}
	if _, err := r.stream.Recv(); status.Code(err) != codes.InvalidArgument {
		t.Error(err)
	}
	s.stop(t)
	h.check(t)
}

// TestCancelReleasesEverything: everything is released when streams end in any state: waiting for
// the engine, sending to a client that does not read, and after the connection is lost.
func TestCancelReleasesEverything(t *testing.T) {
	for name, cut := range map[string]func(cancel func(), conn *grpc.ClientConn){
		"cancel":     func(cancel func(), _ *grpc.ClientConn) { cancel() },
		"disconnect": func(_ func(), conn *grpc.ClientConn) { _ = conn.Close() },
	} {
		for _, gated := range []bool{false, true} {
			t.Run(fmt.Sprint(name, " gated ", gated), func(t *testing.T) {
				h := &house{samples: 1000, elems: 1 << 20}
				if gated {
					h.prepare = func(e *fakeEngine) { e.Gate = make(chan struct{}) }
				}
				l, target, _ := listenUnix(t)
				s := start(t, l, Options{Open: h.Open})
				conn, err := grpc.NewClient(target, grpc.WithTransportCredentials(insecure.NewCredentials()))
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close()
				stub := chaskiv1.NewChaskiClient(conn)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				b, err := json.Marshal(spec(4))
				if err != nil {
					t.Fatal(err)
				}
				d, err := stub.Describe(ctx, &chaskiv1.DescribeRequest{Spec: b})
				if err != nil {
					t.Fatal(err)
				}
				stream, err := stub.Stream(ctx)
				if err != nil {
					t.Fatal(err)
				}
				r := &raw{t, stub, stream, d.GetHandle()}
				for i := range 5 {
					r.ticket(&chaskiv1.Ticket{Id: uint64(i), Handle: r.hash, Count: 4, RowStride: 1})
				}
				r.credit(3)
				e := h.open[0]
				for e.Started.Load() < 3 {
					time.Sleep(time.Millisecond)
				}
				if !gated {
					if _, err := stream.Recv(); err != nil { // in the middle of a batch
						t.Fatal(err)
					}
				}
				cut(cancel, conn)
				// The end of the stream must release everything, not the stop of the server.
				eventually(t, "batches are not released", func() bool { return e.Live.Load() == 0 })
				s.stop(t)
				h.check(t)
			})
		}
	}
}

// TestServerRestart: a run goes on after its server is replaced by one that does not know the spec.
func TestServerRestart(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	listen := func() net.Listener {
		l, err := net.Listen("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	h := &house{samples: 200, elems: 5000}
	s := start(t, listen(), Options{Open: h.Open, PartBytes: 1 << 12})
	c, err := client.Dial("unix:"+path, client.Options{
		Logger: quiet, Backoff: 5 * time.Millisecond, Timeout: 5 * time.Minute,
	})
	if err != nil {
		t.Fatal(err)
	}
	run, err := c.Open(t.Context(), spec(10))
	if err != nil {
		t.Fatal(err)
	}
	l, err := run.Loader(batch.LoaderOptions{Epochs: 2})
	if err != nil {
		t.Fatal(err)
	}
	want := int64(0)
	for b, err := range l.All(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		checkBatch(t, b, h.elems)
		if at := int64(b.Epoch)*200 + b.First; at != want {
			t.Fatalf("position %d, want %d", at, want)
		}
		want += 10
		if want == 70 || want == 310 {
			s.stop(t)
			s = start(t, listen(), Options{Open: h.Open, PartBytes: 1 << 12})
		}
	}
	if want != 400 {
		t.Errorf("ended at %d", want)
	}
	l.Close()
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	s.stop(t)
	h.check(t)
}

// TestUnknownSpecIsDescribedAgain: a run goes on if the server forgets the dataset between two
// steps.
func TestUnknownSpecIsDescribedAgain(t *testing.T) {
	h := &house{samples: 200, elems: 50}
	l, target, dial := listenBuf(t)
	s := start(t, l, Options{Open: h.Open, MaxEngines: 1})
	c := dialTo(t, target, dial...)
	run, err := c.Open(t.Context(), spec(10))
	if err != nil {
		t.Fatal(err)
	}
	ld, err := run.Loader(batch.LoaderOptions{Epochs: 1, Prefetch: 1})
	if err != nil {
		t.Fatal(err)
	}
	steps := 0
	for b, err := range ld.All(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		checkBatch(t, b, h.elems)
		if b.First != int64(10*steps) {
			t.Errorf("step %d at %d", steps, b.First)
		}
		steps++
		if steps%5 == 0 {
			// Another spec takes the only slot, unless a ticket of this run holds it now.
			if _, err := c.Open(t.Context(), spec(20)); err != nil && fault.KindOf(err) != fault.Limit {
				t.Fatal(err)
			}
		}
	}
	if steps != 20 {
		t.Errorf("%d steps", steps)
	}
	ld.Close()
	s.stop(t)
	h.check(t)
}

// TestFaultComesToNext: the error about an unreadable sample names its place, and the same step can
// be tried again.
func TestFaultComesToNext(t *testing.T) {
	var broken sync.Map
	broken.Store(int64(15), true)
	h := &house{samples: 40, elems: 50}
	h.prepare = func(e *fakeEngine) {
		e.Fail = func(pos int64) error {
			if _, ok := broken.Load(pos); ok {
				return fault.WithFile(fault.At(fault.Corrupt, "tile 7", 1234, "checksum"), "a.tif")
			}
			return nil
		}
	}
	l, target, dial := listenBuf(t)
	s := start(t, l, Options{Open: h.Open})
	c := dialTo(t, target, dial...)
	run, err := c.Open(t.Context(), spec(10))
	if err != nil {
		t.Fatal(err)
	}
	ld, err := run.Loader(batch.LoaderOptions{Epochs: 1})
	if err != nil {
		t.Fatal(err)
	}
	for step := range 4 {
		b, err := ld.Next(t.Context())
		if step == 1 {
			var f *fault.Error
			if !errors.As(err, &f) || f.Kind != fault.Corrupt || f.File != "a.tif" || f.Part != "tile 7" ||
				f.Off != 1234 {
				t.Fatalf("%v", err)
			}
			if ld.State().Samples != 10 {
				t.Errorf("state %+v", ld.State())
			}
			broken.Clear()
			b, err = ld.Next(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
		if b.First != int64(10*step) {
			t.Errorf("step %d at %d", step, b.First)
		}
		b.Release()
	}
	ld.Close()
	s.stop(t)
	h.check(t)
}

func TestDescribeErrors(t *testing.T) {
	h := &house{samples: 40, elems: 50}
	l, target, dial := listenBuf(t)
	s := start(t, l, Options{Open: h.Open})
	c := dialTo(t, target, dial...)
	_, err := c.Open(t.Context(), loader.Spec{Source: "missing", BatchSize: 1})
	if fault.KindOf(err) != fault.NotFound || status.Code(err) != codes.NotFound {
		t.Error(err)
	}
	_, err = c.Open(t.Context(), loader.Spec{Source: "x", BatchSize: -1})
	if status.Code(err) != codes.InvalidArgument {
		t.Error(err)
	}
	s.stop(t)
	h.check(t)
}

// TestDescribeTellsTheLimitOfARank: the limit is that of the request, also where the server knows the spec already.
func TestDescribeTellsTheLimitOfARank(t *testing.T) {
	h := &house{samples: 100, elems: 4}
	l, target, dial := listenBuf(t)
	s := start(t, l, Options{Open: h.Open})
	conn := dialed(t, target, dial)
	defer conn.Close()
	c := chaskiv1.NewChaskiClient(conn)
	for _, k := range []struct {
		limit       string
		rank, world uint32
		want        int64 // -1: no limit, -2: an error
	}{
		{`{"rate":0.5}`, 0, 3, 25}, // rows 0 and 3 of every four: half of 50
		{`{"rate":0.5}`, 1, 3, 12},
		{`{"rate":0.5,"count":2}`, 1, 3, 2},
		{`null`, 1, 3, -1},
		{`{"count":2}`, 0, 0, -1},
		{`{"count":2}`, 3, 3, -2},
	} {
		text := `{"source":"x","batch_size":4,"bad_samples":"skip","bad_limit":` + k.limit + `}`
		d, err := c.Describe(t.Context(), &chaskiv1.DescribeRequest{
			Spec: []byte(text), Rank: k.rank, WorldSize: k.world,
		})
		got := d.GetBadLimit()
		switch {
		case status.Code(err) == codes.InvalidArgument:
			got = -2
		case err != nil:
			t.Fatal(err)
		case d.BadLimit == nil:
			got = -1
		}
		if got != k.want {
			t.Errorf("%s of rank %d of %d: %d, want %d", k.limit, k.rank, k.world, got, k.want)
		}
	}
	s.stop(t)
	h.check(t)
}

// TestNoRootsServeNothing: without roots, the real engine serves nothing.
func TestNoRootsServeNothing(t *testing.T) {
	l, target, dial := listenBuf(t)
	s := start(t, l, Options{Roots: []string{}})
	c := dialTo(t, target, dial...)
	_, err := c.Open(t.Context(), loader.Spec{Source: t.TempDir(), BatchSize: 1})
	if fault.KindOf(err) != fault.NotFound {
		t.Error(err)
	}
	if _, err := c.Info(t.Context(), t.TempDir()); fault.KindOf(err) != fault.NotFound {
		t.Error(err)
	}
	s.stop(t)
}

// TestEnginesAreBounded: the server keeps a bounded number of specs open.
func TestEnginesAreBounded(t *testing.T) {
	h := &house{samples: 40, elems: 50}
	l, target, dial := listenBuf(t)
	s := start(t, l, Options{Open: h.Open, MaxEngines: 3})
	c := dialTo(t, target, dial...)
	for g := 1; g <= 10; g++ {
		remote := spec(g)
		remote.Source = "s3://x/y"
		for range 2 { // the second is answered from the first
			if _, err := c.Open(t.Context(), remote); err != nil {
				t.Fatal(err)
			}
		}
	}
	if len(h.open) != 10 {
		t.Errorf("%d datasets were opened for 10 specs", len(h.open))
	}
	live := 0
	for _, e := range h.open {
		if !e.Closed.Load() {
			live++
		}
	}
	if live != 3 {
		t.Errorf("%d datasets are open, at most 3", live)
	}
	s.stop(t)
	h.check(t)
}

func TestHealth(t *testing.T) {
	h := &house{samples: 40, elems: 50}
	l, target, dial := listenBuf(t)
	s := start(t, l, Options{Open: h.Open})
	conn := dialed(t, target, dial)
	defer conn.Close()
	check := func() healthpb.HealthCheckResponse_ServingStatus {
		r, err := healthpb.NewHealthClient(conn).Check(t.Context(),
			&healthpb.HealthCheckRequest{Service: "chaski.v1.Chaski"}, grpc.WaitForReady(true))
		if err != nil {
			t.Fatal(err)
		}
		return r.GetStatus()
	}
	if got := check(); got != healthpb.HealthCheckResponse_SERVING {
		t.Error(got)
	}
	s.server.health.Shutdown()
	if got := check(); got != healthpb.HealthCheckResponse_NOT_SERVING {
		t.Error(got)
	}
	s.stop(t)
}

// FuzzTicket: any ticket gets one answer, and the stream goes on.
func FuzzTicket(f *testing.F) {
	h := &house{samples: 100, elems: 4}
	l := bufconn.Listen(1 << 16)
	s := start(f, l, Options{Open: h.Open})
	f.Cleanup(func() { s.stop(f); h.check(f) })
	f.Add(uint64(1), true, uint64(0), int64(0), uint32(4), uint32(0), uint32(1), false)
	f.Add(uint64(math.MaxUint64), false, uint64(math.MaxUint64), int64(-1), uint32(math.MaxUint32), uint32(9),
		uint32(0), true)
	f.Add(uint64(1), true, uint64(0), int64(math.MaxInt64), uint32(math.MaxUint32), uint32(math.MaxUint32),
		uint32(math.MaxUint32), true)
	f.Fuzz(func(t *testing.T, id uint64, known bool, epoch uint64, first int64,
		count, start, stride uint32, native bool) {
		r := newRaw(t, 4, "passthrough:buf",
			grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return l.DialContext(ctx) }))
		x := &chaskiv1.Ticket{
			Id: id, Handle: r.hash, Epoch: epoch, First: first, Count: count,
			RowStart: start, RowStride: stride, Native: native,
		}
		if !known {
			x.Handle = ""
		}
		r.ticket(x)
		r.ticket(&chaskiv1.Ticket{Id: id + 1, Handle: r.hash, Count: 4, RowStride: 1})
		r.credit(2)
		if b, f := r.answer(id); f == nil {
			checkBatch(t, b, 4)
		}
		if b, f := r.answer(id + 1); f != nil || b.Rows != 4 {
			t.Error(f)
		}
	})
}

// TestStopCutsStalledClients: stopping a server ends the stream of a client that has credits and
// does not read.
func TestStopCutsStalledClients(t *testing.T) {
	h := &house{samples: 1000, elems: 1 << 20}
	l, target, _ := listenUnix(t)
	s := start(t, l, Options{Open: h.Open, DrainTimeout: 50 * time.Millisecond})
	r := newRaw(t, 4, target)
	r.ticket(&chaskiv1.Ticket{Handle: r.hash, Count: 4, RowStride: 1})
	r.credit(1)
	if _, err := r.stream.Recv(); err != nil {
		t.Fatal(err)
	}
	s.stop(t)
	h.check(t)
}

// TestStopEndsIdleStreams: stopping a server ends streams that wait for tickets and streams that
// wait for the engine.
func TestStopEndsIdleStreams(t *testing.T) {
	h := &house{samples: 1000, elems: 1, prepare: func(e *fakeEngine) { e.Gate = make(chan struct{}) }}
	l, target, dial := listenBuf(t)
	s := start(t, l, Options{Open: h.Open, DrainTimeout: time.Minute})
	idle, waiting := newRaw(t, 4, target, dial...), newRaw(t, 4, target, dial...)
	waiting.ticket(&chaskiv1.Ticket{Handle: waiting.hash, Count: 4, RowStride: 1})
	waiting.credit(1)
	last := h.open[len(h.open)-1] // the second client's, whose local data were looked at anew
	for last.Started.Load() == 0 {
		time.Sleep(time.Millisecond)
	}
	s.stop(t)
	for _, r := range []*raw{idle, waiting} {
		if _, err := r.stream.Recv(); status.Code(err) != codes.Unavailable {
			t.Error(err)
		}
	}
	h.check(t)
}

// TestStalledClientsAreCut: a client may hold batches that it requested without reading them for a
// bounded time only.
func TestStalledClientsAreCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &house{samples: 1000, elems: 1 << 20}
		l, target, dial := listenBuf(t)
		s := start(t, l, Options{Open: h.Open, SendTimeout: time.Minute})
		r := newRaw(t, 4, target, dial...)
		for range 3 {
			r.ticket(&chaskiv1.Ticket{Handle: r.hash, Count: 4, RowStride: 1})
		}
		r.credit(3)
		synctest.Wait()
		e := h.open[0]
		if started, live := e.Started.Load(), e.Live.Load(); started != 3 || live != 3 {
			t.Errorf("%d batches started, %d are held", started, live)
		}
		// All batches come back after the time, except the one that is half sent: it comes back when the client reads
		// on.
		time.Sleep(time.Minute + time.Second)
		if n := e.Live.Load(); n > 1 {
			t.Errorf("%d batches are not released", n)
		}
		for {
			if _, err := r.stream.Recv(); err != nil {
				if status.Code(err) != codes.DeadlineExceeded {
					t.Error(err)
				}
				break
			}
		}
		synctest.Wait()
		if n := e.Live.Load(); n > 0 {
			t.Errorf("%d batches are not released", n)
		}
		s.stop(t)
		h.check(t)
	})
}

// TestChangedDataAreNoticed: a dataset that has grown is described as another run, and tickets of
// the first run are still served.
func TestChangedDataAreNoticed(t *testing.T) {
	h := &house{samples: 40, elems: 5}
	l, target, dial := listenBuf(t)
	s := start(t, l, Options{Open: h.Open, Reuse: time.Nanosecond})
	c := dialTo(t, target, dial...)
	first, err := c.Open(t.Context(), spec(10))
	if err != nil {
		t.Fatal(err)
	}
	same, err := c.Open(t.Context(), spec(10))
	if err != nil || same.Hash() != first.Hash() {
		t.Errorf("the same data: %v, %v", same, err)
	}
	h.mu.Lock()
	h.samples = 50
	h.mu.Unlock()
	second, err := c.Open(t.Context(), spec(10))
	if err != nil || second.Len() != 50 || second.Hash() == first.Hash() {
		t.Errorf("grown data: %v, %v", second, err)
	}
	for _, r := range []*client.Run{first, second} {
		ld, err := r.Loader(batch.LoaderOptions{Epochs: 1})
		if err != nil {
			t.Fatal(err)
		}
		n := int64(0)
		for b, err := range ld.All(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			checkBatch(t, b, h.elems)
			n++
		}
		if n != r.Steps() {
			t.Errorf("%d steps of %d", n, r.Steps())
		}
		ld.Close()
	}
	s.stop(t)
	h.check(t)
}

// TestMetrics: the server's counts agree with what a client received.
func TestMetrics(t *testing.T) {
	h := &house{samples: 40, elems: 500}
	reg := prometheus.NewRegistry()
	l, target, dial := listenBuf(t)
	s := start(t, l, Options{Open: h.Open, Metrics: reg})
	r := newRaw(t, 10, target, dial...)
	for i := range 4 {
		r.ticket(&chaskiv1.Ticket{Handle: r.hash, First: int64(10 * i), Count: 10, RowStride: 1})
	}
	r.ticket(&chaskiv1.Ticket{Handle: "?"})
	r.credit(4)
	for range 4 {
		if b, f := r.answer(0); f != nil || b.Rows != 10 {
			t.Fatal(f)
		}
	}
	if _, f := r.answer(0); f == nil {
		t.Fatal("no fault")
	}
	got := map[string]float64{}
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		m := f.GetMetric()[0]
		got[f.GetName()] = m.GetCounter().GetValue() + m.GetGauge().GetValue() +
			float64(m.GetHistogram().GetSampleCount())
	}
	for name, want := range map[string]float64{
		"chaski_server_streams": 1, "chaski_server_datasets": 1, "chaski_server_batches_total": 4,
		"chaski_server_faults_total": 1, "chaski_server_describe_seconds": 1, "chaski_server_batch_wait_seconds": 4,
	} {
		if got[name] != want {
			t.Errorf("%s is %v, want %v", name, got[name], want)
		}
	}
	if got["chaski_rank_batches_total"] != 4 {
		t.Errorf("%v batches of rank 0", got["chaski_rank_batches_total"])
	}
	listed := map[string]string{}
	for _, m := range Metrics {
		listed[m.Name] = m.Type
	}
	for _, f := range families {
		if kind := strings.ToLower(f.GetType().String()); listed[f.GetName()] != kind {
			t.Errorf("%s is a %s, and in the list %q", f.GetName(), kind, listed[f.GetName()])
		}
	}
	if b := got["chaski_server_payload_bytes_total"]; b < 4*10*500*4 || b > 5*10*500*4 {
		t.Errorf("%v bytes", b)
	}
	if _, err := New(Options{Metrics: reg}); err == nil {
		t.Error("two servers count in one registry under the same names")
	}
	s.stop(t)
	h.check(t)
}

func TestTooManyStreams(t *testing.T) {
	h := &house{samples: 40, elems: 5}
	l, target, dial := listenBuf(t)
	s := start(t, l, Options{Open: h.Open, MaxStreams: 1})
	r := newRaw(t, 10, target, dial...)
	r.ticket(&chaskiv1.Ticket{Id: 1, Handle: r.hash, Count: 10, RowStride: 1})
	r.credit(1)
	if _, f := r.answer(1); f != nil {
		t.Fatal(f)
	}
	second, err := r.stub.Stream(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := second.Recv(); status.Code(err) != codes.ResourceExhausted {
		t.Error(err)
	}
	if err := r.stream.CloseSend(); err != nil {
		t.Fatal(err)
	}
	if _, err := r.stream.Recv(); !errors.Is(err, io.EOF) {
		t.Error(err)
	}
	s.stop(t)
	h.check(t)
}

func TestOptionsAreChecked(t *testing.T) {
	for _, o := range []Options{
		{PartBytes: -1},
		{PartBytes: MaxPartBytes + 1},
		{MaxEngines: -1},
		{MaxStreams: -1},
		{MaxTickets: -1},
		{MaxReads: -1},
		{MaxReadBytes: -1},
		{SendTimeout: -1},
	} {
		if _, err := New(o); err == nil {
			t.Errorf("%+v is taken", o)
		}
	}
}

// TestEqualDatasetsInTwoPlaces: data with equal names and sizes in two places have equal spec
// hashes, and tickets get the data of their own place.
func TestEqualDatasetsInTwoPlaces(t *testing.T) {
	s := newEngines(Options{
		MaxEngines: 4, MaxOpenings: 4, MaxClientOpenings: 4, Reuse: time.Minute, OpenTimeout: time.Minute,
		Logger: slog.New(slog.DiscardHandler),
		Open: func(_ context.Context, spec loader.Spec, _ loader.Options) (Engine, error) {
			return &placed{source: spec.Source}, nil
		},
	})
	defer s.shut()
	var entries []*datasetEntry
	v := &fileView{}
	for _, source := range []string{"pre", "post", "pre"} {
		e, err := s.open(context.Background(), v, loader.Spec{Source: source, BatchSize: 1}, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		entries = append(entries, e)
	}
	if entries[0] != entries[2] || entries[0] == entries[1] {
		t.Fatal("two places share a dataset, or one has two")
	}
	for i, source := range []string{"pre", "post", "pre"} {
		e, ok := s.get(v, entries[i].handle)
		if !ok || e.engine.Spec().Source != source {
			t.Errorf("the handle of %s gives another place", source)
		}
		s.put(e)
		s.put(entries[i])
	}
}

// placed is an engine that knows its source only.
type placed struct {
	Engine
	source string
}

func (p *placed) Hash() string      { return "same" }
func (p *placed) Spec() loader.Spec { return loader.Spec{Source: p.source} }
func (p *placed) Close() error      { return nil }

// trimmed is an engine that reports when its memory is freed.
type trimmed struct {
	placed
	trims chan struct{}
}

func (e *trimmed) Trim() { e.trims <- struct{}{} }

// TestMemoryIsKeptBetweenEpochs: memory of batches outlives a pause between two epochs, and is
// freed after a longer one. Engines in use, or closed, are not trimmed.
func TestMemoryIsKeptBetweenEpochs(t *testing.T) {
	for _, c := range []struct {
		after time.Duration
		again bool // it is in use again
		trims bool
	}{{time.Hour, false, false}, {time.Millisecond, false, true}, {time.Hour, true, false}} {
		engine := &trimmed{trims: make(chan struct{}, 8)}
		s := newEngines(Options{
			MaxEngines: 4, MaxOpenings: 4, MaxClientOpenings: 4, Reuse: time.Minute, OpenTimeout: time.Minute,
			TrimAfter: c.after, Logger: slog.New(slog.DiscardHandler),
			Open: func(context.Context, loader.Spec, loader.Options) (Engine, error) { return engine, nil },
		})
		e, err := s.open(t.Context(), &fileView{}, loader.Spec{Source: "x", BatchSize: 1}, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for range 3 { // tickets, one after the other
			s.put(e)
			e, _ = s.get(e.view, e.handle)
		}
		if !c.again {
			s.put(e)
		}
		if c.trims {
			<-engine.trims
		}
		s.shut()
		if n := len(engine.trims); n > 0 && !c.trims {
			t.Errorf("%+v: trimmed %d times", c, n)
		}
		if e.trim.Stop() && !c.again {
			t.Errorf("%+v: a trim was still to come", c)
		}
		if c.again {
			s.put(e)
		}
	}
}

// heapMemory is memory of the Go heap.
type heapMemory struct{}

func (heapMemory) Take(n int) batch.Buffer { return batch.NewHeap(n) }
func (heapMemory) Give(batch.Buffer, bool) {}
