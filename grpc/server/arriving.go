package server

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/credentials"

	"github.com/chaski-eo/chaski/internal/accept"
	"github.com/chaski-eo/chaski/internal/procs"
	"github.com/chaski-eo/chaski/loader/resources"
)

// gRPC keeps each message in memory until its last byte has arrived, before it asks any code of this package. Its
// windows do not bound that: it opens the window of a call to the size that the head of the message says, and the
// window of the connection whatever has been read. So each connection counts what it keeps.
const (
	maxRequest = 2 << 20 // bytes of a message; a spec of 1 MiB fits
	// callWindow is how many bytes a client may send ahead of what is read: the least of HTTP/2. Without a fixed one,
	// gRPC lets it grow to 16 MiB. A larger message opens the window for itself.
	callWindow = 64 << 10
	// maxUnknown bounds the unfinished messages of a connection without a call that was let in. Its calls are for
	// health, with messages of some bytes; but four calls that are refused may send their first window meanwhile.
	maxUnknown = 4 * callWindow
	// maxConnArriving bounds those of any other connection: 16 of maxRequest.
	maxConnArriving = 16 * maxRequest
	// maxArriving bounds those of all connections, beside an eighth of the budget. More of them close the connection
	// that keeps the most.
	maxArriving      = 4 * maxConnArriving
	arrivingOfBudget = 8
	// frameCost is what gRPC needs for a frame beside its payload: a buffer of at least 256 bytes, a place in a queue,
	// pointers.
	frameCost         = 512
	memorable         = 1 << 20 // a connection that kept more gives memory back when it closes
	trimWait          = time.Second / 2
	maxUnknownCalls   = 8       // of health: probes make one at a time
	maxUnknownHeaders = 4 << 10 // bytes of their metadata, which a call keeps until it ends
)

var errArriving = errors.New("the client sends more unfinished messages than this server keeps")

// arriving counts the bytes of unfinished messages of all connections.
type arriving struct {
	most int64
	log  *slog.Logger
	held atomic.Int64

	mu    sync.Mutex
	conns map[*inbound]struct{}
	trim  *time.Timer // nil: memory need not go back
	shut  bool
}

func newArriving(b *resources.Budget, log *slog.Logger) *arriving {
	most := int64(maxArriving)
	if b != nil {
		most = min(most, max(b.Limit()/arrivingOfBudget, 4*maxRequest))
	}
	return &arriving{most: most, log: log, conns: map[*inbound]struct{}{}}
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
	in := &inbound{Conn: conn, raw: raw, arriving: c.arriving, calls: map[uint32]*unfinished{}}
	in.received.skip = prefaceBytes
	in.place, _ = raw.(*accept.Conn)
	return in, info, nil
}

// closableAddr is the local address of a connection.
type closableAddr struct {
	net.Addr
	conn    io.Closer
	inbound *inbound // nil before the handshake
}

// inbound is a connection that counts the bytes of messages of which the rest has not arrived.
type inbound struct {
	net.Conn          // of plain text
	raw      net.Conn // below Conn, which can be closed at once
	place    *accept.Conn
	arriving *arriving
	known    atomic.Bool  // a call was let in
	probes   atomic.Int64 // calls for health that run
	held     atomic.Int64

	mu             sync.Mutex // of what follows: one goroutine reads, another writes
	received, sent frames
	calls          map[uint32]*unfinished // with an unfinished message
	most           int64                  // the largest value of held
	closed         bool
}

// unfinished is the message of a call, of which the rest has not arrived.
type unfinished struct {
	head [5]byte // of gRPC: a flag, and the length
	have int     // bytes of head
	left int64   // bytes of the message that are missing
	held int64
}

// LocalAddr implements net.Conn. See namedListener.
func (in *inbound) LocalAddr() net.Addr {
	a := in.Conn.LocalAddr()
	if c, ok := a.(closableAddr); ok {
		a = c.Addr
	}
	return closableAddr{a, in.raw, in}
}

// Read implements net.Conn.
func (in *inbound) Read(b []byte) (int, error) {
	n, err := in.Conn.Read(b)
	in.mu.Lock()
	in.received.scan(b[:n], in.first, in.data, in.ended)
	held := in.held.Load()
	// gRPC closes a connection that fails before its first call by raw alone, so it is entered here.
	enter := in.most == 0 && held > 0 && !in.closed
	in.most = max(in.most, held)
	in.mu.Unlock()
	if enter {
		in.arriving.enter(in)
	}
	if !in.fits() {
		in.arriving.log.Info("a connection is closed", "client", in.RemoteAddr().String(), "error", errArriving)
		_ = in.raw.Close() // it is given up, so its error does not matter
		return 0, errArriving
	}
	return n, err
}

// Write implements net.Conn. It looks for calls that the server ends: their clients send no end.
func (in *inbound) Write(b []byte) (int, error) {
	in.mu.Lock()
	in.sent.scan(b, func(uint32) {}, func(uint32, []byte) {}, in.ended)
	in.mu.Unlock()
	return in.Conn.Write(b)
}

// Close implements net.Conn.
func (in *inbound) Close() error {
	in.mu.Lock()
	if !in.closed {
		in.closed = true
		in.hold(-in.held.Load())
		clear(in.calls)
	}
	most := in.most
	in.mu.Unlock()
	in.arriving.leave(in, most)
	return in.Conn.Close()
}

func (in *inbound) hold(n int64) {
	in.held.Add(n)
	in.arriving.held.Add(n)
}

// first, data and ended are of frames.scan. The caller holds in.mu.

func (in *inbound) first(call uint32) {
	if m := in.message(call); m != nil {
		m.held += frameCost
		in.hold(frameCost)
	}
}

// message returns the message of a call, or nil if the connection is closed.
func (in *inbound) message(call uint32) *unfinished {
	m := in.calls[call]
	if m == nil && !in.closed {
		m = &unfinished{}
		in.calls[call] = m
	}
	return m
}

func (in *inbound) data(call uint32, b []byte) {
	m := in.message(call) // a new one after the end of another message in the same frame
	if m == nil {
		return
	}
	for len(b) > 0 {
		n := 0
		if m.have < len(m.head) {
			n = copy(m.head[m.have:], b)
			if m.have += n; m.have == len(m.head) {
				m.left = int64(binary.BigEndian.Uint32(m.head[1:]))
			}
		} else {
			n = int(min(m.left, int64(len(b))))
			m.left -= int64(n)
		}
		b = b[n:]
		m.held += int64(n)
		in.hold(int64(n))
		if m.have == len(m.head) && m.left == 0 {
			in.hold(-m.held)
			*m = unfinished{}
		}
	}
	if m.have == 0 {
		delete(in.calls, call)
	}
}

func (in *inbound) ended(call uint32) {
	if m := in.calls[call]; m != nil {
		in.hold(-m.held)
		delete(in.calls, call)
	}
}

// fits reports whether the connection keeps no more than it may. It closes the connection that keeps the most, if all
// together keep too much.
func (in *inbound) fits() bool {
	most := int64(maxConnArriving)
	if !in.known.Load() {
		most = maxUnknown
	}
	if in.held.Load() > most {
		return false
	}
	a := in.arriving
	if a.held.Load() <= a.most {
		return true
	}
	largest := a.largest()
	if largest == nil || largest == in {
		return false
	}
	a.log.Info("a connection is closed", "client", largest.RemoteAddr().String(), "error", errArriving)
	_ = largest.raw.Close() // gRPC finds it closed, and calls Close
	return true
}

// largest returns the connection that keeps the most.
func (a *arriving) largest() *inbound {
	a.mu.Lock()
	defer a.mu.Unlock()
	var largest *inbound
	for c := range a.conns {
		if largest == nil || c.held.Load() > largest.held.Load() {
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

// probe lets a call for health in, which needs no token, until ctx ends.
func (in *inbound) probe(ctx context.Context) bool {
	if in == nil || in.known.Load() {
		return true
	}
	if in.probes.Add(1) > maxUnknownCalls {
		in.probes.Add(-1)
		return false
	}
	context.AfterFunc(ctx, func() { in.probes.Add(-1) })
	return true
}
