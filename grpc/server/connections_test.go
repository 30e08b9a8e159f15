package server

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"runtime"
	runtimemetrics "runtime/metrics"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/chaski-eo/chaski/grpc/auth"
	"github.com/chaski-eo/chaski/internal/accept"
	chaskiv1 "github.com/chaski-eo/chaski/proto/chaski/v1"
	"github.com/chaski-eo/chaski/tools/testkit/race"
)

// attacker opens a connection and begins calls of a method with messages that never end: of each, all bytes that the
// windows of the server allow, less one. It is done when the server has ended all calls or the connection.
type attacker struct {
	conn net.Conn
	done chan struct{}
}

func attack(t *testing.T, target, method, token string, calls int) *attacker {
	t.Helper()
	conn, err := net.Dial("tcp", target)
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.SetDeadline(time.Now().Add(5 * time.Second)) // so that the test ends
	a := &attacker{conn: conn, done: make(chan struct{})}
	go func() {
		defer close(a.done)
		defer conn.Close()
		a.run(method, token, calls)
	}()
	return a
}

// run sends whole windows: first of all calls, and then whatever the server adds to the windows.
func (a *attacker) run(method, token string, calls int) {
	if _, err := io.WriteString(a.conn, http2.ClientPreface); err != nil {
		return
	}
	f := http2.NewFramer(a.conn, a.conn)
	_ = f.WriteSettings() // later writes fail too
	block := headersOf(method, token)
	left := map[uint32]int{} // bytes of the message that may still be sent
	all := 0                 // window of the connection
	windows := map[uint32]int{}
	send := func(call uint32) {
		for {
			n := min(left[call], windows[call], all, 16<<10)
			if n <= 0 || f.WriteData(call, false, make([]byte, n)) != nil {
				return
			}
			left[call] -= n
			windows[call] -= n
			all -= n
		}
	}
	all = 65535
	for i := range calls {
		call := uint32(2*i + 1)
		if f.WriteHeaders(http2.HeadersFrameParam{StreamID: call, BlockFragment: block,
			EndHeaders: true}) != nil {
			return
		}
		head := binary.BigEndian.AppendUint32([]byte{0}, maxRequest)
		if f.WriteData(call, false, head) != nil {
			return
		}
		all -= len(head)
		left[call], windows[call] = maxRequest-1, 65535-len(head)
	}
	for len(left) > 0 {
		frame, err := f.ReadFrame()
		if err != nil {
			return
		}
		switch w := frame.(type) {
		case *http2.WindowUpdateFrame:
			if w.StreamID == 0 {
				all += int(w.Increment)
			} else {
				windows[w.StreamID] += int(w.Increment)
			}
		case *http2.SettingsFrame:
			if !w.IsAck() && f.WriteSettingsAck() != nil {
				return
			}
		case *http2.PingFrame:
			if !w.IsAck() && f.WritePing(true, w.Data) != nil {
				return
			}
		case *http2.HeadersFrame: // refusals, with their status
			if w.StreamEnded() {
				delete(left, w.StreamID)
			}
		case *http2.RSTStreamFrame:
			delete(left, w.StreamID)
		}
		for call := range left {
			send(call)
		}
	}
}

// heapLive returns the bytes of Go's heap that are in use, after a collection. The garbage beside them depends on the
// collector's pace, and the attackers of a test make most of it.
func heapLive() int64 {
	runtime.GC()
	live := []runtimemetrics.Sample{{Name: "/gc/heap/live:bytes"}}
	runtimemetrics.Read(live)
	return int64(live[0].Value.Uint64())
}

// besetServer is a server in plain text that asks for a token.
func besetServer(t *testing.T) (target, token, path string) {
	t.Helper()
	root := t.TempDir()
	path = root + "/a.tif"
	copyFile(t, path, "raster", "tog", "tog-odd-16.tif")
	gate, err := auth.NewGate(auth.GateOptions{Made: "a token that is made"})
	if err != nil {
		t.Fatal(err)
	}
	l, target, _ := listenTCP(t)
	r := start(t, l, Options{Gate: gate, Roots: []string{root}})
	t.Cleanup(func() { r.stop(t) })
	return target, "a token that is made", path
}

// TestUnfinishedMessages promises that clients with unfinished messages take little memory, and that strangers with
// them do not hold a modest client up.
func TestUnfinishedMessages(t *testing.T) {
	race.SkipCovered(t)
	const conns, calls = 4, 64 // with messages of maxRequest, that is 512 MiB
	for name, c := range map[string]struct {
		method string
		token  bool
		most   int64 // calls whose messages are kept
	}{
		"no token": {chaskiv1.Chaski_Describe_FullMethodName, false, 0},
		"health":   {"/grpc.health.v1.Health/Check", false, maxHealthCalls},
		"token":    {chaskiv1.Chaski_Describe_FullMethodName, true, maxRequests},
	} {
		t.Run(name, func(t *testing.T) {
			target, token, path := besetServer(t)
			shown := ""
			if c.token {
				shown = token
			}
			conn := dialed(t, target, nil)
			defer conn.Close()
			client := chaskiv1.NewChaskiClient(conn)
			modest := func() {
				t.Helper()
				if _, err := client.Info(as(t.Context(), token), &chaskiv1.InfoRequest{Path: path}); err != nil {
					t.Fatalf("a modest client gets %v", err)
				}
			}
			modest()
			before := heapLive()
			left := make(chan struct{})
			var attackers sync.WaitGroup
			for range conns {
				a := attack(t, target, c.method, shown, calls)
				attackers.Go(func() { <-a.done })
			}
			go func() { attackers.Wait(); close(left) }()
			var most int64
			for over := false; !over; {
				select {
				case <-left:
					over = true
				case <-time.After(10 * time.Millisecond):
				}
				most = max(most, heapLive()-before)
				if !c.token { // otherwise it is the same client
					modest()
				}
			}
			// The collector counts as live what is made while it marks: at worst as much again as is kept. A modest
			// client takes some memory too.
			if bound := 2*(c.most*maxRequest+conns*calls*callWindow) + 32<<20; most > bound {
				t.Errorf("the heap grew by %d MiB; the bound is %d MiB", most>>20, bound>>20)
			}
			t.Logf("the heap grew by %d MiB", most>>20)
		})
	}
}

// TestStrangersLoseTheirConnection promises that a connection whose calls are all refused is closed, and that one with
// a valid token is not, whatever else it tries.
func TestStrangersLoseTheirConnection(t *testing.T) {
	target, token, path := besetServer(t)
	ask := func(c chaskiv1.ChaskiClient, token string) codes.Code {
		_, err := c.Info(as(t.Context(), token), &chaskiv1.InfoRequest{Path: path})
		return status.Code(err)
	}
	known := dialed(t, target, nil)
	defer known.Close()
	client := chaskiv1.NewChaskiClient(known)
	if code := ask(client, token); code != codes.OK {
		t.Fatal(code)
	}
	for range 2 * maxRefused {
		if code := ask(client, "another"); code != codes.Unauthenticated {
			t.Errorf("a wrong token beside a valid one: %v", code)
		}
	}
	conn, err := net.Dial("tcp", target)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(5 * time.Minute)) // so that the test ends
	if _, err := io.WriteString(conn, http2.ClientPreface); err != nil {
		t.Fatal(err)
	}
	f := http2.NewFramer(conn, conn)
	err = f.WriteSettings()
	for i := range uint32(maxRefused) {
		err = errors.Join(err, f.WriteHeaders(http2.HeadersFrameParam{StreamID: 2*i + 1, EndHeaders: true,
			EndStream: true, BlockFragment: headersOf(chaskiv1.Chaski_Info_FullMethodName, "another")}))
	}
	if err != nil {
		t.Fatal(err)
	}
	var late net.Error
	if _, err := io.Copy(io.Discard, conn); errors.As(err, &late) && late.Timeout() {
		t.Error("the connection of a stranger stays open")
	}
	if code := ask(client, token); code != codes.OK {
		t.Errorf("the connection with a token is closed: %v", code)
	}
}

// TestCallsOfAClientAreBounded promises that a client has so many calls at a time, and others none the fewer, and that
// nothing is known of a client whose calls have ended.
func TestCallsOfAClientAreBounded(t *testing.T) {
	c := newClients(Options{}.withDefaults())
	ctx, cancel := context.WithCancel(t.Context())
	for range 3 {
		if _, err := c.call(ctx, "greedy", 3); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := c.call(ctx, "greedy", 3); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("one call too many: %v", err)
	}
	if _, err := c.call(ctx, "modest", 3); err != nil {
		t.Error(err)
	}
	cancel()
	until(t, "no client is known", func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return len(c.byID) == 0
	})
}

// TestHandshakesAreBounded promises that connections that say nothing do not keep a client out, and that newer ones
// take their places.
func TestHandshakesAreBounded(t *testing.T) {
	target, token, path := besetServer(t)
	var first net.Conn
	for range accept.Descriptors(connectionsEach*DefaultMaxStreams, connectionsPart) {
		c, err := net.Dial("tcp", target)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if first == nil {
			first = c
		}
	}
	_ = first.SetReadDeadline(time.Now().Add(handshakeTimeout / 2))
	var late net.Error
	if _, err := io.Copy(io.Discard, first); errors.As(err, &late) && late.Timeout() {
		t.Error("the oldest connection that says nothing is still open")
	}
	client := dialed(t, target, nil)
	defer client.Close()
	_, err := chaskiv1.NewChaskiClient(client).Info(as(t.Context(), token), &chaskiv1.InfoRequest{Path: path})
	if err != nil {
		t.Error(err)
	}
}

// headersOf returns the headers of a call.
func headersOf(method, token string) []byte {
	var block bytes.Buffer
	h := hpack.NewEncoder(&block)
	fields := []hpack.HeaderField{{Name: ":method", Value: "POST"}, {Name: ":scheme", Value: "http"},
		{Name: ":path", Value: method}, {Name: ":authority", Value: "x"},
		{Name: "content-type", Value: "application/grpc"}, {Name: "te", Value: "trailers"}}
	if token != "" {
		fields = append(fields, hpack.HeaderField{Name: "authorization", Value: "Bearer " + token})
	}
	for _, field := range fields {
		field.Sensitive = true // no entry in a table, which the next headers would refer to
		_ = h.WriteField(field)
	}
	return block.Bytes()
}
