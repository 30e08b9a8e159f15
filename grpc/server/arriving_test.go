package server

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"runtime"
	runtimemetrics "runtime/metrics"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/grpc/stats"
	"google.golang.org/protobuf/proto"

	"github.com/chaski-eo/chaski/grpc/auth"
	"github.com/chaski-eo/chaski/grpc/internal/wire"
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
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second)) // so that the test ends
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

// TestUnfinishedMessages promises that clients with unfinished messages take little memory, and that a modest client
// goes on beside them.
func TestUnfinishedMessages(t *testing.T) {
	race.SkipCovered(t)
	const conns, calls = 4, 64 // with messages of maxRequest, that is 512 MiB
	for name, c := range map[string]struct {
		method string
		token  bool
		most   int64 // of memory
	}{
		// The collector counts as live what is made while it marks: at worst as much again as is kept. A modest client
		// takes some memory too.
		"no token": {chaskiv1.Chaski_Describe_FullMethodName, false, 2*conns*maxUnknown + 32<<20},
		"health":   {"/grpc.health.v1.Health/Check", false, 2*conns*maxUnknown + 32<<20},
		"token":    {chaskiv1.Chaski_Describe_FullMethodName, true, 2*conns*maxConnArriving + 32<<20},
		"pipes":    {"", true, 2*conns*maxConnArriving + 32<<20},
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
				if c.method == "" {
					attackers.Go(func() { attackByPipes(t, target, shown, path, calls) })
					continue
				}
				a := attack(t, target, c.method, shown, calls)
				attackers.Go(func() { <-a.done })
			}
			go func() { attackers.Wait(); close(left) }()
			var most int64
			for over := false; !over; {
				select {
				case <-left:
					over = true
				default:
				}
				most = max(most, heapLive()-before)
				modest()
			}
			if most > c.most {
				t.Errorf("the heap grew by %d MiB; the bound is %d MiB", most>>20, c.most>>20)
			}
			t.Logf("the heap grew by %d MiB", most>>20)
		})
	}
}

// besetSpec is a spec of one file.
const besetSpec = `{"version": 1, "source": %q, "batch_size": 1,
	"fields": [{"name": "image", "dtype": "float32", "layout": "n b y x"}]}`

// attackByPipes opens streams with pipes on one connection, and sends a request of maxRequest by each pipe, but for its
// last byte. It returns when the server has ended a stream.
func attackByPipes(t *testing.T, target, token, path string, pipes int) {
	conn := dialed(t, target, nil)
	defer conn.Close()
	ctx, cancel := context.WithTimeout(as(t.Context(), token), 20*time.Second)
	defer cancel()
	client := chaskiv1.NewChaskiClient(conn)
	described, err := client.Describe(ctx, &chaskiv1.DescribeRequest{Spec: fmt.Appendf(nil, besetSpec, path)})
	if err != nil {
		t.Error(err)
		return
	}
	ended := make(chan struct{}, pipes)
	for range pipes {
		var secret wire.PipeToken
		binary.LittleEndian.PutUint64(secret[:], rand.Uint64())
		pipe, err := net.Dial("tcp", target)
		if err != nil {
			t.Error(err)
			return
		}
		defer pipe.Close()
		_ = pipe.SetDeadline(time.Now().Add(20 * time.Second))
		if _, err = pipe.Write(wire.PipeHello(described.GetPipe(), secret)); err == nil {
			_, err = io.ReadFull(pipe, make([]byte, len(wire.PipeMagic)))
		}
		stream, failed := client.Stream(ctx)
		if err = errors.Join(err, failed); err != nil {
			return // the server has closed the connection
		}
		attach := &chaskiv1.Attach{Pipe: secret[:], Requests: true}
		_ = stream.Send(&chaskiv1.StreamRequest{Kind: &chaskiv1.StreamRequest_Attach{Attach: attach}})
		_ = stream.CloseSend()
		go func() {
			_, _ = pipe.Write(append(binary.LittleEndian.AppendUint32(nil, maxRequest), make([]byte, maxRequest-1)...))
		}()
		go func() {
			_, _ = stream.Recv()
			ended <- struct{}{}
		}()
	}
	<-ended
}

// TestOneRate promises that small requests come at one rate from all pipes and calls of a client, and that a client
// that was quiet does not wait for them.
func TestOneRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pipes := 64
		if testing.Short() {
			pipes = 16
		}
		const seconds = 60
		all := newArriving(nil, quiet)
		connect := func(name string) (*inbound, context.Context) {
			in := newInbound(all)
			ctx := in.call(t.Context(), 0, &auth.Pass{Client: auth.Client{Name: name}}, callFrames)
			connections{}.HandleRPC(ctx, &stats.Begin{})
			return in, ctx
		}
		request, err := proto.Marshal(&chaskiv1.StreamRequest{Kind: &chaskiv1.StreamRequest_Credit{
			Credit: &chaskiv1.Credit{Batches: 1}}})
		if err != nil {
			t.Fatal(err)
		}
		one := append(binary.LittleEndian.AppendUint32(nil, uint32(len(request))), request...)
		ctx, cancel := context.WithTimeout(t.Context(), seconds*time.Second)
		defer cancel()
		var taken atomic.Int64
		var attackers sync.WaitGroup
		for range pipes {
			in, _ := connect("greedy")
			p := &replyPipe{ctx: ctx, in: bufio.NewReader(&endless{piece: one}), call: in}
			attackers.Go(func() {
				for ctx.Err() == nil {
					if _, err := p.receive(); err != nil {
						t.Error(err)
						return
					}
					taken.Add(1)
				}
			})
			attackers.Go(func() { // a frame of gRPC with 1,000 messages
				in, call := connect("greedy")
				for ctx.Err() == nil {
					if err := in.count(ctx.Done(), func() { in.frame(frameData, 9000) }); err != nil {
						t.Error(err)
						return
					}
					for range 1000 {
						connections{}.HandleRPC(call, &stats.InPayload{WireLength: 9})
						taken.Add(1)
					}
				}
			})
		}
		time.Sleep(seconds / 2 * time.Second)
		begun := time.Now()
		modest, _ := connect("modest")
		other := &replyPipe{ctx: ctx, in: bufio.NewReader(&endless{piece: one}), call: modest}
		for range burstFrames / 2 {
			if _, err := other.receive(); err != nil {
				t.Fatal(err)
			}
		}
		if waited := time.Since(begun); waited > time.Second {
			t.Errorf("another client waits for %v", waited)
		}
		attackers.Wait()
		// Of a frame of gRPC all messages are read before the connection waits for them.
		most := int64(pipes*2*(burstFrames+1000) + seconds*freeFrames)
		if taken.Load() > most || taken.Load() < most/4 {
			t.Errorf("%d requests are read in %d s, at most %d may be", taken.Load(), seconds, most)
		}
		if len(all.debts.by) != 1 {
			t.Errorf("clients in debt: %v", all.debts.by)
		}
	})
}

// endless repeats what it reads.
type endless struct {
	piece []byte
	next  int
}

// Read implements io.Reader.
func (e *endless) Read(b []byte) (int, error) {
	count := copy(b, e.piece[e.next:])
	e.next = (e.next + count) % len(e.piece)
	return count, nil
}

// TestStopAfterResets promises that connections that are read slowly do not hold up a server that stops, whatever their
// calls wait for.
func TestStopAfterResets(t *testing.T) {
	root := t.TempDir()
	path := root + "/a.tif"
	copyFile(t, path, "raster", "tog", "tog-odd-16.tif")
	l, target, _ := listenTCP(t)
	r := start(t, l, Options{Roots: []string{root}, DrainTimeout: time.Minute})
	message, err := proto.Marshal(&chaskiv1.ReadRequest{Paths: []string{path}})
	if err != nil {
		t.Fatal(err)
	}
	message = append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(message))), message...)
	const connections = 4
	for range connections {
		conn, err := net.Dial("tcp", target)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		_ = conn.SetDeadline(time.Now().Add(2 * time.Minute)) // so that the test ends
		var sent bytes.Buffer
		sent.WriteString(http2.ClientPreface)
		f := http2.NewFramer(&sent, nil)
		_ = f.WriteSettings()
		for i := range uint32(2000) { // each second one is given up, the others are not read
			_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: 2*i + 1, EndHeaders: true,
				BlockFragment: headersOf(chaskiv1.Chaski_Read_FullMethodName, "")})
			_ = f.WriteData(2*i+1, true, message)
			if i%2 == 0 {
				_ = f.WriteRSTStream(2*i+1, http2.ErrCodeCancel)
			}
		}
		var more bytes.Buffer // so that the connection is in debt whenever the stop comes
		f = http2.NewFramer(&more, nil)
		for range 1000 {
			_ = f.WriteWindowUpdate(0, 1)
		}
		go func() { // it ends with the connection
			_, err := conn.Write(sent.Bytes())
			for i := 0; err == nil && i < 10_000; i++ {
				_, err = conn.Write(more.Bytes())
			}
		}()
	}
	eventually(t, "not all connections are read slowly", func() bool {
		r.server.arriving.debts.mu.Lock()
		defer r.server.arriving.debts.mu.Unlock()
		slow := 0
		for _, n := range r.server.arriving.debts.by {
			slow += n
		}
		return slow == connections
	})
	begun := time.Now()
	r.stop(t)
	if took := time.Since(begun); took > 20*time.Second {
		t.Errorf("stopping took %v", took)
	}
}

// TestHandshakesAreBounded promises that connections that say nothing do not keep a client out, and that newer ones
// take their places.
func TestHandshakesAreBounded(t *testing.T) {
	target, token, path := besetServer(t)
	var first net.Conn
	for range accept.Descriptors(maxConnections, connectionsPart) {
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

// TestFrames promises that the data in frames are counted however their bytes are cut, as another implementation wrote
// them, until they are read or their calls are over.
func TestFrames(t *testing.T) {
	rnd := rand.New(rand.NewPCG(9, 1))
	for range 200 {
		var b bytes.Buffer
		b.WriteString(http2.ClientPreface)
		f := http2.NewFramer(&b, nil)
		in := newInbound(newArriving(nil, quiet))
		ctx := in.call(t.Context(), 100, &auth.Pass{}, callFrames)
		connections{}.HandleRPC(ctx, &stats.Begin{})
		var unread, cost int64
		count := 1 + rnd.IntN(20)
		for range count {
			data := make([]byte, rnd.IntN(20_000)%(16<<10))
			var err error
			switch rnd.IntN(4) {
			case 0:
				err = f.WriteHeaders(http2.HeadersFrameParam{StreamID: 3, BlockFragment: data, EndHeaders: true})
			case 1:
				err = f.WriteWindowUpdate(1, 1+rnd.Uint32N(9))
			default:
				err = f.WriteData(1, false, data)
				if len(data) > 0 {
					unread += int64(len(data))
					cost += bufferOf(len(data)) + frameCost
				}
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		for all := b.Bytes(); len(all) > 0; {
			n := 1 + rnd.IntN(len(all))
			in.scan(all[:n])
			all = all[n:]
		}
		size := int64(callCost + 100)
		if in.unread != unread || in.cost != cost || in.memory.Load() != cost+size {
			t.Fatalf("%d bytes in buffers of %d are counted, together %d; want %d, %d", in.unread, in.cost,
				in.memory.Load(), unread, cost)
		}
		connections{}.HandleRPC(ctx, &stats.InPayload{WireLength: int(unread / 2)})
		if in.unread != unread-unread/2 || in.cost > cost/2+cost/100+1 || in.cost < unread/2 {
			t.Fatalf("%d bytes in buffers of %d are left of %d in %d", in.unread, in.cost, unread, cost)
		}
		connections{}.HandleRPC(ctx, &stats.End{})
		if in.memory.Load() != 0 || in.arriving.memory.Load() != 0 {
			t.Fatalf("%d bytes are counted after the call", in.memory.Load())
		}
	}
}

// TestLeftoversDoNotAddUp promises that beside a stream that stays open, no number of calls that are refused while
// their clients send brings a connection near its bound, and that what a call may have unread still counts.
func TestLeftoversDoNotAddUp(t *testing.T) {
	in := newInbound(newArriving(nil, quiet))
	in.skip = 0
	begin := func() context.Context {
		ctx := in.call(t.Context(), 0, &auth.Pass{}, callFrames)
		connections{}.HandleRPC(ctx, &stats.Begin{})
		return ctx
	}
	var sent bytes.Buffer
	to := http2.NewFramer(&sent, nil)
	stream := begin()
	for range 1000 {
		refused := begin()
		for range callWindow / (16 << 10) {
			if err := to.WriteData(3, false, make([]byte, 16<<10)); err != nil {
				t.Fatal(err)
			}
		}
		in.scan(sent.Next(sent.Len()))
		connections{}.HandleRPC(refused, &stats.End{})
		if !in.fits() || in.memory.Load() > maxConnArriving/8 {
			t.Fatalf("%d bytes are kept", in.memory.Load())
		}
	}
	if in.unread != maxUnread {
		t.Errorf("%d bytes are unread of a call that may have %d", in.unread, maxUnread)
	}
	connections{}.HandleRPC(stream, &stats.End{})
	if in.memory.Load() != 0 {
		t.Errorf("%d bytes are kept after all calls", in.memory.Load())
	}
}

// TestFloods promises that a connection is read slowly that costs more frames and calls than it moves data.
func TestFloods(t *testing.T) {
	target, token, path := besetServer(t)
	message, err := proto.Marshal(&chaskiv1.ReadRequest{Paths: []string{path}})
	if err != nil {
		t.Fatal(err)
	}
	message = append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(message))), message...)
	call := func(f *http2.Framer, i uint32, method, token string, end bool) error {
		return f.WriteHeaders(http2.HeadersFrameParam{StreamID: 2*i + 1, BlockFragment: headersOf(method, token),
			EndHeaders: true, EndStream: end})
	}
	const describe, health = "/chaski.v1.Chaski/Describe", "/grpc.health.v1.Health/Check"
	for name, flood := range map[string]struct {
		cost uint32 // of a step
		step func(f *http2.Framer, i uint32) error
	}{
		"settings": {1, func(f *http2.Framer, _ uint32) error { return f.WriteSettings() }},
		"windows":  {1, func(f *http2.Framer, _ uint32) error { return f.WriteWindowUpdate(0, 1) }},
		"refused":  {guestFrames, func(f *http2.Framer, i uint32) error { return call(f, i, describe, "", true) }},
		"health":   {guestFrames, func(f *http2.Framer, i uint32) error { return call(f, i, health, "", true) }},
		"empty data": {1, func(f *http2.Framer, i uint32) error {
			if i == 0 {
				return call(f, 0, describe, token, false)
			}
			return f.WriteData(1, false, nil)
		}},
		"single bytes": {1, func(f *http2.Framer, i uint32) error {
			if i == 0 {
				return errors.Join(call(f, 0, describe, token, false), f.WriteData(1, false, []byte{0, 0, 1, 0, 0}))
			}
			return f.WriteData(1, false, []byte{0})
		}},
		// Twice as many as the others, since the answer to some is faster than the reset.
		"resets": {resetFrames / 2, func(f *http2.Framer, i uint32) error {
			return errors.Join(call(f, i, chaskiv1.Chaski_Read_FullMethodName, token, false),
				f.WriteData(2*i+1, true, message), f.WriteRSTStream(2*i+1, http2.ErrCodeCancel))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn, err := net.Dial("tcp", target)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			begun := time.Now()
			_ = conn.SetDeadline(begun.Add(30 * time.Second)) // so that the test ends
			var sent bytes.Buffer
			sent.WriteString(http2.ClientPreface)
			f := http2.NewFramer(&sent, conn)
			err = f.WriteSettings()
			for i := range 2 * burstFrames / flood.cost {
				err = errors.Join(err, flood.step(f, i))
			}
			flooded := sent.Len()
			if err = errors.Join(err, f.WritePing(false, [8]byte{1})); err != nil {
				t.Fatal(err)
			}
			piece := 4 << 10      // calls cost what the tap says, which is after they were read
			if name == "health" { // many at once are more than a connection keeps
				piece = 100
			}
			go func() {
				for b := range slices.Chunk(sent.Bytes()[:flooded], piece) {
					_, _ = conn.Write(b) // it fails when the connection is closed
					time.Sleep(2 * time.Millisecond)
				}
				time.Sleep(100 * time.Millisecond) // a tap without a processor says its cost later
				_, _ = conn.Write(sent.Bytes()[flooded:])
			}()
			for ponged := false; err == nil && !ponged; {
				var reply http2.Frame
				reply, err = f.ReadFrame()
				ping, ok := reply.(*http2.PingFrame)
				ponged = ok && ping.IsAck()
			}
			took := time.Since(begun)
			if err != nil || took < time.Second {
				t.Errorf("after %v: %v", took, err)
			}
		})
	}
}

// TestFramesPayForThemselves promises that what moves data has no bound: messages as small as a client that trains
// sends, its updates of windows for what it is sent, and what it is lent.
func TestFramesPayForThemselves(t *testing.T) {
	in := newInbound(newArriving(nil, quiet))
	in.skip = 0
	stream := in.call(t.Context(), 0, &auth.Pass{}, callFrames)
	connections{}.HandleRPC(stream, &stats.Begin{})
	var tickets bytes.Buffer
	to := http2.NewFramer(&tickets, nil)
	for range 10_000 {
		if err := errors.Join(to.WriteData(1, false, make([]byte, 60)), to.WriteData(1, false, make([]byte, 10)),
			to.WriteWindowUpdate(1, 1)); err != nil {
			t.Fatal(err)
		}
		in.scan(tickets.Next(tickets.Len()))
		connections{}.HandleRPC(stream, &stats.OutPayload{WireLength: 200})
	}
	if in.budget < burstFrames/2 {
		t.Errorf("the budget is %v frames", in.budget)
	}
	for i := range uint32(10_000) { // epochs of one batch, whose streams the client ends by a reset
		if err := to.WriteHeaders(http2.HeadersFrameParam{StreamID: 2*i + 3, EndHeaders: true}); err != nil {
			t.Fatal(err)
		}
		in.scan(tickets.Next(tickets.Len()))
		ctx, cancel := context.WithCancel(t.Context())
		epoch := in.call(ctx, 0, &auth.Pass{}, callFrames)
		connections{}.HandleRPC(epoch, &stats.Begin{})
		connections{}.HandleRPC(epoch, &stats.OutPayload{WireLength: 200})
		if err := to.WriteRSTStream(2*i+3, http2.ErrCodeCancel); err != nil {
			t.Fatal(err)
		}
		in.scan(tickets.Next(tickets.Len()))
		cancel()
		connections{}.HandleRPC(epoch, &stats.End{})
	}
	if in.budget < burstFrames/2 {
		t.Errorf("the budget is %v frames after epochs of one batch", in.budget)
	}
	before := in.budget // a read that fails, such as one of a file that is not there, costs what any call does
	failing := in.call(t.Context(), 0, &auth.Pass{}, callFrames)
	connections{}.HandleRPC(failing, &stats.Begin{})
	connections{}.HandleRPC(failing, &stats.OutTrailer{})
	connections{}.HandleRPC(failing, &stats.End{Error: errArriving})
	if cost := before - in.budget; cost != callFrames {
		t.Errorf("a call that fails costs %v frames", cost)
	}
	for range 2 * burstFrames {
		if err := to.WriteData(1, false, nil); err != nil {
			t.Fatal(err)
		}
	}
	in.scan(tickets.Bytes())
	if in.budget >= 0 {
		t.Errorf("the budget is %v frames after a flood", in.budget)
	}
	answered(stream, 2*burstFrames*bytesOfCost)
	if in.budget < burstFrames/2 {
		t.Errorf("the budget is %v frames after a batch in shared memory", in.budget)
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
