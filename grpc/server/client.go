package server

import (
	"context"
	"fmt"
	"net"
	"net/netip"

	"google.golang.org/grpc/peer"

	"github.com/chaski-eo/chaski/internal/shm"
)

// clientID identifies a client in logs, and for limits and turns, which are kept per client. It is one of
//
//	"token NAME"                 whom withClient names
//	"host 192.0.2.7"             all connections from one address, whatever the port
//	"process 12 of user 1000"    on a Unix socket
//	"connection 7"               where nothing else is known
type clientID string

// tokenPrefix begins the id of a client with a token of its own.
const tokenPrefix = "token "

type clientKey struct{}

// withClient returns the context of a request that came with a valid token, or other proof, of the given name.
func withClient(ctx context.Context, name string) context.Context {
	return context.WithValue(ctx, clientKey{}, clientID(tokenPrefix+name))
}

// clientOf returns who sent a request.
func clientOf(ctx context.Context) clientID {
	if c, ok := ctx.Value(clientKey{}).(clientID); ok {
		return c
	}
	if caller, ok := peer.FromContext(ctx); ok && caller.Addr != nil {
		if addr, err := netip.ParseAddrPort(caller.Addr.String()); err == nil {
			return clientID("host " + addr.Addr().Unmap().WithZone("").String())
		}
		if addr, ok := caller.Addr.(processAddr); ok {
			return clientID(addr.String())
		}
	}
	if in := connectionOf(ctx); in != nil {
		return clientID(fmt.Sprintf("connection %d", in.number))
	}
	return "connection" // the gRPC server was not made with GRPCOptions
}

// namedListener names the connections of a Unix socket by the process at their other end.
type namedListener struct{ net.Listener }

// Accept implements net.Listener.
func (l namedListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	if socket, ok := conn.(*net.UnixConn); ok {
		user, process, err := shm.Peer(socket)
		// Process 0 stands for all processes of other containers, which must not count as one.
		if err == nil && process != 0 {
			return namedConn{socket, processAddr{user, process}}, nil
		}
	}
	return conn, nil
}

type namedConn struct {
	*net.UnixConn
	from processAddr
}

// RemoteAddr implements net.Conn.
func (c namedConn) RemoteAddr() net.Addr { return c.from }

// processAddr is the address of a process at the other end of a Unix socket, which has no name.
type processAddr struct{ user, process int }

// Network implements net.Addr.
func (processAddr) Network() string { return "unix" }

// String implements net.Addr.
func (a processAddr) String() string { return fmt.Sprintf("process %d of user %d", a.process, a.user) }
