package server

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"

	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/stats"

	"github.com/chaski-eo/chaski/internal/invariants"
)

// lease is memory that is lent to the transport in pieces. It comes back, once, when the sender and
// the transport are done with it. It is the wire.Owner of the pieces.
type lease struct {
	conn    *connection
	release func()

	mu     sync.Mutex
	sender bool // the sender still uses it
	pieces int  // that the transport has
	dead   bool // the transport is gone, and its leases with it
	over   bool
}

// lend starts a lease on a connection.
func (c *connection) lend(release func()) *lease {
	l := &lease{conn: c, release: release, sender: true}
	c.mu.Lock()
	defer c.mu.Unlock()
	l.dead = c.ended // otherwise nobody would call the lease back
	if !l.dead {
		c.leases[l] = struct{}{}
	}
	return l
}

// Hold implements wire.Owner.
func (l *lease) Hold() mem.BufferPool {
	l.change(func() { l.pieces++ })
	p := &piece{lease: l}
	// grpc 1.85 forgets, without Put, a message that is queued just after its stream was cancelled
	// (transport.loopyWriter.preprocessData). Then only the garbage collector can find that the
	// piece is unused. It runs every two minutes at least.
	p.lost = runtime.AddCleanup(p, (*lease).back, l)
	return p
}

// back says that the transport is done with a piece.
func (l *lease) back() { l.change(func() { l.pieces-- }) }

// piece is the pool of one buffer of the transport, which is all that refers to it.
type piece struct {
	lease *lease
	lost  runtime.Cleanup
}

// Put implements mem.BufferPool: the transport is done with the piece.
func (p *piece) Put(*[]byte) {
	p.lost.Stop()
	p.lease.back()
}

// Get implements mem.BufferPool. The transport only uses Put.
func (*piece) Get(n int) *[]byte {
	b := make([]byte, n)
	return &b
}

// done says that the sender sends no more of it.
func (l *lease) done() { l.change(func() { l.sender = false }) }

func (l *lease) change(f func()) {
	l.mu.Lock()
	f()
	invariants.Check(l.pieces >= 0, "a piece of a lease is given back twice")
	ready := !l.over && !l.sender && (l.pieces == 0 || l.dead)
	l.over = l.over || ready
	l.mu.Unlock()
	if ready {
		l.conn.forget(l)
		l.release()
	}
}

// connection knows the leases of one connection. grpc gives the pieces of a stream back when the
// stream ends, but not those it had queued when the whole connection breaks: then they are called
// back here.
type connection struct {
	number uint64   // names the connection
	in     *inbound // nil if the credentials are not from GRPCOptions

	mu     sync.Mutex
	leases map[*lease]struct{}
	ended  bool
}

// hangUp closes the connection, with all streams of it.
func (c *connection) hangUp() {
	if c != nil && c.in != nil {
		_ = c.in.raw.Close() // the connection is given up, so its error does not matter
	}
}

func (c *connection) forget(l *lease) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.leases, l)
}

// end is called when the transport's goroutines are gone.
func (c *connection) end() {
	c.mu.Lock()
	c.ended = true
	leases := c.leases
	c.leases = map[*lease]struct{}{}
	c.mu.Unlock()
	for l := range leases {
		l.change(func() { l.dead = true })
	}
}

type connectionKey struct{}

// connections is the stats.Handler that tells when a connection has ended: after the goroutines that
// read and write it.
type connections struct{}

// lastConnection is the number of the last connection of all servers of the process.
var lastConnection atomic.Uint64

func (connections) TagConn(ctx context.Context, info *stats.ConnTagInfo) context.Context {
	c := &connection{number: lastConnection.Add(1), leases: map[*lease]struct{}{}}
	if addr, ok := info.LocalAddr.(inboundAddr); ok {
		c.in = addr.inbound
	}
	return context.WithValue(ctx, connectionKey{}, c)
}

func (connections) HandleConn(ctx context.Context, s stats.ConnStats) {
	if _, ok := s.(*stats.ConnEnd); ok {
		if c, ok := ctx.Value(connectionKey{}).(*connection); ok {
			c.end()
		}
	}
}

func (connections) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context { return ctx }
