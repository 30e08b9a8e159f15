// Package accept bounds the connections of a listener, so no client takes the descriptors and the memory of all.
package accept

import (
	"net"
	"net/netip"
	"slices"
	"sync"

	"github.com/chaski-eo/chaski/internal/procs"
)

// least is how many connections a listener has at least, however few descriptors there are: two of each of two hosts,
// so one can make way for another.
const least = 4

// Descriptors returns how many connections a listener may have that could use most: at most 1/part of the descriptors
// of the process.
func Descriptors(most int, part int64) int {
	return int(min(int64(most), max(procs.Files()/part, least)))
}

// Listener accepts a limited number of connections, and half as many of one host. A new connection beyond that takes
// the place of one that has not proven itself (Conn.Prove), which is closed: the oldest one of its host, or of the
// hosts with most connections. Without such a one, the new one is closed. It is safe for concurrent use.
type Listener struct {
	net.Listener
	most int

	mu     sync.Mutex
	open   int
	hosts  map[string]int // open connections
	guests []*Conn        // that have not proven themselves, the oldest first
}

// NewListener returns a listener with up to most connections, 2 at least.
func NewListener(l net.Listener, most int) *Listener {
	return &Listener{Listener: l, most: max(most, 2), hosts: map[string]int{}}
}

// Conn is an accepted connection.
type Conn struct {
	net.Conn
	listener *Listener
	host     string
	hasLeft  bool // its place is free
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
			// Its error does not matter, since it is given up.
			_ = older.Conn.Close()
		}
		if conn != nil {
			return conn, nil
		}
		_ = raw.Close()
	}
}

// enter gives a connection a place. older is the connection that had it before. c is nil if there is no place.
func (l *Listener) enter(raw net.Conn) (c, older *Conn) {
	host := hostOf(raw.RemoteAddr())
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.hosts[host] >= l.most/2 {
		older = l.oldest(func(c *Conn) bool { return c.host == host })
	} else if l.open >= l.most {
		busiest := 0
		for _, guest := range l.guests {
			busiest = max(busiest, l.hosts[guest.host])
		}
		older = l.oldest(func(c *Conn) bool { return l.hosts[c.host] == busiest })
	}
	if older != nil {
		l.leave(older)
	}
	if l.hosts[host] >= l.most/2 || l.open >= l.most {
		return nil, older
	}
	l.open++
	l.hosts[host]++
	c = &Conn{Conn: raw, listener: l, host: host}
	l.guests = append(l.guests, c)
	return c, older
}

// oldest returns the oldest guest that is one, or nil. The caller holds the lock.
func (l *Listener) oldest(is func(*Conn) bool) *Conn {
	if i := slices.IndexFunc(l.guests, is); i >= 0 {
		return l.guests[i]
	}
	return nil
}

// leave frees the place of a connection, once. The caller holds the lock.
func (l *Listener) leave(c *Conn) {
	if c.hasLeft {
		return
	}
	c.hasLeft = true
	l.prove(c)
	l.open--
	if l.hosts[c.host]--; l.hosts[c.host] == 0 {
		delete(l.hosts, c.host)
	}
}

// prove needs the lock.
func (l *Listener) prove(c *Conn) {
	l.guests = slices.DeleteFunc(l.guests, func(o *Conn) bool { return o == c })
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
