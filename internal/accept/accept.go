// Package accept bounds the connections of a listener, so that no client takes the descriptors and the memory of all.
package accept

import (
	"container/list"
	"net"
	"net/netip"
	"sync"

	"github.com/chaski-eo/chaski/internal/procs"
)

// Descriptors returns how many connections a listener may have that could use most: a quarter of the descriptors of
// the process, because other quarters belong to idle files and to shared memory. It returns 8 at least.
func Descriptors(most int) int { return int(min(int64(most), max(procs.Files()/4, 8))) }

// Listener accepts a limited number of connections, and half as many of one host. A new connection beyond that takes
// the place of the oldest one that has not proven itself (Conn.Prove), which is closed. Without such a one, the new
// one is closed. It is safe for concurrent use.
type Listener struct {
	net.Listener
	most, mostOfHost int

	mu     sync.Mutex
	open   int
	hosts  map[string]int
	guests *list.List // of *Conn that have not proven themselves, the oldest first
}

// NewListener returns a listener with up to most connections, 2 at least.
func NewListener(l net.Listener, most int) *Listener {
	most = max(most, 2)
	return &Listener{Listener: l, most: most, mostOfHost: most / 2, hosts: map[string]int{}, guests: list.New()}
}

// Conn is an accepted connection.
type Conn struct {
	net.Conn
	listener *Listener
	host     string
	guest    *list.Element // nil after Prove and after its place is gone
	gone     bool          // its place is free
}

// Accept implements net.Listener.
func (l *Listener) Accept() (net.Conn, error) {
	for {
		raw, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		c, older := l.enter(raw)
		if older != nil {
			_ = older.Conn.Close() // it is given up, so its error does not matter
		}
		if c != nil {
			return c, nil
		}
		_ = raw.Close()
	}
}

// enter gives a connection a place. older is the connection that had it before. c is nil if there is no place.
func (l *Listener) enter(raw net.Conn) (c, older *Conn) {
	host := hostOf(raw.RemoteAddr())
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.hosts[host] >= l.mostOfHost {
		older = l.oldest(func(g *Conn) bool { return g.host == host })
	} else if l.open >= l.most {
		older = l.oldest(func(*Conn) bool { return true })
	}
	if older != nil {
		l.leave(older)
	}
	if l.hosts[host] >= l.mostOfHost || l.open >= l.most {
		return nil, older
	}
	c = &Conn{Conn: raw, listener: l, host: host}
	c.guest = l.guests.PushBack(c)
	l.open++
	l.hosts[host]++
	return c, older
}

// oldest returns the oldest guest that is wanted, or nil. The caller holds the lock.
func (l *Listener) oldest(wanted func(*Conn) bool) *Conn {
	for e := l.guests.Front(); e != nil; e = e.Next() {
		if c := e.Value.(*Conn); wanted(c) {
			return c
		}
	}
	return nil
}

// leave frees the place of a connection, once. The caller holds the lock.
func (l *Listener) leave(c *Conn) {
	if c.gone {
		return
	}
	c.gone = true
	l.prove(c)
	l.open--
	if l.hosts[c.host]--; l.hosts[c.host] == 0 {
		delete(l.hosts, c.host)
	}
}

func (l *Listener) prove(c *Conn) {
	if c.guest != nil {
		l.guests.Remove(c.guest)
		c.guest = nil
	}
}

// Host names the host that the connection counts to. It is empty for nil.
func (c *Conn) Host() string {
	if c == nil {
		return ""
	}
	return c.host
}

// Prove says that the client has shown who it is: newer connections do not take its place.
func (c *Conn) Prove() {
	c.listener.mu.Lock()
	defer c.listener.mu.Unlock()
	c.listener.prove(c)
}

// Close implements net.Conn.
func (c *Conn) Close() error {
	c.listener.mu.Lock()
	c.listener.leave(c)
	c.listener.mu.Unlock()
	return c.Conn.Close()
}

// hostOf returns what counts as one host: an address of IPv4, a network of 64 bits of IPv6, of which every customer of
// a provider has at least one, or the process at a Unix socket.
func hostOf(a net.Addr) string {
	if a == nil {
		return ""
	}
	pair, err := netip.ParseAddrPort(a.String())
	if err != nil {
		return a.String()
	}
	host := pair.Addr().Unmap().WithZone("")
	if host.Is6() {
		if p, err := host.Prefix(64); err == nil {
			return p.String()
		}
	}
	return host.String()
}
