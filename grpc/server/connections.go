package server

import (
	"context"
	"net"
	"sync/atomic"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/stats"

	"github.com/chaski-eo/chaski/internal/accept"
)

// connection is an accepted connection, which its calls find by connectionOf.
type connection struct {
	net.Conn              // of plain text
	number   uint64       // names it
	raw      net.Conn     // what Close of gRPC closes in the end
	place    *accept.Conn // nil if the listener is not ours
	hasPass  atomic.Bool  // a call was let in
	refusals atomic.Int64 // calls, until one was let in
}

// maxRefused is how many calls of a connection may have no valid token before the first one that has: a client whose
// token has just expired tries each of its calls once more.
const maxRefused = 16

// lastConnection is the number of the last connection of all servers of the process.
var lastConnection atomic.Uint64

// letIn says that a call with a valid token came. c may be nil.
func (c *connection) letIn() {
	if c != nil && !c.hasPass.Swap(true) && c.place != nil {
		c.place.Prove()
	}
}

// refuse says that a call without a valid token came. It closes the connection after maxRefused of them. c may be nil.
func (c *connection) refuse() {
	if c != nil && !c.hasPass.Load() && c.refusals.Add(1) == maxRefused {
		go c.close() // with TLS it may wait
	}
}

// close closes the connection. gRPC finds it closed, and ends its calls.
func (c *connection) close() { _ = c.raw.Close() } // it is given up, so its error does not matter

// handshakes are credentials that give gRPC a connection, and take pipes away.
type handshakes struct {
	credentials.TransportCredentials
	pipes *pipes
}

// ServerHandshake implements credentials.TransportCredentials.
func (h handshakes) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	conn, info, err := h.TransportCredentials.ServerHandshake(raw)
	if err != nil {
		return nil, nil, err
	}
	place, _ := raw.(*accept.Conn)
	if conn, err = h.pipes.split(conn, place); err != nil {
		return nil, nil, err
	}
	return &connection{Conn: conn, number: lastConnection.Add(1), raw: raw, place: place}, info, nil
}

// connectionAddr is the local address of a connection, by which TagConn finds the connection.
type connectionAddr struct {
	net.Addr
	of *connection
}

// LocalAddr implements net.Conn.
func (c *connection) LocalAddr() net.Addr { return connectionAddr{c.Conn.LocalAddr(), c} }

type connectionKey struct{}

// connectionOf returns the connection of a call, or nil if the gRPC server was not made with GRPCOptions.
func connectionOf(ctx context.Context) *connection {
	c, _ := ctx.Value(connectionKey{}).(*connection)
	return c
}

// connections is the stats.Handler that tells calls their connection, and has requests wait.
type connections struct{}

// TagConn implements stats.Handler.
func (connections) TagConn(ctx context.Context, info *stats.ConnTagInfo) context.Context {
	if addr, ok := info.LocalAddr.(connectionAddr); ok {
		ctx = context.WithValue(ctx, connectionKey{}, addr.of)
	}
	return ctx
}

// HandleConn implements stats.Handler.
func (connections) HandleConn(context.Context, stats.ConnStats) {}

// TagRPC implements stats.Handler.
func (connections) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context { return ctx }

// request is a call.
type request struct {
	places  *places // of the client
	streams bool    // it is a stream, which needs no place
	leave   func()  // gives its place back; nil before it has one
}

type requestKey struct{}

// placesOf returns the places for requests of the client of a call, or nil if the gRPC server was not made with
// GRPCOptions.
func placesOf(ctx context.Context) *places {
	if r, ok := ctx.Value(requestKey{}).(*request); ok {
		return r.places
	}
	return nil
}

// HandleRPC implements stats.Handler: gRPC calls it before it reads the request of a call, which then waits for one of
// the places of its client, and at the end of the call.
func (connections) HandleRPC(ctx context.Context, s stats.RPCStats) {
	r, ok := ctx.Value(requestKey{}).(*request)
	if !ok || r.streams {
		return
	}
	switch s.(type) {
	case *stats.Begin:
		r.leave, _ = r.places.take(ctx) // the call ends with ctx
	case *stats.End:
		if r.leave != nil {
			r.leave()
		}
	}
}
