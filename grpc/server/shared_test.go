package server

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/chaski-eo/chaski/grpc/client"
	"github.com/chaski-eo/chaski/internal/shm"
	"github.com/chaski-eo/chaski/loader"
	"github.com/chaski-eo/chaski/loader/batch"
	chaskiv1 "github.com/chaski-eo/chaski/proto/chaski/v1"
)

// Batches of 8 rows of elems elements have 32 KiB: enough to be leased.
const sharedElems, sharedRows = 1024, 8

func startShared(t *testing.T, h *house, o Options) (*running, string, []grpc.DialOption) {
	t.Helper()
	if !shm.Supported {
		t.Skip("no shared memory on this system")
	}
	l, target, dial := listenBuf(t)
	o.Open, o.SharedMemory = h.Open, true
	return start(t, l, o), target, dial
}

func dialShared(t *testing.T, transport client.Transport, target string, dial ...grpc.DialOption) *client.Client {
	t.Helper()
	c, err := client.Dial(target, client.Options{
		Dial: dial, Logger: quiet, Transport: transport,
		Timeout: 5 * time.Minute, Backoff: time.Millisecond,
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// eventually waits until f holds.
func eventually(t *testing.T, what string, f func() bool) {
	t.Helper()
	deadline := time.Now().Add(5 * time.Minute)
	for i := 1; !f(); i++ {
		if time.Now().After(deadline) {
			t.Fatal("in vain: " + what)
		}
		if i%1000 == 0 {
			runtime.GC() // finds what grpc forgot (lease.Hold)
		}
		time.Sleep(time.Millisecond)
	}
}

func nothingLeased(t *testing.T, r *running) {
	t.Helper()
	eventually(t, "all leases back", func() bool {
		leases, _, n := r.server.shared.figures()
		return leases == 0 && n == 0
	})
}

// files counts the open files of this process.
func files(t *testing.T) int {
	t.Helper()
	e, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip(err)
	}
	return len(e)
}

func openLoader(t *testing.T, c *client.Client, o batch.LoaderOptions) *batch.Loader {
	t.Helper()
	run, err := c.Open(t.Context(), spec(sharedRows))
	if err != nil {
		t.Fatal(err)
	}
	l, err := run.Loader(o)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// TestTransportsGiveTheSameBatches: both transports give the same bytes in two epochs, and leave
// neither files nor leases open.
func TestTransportsGiveTheSameBatches(t *testing.T) {
	h := &house{samples: 103, elems: sharedElems}
	before := files(t)
	r, target, dial := startShared(t, h, Options{})
	var loaders []*batch.Loader
	var clients []*client.Client
	for _, transport := range []client.Transport{client.Shm, client.GRPC} {
		c := dialShared(t, transport, target, dial...)
		clients = append(clients, c)
		loaders = append(loaders, openLoader(t, c, batch.LoaderOptions{Epochs: 2}))
	}
	steps := 0
	for ; ; steps++ {
		a, err := loaders[0].Next(t.Context())
		b, err2 := loaders[1].Next(t.Context())
		if errors.Is(err, io.EOF) && errors.Is(err2, io.EOF) {
			break
		}
		if err != nil || err2 != nil {
			t.Fatal(err, err2)
		}
		for i := range a.Tensors {
			if !bytes.Equal(a.Tensors[i].Data, b.Tensors[i].Data) ||
				!bytes.Equal(a.Tensors[i].Offsets, b.Tensors[i].Offsets) {
				t.Errorf("step %d: %s differs", steps, a.Tensors[i].Name)
			}
		}
		checkBatch(t, a, h.elems)
		a.Release()
		b.Release()
	}
	if steps != 26 {
		t.Errorf("%d steps", steps)
	}
	// Who asks for shared memory gets it, the other does not. A lease is counted once it is sent.
	eventually(t, "26 leases", func() bool { return lentBatches(t, r) == 26 })
	for i := range loaders {
		loaders[i].Close()
		if err := clients[i].Close(); err != nil {
			t.Error(err)
		}
	}
	nothingLeased(t, r)
	r.stop(t)
	h.check(t)
	eventually(t, "all files closed", func() bool { return files(t) <= before })
}

func lentBatches(t *testing.T, r *running) float64 {
	t.Helper()
	var m dto.Metric
	if err := r.server.metrics.counters["chaski_server_leases_total"].WithLabelValues().Write(&m); err != nil {
		t.Fatal(err)
	}
	return m.GetCounter().GetValue()
}

// TestKeepingAllBatches: a client may keep all batches. Leases stay within the memory and leave room for one more
// batch, and the rest comes over gRPC.
func TestKeepingAllBatches(t *testing.T) {
	h := &house{samples: 200, elems: sharedElems}
	const one = 4 * sharedElems * sharedRows
	srv, target, dial := startShared(t, h, Options{Loader: loader.Options{MemoryBytes: 4*one + 100}})
	r, _, _ := newSharedRaw(t, target, dial...)
	leases := 0
	for id := range uint64(25) {
		first := int64(id * sharedRows)
		r.ticket(&chaskiv1.Ticket{Id: id, Handle: r.hash, First: first, Count: sharedRows, RowStride: 1})
		r.credit(1)
		if leases < 3 {
			if m, err := r.stream.Recv(); err != nil || m.GetLease() == nil {
				t.Fatal(m, err)
			}
			leases++
			continue
		}
		b, f := r.answer(id)
		if f != nil {
			t.Fatal(f)
		}
		checkBatch(t, b, h.elems)
		if n, _, bytes := srv.server.shared.figures(); n > 3 || bytes > 3*one {
			t.Errorf("%d leases of %d bytes in %d", n, bytes, 4*one)
		}
	}
	if n := lentBatches(t, srv); n != 3 {
		t.Errorf("%v leased", n)
	}
	srv.stop(t)
	h.check(t)
}

// TestServerRestartWithLeases: a run goes on at a new server behind the same target while it holds
// batches of the old one.
func TestServerRestartWithLeases(t *testing.T) {
	h := &house{samples: 200, elems: sharedElems}
	if !shm.Supported {
		t.Skip("no shared memory on this system")
	}
	path := filepath.Join(t.TempDir(), "s")
	listen := func() net.Listener {
		l, err := net.Listen("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	o := Options{Open: h.Open, SharedMemory: true, DrainTimeout: time.Millisecond}
	r := start(t, listen(), o)
	c := dialShared(t, client.Shm, "unix:"+path)
	l := openLoader(t, c, batch.LoaderOptions{Epochs: 1})
	var kept []*batch.Batch
	for step := range 25 {
		if step == 10 {
			r.stop(t)
			r = start(t, listen(), o)
		}
		b, err := l.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if b.First != int64(step*sharedRows) {
			t.Errorf("step %d starts at %d", step, b.First)
		}
		kept = append(kept, b)
	}
	for _, b := range kept {
		checkBatch(t, b, h.elems)
		b.Release()
	}
	if lentBatches(t, r) == 0 {
		t.Error("the new server leased nothing")
	}
	l.Close()
	nothingLeased(t, r)
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	r.stop(t)
	h.check(t)
}

// leaseClient is a client's shared-memory connection that the test controls itself.
type leaseClient struct {
	t    *testing.T
	conn *shm.Conn
}

func (r *raw) describe() *chaskiv1.Shared {
	r.t.Helper()
	b, err := json.Marshal(spec(sharedRows))
	if err != nil {
		r.t.Fatal(err)
	}
	d, err := r.stub.Describe(r.t.Context(), &chaskiv1.DescribeRequest{Spec: b})
	if err != nil {
		r.t.Fatal(err)
	}
	return d.GetShared()
}

// connectLeases connects to a lease socket and sends the message first.
func connectLeases(t *testing.T, address string, first shm.Message, file int) *leaseClient {
	t.Helper()
	c, err := shm.Dial(address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if err := c.SetDeadline(time.Now().Add(5 * time.Minute)); err != nil {
		t.Fatal(err)
	}
	d := &leaseClient{t, c}
	d.send(first, file)
	return d
}

func enter(t *testing.T, s *chaskiv1.Shared) (*leaseClient, shm.Token) {
	t.Helper()
	d := connectLeases(t, s.GetAddress(), shm.Greeting(shm.Hello, shm.Token(s.GetToken())), -1)
	m := d.receive()
	if m.Kind != shm.Welcome {
		t.Fatalf("kind %d, want a welcome", m.Kind)
	}
	return d, m.Token()
}

func (d *leaseClient) send(m shm.Message, file int) {
	d.t.Helper()
	if err := d.conn.Send(m, file); err != nil {
		d.t.Fatal(err)
	}
}

func (d *leaseClient) receive() shm.Message {
	d.t.Helper()
	m, file, err := d.conn.Receive()
	if err != nil {
		d.t.Fatal(err)
	}
	if file >= 0 {
		shm.CloseFile(file)
	}
	return m
}

// shut fails the test unless the server closes the connection.
func (d *leaseClient) shut() {
	d.t.Helper()
	for {
		m, file, err := d.conn.Receive()
		if err != nil {
			return // EOF, or the reset of a connection with unread messages
		}
		if m.Kind == shm.Welcome {
			d.t.Fatal("let in")
		}
		shm.CloseFile(file)
	}
}

func (r *raw) attach(secret []byte) {
	r.t.Helper()
	a := &chaskiv1.Attach{Secret: secret, Stream: 7}
	if err := r.stream.Send(&chaskiv1.StreamRequest{Kind: &chaskiv1.StreamRequest_Attach{Attach: a}}); err != nil {
		r.t.Fatal(err)
	}
}

// ask asks for n batches.
func (r *raw) ask(n int) {
	r.t.Helper()
	for i := range n {
		r.ticket(&chaskiv1.Ticket{
			Id: uint64(i), Handle: r.hash, First: int64(i * sharedRows), Count: sharedRows, RowStride: 1,
		})
	}
	r.credit(uint32(n))
}

func newSharedRaw(t *testing.T, target string, dial ...grpc.DialOption) (*raw, *leaseClient, shm.Token) {
	t.Helper()
	r := newRaw(t, sharedRows, target, dial...)
	d, secret := enter(t, r.describe())
	r.attach(secret[:])
	return r, d, secret
}

// TestLeasesOfGoneClients: leases are freed when their client leaves, in two ways.
func TestLeasesOfGoneClients(t *testing.T) {
	h := &house{samples: 200, elems: sharedElems}
	srv, target, dial := startShared(t, h, Options{})
	r, d, _ := newSharedRaw(t, target, dial...)
	r.ask(3)
	eventually(t, "three leases", func() bool { n, _, _ := srv.server.shared.figures(); return n == 3 })
	d.conn.Close()
	nothingLeased(t, srv)
	// The stream goes on, without shared memory.
	for range 3 {
		if reply, err := r.stream.Recv(); err != nil || reply.GetLease() == nil {
			t.Fatal(reply, err)
		}
	}
	r.ticket(&chaskiv1.Ticket{Id: 9, Handle: r.hash, First: 0, Count: sharedRows, RowStride: 1})
	r.credit(1)
	b, f := r.answer(9)
	if f != nil {
		t.Fatal(f)
	}
	checkBatch(t, b, h.elems)

	// The stream ends with unread replies.
	r, d, _ = newSharedRaw(t, target, dial...)
	r.ask(3)
	eventually(t, "three leases", func() bool { n, _, _ := srv.server.shared.figures(); return n == 3 })
	if err := r.stream.CloseSend(); err != nil {
		t.Fatal(err)
	}
	recalled := map[uint64]bool{}
	for len(recalled) < 3 {
		if m := d.receive(); m.Kind == shm.Recall && m.B == 7 {
			recalled[m.A] = true
			kind := shm.Return
			if m.A == 2 {
				kind = shm.Discard
			}
			d.send(shm.Message{Kind: kind, A: m.A}, -1)
		}
	}
	nothingLeased(t, srv)
	for lease := range recalled { // twice is no mistake: it may have been on its way when it was recalled
		d.send(shm.Message{Kind: shm.Return, A: lease}, -1)
	}
	d.send(shm.Message{Kind: shm.Return, A: 99}, -1)
	d.shut()
	srv.stop(t)
	h.check(t)
}

// TestHostileSides: hostile shared-memory clients are disconnected, and the server goes on.
func TestHostileSides(t *testing.T) {
	h := &house{samples: 200, elems: sharedElems}
	srv, target, dial := startShared(t, h, Options{})
	r := newRaw(t, sharedRows, target, dial...)
	s := r.describe()
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	file := int(null.Fd())

	good := shm.Greeting(shm.Hello, shm.Token(s.GetToken()))
	bad := good
	bad.A ^= 1
	connectLeases(t, s.GetAddress(), bad, -1).shut()
	bad = good
	bad.C++
	connectLeases(t, s.GetAddress(), bad, -1).shut()
	bad = good
	bad.Kind = shm.Return
	connectLeases(t, s.GetAddress(), bad, -1).shut()
	bad.Kind = 99
	connectLeases(t, s.GetAddress(), bad, -1).shut()
	connectLeases(t, s.GetAddress(), good, file).shut() // a file that nobody asked for
	for _, n := range []int{1, shm.Size - 1, shm.Size + 1, 1 << 16} {
		c, err := net.DialUnix("unixpacket", nil, &net.UnixAddr{Name: "@" + s.GetAddress(), Net: "unixpacket"})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Write(make([]byte, n)); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Read(make([]byte, 100)); err == nil {
			t.Errorf("%d bytes are answered", n)
		}
		c.Close()
	}
	for _, m := range []shm.Message{
		{Kind: shm.Return}, {Kind: shm.Return, A: 1},
		{Kind: shm.Discard, A: 1 << 63}, {Kind: shm.Recall, A: 1}, good,
	} {
		d, _ := enter(t, s)
		d.send(m, -1)
		d.shut()
	}
	d, _ := enter(t, s)
	d.send(shm.Message{Kind: shm.Give, A: 1, B: 10}, file)
	d.shut()

	// A client that does not know the secret is served over gRPC.
	r.attach(make([]byte, 16))
	r.ask(1)
	if b, f := r.answer(0); f != nil {
		t.Error(f)
	} else {
		checkBatch(t, b, h.elems)
	}
	for _, secret := range [][]byte{nil, make([]byte, 15), make([]byte, 17)} {
		r := newRaw(t, sharedRows, target, dial...)
		r.attach(secret)
		if _, err := r.stream.Recv(); status.Code(err) != codes.InvalidArgument {
			t.Errorf("a secret of %d bytes: %v", len(secret), err)
		}
	}
	r, _, secret := newSharedRaw(t, target, dial...)
	r.attach(secret[:])
	if _, err := r.stream.Recv(); status.Code(err) != codes.InvalidArgument {
		t.Errorf("attached twice: %v", err)
	}
	srv.stop(t)
	h.check(t)
}

// TestSideThatDoesNotRead: a shared-memory client that does not read is disconnected once its
// messages fill the queue, and delays nobody else.
func TestSideThatDoesNotRead(t *testing.T) {
	h := &house{samples: 200, elems: sharedElems}
	srv, target, dial := startShared(t, h, Options{})
	r, d, secret := newSharedRaw(t, target, dial...)
	r.ask(1)
	eventually(t, "a lease", func() bool { n, _, _ := srv.server.shared.figures(); return n == 1 })
	attach := &chaskiv1.Attach{Secret: secret[:]}
	c, _ := srv.server.shared.leaseConnOf(attach)
	for range 10 * maxPackets {
		c.recall(7)
	}
	nothingLeased(t, srv)
	if c, _ := srv.server.shared.leaseConnOf(attach); c != nil {
		t.Error("still in")
	}
	d.shut()
	srv.stop(t)
	h.check(t)
}
