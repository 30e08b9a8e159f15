package server

import (
	"bytes"
	"context"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	chaskiv1 "github.com/chaski-eo/chaski/proto/chaski/v1"
	"github.com/chaski-eo/chaski/tools/testkit/race"
)

// flood opens a connection with reads, and sends to each of them 46 KiB of a message that never ends, of the 64 KiB of
// the window, in small frames. It calls sent when all is sent, and waits until the server closes the connection or over
// is closed.
func flood(t *testing.T, target, token string, calls int, sent func(), over <-chan struct{}) {
	t.Helper()
	conn, err := net.Dial("tcp", target)
	if err != nil {
		t.Error(err)
		return
	}
	defer conn.Close()
	sent = sync.OnceFunc(sent)
	defer sent()
	_ = conn.SetDeadline(time.Now().Add(5 * time.Minute)) // so that the test ends
	answers := make(chan struct{})
	go func() {
		defer close(answers)
		_, _ = io.Copy(io.Discard, conn) // an error ends the attack
	}()
	var out, block bytes.Buffer
	out.WriteString(http2.ClientPreface)
	f := http2.NewFramer(&out, nil)
	h := hpack.NewEncoder(&block)
	_ = f.WriteSettings() // writes to memory never fail
	_ = f.WriteSettingsAck()
	// gRPC joins frames of less than 56 bytes.
	const frames = 46 << 10 / 64
	first := append([]byte{0, 0, 0, 0xC0, 0}, make([]byte, 59)...) // 48 KiB
	for i := range calls {
		call := uint32(2*i + 1)
		block.Reset()
		for _, field := range [][2]string{{":method", "POST"}, {":scheme", "http"},
			{":path", chaskiv1.Chaski_Read_FullMethodName}, {":authority", "x"},
			{"content-type", "application/grpc"}, {"te", "trailers"}, {"authorization", "Bearer " + token}} {
			_ = h.WriteField(hpack.HeaderField{Name: field[0], Value: field[1]})
		}
		_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: call, BlockFragment: block.Bytes(), EndHeaders: true})
		_ = f.WriteData(call, false, first)
		for range frames - 1 {
			_ = f.WriteData(call, false, make([]byte, 64))
		}
		if _, err := conn.Write(out.Bytes()); err != nil {
			return
		}
		out.Reset()
	}
	sent()
	select {
	case <-answers:
	case <-over:
	}
}

// TestUnreadMessages promises that messages that no handler has read yet take little memory.
func TestUnreadMessages(t *testing.T) {
	race.SkipCovered(t)
	const conns, calls = 6, 256
	target, token, _ := besetServer(t)
	over, done := make(chan struct{}), make(chan struct{})
	var sent sync.WaitGroup
	before := heapLive()
	var attackers sync.WaitGroup
	for range conns {
		sent.Add(1)
		attackers.Go(func() { flood(t, target, token, calls, sent.Done, over) })
	}
	go func() { sent.Wait(); close(over) }()
	go func() { attackers.Wait(); close(done) }()
	var most int64
	for waiting := true; waiting; {
		select {
		case <-done:
			waiting = false
		case <-over:
			waiting = false
		case <-time.After(10 * time.Millisecond):
			most = max(most, heapLive()-before)
		}
	}
	<-done
	// The collector counts as live what is made while it marks: at worst as much again as is kept.
	if bound := int64(2*maxClientCalls*callWindow + 32<<20); most > bound {
		t.Errorf("the heap grew by %d MiB; the bound is %d MiB", most>>20, bound>>20)
	}
	t.Logf("the heap grew by %d MiB", most>>20)
}

// TestCountsEnd promises that no call of a connection that stays open counts once it is over, however it ends: so no
// modest client reaches a bound in time.
func TestCountsEnd(t *testing.T) {
	root := t.TempDir()
	copyFile(t, root+"/a.tif", "raster", "tog", "tog-odd-16.tif")
	l, target, _ := listenTCP(t)
	r := start(t, l, Options{Roots: []string{root}})
	defer r.stop(t)
	conn := dialed(t, target, nil)
	defer conn.Close()
	client := chaskiv1.NewChaskiClient(conn)
	calls := func() (n int) {
		r.server.clients.mu.Lock()
		defer r.server.clients.mu.Unlock()
		for _, h := range r.server.clients.byID {
			n += h.calls
		}
		return n
	}
	// A stream that is refused while its client still sends: of the data, some is on its way when the call ends.
	refused := func() {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		s, err := client.Stream(ctx)
		if err != nil {
			t.Fatal(err)
		}
		_ = s.Send(&chaskiv1.StreamRequest{}) // Recv says why, if this fails
		data := &chaskiv1.StreamRequest{Kind: &chaskiv1.StreamRequest_Ticket{
			Ticket: &chaskiv1.Ticket{Handle: strings.Repeat("x", 40<<10)}}}
		for s.Send(data) == nil {
		}
		if _, err := s.Recv(); err == nil {
			t.Fatal("a request of no kind is answered")
		}
	}
	for range 5 {
		for _, path := range []string{root + "/a.tif", root + "/none.tif", strings.Repeat("x", 1<<20)} {
			_, err := client.Info(t.Context(), &chaskiv1.InfoRequest{Path: path})
			if good := path == root+"/a.tif"; good != (err == nil) {
				t.Fatal(err)
			}
		}
		refused()
		ctx, cancel := context.WithCancel(t.Context())
		s, err := client.Stream(ctx)
		if err != nil {
			t.Fatal(err)
		}
		for i := range 100 {
			m := &chaskiv1.StreamRequest{Kind: &chaskiv1.StreamRequest_Credit{Credit: &chaskiv1.Credit{Batches: 1}}}
			if err := s.Send(m); err != nil {
				t.Fatal(i, err)
			}
		}
		bad := &chaskiv1.StreamRequest{Kind: &chaskiv1.StreamRequest_Ticket{Ticket: &chaskiv1.Ticket{Handle: "none"}}}
		if err := s.Send(bad); err != nil {
			t.Fatal(err)
		}
		if m, err := s.Recv(); m.GetFault() == nil { // so it has read what was sent before
			t.Fatal("a ticket of no dataset is answered: ", err)
		}
		until(t, "the stream alone counts", func() bool { return calls() == 1 })
		cancel()
		if _, err := s.Recv(); err == nil {
			t.Fatal("a stream that is cancelled is answered")
		}
	}
	until(t, "no call counts", func() bool { return calls() == 0 })
}
