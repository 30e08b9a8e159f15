// Package accept bounds the connections of a listener, so that no client takes the descriptors and the memory of all.
package accept

import (
	"container/list"
	"net"
	"net/netip"
	"sync"

	"github.com/chaski-eo/chaski/internal/procs"
)

// least is how many connections a listener has at least, however few descriptors there are: two of each of two hosts,
// so that one can make way for another.
const least = 4

// Descriptors returns how many connections a listener may have that could use most: at most 1/part of the descriptors
// of the process.
func Descriptors(most int, part int64) int {
	return int(min(int64(most), max(procs.Files()/part, least)))
}

// Listener accepts a limited number of connections, and half as many of one host. A new connection beyond that takes
// the place of one that has not proven itself (Conn.Prove), which is closed: the oldest one of the host that has most
// of them. Without such a one, the new one is closed. It is safe for concurrent use.
type Listener struct {
	net.Listener
	most, mostOfHost int

	mu    sync.Mutex
	open  int
	last  uint64 // number of the last connection
	hosts map[string]*host
}

// host has the connections of one host.
type host struct {
	open   int
	guests list.List // of *Conn that have not proven themselves, the oldest first
}

// oldest returns the oldest guest, or nil.
func (h *host) oldest() *Conn {
	if e := h.guests.Front(); e != nil {
		return e.Value.(*Conn)
	}
	return nil
}

// NewListener returns a listener with up to most connections, 2 at least.
func NewListener(l net.Listener, most int) *Listener {
	most = max(most, 2)
	return &Listener{Listener: l, most: most, mostOfHost: most / 2, hosts: map[string]*host{}}
}

// Conn is an accepted connection.
type Conn struct {
	net.Conn
	listener *Listener
	name     string // of the host
	host     *host
	number   uint64
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
		conn, older := l.enter(raw)
		if older != nil {
			_ = older.Conn.Close() // it is given up, so its error does not matter
		}
		if conn != nil {
			return conn, nil
		}
		_ = raw.Close()
	}
}

// enter gives a connection a place. older is the connection that had it before. c is nil if there is no place.
func (l *Listener) enter(raw net.Conn) (c, older *Conn) {
	name := hostOf(raw.RemoteAddr())
	l.mu.Lock()
	defer l.mu.Unlock()
	h := l.hosts[name]
	if h == nil {
		h = &host{}
	}
	if h.open >= l.mostOfHost {
		older = h.oldest()
	} else if l.open >= l.most {
		older = l.busiest().oldest()
	}
	if older != nil {
		l.leave(older)
	}
	if h.open >= l.mostOfHost || l.open >= l.most {
		return nil, older
	}
	l.hosts[name] = h // again, if its only connection has left
	l.open++
	l.last++
	h.open++
	c = &Conn{Conn: raw, listener: l, name: name, host: h, number: l.last}
	c.guest = h.guests.PushBack(c)
	return c, older
}

// busiest returns the host with most guests; of several, the one with the oldest guest. The caller holds the lock.
func (l *Listener) busiest() *host {
	busiest := &host{}
	for _, host := range l.hosts {
		if n, largest := host.guests.Len(), busiest.guests.Len(); n > largest ||
			n == largest && n > 0 && host.oldest().number < busiest.oldest().number {
			busiest = host
		}
	}
	return busiest
}

// leave frees the place of a connection, once. The caller holds the lock.
func (l *Listener) leave(c *Conn) {
	if c.gone {
		return
	}
	c.gone = true
	c.prove()
	l.open--
	if c.host.open--; c.host.open == 0 {
		delete(l.hosts, c.name)
	}
}

// prove needs the lock of the listener.
func (c *Conn) prove() {
	if c.guest != nil {
		c.host.guests.Remove(c.guest)
		c.guest = nil
	}
}

// Host names the host that the connection counts to. It is empty for nil.
func (c *Conn) Host() string {
	if c == nil {
		return ""
	}
	return c.name
}

// Prove says that the client has shown who it is: newer connections do not take its place.
func (c *Conn) Prove() {
	c.listener.mu.Lock()
	defer c.listener.mu.Unlock()
	c.prove()
}

// Close implements net.Conn.
func (c *Conn) Close() error {
	c.listener.mu.Lock()
	c.listener.leave(c)
	c.listener.mu.Unlock()
	return c.Conn.Close()
}

// hostOf returns what counts as one host: an address of IPv4, a network of 64 bits of IPv6, because every customer of
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
