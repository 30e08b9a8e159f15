package server

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/chaski-eo/chaski/grpc/auth"
	"github.com/chaski-eo/chaski/grpc/client"
	"github.com/chaski-eo/chaski/grpc/internal/wire"
	"github.com/chaski-eo/chaski/grpc/payload"
	"github.com/chaski-eo/chaski/loader/batch"
	chaskiv1 "github.com/chaski-eo/chaski/proto/chaski/v1"
	"github.com/chaski-eo/chaski/tools/testkit/pki"
)

// hello opens a pipe with what a client sends first, and returns it with the answer.
func hello(t *testing.T, dial func() (net.Conn, error), first []byte) (conn net.Conn, answer string) {
	t.Helper()
	conn, err := dial()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if _, err := conn.Write(first); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, len(wire.PipeMagic))
	n, _ := io.ReadFull(conn, got) // what is not there shows in the answer
	return conn, string(got[:n])
}

func dialer(network, address string) func() (net.Conn, error) {
	return func() (net.Conn, error) { return net.Dial(network, address) }
}

func (r *raw) pipe(a *chaskiv1.Attach) {
	r.t.Helper()
	if err := r.stream.Send(&chaskiv1.StreamRequest{Kind: &chaskiv1.StreamRequest_Attach{Attach: a}}); err != nil {
		r.t.Fatal(err)
	}
}

// pipedBatch reads a batch from a pipe.
func pipedBatch(t *testing.T, in *wire.PipeReader) *batch.Batch {
	t.Helper()
	var got bytes.Buffer
	for {
		reply, err := in.Next()
		if err != nil {
			t.Fatal(err)
		}
		got.Write(reply.GetPart().GetData())
		if uint64(got.Len()) == reply.GetPart().GetTotal() {
			b, err := payload.Copy(got.Bytes(), nil, heapMemory{})
			if err != nil {
				t.Fatal(err)
			}
			return b
		}
	}
}

// TestPipe promises that batches and faults come by a pipe, in the order of their tickets, and the status of the call
// by gRPC; and that all comes by gRPC to a stream whose pipe is not known.
func TestPipe(t *testing.T) {
	broken := errors.New("a sample is broken")
	h := &house{samples: 100, elems: 1 << 15, prepare: func(e *fakeEngine) {
		e.Fail = func(pos int64) error {
			if pos/4 == 1 {
				return broken
			}
			return nil
		}
	}}
	l, target, _ := listenTCP(t)
	s := start(t, l, Options{Open: h.Open})
	defer s.stop(t)
	secret := wire.PipeToken{1, 2, 3}
	conn, answer := hello(t, dialer("tcp", target), wire.PipeHello(s.server.pipes.token[:], secret))
	if answer != wire.PipeMagic {
		t.Fatalf("the answer is %q", answer)
	}
	for _, known := range []bool{true, false} { // the second stream finds no pipe
		r := newRaw(t, 4, target)
		r.pipe(&chaskiv1.Attach{Pipe: secret[:]})
		for id := range uint64(3) {
			r.ticket(&chaskiv1.Ticket{Id: id, Handle: r.hash, First: int64(4 * id), Count: 4, RowStride: 1})
		}
		r.credit(3)
		in := wire.NewPipeReader(conn, 1000, 1<<20)
		for id := range uint64(3) {
			var b *batch.Batch
			var f *chaskiv1.Fault
			switch {
			case !known:
				b, f = r.answer(id)
			case id == 1:
				reply, err := in.Next()
				if err != nil {
					t.Fatal(err)
				}
				f = reply.GetFault()
			default:
				b = pipedBatch(t, in)
			}
			if (id == 1) != (f != nil) || b != nil && b.First != int64(4*id) {
				t.Fatalf("ticket %d: batch %v, fault %v", id, b, f)
			}
			if b != nil {
				checkBatch(t, b, h.elems)
				b.Release()
			}
		}
		if err := r.stream.CloseSend(); err != nil {
			t.Fatal(err)
		}
		if _, err := r.stream.Recv(); !errors.Is(err, io.EOF) {
			t.Errorf("the call ends with %v", err)
		}
	}
	if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("the pipe ends with %v", err)
	}
}

// requestByPipe sends a request by a pipe.
func requestByPipe(t *testing.T, conn net.Conn, r *chaskiv1.StreamRequest) {
	t.Helper()
	message, err := proto.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	length := binary.LittleEndian.AppendUint32(nil, uint32(len(message)))
	if _, err := conn.Write(append(length, message...)); err != nil {
		t.Fatal(err)
	}
}

// TestRequestsByPipe promises that requests come by the pipe behind those of the call, until the client closes it; and
// that the call says what is wrong with one.
func TestRequestsByPipe(t *testing.T) {
	h := &house{samples: 100, elems: 1 << 10}
	l, target, _ := listenTCP(t)
	s := start(t, l, Options{Open: h.Open})
	defer s.stop(t)
	for i, test := range []struct {
		last []byte
		code codes.Code
	}{
		{nil, codes.OK},
		{[]byte{1, 0, 0}, codes.Unavailable},              // ends too early
		{[]byte{1, 0, 0, 0, 0xff}, codes.InvalidArgument}, // no message
		{[]byte{1, 0, 0x20, 0}, codes.ResourceExhausted},  // one of 2 MiB and 1 byte
		{[]byte{0, 0, 0, 0}, codes.InvalidArgument},       // a message of no kind
	} {
		secret := wire.PipeToken{byte(i)}
		conn, _ := hello(t, dialer("tcp", target), wire.PipeHello(s.server.pipes.token[:], secret))
		r := newRaw(t, 4, target)
		r.pipe(&chaskiv1.Attach{Pipe: secret[:], Requests: true})
		in := wire.NewPipeReader(conn, 1000, 1<<20)
		for id := range uint64(3) {
			ticket := &chaskiv1.Ticket{Id: id, Handle: r.hash, First: int64(4 * id), Count: 4, RowStride: 1}
			if id == 0 {
				r.ticket(ticket)
				r.credit(1)
			} else {
				requestByPipe(t, conn, &chaskiv1.StreamRequest{Kind: &chaskiv1.StreamRequest_Ticket{Ticket: ticket}})
				requestByPipe(t, conn, &chaskiv1.StreamRequest{
					Kind: &chaskiv1.StreamRequest_Credit{Credit: &chaskiv1.Credit{Batches: 1}},
				})
			}
			b := pipedBatch(t, in)
			if b.First != int64(4*id) {
				t.Fatalf("ticket %d: batch at %d", id, b.First)
			}
			b.Release()
			if id > 0 {
				continue
			}
			if err := r.stream.CloseSend(); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := conn.Write(test.last); err != nil {
			t.Fatal(err)
		}
		if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
			t.Fatal(err)
		}
		_, err := r.stream.Recv()
		if errors.Is(err, io.EOF) {
			err = nil
		}
		if status.Code(err) != test.code {
			t.Errorf("%x: the call ends with %v, not %v", test.last, err, test.code)
		}
	}
}

// TestStrangePipes promises that a pipe without the token, or with the secret of another one, is closed at once, and
// that an attach must have a secret of the right size before the first ticket.
func TestStrangePipes(t *testing.T) {
	h := &house{samples: 100, elems: 1}
	l, target, _ := listenTCP(t)
	s := start(t, l, Options{Open: h.Open})
	defer s.stop(t)
	token, secret := s.server.pipes.token[:], wire.PipeToken{1}
	dial := dialer("tcp", target)
	if _, answer := hello(t, dial, wire.PipeHello(token, secret)); answer != wire.PipeMagic {
		t.Errorf("the answer is %q", answer)
	}
	if _, answer := hello(t, dial, wire.PipeHello(token, secret)); answer != "" {
		t.Errorf("a secret twice: the answer is %q", answer)
	}
	if _, answer := hello(t, dial, wire.PipeHello(make([]byte, 16), wire.PipeToken{2})); answer != "" {
		t.Errorf("a wrong token: the answer is %q", answer)
	}
	for name, attach := range map[string]func(r *raw){
		"short": func(r *raw) { r.pipe(&chaskiv1.Attach{Pipe: secret[:15]}) },
		"none":  func(r *raw) { r.pipe(&chaskiv1.Attach{}) },
		"late": func(r *raw) {
			r.ticket(&chaskiv1.Ticket{Handle: r.hash, Count: 4, RowStride: 1})
			r.pipe(&chaskiv1.Attach{Pipe: secret[:]})
		},
	} {
		r := newRaw(t, 4, target)
		attach(r)
		if _, err := r.stream.Recv(); status.Code(err) != codes.InvalidArgument {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestUnusedPipesEnd promises that a pipe without a stream ends after a while, and one whose client does not read with
// its stream, which gives its memory back.
func TestUnusedPipesEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &house{samples: 1000, elems: 1 << 20}
		l, target, options := listenBuf(t)
		buf := l.(interface{ Dial() (net.Conn, error) })
		s := start(t, l, Options{Open: h.Open, SendTimeout: time.Minute})
		token := s.server.pipes.token[:]
		unused, _ := hello(t, buf.Dial, wire.PipeHello(token, wire.PipeToken{1}))
		begun := time.Now()
		if _, err := unused.Read(make([]byte, 1)); err == nil || time.Since(begun) < pipeWait {
			t.Errorf("an unused pipe ends after %v: %v", time.Since(begun), err)
		}
		unread := wire.PipeToken{2}
		conn, _ := hello(t, buf.Dial, wire.PipeHello(token, unread))
		r := newRaw(t, 4, target, options...)
		r.pipe(&chaskiv1.Attach{Pipe: unread[:]})
		for range 3 {
			r.ticket(&chaskiv1.Ticket{Handle: r.hash, Count: 4, RowStride: 1})
		}
		r.credit(3)
		synctest.Wait()
		if n := h.open[0].Live.Load(); n != 3 {
			t.Errorf("%d batches are held", n)
		}
		if _, err := r.stream.Recv(); status.Code(err) != codes.DeadlineExceeded {
			t.Error(err)
		}
		synctest.Wait()
		if n := h.open[0].Live.Load(); n != 0 {
			t.Errorf("%d batches are not released", n)
		}
		_ = conn.Close()
		s.stop(t)
		h.check(t)
	})
}

// counting is a listener that keeps its connections.
type counting struct {
	net.Listener
	mu    sync.Mutex
	conns []net.Conn
}

func (c *counting) Accept() (net.Conn, error) {
	conn, err := c.Listener.Accept()
	if err == nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.conns = append(c.conns, conn)
	}
	return conn, err
}

func (c *counting) all() []net.Conn {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.conns)
}

// TestClientsOpenPipes promises that a client gets its batches by a pipe, with the TLS of its calls, of which alone the
// token is asked, and by another pipe after the first one broke.
func TestClientsOpenPipes(t *testing.T) {
	authority := pki.New(t, "authority")
	pair := authority.Issue(t, "server", pki.Valid())
	certificate, err := tls.X509KeyPair(pair.Certificate, pair.Key)
	if err != nil {
		t.Fatal(err)
	}
	made := auth.NewToken()
	gate, err := auth.NewGate(auth.GateOptions{Made: made})
	if err != nil {
		t.Fatal(err)
	}
	token, err := client.Token(made)
	if err != nil {
		t.Fatal(err)
	}
	config := &tls.Config{Certificates: []tls.Certificate{certificate}, NextProtos: []string{"h2"}}
	guarded := Options{Gate: gate, Credentials: credentials.NewTLS(config)}
	trusted := client.Options{Token: token, Credentials: trusting(t, authority, nil)}
	t.Run("unix", func(t *testing.T) { checkPipes(t, listenUnix, Options{}, client.Options{}) })
	t.Run("tls", func(t *testing.T) { checkPipes(t, listenTCP, guarded, trusted) })
}

func checkPipes(t *testing.T, listen func(*testing.T) (net.Listener, string, []grpc.DialOption), so Options,
	co client.Options) {
	h := &house{samples: 100, elems: 1 << 15}
	l, target, _ := listen(t)
	listener := &counting{Listener: l}
	so.Open = h.Open
	s := start(t, listener, so)
	defer s.stop(t)
	c, err := client.Dial(target, co)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	run, err := c.Open(context.Background(), spec(4))
	if err != nil {
		t.Fatal(err)
	}
	batches, err := run.Loader(batch.LoaderOptions{World: 1, Epochs: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer batches.Close()
	for step := range run.Steps() {
		b, err := batches.Next(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		checkBatch(t, b, h.elems)
		b.Release()
		if conns := listener.all(); step == 4 {
			if len(conns) != 2 {
				t.Fatalf("%d connections, of which one is a pipe", len(conns))
			}
			_ = conns[1].Close() // the next batches come by another one
		}
	}
	if n := len(listener.all()); n != 3 {
		t.Errorf("%d connections, two pipes among them", n)
	}
}

// FuzzRequestsByPipe promises that whatever a client sends by a pipe is requests and then an end or an error, and that
// a length beyond the limit asks for no memory.
func FuzzRequestsByPipe(f *testing.F) {
	request, err := proto.Marshal(&chaskiv1.StreamRequest{Kind: &chaskiv1.StreamRequest_Credit{
		Credit: &chaskiv1.Credit{Batches: 3, Waited: 1, Stepped: 2}}})
	if err != nil {
		f.Fatal(err)
	}
	one := append(binary.LittleEndian.AppendUint32(nil, uint32(len(request))), request...)
	f.Add(one)
	f.Add(append(slices.Clone(one), one...))
	f.Add(one[:len(one)-1])
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 1})
	f.Fuzz(func(t *testing.T, sent []byte) {
		p := &replyPipe{in: bufio.NewReader(bytes.NewReader(sent))}
		for n := 0; ; n++ {
			request, err := p.receive()
			if err != nil {
				if !errors.Is(err, io.EOF) && status.Code(err) == codes.Unknown {
					t.Fatalf("%v: an error without a code", err)
				}
				return
			}
			if request == nil || 4*n > len(sent) {
				t.Fatalf("request %d of %d bytes: %v", n, len(sent), request)
			}
		}
	})
}
