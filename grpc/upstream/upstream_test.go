package upstream_test

import (
	"bytes"
	"context"
	"log/slog"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/chaski-eo/chaski/grpc/internal/wire"
	"github.com/chaski-eo/chaski/grpc/server"
	"github.com/chaski-eo/chaski/grpc/upstream"
	"github.com/chaski-eo/chaski/loader"
	"github.com/chaski-eo/chaski/loader/batch"
	chaskiv1 "github.com/chaski-eo/chaski/proto/chaski/v1"
	"github.com/chaski-eo/chaski/shuffle/steps"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var quiet = slog.New(slog.DiscardHandler)

// coast is a real chip: 6 bands of 640 by 640 uint16, nodata 0.
const coast = "../../testdata/demo/coast.tif"

// serve runs s as a server until the test ends or stop is called, and returns its address.
func serve(t *testing.T, s func(context.Context, net.Listener) error) (target string, stop func()) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s(ctx, l) }()
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(stop)
	return "unix:" + path, stop
}

func realServer(t *testing.T, o server.Options) (target string, stop func()) {
	t.Helper()
	root, err := filepath.Abs(filepath.Dir(coast))
	if err != nil {
		t.Fatal(err)
	}
	o.Roots, o.Logger, o.DrainTimeout = []string{root}, quiet, time.Second
	s, err := server.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return serve(t, s.Serve)
}

func spec(t *testing.T) loader.Spec {
	t.Helper()
	path, err := filepath.Abs(coast)
	if err != nil {
		t.Fatal(err)
	}
	s, err := loader.ParseSpec([]byte(`{"source": "` + path + `", "batch_size": 4, "shuffle": true, "seed": 3,
		"fields": [{"name": "image", "dtype": "float32", "normalize": {"scale": [0.001], "offset": [-1]}},
			{"name": "path", "kind": "text"}],
		"sampler": {"kind": "random_window", "height": 48, "width": 32, "per_asset": 40}}`))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// nowhere is a spec that scripted servers pretend to know.
var nowhere = loader.Spec{Source: "/x", BatchSize: 4}

// counted is an allocator that counts buffers that were not freed.
type counted struct {
	mu   sync.Mutex
	live map[*byte]bool
}

type buffer struct {
	batch.Buffer
	of *counted
}

func (c *counted) alloc(n int) batch.Buffer {
	b := batch.NewHeap(n)
	c.mu.Lock()
	defer c.mu.Unlock()
	if n > 0 {
		c.live[&b.Bytes()[0]] = true
	}
	return buffer{b, c}
}

func (b buffer) Free() {
	b.of.mu.Lock()
	defer b.of.mu.Unlock()
	if len(b.Bytes()) > 0 {
		delete(b.of.live, &b.Bytes()[0])
	}
}

func open(t *testing.T, s loader.Spec, o loader.Options, u *chaskiv1.Upstream) server.Engine {
	t.Helper()
	o.Logger = quiet
	e, err := upstream.Open(t.Context(), s, u, s.BatchSize, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return e
}

func to(targets ...string) *chaskiv1.Upstream {
	return &chaskiv1.Upstream{
		Targets: targets, TimeoutSeconds: 20, PatienceSeconds: 0.3, Prefetch: 2, PrefetchBytes: 1 << 20,
		MaxBatchBytes: 1 << 24,
	}
}

// TestSameBatchesAsInProcess: every batch of an epoch equals that of an engine in this process,
// with one server and with two, converted on either side, and while one of the servers stops.
func TestSameBatchesAsInProcess(t *testing.T) {
	s := spec(t)
	local, err := loader.Open(t.Context(), s, loader.Options{Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	defer local.Close()
	one, _ := realServer(t, server.Options{})
	two, stop := realServer(t, server.Options{})
	for _, c := range []struct {
		name   string
		native bool
		u      *chaskiv1.Upstream
		stop   func()
	}{
		{"one", false, to(one), nil}, {"one native", true, to(one), nil},
		{"two native", true, to(one, two), nil}, {"one stops", true, to(two, one), stop},
	} {
		t.Run(c.name, func(t *testing.T) {
			memory := &counted{live: map[*byte]bool{}}
			e := open(t, s, loader.Options{Alloc: memory.alloc}, c.u)
			if e.Hash() != local.Hash() || e.Fingerprint() != local.Fingerprint() || e.Len() != local.Len() ||
				len(e.Fields()) != len(local.Fields()) {
				t.Fatalf("%s, %d samples; here %s, %d", e.Hash(), e.Len(), local.Hash(), local.Len())
			}
			q, err := e.(server.Sequencer).Sequence(nil)
			if err != nil {
				t.Fatal(err)
			}
			defer q.Close() // a second call does nothing
			var tickets []steps.Ticket
			for step := range local.Steps() {
				tickets = append(tickets, steps.StepTicket(1, step, s.BatchSize, 0, 1))
				q.Add(tickets[step], c.native)
			}
			for i, ticket := range tickets {
				if i == 2 && c.stop != nil {
					c.stop()
				}
				got, err := q.Next(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				want, err := local.Start(t.Context(), ticket, false).Wait(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				same(t, got, want)
				want.Release()
				got.Release()
			}
			q.Close()
			e.(interface{ Trim() }).Trim()
			if len(memory.live) != 0 {
				t.Errorf("%d buffers are not freed", len(memory.live))
			}
		})
	}
}

func same(t *testing.T, got, want *batch.Batch) {
	t.Helper()
	if got.Epoch != want.Epoch || got.First != want.First || len(got.Tensors) != len(want.Tensors) {
		t.Fatalf("batch at %d of epoch %d with %d tensors", got.First, got.Epoch, len(got.Tensors))
	}
	for i := range want.Tensors {
		g, w := got.Tensors[i], want.Tensors[i]
		if g.Convert != nil || g.DType != w.DType ||
			!bytes.Equal(g.Data, w.Data) || !bytes.Equal(g.Offsets, w.Offsets) {
			t.Fatalf("tensor %s of position %d differs", g.Name, got.First)
		}
	}
}

// stream is the server's side of a call.
type stream = grpc.BidiStreamingServer[chaskiv1.StreamRequest, chaskiv1.StreamReply]

// scripted is a server that answers streams as a test says.
type scripted struct {
	chaskiv1.UnimplementedChaskiServer
	hash   func(n int) string
	asked  int
	stream func(stream, *chaskiv1.Ticket) error
}

func (s *scripted) Describe(_ context.Context, r *chaskiv1.DescribeRequest) (*chaskiv1.DescribeReply, error) {
	s.asked++
	if s.hash == nil {
		return nil, status.Error(codes.InvalidArgument, "batch_size is 0: it must be at least 1")
	}
	return &chaskiv1.DescribeReply{SpecHash: s.hash(s.asked), Handle: "h", Samples: 100, Spec: r.GetSpec()}, nil
}

func (s *scripted) Stream(g stream) error {
	r, err := g.Recv()
	if err != nil {
		return err
	}
	return s.stream(g, r.GetTicket())
}

func (s *scripted) serve(t *testing.T) string {
	t.Helper()
	target, _ := serve(t, func(ctx context.Context, l net.Listener) error {
		g := grpc.NewServer()
		chaskiv1.RegisterChaskiServer(g, s)
		stop := context.AfterFunc(ctx, g.Stop)
		defer stop()
		return g.Serve(l)
	})
	return target
}

func always(string) func(int) string { return func(int) string { return "hash" } }

// TestErrorsKeepTheirFields: a server's error about a file and a sample arrives unchanged, and an
// error about a server has a kind that says what to do.
func TestErrorsKeepTheirFields(t *testing.T) {
	said := &chaskiv1.Fault{
		Kind: "corrupt", File: "a.tif", Part: "tile 3", Offset: 99, Message: "a.tif: tile 3 at 99: cut short: corrupt",
		Sample: &chaskiv1.FaultSample{Source: "west", Epoch: 1, Position: 8, Sample: 5, Row: 6, Id: "x"},
	}
	refused := &chaskiv1.Fault{Kind: "unavailable", File: "s3://b/c", Message: "s3://b/c: refused"}
	silent := func(g stream, _ *chaskiv1.Ticket) error {
		<-g.Context().Done()
		return nil
	}
	unasked := func(g stream, ticket *chaskiv1.Ticket) error {
		p := &chaskiv1.Part{Ticket: ticket.GetId() + 1, Total: 1, Data: []byte{0}}
		return g.Send(&chaskiv1.StreamReply{Kind: &chaskiv1.StreamReply_Part{Part: p}})
	}
	others := func(n int) string { return strings.Repeat("x", n) }
	fault := func(f *chaskiv1.Fault) func(stream, *chaskiv1.Ticket) error {
		return func(g stream, ticket *chaskiv1.Ticket) error {
			f.Ticket = ticket.GetId()
			if err := g.Send(&chaskiv1.StreamReply{Kind: &chaskiv1.StreamReply_Fault{Fault: f}}); err != nil {
				return err
			}
			<-g.Context().Done()
			return nil
		}
	}
	away := func(stream, *chaskiv1.Ticket) error {
		return status.Error(codes.Unavailable, "going down")
	}
	for _, c := range []struct {
		name, kind, words string
		s                 *scripted
		timeout           float64
	}{
		{"a file", "corrupt", said.Message, &scripted{hash: always(""), stream: fault(said)}, 300},
		{"files of a third server", "unavailable", "s3://b/c",
			&scripted{hash: always(""), stream: fault(refused)}, 300},
		{"it is gone", "unavailable", "going down", &scripted{hash: always(""), stream: away}, 300},
		{"it is silent", "deadline", "no answer", &scripted{hash: always(""), stream: silent}, 0.05},
		{"other data", "state", "other data", &scripted{hash: others, stream: away}, 300},
		{"what was not asked", "payload", "protocol", &scripted{hash: always(""), stream: unasked}, 300},
	} {
		t.Run(c.name, func(t *testing.T) {
			u := to(c.s.serve(t))
			u.TimeoutSeconds = c.timeout
			ask := func() *chaskiv1.Fault {
				e, err := upstream.Open(t.Context(), nowhere, u, nowhere.BatchSize, loader.Options{Logger: quiet})
				if err != nil {
					return wire.NewFault(7, err)
				}
				_, err = first(t, e, 4)
				if err := e.Close(); err != nil {
					t.Error(err)
				}
				return wire.NewFault(7, err)
			}
			f := ask()
			// On a busy machine not even the connection is there in 50 ms.
			for ; u.TimeoutSeconds < 20 && !strings.Contains(f.GetMessage(), c.words); f = ask() {
				u.TimeoutSeconds *= 10
			}
			if f.GetKind() != c.kind || !strings.Contains(f.GetMessage(), c.words) || f.GetTicket() != 7 {
				t.Fatalf("%v", f)
			}
			if c.kind == "corrupt" && (f.GetFile() != said.File || f.GetPart() != said.Part ||
				f.GetOffset() != said.Offset || f.GetSample().GetSource() != "west" || f.GetSample().GetRow() != 6) {
				t.Errorf("%v", f)
			}
		})
	}
	t.Run("the spec", func(t *testing.T) {
		_, err := upstream.Open(t.Context(), nowhere, to((&scripted{}).serve(t)), 4, loader.Options{Logger: quiet})
		f := wire.NewFault(0, err)
		if f.GetKind() != "spec" || !strings.HasPrefix(f.GetMessage(), "batch_size is 0") {
			t.Errorf("%v", f)
		}
	})
	t.Run("nobody is there", func(t *testing.T) {
		_, err := upstream.Open(t.Context(), nowhere, to("unix:"+t.TempDir()+"/none"), 4, loader.Options{Logger: quiet})
		if f := wire.NewFault(0, err); f.GetKind() != "unavailable" {
			t.Errorf("%v", f)
		}
	})
}

// TestServerWithoutSharedMemoryIsLeftOut: if one of two servers cannot share memory although the
// user requires it, the other does the work.
func TestServerWithoutSharedMemoryIsLeftOut(t *testing.T) {
	with, _ := realServer(t, server.Options{SharedMemory: true})
	without, _ := realServer(t, server.Options{})
	for _, c := range []struct {
		targets []string
		kind    string
	}{
		{[]string{without, with}, ""},
		{[]string{without}, "unavailable"},
		{[]string{without, without + "/../s"}, "unavailable"},
	} {
		u := to(c.targets...)
		u.Transport = "shm"
		s := spec(t)
		e := open(t, s, loader.Options{}, u)
		b, err := first(t, e, s.BatchSize)
		got := ""
		if err == nil {
			b.Release()
		} else {
			got = wire.NewFault(0, err).GetKind()
		}
		if got != c.kind {
			t.Errorf("%v: %q, %v", c.targets, got, err)
		}
	}
}

// TestUpstreamMustBeAllowed: a server is a client of other servers only if its options allow it.
func TestUpstreamMustBeAllowed(t *testing.T) {
	target, _ := realServer(t, server.Options{})
	conn, err := grpc.NewClient(target, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, err = chaskiv1.NewChaskiClient(conn).Describe(t.Context(), &chaskiv1.DescribeRequest{
		Spec: []byte(`{"source": "/x", "batch_size": 1}`), Upstream: to("unix:/x"),
	})
	if status.Code(err) != codes.Unimplemented {
		t.Error(err)
	}
}

// first returns the batch of the first step.
func first(t *testing.T, e server.Engine, rows int) (*batch.Batch, error) {
	t.Helper()
	sequence, err := e.(server.Sequencer).Sequence(nil)
	if err != nil {
		return nil, err
	}
	defer sequence.Close()
	sequence.Add(steps.StepTicket(0, 0, rows, 0, 1), true)
	return sequence.Next(t.Context())
}
