package netsim

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
)

// Network is a network in memory, for tests in a bubble of time (testing/synctest): the clock of a bubble stands still
// while a goroutine waits for a real connection. The zero value is ready to use.
type Network struct {
	mu    sync.Mutex
	doors map[string]*door // by address
}

// NewServer starts a server that clients reach through DialContext. Close it after use.
func (n *Network) NewServer() *Server {
	n.mu.Lock()
	if n.doors == nil {
		n.doors = map[string]*door{}
	}
	addr := fmt.Sprintf("server%d.test:80", len(n.doors))
	d := &door{addr: addr, calls: make(chan net.Conn), shut: make(chan struct{})}
	n.doors[d.addr] = d
	n.mu.Unlock()
	server := &Server{objects: map[string][]byte{}, stop: make(chan struct{})}
	server.http = &httptest.Server{Listener: d, Config: &http.Server{Handler: http.HandlerFunc(server.serve)}}
	server.http.Start()
	server.URL = server.http.URL
	return server
}

// DialContext connects to a server of the network: it is a field of http.Transport.
func (n *Network) DialContext(ctx context.Context, _, addr string) (net.Conn, error) {
	n.mu.Lock()
	door := n.doors[addr]
	n.mu.Unlock()
	if door == nil {
		return nil, fmt.Errorf("%s: no such server", addr)
	}
	ours, theirs := net.Pipe()
	select {
	case door.calls <- theirs:
		return ours, nil
	case <-door.shut:
		return nil, fmt.Errorf("%s: the server is closed", addr)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// door is the listener of a server.
type door struct {
	addr  string
	calls chan net.Conn
	shut  chan struct{}
	once  sync.Once
}

func (d *door) Accept() (net.Conn, error) {
	select {
	case c := <-d.calls:
		return c, nil
	case <-d.shut:
		return nil, net.ErrClosed
	}
}

func (d *door) Close() error {
	d.once.Do(func() { close(d.shut) })
	return nil
}

func (d *door) Addr() net.Addr { return d }

func (d *door) Network() string { return "memory" }

func (d *door) String() string { return d.addr }
