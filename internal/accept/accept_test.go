package accept

import (
	"fmt"
	"net"
	"testing"
)

// from is one end of a pipe with an address.
type from struct {
	net.Conn
	addr net.Addr
}

func (f from) RemoteAddr() net.Addr { return f.addr }

// connect returns the server's end of a new connection, which is nil if it was refused.
func connect(t *testing.T, l *Listener, address string) *Conn {
	t.Helper()
	addr, err := net.ResolveTCPAddr("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	client, raw := net.Pipe()
	t.Cleanup(func() { client.Close(); raw.Close() })
	c, older := l.enter(from{raw, addr})
	if older != nil {
		older.Conn.Close()
	}
	return c
}

// closed reports whether a connection has lost its place.
func closed(c *Conn) bool {
	c.listener.mu.Lock()
	defer c.listener.mu.Unlock()
	return c.hasLeft
}

// TestOldestGuestLeaves promises that a host has half of the connections, that its oldest connection without proof
// makes way for a new one, and that those with proof and those of other hosts stay.
func TestOldestGuestLeaves(t *testing.T) {
	l := NewListener(nil, 8)
	proven := connect(t, l, "192.0.2.1:1")
	proven.Prove()
	other := connect(t, l, "192.0.2.2:1")
	var guests []*Conn
	for range 10 {
		c := connect(t, l, "192.0.2.1:2")
		if c == nil {
			t.Fatal("a connection is refused beside older ones without proof")
		}
		guests = append(guests, c)
	}
	for i, c := range guests {
		if want := i < len(guests)-3; closed(c) != want { // a host has 4, of which one is proven
			t.Errorf("connection %d is closed: %v", i, closed(c))
		}
	}
	if closed(proven) || closed(other) {
		t.Error("a connection with proof, or of another host, made way")
	}
	for _, c := range guests[7:] {
		c.Prove()
	}
	if c := connect(t, l, "192.0.2.1:3"); c != nil {
		t.Error("a host has more than half of the connections")
	}
	if err := guests[9].Close(); err != nil {
		t.Error(err)
	}
	guests[9].Close() // a second time must not free a second place
	if c := connect(t, l, "192.0.2.1:3"); c == nil {
		t.Error("a closed connection keeps its place")
	} else {
		c.Prove()
	}
	if c := connect(t, l, "192.0.2.1:4"); c != nil {
		t.Error("a connection gave its place back twice")
	}
}

// TestBusiestHostMakesWay promises that a connection without proof keeps its place beside hosts that open one after the
// other: one of the host with most of them makes way.
func TestBusiestHostMakesWay(t *testing.T) {
	l := NewListener(nil, 8)
	modest := connect(t, l, "192.0.2.3:1")
	var attackers []*Conn
	for i := range 20 {
		attackers = append(attackers, connect(t, l, fmt.Sprintf("192.0.2.%d:1", 1+i%2)))
	}
	if modest == nil || closed(modest) {
		t.Error("the only connection of a host made way for those of hosts with more")
	}
	second := connect(t, l, "192.0.2.4:1")
	if second == nil || closed(second) || closed(modest) {
		t.Error("a host without a connection gets none beside hosts with several")
	}
	for _, c := range attackers[:10] {
		if !closed(c) {
			t.Error("an old connection of a busy host stays")
		}
	}
}

// TestManyHosts promises that the bound for all holds for many hosts, and that addresses of one network of IPv6 count
// as one host.
func TestManyHosts(t *testing.T) {
	l := NewListener(nil, 8)
	var all []*Conn
	for i := range 100 {
		c := connect(t, l, net.JoinHostPort(net.IPv4(192, 0, 2, byte(i)).String(), "1"))
		all = append(all, c)
	}
	open := 0
	for _, c := range all {
		if c != nil && !closed(c) {
			open++
		}
	}
	if open != 8 {
		t.Errorf("%d connections are open; the bound is 8", open)
	}
	l = NewListener(nil, 8)
	for i := range 8 {
		ip := net.ParseIP("2001:db8::")
		ip[15] = byte(i)
		connect(t, l, net.JoinHostPort(ip.String(), "1"))
	}
	if l.open != 4 {
		t.Errorf("one network of IPv6 has %d connections; the bound is 4", l.open)
	}
}
