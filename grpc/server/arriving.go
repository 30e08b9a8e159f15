package server

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/stats"

	"github.com/chaski-eo/chaski/grpc/auth"
	"github.com/chaski-eo/chaski/internal/accept"
	"github.com/chaski-eo/chaski/loader/resources"
)

// gRPC keeps each message in memory until its last byte has arrived and its handler reads it, and asks no code of this
// package before. Its windows do not bound that: it opens the window of a call to the size that the head of the message
// says, and the window of the connection whatever has been read. So each connection counts the frames that arrive, and
// takes off what handlers have read, which gRPC's statistics tell.
const (
	maxRequest = 2 << 20 // bytes of a message; a spec of 1 MiB fits
	// callWindow is how many bytes a client may send ahead of what is read: the least of HTTP/2. Without a fixed one,
	// gRPC lets it grow to 16 MiB. A larger message opens the window for itself.
	callWindow = 64 << 10
	// maxUnread is how many bytes of one call can wait for its handler: its window, and a message that has opened the
	// window for itself.
	maxUnread = callWindow + maxRequest
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
	// callCost is what a call needs until it ends: the stacks of two goroutines, its contexts, its queues.
	callCost = 16 << 10
)

// The parts of HTTP/2 (RFC 9113, sections 3.4, 4.1 and 6) that are counted.
const (
	prefaceBytes = 24 // of a client, before its first frame
	frameHead    = 9  // length, kind, flags, number of the call
	frameData    = 0
	frameHeaders = 1
	frameReset   = 3
)

// A frame costs the server a microsecond or more, whatever it holds. So each connection has a budget of frames, in
// which frames that move data pay for themselves, in both directions: a client that trains sends two of some 50 bytes
// for each batch, and updates of windows for what it gets.
const (
	freeFrames  = 500  // a second, at least
	burstFrames = 2000 // at once
	bytesOfCost = 64   // bytes of data that pay for a frame
	// What a call costs beside its frames, until data answers it: 10 µs. Reads of single pixels have no bound.
	callFrames = 8
	// messageFrames is the cost of each message behind the first one of a call: a frame may hold 2,000 of them.
	messageFrames = 1
	// guestFrames is the cost of a call that a token would not pay for: one that is refused, or for health. Probes make
	// one a second.
	guestFrames = 20
	resetFrames = 50 // of a call that the client gives up before its first answer, which has begun to work
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

// unreadBytes counts what gRPC keeps of messages that no handler has read, of all connections.
type unreadBytes struct {
	most     int64
	log      *slog.Logger
	memory   atomic.Int64
	lines    rate.Sometimes  // of the log
	stopping <-chan struct{} // closed when the server is to end; nil: it never is

	mu    sync.Mutex
	conns map[*inbound]struct{} // that keep bytes

	debts debts
}

// debts counts the connections of each client whose budget of frames is spent.
type debts struct {
	mu sync.Mutex
	by map[clientID]int
}

// add changes the count of a client by n, and returns it.
func (d *debts) add(client clientID, n int) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.by[client] += n; d.by[client] == 0 {
		delete(d.by, client)
		return 0
	}
	return d.by[client]
}

func newArriving(b *resources.Budget, log *slog.Logger) *unreadBytes {
	limit := int64(maxArriving)
	if b != nil {
		limit = min(limit, max(b.Limit()/arrivingOfBudget, 4*maxRequest))
	}
	return &unreadBytes{most: limit, log: log, conns: map[*inbound]struct{}{},
		debts: debts{by: map[clientID]int{}}, lines: rate.Sometimes{First: 200, Interval: time.Second}}
}

// largest returns the connection that keeps the most of the host whose connections keep the most.
func (a *unreadBytes) largest() *inbound {
	a.mu.Lock()
	defer a.mu.Unlock()
	hosts := map[string]int64{}
	for conn := range a.conns {
		hosts[conn.place.Host()] += conn.memory.Load()
	}
	var largest *inbound
	for conn := range a.conns {
		host := hosts[conn.place.Host()]
		if largest == nil || host > hosts[largest.place.Host()] ||
			host == hosts[largest.place.Host()] && conn.memory.Load() > largest.memory.Load() {
			largest = conn
		}
	}
	return largest
}

// counted are credentials whose connections count what arrives.
type counted struct {
	credentials.TransportCredentials
	arriving *unreadBytes
	pipes    *pipes
}

// ServerHandshake implements credentials.TransportCredentials.
func (c counted) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	conn, info, err := c.TransportCredentials.ServerHandshake(raw)
	if err != nil {
		return nil, nil, err
	}
	place, _ := raw.(*accept.Conn)
	if conn, err = c.pipes.split(conn, place); err != nil {
		return nil, nil, err
	}
	in := newInbound(c.arriving)
	in.Conn, in.raw, in.place = conn, raw, place
	if place != nil {
		in.client = clientID("host " + place.Host())
	}
	return in, info, nil
}

// inboundAddr is the local address of a connection that counts what arrives, by which TagConn finds the connection.
type inboundAddr struct {
	net.Addr
	inbound *inbound
}

// inbound is a connection that counts what gRPC keeps of it.
type inbound struct {
	number   uint64 // names the connection
	net.Conn        // of plain text
	raw      net.Conn
	place    *accept.Conn
	arriving *unreadBytes
	hasPass  atomic.Bool  // a call was let in
	memory   atomic.Int64 // cost and calls together
	evicted  atomic.Bool  // closed because it keeps too much

	done    chan struct{} // closed by Close
	mu      sync.Mutex    // of what follows
	client  clientID      // whose connections share a rate
	debtor  clientID      // the client when the budget was spent; empty: it is not
	budget  float64       // of frames
	counted time.Time     // when budget last grew by time
	skip    int           // bytes before the head of the next frame
	head    [frameHead]byte
	have    int   // bytes of head
	unread  int64 // bytes of data that handlers have not read
	cost    int64 // of the buffers of these
	calls   int   // that handlers work on
	resets  int   // that have arrived, of calls that have not ended
	opening bool  // the tap has let in a call that its handler may not have begun
	entered bool  // it is one of unreadBytes.conns, or was
	closed  bool
}

// lastConnection is the number of the last connection of all servers of the process.
var lastConnection atomic.Uint64

func newInbound(a *unreadBytes) *inbound {
	number := lastConnection.Add(1)
	return &inbound{number: number, arriving: a, done: make(chan struct{}), budget: burstFrames,
		client: clientID(fmt.Sprintf("connection %d", number)), counted: time.Now(), skip: prefaceBytes}
}

// LocalAddr implements net.Conn.
func (in *inbound) LocalAddr() net.Addr { return inboundAddr{in.Conn.LocalAddr(), in} }

// Read implements net.Conn.
func (in *inbound) Read(b []byte) (int, error) {
	count, err := in.Conn.Read(b)
	if full := in.count(in.done, func() { in.scan(b[:count]) }); full != nil {
		return 0, full
	}
	return count, err
}

// count calls f with in.mu, which counts what has arrived. It waits until the budget pays for that, or done is closed,
// and closes a connection that keeps too much, with an error.
func (in *inbound) count(done <-chan struct{}, f func()) error {
	in.mu.Lock()
	f()
	// gRPC closes a connection that fails before its first call by raw alone, so it is entered here.
	enter := !in.entered && in.memory.Load() > 0 && !in.closed
	in.entered = in.entered || enter
	in.mu.Unlock()
	if enter {
		in.enter()
	}
	in.pause(done)
	if !in.fits() {
		in.evict()
		return errArriving
	}
	return nil
}

// pause waits while the connection has no budget, so it is read as fast as its budget grows. One that is closed
// would be opened again, with a new budget; and a client whose calls are many and small, such as epochs of one small
// chip, is no attacker. A server that ends does not wait, and closes the connection: calls whose replies it does not
// read would hold the end up.
func (in *inbound) pause(done <-chan struct{}) {
	for {
		wait := in.debt()
		if wait <= 0 || in.evicted.Load() {
			return
		}
		select {
		case <-in.arriving.stopping:
			in.evict()
			return
		case <-done:
			return
		case <-time.After(min(wait, time.Second)): // other connections may have paid meanwhile
		}
	}
}

// debt lets the budget grow, and returns how long it will be spent. The connections of one client whose budgets are
// spent share one rate: more of them get no more.
func (in *inbound) debt() time.Duration {
	in.mu.Lock()
	defer in.mu.Unlock()
	speed := float64(freeFrames)
	if in.debtor != "" {
		speed /= float64(in.arriving.debts.add(in.debtor, 0))
	}
	now := time.Now()
	in.budget = min(in.budget+speed*now.Sub(in.counted).Seconds(), burstFrames)
	in.counted = now
	switch spent := in.budget < 0 && !in.closed; {
	case spent && in.debtor == "":
		in.debtor = in.client
		in.arriving.debts.add(in.debtor, 1)
	case !spent:
		in.pay()
		return 0
	}
	return time.Duration(-in.budget / speed * float64(time.Second))
}

// pay ends a debt. It needs in.mu.
func (in *inbound) pay() {
	if in.debtor != "" {
		in.arriving.debts.add(in.debtor, -1)
		in.debtor = ""
	}
}

// enter remembers a connection that keeps bytes.
func (in *inbound) enter() {
	in.arriving.mu.Lock()
	defer in.arriving.mu.Unlock()
	in.mu.Lock()
	defer in.mu.Unlock()
	// A closed connection stays out, since nobody would forget it.
	if !in.closed {
		in.arriving.conns[in] = struct{}{}
	}
}

// Close implements net.Conn.
func (in *inbound) Close() error {
	in.mu.Lock()
	if !in.closed {
		in.closed = true
		close(in.done)
		in.hold(-in.memory.Load())
		in.pay()
	}
	in.mu.Unlock()
	in.arriving.mu.Lock()
	delete(in.arriving.conns, in)
	in.arriving.mu.Unlock()
	return in.Conn.Close()
}

// evict closes the connection. gRPC finds it closed, and calls Close.
func (in *inbound) evict() {
	if !in.evicted.Swap(true) {
		in.arriving.lines.Do(func() {
			in.arriving.log.Info("a connection is closed", "client", in.RemoteAddr().String(), "error", errArriving)
		})
		_ = in.raw.Close() // it is given up, so its error does not matter
	}
}

// fits reports whether the connection keeps no more than it may. If all connections together keep too much, it closes
// one.
func (in *inbound) fits() bool {
	limit := int64(maxConnArriving)
	if !in.hasPass.Load() {
		limit = maxUnknown
	}
	if in.memory.Load() > limit {
		return false
	}
	arriving := in.arriving
	if arriving.memory.Load() <= arriving.most {
		return true
	}
	largest := arriving.largest()
	if largest == nil || largest == in {
		return false
	}
	largest.evict()
	return true
}

// scan finds the heads of frames in the bytes of a connection, however they are cut. It needs in.mu.
func (in *inbound) scan(b []byte) {
	for len(b) > 0 {
		skipped := min(in.skip, len(b))
		in.skip -= skipped
		copied := copy(in.head[in.have:], b[skipped:])
		in.have += copied
		b = b[skipped+copied:]
		if in.have == frameHead {
			in.have = 0
			in.skip = int(binary.BigEndian.Uint32(in.head[:4]) >> 8)
			in.frame(in.head[3], in.skip)
		}
	}
}

// frame counts a frame with n bytes of payload. It needs in.mu.
func (in *inbound) frame(kind byte, n int) {
	in.budget--
	switch {
	case kind == frameData && n > 0:
		in.earn(n)
		if in.calls > 0 || in.opening { // gRPC drops the data of other calls
			in.unread += int64(n)
			in.keep(bufferOf(n) + frameCost)
		}
	case kind == frameHeaders && in.calls == 0:
		in.forget() // of a call of an unknown method, which had no handler
	case kind == frameReset:
		in.resets++
	}
}

// earn gives the budget of frames what n bytes of data pay for. It needs in.mu.
func (in *inbound) earn(n int) { in.budget = min(in.budget+float64(n)/bytesOfCost, burstFrames) }

// keep counts bytes of buffers. It needs in.mu.
func (in *inbound) keep(n int64) {
	in.cost += n
	in.hold(n)
}

// forget says that there are no buffers. It needs in.mu.
func (in *inbound) forget() {
	in.keep(-in.cost)
	in.unread = 0
}

// hold counts bytes of the connection while it is open. It needs in.mu.
func (in *inbound) hold(n int64) {
	if in.closed && n > 0 {
		return
	}
	n = max(n, -in.memory.Load()) // Close has taken all off
	in.memory.Add(n)
	in.arriving.memory.Add(n)
}

// lockAndHold is hold for who has no in.mu.
func (in *inbound) lockAndHold(n int64) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.hold(n)
}

// inCall is a call of a connection.
type inCall struct {
	in         *inbound
	size       int64 // what it takes until it ends, beside its messages
	hasRequest bool  // its first message was read
	hasReply   bool  // with data
	hasStatus  bool  // by the server, with a status
}

type inCallKey struct{}

// charge takes the cost of a call from the budget. in may be nil.
func (in *inbound) charge(frames float64) {
	if in == nil {
		return
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	in.budget -= frames
}

// call returns the context of a call with n bytes of metadata, which costs frames. pass says that it was let in, and by
// which token; it may be nil, as in may.
func (in *inbound) call(ctx context.Context, n int, pass *auth.Pass, frames float64) context.Context {
	if in == nil {
		return ctx
	}
	if pass != nil && !in.hasPass.Swap(true) && in.place != nil {
		in.place.Prove()
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	if pass != nil && pass.Name != "" {
		in.client = clientID(tokenPrefix + pass.Name)
	}
	in.budget -= frames
	in.opening = true
	return context.WithValue(ctx, inCallKey{}, &inCall{in: in, size: callCost + int64(n)})
}

type connectionKey struct{}

// connectionOf returns the connection of a call, or nil if the gRPC server was not made with GRPCOptions.
func connectionOf(ctx context.Context) *inbound {
	in, _ := ctx.Value(connectionKey{}).(*inbound)
	return in
}

// connections is the stats.Handler that finds the connection of a call, and counts its calls.
type connections struct{}

// TagConn implements stats.Handler.
func (connections) TagConn(ctx context.Context, info *stats.ConnTagInfo) context.Context {
	if addr, ok := info.LocalAddr.(inboundAddr); ok {
		ctx = context.WithValue(ctx, connectionKey{}, addr.inbound)
	}
	return ctx
}

// HandleConn implements stats.Handler.
func (connections) HandleConn(context.Context, stats.ConnStats) {}

// TagRPC implements stats.Handler.
func (connections) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context { return ctx }

// HandleRPC implements stats.Handler: it counts the calls of a connection, and what their handlers read and send.
func (connections) HandleRPC(ctx context.Context, s stats.RPCStats) {
	call, ok := ctx.Value(inCallKey{}).(*inCall)
	if !ok {
		return
	}
	call.in.mu.Lock()
	defer call.in.mu.Unlock()
	switch s := s.(type) {
	case *stats.Begin:
		call.in.calls++
		call.in.opening = false
		call.in.hold(call.size)
	case *stats.InPayload:
		call.in.read(int64(s.WireLength))
		if call.hasRequest {
			call.in.budget -= messageFrames
		}
		call.hasRequest = true
	case *stats.OutPayload:
		call.sent(s.WireLength)
	case *stats.OutTrailer:
		call.hasStatus = true
	case *stats.End:
		call.end()
	}
}

// read says that a handler has read n bytes. It needs in.mu.
func (in *inbound) read(n int64) {
	if n >= in.unread {
		in.forget()
		return
	}
	// The buffers of all bytes count alike: which ones the message came in is not known.
	in.keep(-int64(float64(in.cost) * float64(n) / float64(in.unread)))
	in.unread -= n
}

// sent says that the call was answered with n bytes. It needs in.mu.
func (c *inCall) sent(n int) {
	c.in.earn(n)
	if !c.hasReply && c.in.hasPass.Load() {
		c.in.budget += callFrames
	}
	c.hasReply = true
}

// end needs in.mu.
func (c *inCall) end() {
	conn := c.in
	conn.hold(-c.size)
	if !c.hasStatus && conn.resets > 0 { // a client that gives up gets no status
		conn.resets--
		if !c.hasReply { // clients end each stream so, with all of its batches
			conn.budget -= resetFrames
		}
	}
	// gRPC drops what the call leaves unread, but the count is of the connection and does not know which bytes these
	// are. So it is lowered to what the calls that go on can have; otherwise what ended calls leave would add up.
	if conn.calls--; conn.calls == 0 {
		conn.forget()
	} else if most := int64(conn.calls) * maxUnread; conn.unread > most {
		conn.read(conn.unread - most)
	}
}

// answered says that a call was answered with n bytes in shared memory or by a pipe.
func answered(ctx context.Context, n int) {
	if call, ok := ctx.Value(inCallKey{}).(*inCall); ok {
		call.in.mu.Lock()
		defer call.in.mu.Unlock()
		call.sent(n)
	}
}
