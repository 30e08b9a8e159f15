package server

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"
	"google.golang.org/grpc/credentials"

	"github.com/chaski-eo/chaski/internal/accept"
	"github.com/chaski-eo/chaski/internal/procs"
	"github.com/chaski-eo/chaski/loader/resources"
)

// gRPC keeps each message in memory until its last byte has arrived and its handler reads it, and asks no code of this
// package before. Its windows do not bound that: it opens the window of a call to the size that the head of the message
// says, and the window of the connection whatever has been read. So each connection counts what it keeps.
const (
	maxRequest = 2 << 20 // bytes of a message; a spec of 1 MiB fits
	// callWindow is how many bytes a client may send ahead of what is read: the least of HTTP/2. Without a fixed one,
	// gRPC lets it grow to 16 MiB. A larger message opens the window for itself.
	callWindow = 64 << 10
	// maxUnknown bounds what is kept for a connection without a call that was let in: four calls that are refused may
	// send their first window, beside eight calls for health with 4 KiB of metadata. Probes make one at a time.
	maxUnknown = 4*callWindow + 8*(callCost+(4<<10))
	// maxConnArriving bounds it for any other connection: 16 messages of maxRequest, or all of its calls with 4 KiB of
	// metadata and 28 messages of 512 KiB.
	maxConnArriving = 16 * maxRequest
	// maxArriving bounds it for all connections, beside an eighth of the budget. Beyond that, the host that has the
	// most loses its largest connection.
	maxArriving      = 4 * maxConnArriving
	arrivingOfBudget = 8
	// frameCost is what gRPC needs for a frame beside its buffer: a place in a queue and pointers, 56 bytes.
	frameCost = 64
	// messageCost is what this package needs for a message that has arrived: a number in a slice that grows to twice
	// its length. 16 KiB hold 3,276 messages without content.
	messageCost = 2 * 8
	// callCost is what a call needs until it ends: the stacks of two goroutines, its contexts, its queues.
	callCost  = 16 << 10
	memorable = 1 << 20 // a connection that kept more gives memory back when it closes
	trimWait  = time.Second / 2
)

// bufferOf returns the size of the buffer in which gRPC keeps a frame with a payload of n bytes.
func bufferOf(n int) int64 {
	for _, size := range []int{4 << 10, 16 << 10} {
		if n > 1<<10 && n <= size {
			return int64(size)
		}
	}
	return int64(min(n, 16<<10)) // gRPC refuses longer ones, and makes a buffer of the size for short ones
}

var errArriving = errors.New("the client has sent more than this server keeps of what it has not read")

// A frame costs the server a microsecond or more, whatever it holds. So each connection has a budget of frames, in
// which frames that move data pay for themselves, in both directions: a client that trains sends two of some 50 bytes
// for each batch, and updates of windows for what it gets.
const (
	freeFrames  = 500  // a second, at least
	burstFrames = 2000 // at once
	bytesOfCost = 64   // bytes of data that pay for a frame
	// What a call costs beside its frames, until data answers it: 10 µs. Reads of single pixels have no bound.
	callFrames = 8
	// guestFrames is the cost of a call that a token would not pay for: one that is refused, or for health. Probes make
	// one a second.
	guestFrames = 20
	resetFrames = 50 // of a call that the client gives up before its first answer, which has begun to work
	// paddingPause is how long a connection with padding is kept, unread.
	paddingPause = 4 * time.Second
)

var errPadding = errors.New("the client has sent data with padding")

// arriving counts what gRPC keeps of messages that no handler has read, of all connections.
type arriving struct {
	most  int64
	log   *slog.Logger
	held  atomic.Int64
	lines rate.Sometimes // of the log

	mu    sync.Mutex
	conns map[*inbound]struct{}
	trim  *time.Timer // nil: memory need not go back
	shut  bool
}

// readBuffer holds two frames of 16 KiB, the largest that gRPC sends.
const readBuffer = 32 << 10

func newArriving(b *resources.Budget, log *slog.Logger) *arriving {
	limit := int64(maxArriving)
	if b != nil {
		limit = min(limit, max(b.Limit()/arrivingOfBudget, 4*maxRequest))
	}
	return &arriving{most: limit, log: log, conns: map[*inbound]struct{}{},
		lines: rate.Sometimes{First: 200, Interval: time.Second}}
}

// counted are credentials whose connections count what arrives.
type counted struct {
	credentials.TransportCredentials
	arriving *arriving
}

// ServerHandshake implements credentials.TransportCredentials.
func (c counted) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	conn, info, err := c.TransportCredentials.ServerHandshake(raw)
	if err != nil {
		return nil, nil, err
	}
	in := newInbound(c.arriving)
	in.Conn, in.raw, in.buffer = conn, raw, bufio.NewReaderSize(conn, readBuffer)
	in.place, _ = raw.(*accept.Conn)
	return in, info, nil
}

// closableAddr is the local address of a connection.
type closableAddr struct {
	net.Addr
	conn    io.Closer
	inbound *inbound // nil before the handshake
}

// inbound is a connection that counts what gRPC keeps of it.
type inbound struct {
	net.Conn // of plain text
	buffer   *bufio.Reader
	raw      net.Conn // below Conn, which can be closed at once
	place    *accept.Conn
	arriving *arriving
	known    atomic.Bool // a call was let in
	held     atomic.Int64
	evicted  atomic.Bool // closed because it keeps too much

	gone           chan struct{} // closed by Close
	mu             sync.Mutex    // of what follows: one goroutine reads, another writes
	budget         float64       // of frames
	counted        time.Time     // when budget last grew by time
	received, sent frames
	arrived        frameEvents // of received
	leaving        frameEvents // of sent
	last           uint32      // the call whose headers gRPC reads
	calls          map[uint32]*incoming
	most           int64 // the largest value of held
	closed         bool
}

// incoming is what gRPC keeps of a call, from its headers until one side has ended it for both.
type incoming struct {
	cost     int64 // of the call itself
	answered bool  // data of the server is on its way

	head [5]byte // of the message that arrives: a flag, and the length
	have int     // bytes of head
	left int64   // bytes of the message that are missing
	held int64   // by the message that arrives

	whole []int64 // what each message holds that has arrived, and that the handler has not read
}

func newInbound(a *arriving) *inbound {
	in := &inbound{arriving: a, calls: map[uint32]*incoming{}, gone: make(chan struct{}), budget: burstFrames,
		counted: time.Now()}
	in.received.skip = prefaceBytes
	in.arrived = frameEvents{opened: in.opened, began: in.began, frame: func() { in.spend(1) },
		data: func(call uint32, b []byte) {
			in.earn(len(b))
			in.data(call, b)
		}, ended: func(call uint32, reset bool) {
			if m := in.calls[call]; reset && m != nil { // a client that has sent all still waits for the answer
				if !m.answered { // clients end each stream so, with all of its batches
					in.spend(resetFrames)
				}
				in.ended(call)
			}
		}}
	// When the server ends a call, gRPC drops what its client has sent, and the client need not send an end.
	in.leaving = frameEvents{ended: func(call uint32, _ bool) { in.ended(call) },
		data: func(call uint32, b []byte) {
			in.earn(len(b))
			if m := in.calls[call]; m != nil && !m.answered {
				m.answered = true
				if in.known.Load() {
					in.spend(-callFrames)
				}
			}
		}}
	return in
}

// LocalAddr implements net.Conn. See namedListener.
func (in *inbound) LocalAddr() net.Addr {
	addr := in.Conn.LocalAddr()
	if c, ok := addr.(closableAddr); ok {
		addr = c.Addr
	}
	return closableAddr{addr, in.raw, in}
}

// Read implements net.Conn. gRPC has no buffer (GRPCOptions), so that it asks for the head of a frame and then for the
// rest of it. It calls Server.tap before it reads on, in the same goroutine, so that call is in.last. Nothing else
// tells a tap, a handler or statistics which call they are of.
func (in *inbound) Read(b []byte) (int, error) {
	n, err := in.buffer.Read(b)
	in.mu.Lock()
	in.refill()
	in.received.scan(b[:n], &in.arrived)
	// A connection without a budget is read as fast as its budget grows. One that is closed would be opened again, with
	// a new budget; and a client whose calls are many and small, such as epochs of one small chip, is no attacker.
	pause := time.Duration(-in.budget / freeFrames * float64(time.Second))
	padded := in.received.padded
	held := in.held.Load()
	// gRPC closes a connection that fails before its first call by raw alone, so it is entered here.
	enter := in.most == 0 && held > 0 && !in.closed
	in.most = max(in.most, held)
	in.mu.Unlock()
	if enter {
		in.arriving.enter(in)
	}
	if padded {
		pause = paddingPause
	}
	if pause > 0 {
		select {
		case <-in.gone:
		case <-time.After(pause):
		}
	}
	if padded {
		in.evict(errPadding)
		return 0, errPadding
	}
	if !in.fits() {
		in.evict(errArriving)
		return 0, errArriving
	}
	return n, err
}

// evict closes the connection. gRPC finds it closed, and calls Close.
func (in *inbound) evict(why error) {
	if !in.evicted.Swap(true) {
		in.arriving.lines.Do(func() {
			in.arriving.log.Info("a connection is closed", "client", in.RemoteAddr().String(), "error", why)
		})
		_ = in.raw.Close() // it is given up, so its error does not matter
	}
}

// Write implements net.Conn.
func (in *inbound) Write(b []byte) (int, error) {
	in.mu.Lock()
	in.sent.scan(b, &in.leaving)
	in.mu.Unlock()
	return in.Conn.Write(b)
}

// Close implements net.Conn.
func (in *inbound) Close() error {
	in.mu.Lock()
	if !in.closed {
		in.closed = true
		close(in.gone)
		in.hold(-in.held.Load())
		clear(in.calls)
	}
	limit := in.most
	in.mu.Unlock()
	in.arriving.leave(in, limit)
	return in.Conn.Close()
}

// spend takes frames from the budget, and earn gives it what n bytes of data pay for. They need in.mu.
func (in *inbound) spend(frames float64) { in.budget -= frames }

func (in *inbound) earn(n int) { in.budget = min(in.budget+float64(n)/bytesOfCost, burstFrames) }

// refill gives the budget what it gets with time. It needs in.mu.
func (in *inbound) refill() {
	now := time.Now()
	in.budget = min(in.budget+freeFrames*now.Sub(in.counted).Seconds(), burstFrames)
	in.counted = now
}

// charge takes the cost of a call from the budget.
func (in *inbound) charge(frames float64) {
	if in == nil {
		return
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	in.spend(frames)
}

func (in *inbound) hold(n int64) {
	in.held.Add(n)
	in.arriving.held.Add(n)
}

// in.arrived and in.gone call opened, began, data and ended with in.mu.

func (in *inbound) opened(call uint32) {
	in.last = call
	if in.calls[call] == nil && !in.closed {
		in.calls[call] = &incoming{}
	}
}

// began counts a frame. gRPC drops frames of calls that it does not know.
func (in *inbound) began(call uint32, n int) {
	if m := in.calls[call]; m != nil {
		size := bufferOf(n) + frameCost
		m.held += size
		in.hold(size)
	}
}

func (in *inbound) data(call uint32, b []byte) {
	incoming := in.calls[call]
	if incoming == nil {
		return
	}
	for len(b) > 0 {
		n := 0
		if incoming.have < len(incoming.head) {
			n = copy(incoming.head[incoming.have:], b)
			if incoming.have += n; incoming.have == len(incoming.head) {
				incoming.left = int64(binary.BigEndian.Uint32(incoming.head[1:]))
			}
		} else {
			n = int(min(incoming.left, int64(len(b))))
			incoming.left -= int64(n)
		}
		b = b[n:]
		if incoming.have == len(incoming.head) && incoming.left == 0 {
			in.hold(messageCost)
			incoming.whole = append(incoming.whole, incoming.held+messageCost)
			incoming.have, incoming.held = 0, 0 // the frame's buffer counts to its first message
		}
	}
}

func (in *inbound) ended(call uint32) {
	incoming := in.calls[call]
	if incoming == nil {
		return
	}
	delete(in.calls, call)
	held := incoming.cost + incoming.held
	for _, n := range incoming.whole {
		held += n
	}
	in.hold(-held)
}

// inCall is a call of a connection.
type inCall struct {
	in *inbound
	id uint32
}

type inCallKey struct{}

// begin counts the call whose headers gRPC has read, with n bytes of metadata, until it ends. It returns the context of
// the call.
func (in *inbound) begin(ctx context.Context, n int) context.Context {
	if in == nil {
		return ctx
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	if m := in.calls[in.last]; m != nil {
		m.cost += callCost + int64(n)
		in.hold(callCost + int64(n))
	}
	return context.WithValue(ctx, inCallKey{}, inCall{in, in.last})
}

// read says that a handler has read a message of the call.
func (c inCall) read() {
	c.in.mu.Lock()
	defer c.in.mu.Unlock()
	incoming := c.in.calls[c.id]
	if incoming == nil || len(incoming.whole) == 0 {
		return
	}
	c.in.hold(-incoming.whole[0])
	if incoming.whole = incoming.whole[1:]; len(incoming.whole) == 0 {
		incoming.whole = nil
	}
}

// lent says that the call moved n bytes in shared memory.
func (c inCall) lent(n int) {
	c.in.mu.Lock()
	defer c.in.mu.Unlock()
	c.in.earn(n)
}

// fits reports whether the connection keeps no more than it may. If all connections together keep too much, it closes
// one.
func (in *inbound) fits() bool {
	limit := int64(maxConnArriving)
	if !in.known.Load() {
		limit = maxUnknown
	}
	if in.held.Load() > limit {
		return false
	}
	arriving := in.arriving
	if arriving.held.Load() <= arriving.most {
		return true
	}
	largest := arriving.largest()
	if largest == nil || largest == in {
		return false
	}
	largest.evict(errArriving)
	return true
}

// largest returns the connection that keeps the most of the host whose connections keep the most.
func (a *arriving) largest() *inbound {
	a.mu.Lock()
	defer a.mu.Unlock()
	hosts := map[string]int64{}
	for c := range a.conns {
		hosts[c.place.Host()] += c.held.Load()
	}
	var largest *inbound
	for c := range a.conns {
		host := hosts[c.place.Host()]
		if largest == nil || host > hosts[largest.place.Host()] ||
			host == hosts[largest.place.Host()] && c.held.Load() > largest.held.Load() {
			largest = c
		}
	}
	return largest
}

// enter remembers a connection that keeps bytes.
func (a *arriving) enter(in *inbound) {
	a.mu.Lock()
	defer a.mu.Unlock()
	in.mu.Lock()
	defer in.mu.Unlock()
	if !in.closed { // otherwise nobody would forget it
		a.conns[in] = struct{}{}
	}
}

// leave forgets a connection that kept most bytes. Their memory goes back to the system soon.
func (a *arriving) leave(in *inbound, most int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	_, ok := a.conns[in]
	delete(a.conns, in)
	if ok && most >= memorable && a.trim == nil && !a.shut {
		// Connections of one client end together, and collecting costs some milliseconds of a processor.
		a.trim = time.AfterFunc(trimWait, func() {
			a.mu.Lock()
			a.trim = nil
			a.mu.Unlock()
			procs.GiveBack()
		})
	}
}

// close ends what arriving would still do.
func (a *arriving) close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.shut = true
	if a.trim != nil {
		a.trim.Stop()
	}
}

// let says that a call of the connection was let in.
func (in *inbound) let() {
	if in != nil && !in.known.Swap(true) && in.place != nil {
		in.place.Prove()
	}
}
