package netsim

import (
	"errors"
	"io"
	"net"
	"sync"
	"time"
)

// Link forwards TCP connections to a server, with the delay and the rate of a network.
type Link struct {
	Addr string // to connect to, on 127.0.0.1

	to       string
	delay    time.Duration // one way
	rate     float64       // bytes a second towards the client, of all connections together
	listener net.Listener
	done     sync.WaitGroup

	mu       sync.Mutex
	free     time.Time // when the link has sent its bytes
	conns    map[net.Conn]bool
	isClosed bool
}

// NewLink starts a link to an address with a round-trip time and a rate in bytes per second. Close
// it after use.
func NewLink(to string, roundTrip time.Duration, rate float64) (*Link, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	link := &Link{Addr: ln.Addr().String(), to: to, delay: roundTrip / 2, rate: rate, listener: ln,
		conns: map[net.Conn]bool{}}
	link.done.Go(link.accept)
	return link, nil
}

// Close cuts all connections.
func (l *Link) Close() {
	_ = l.listener.Close()
	l.mu.Lock()
	l.isClosed = true
	for c := range l.conns {
		_ = c.Close()
	}
	l.mu.Unlock()
	l.done.Wait()
}

func (l *Link) accept() {
	for {
		conn, err := l.listener.Accept()
		if err != nil {
			return
		}
		s, err := net.Dial("tcp", l.to)
		if err != nil || !l.keep(conn, s) {
			_ = conn.Close()
			if err == nil {
				_ = s.Close()
			}
			continue
		}
		l.done.Go(func() { l.pass(s, conn, false) })
		l.done.Go(func() { l.pass(conn, s, true) })
	}
}

func (l *Link) keep(conns ...net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, conn := range conns {
		if l.isClosed {
			return false
		}
		l.conns[conn] = true
	}
	return true
}

// packet holds bytes in transit.
type packet struct {
	b   []byte
	due time.Time
}

var packets = sync.Pool{New: func() any { b := make([]byte, 64<<10); return &b }}

// pass copies from one connection to the other until one ends.
func (l *Link) pass(to, from net.Conn, shaped bool) {
	way := make(chan packet, 64) // packets on their way in a connection: 4 MiB
	l.done.Go(func() {
		defer to.Close()
		for p := range way {
			time.Sleep(time.Until(p.due))
			if _, err := to.Write(p.b); err != nil {
				_ = from.Close()
			}
			b := p.b[:cap(p.b)]
			packets.Put(&b)
		}
	})
	defer close(way)
	for {
		data := *packets.Get().(*[]byte)
		n, err := from.Read(data)
		if n > 0 {
			way <- packet{data[:n], l.due(n, shaped)}
		}
		if err != nil {
			if !errors.Is(err, io.EOF) {
				_ = to.Close()
			}
			return
		}
	}
}

// due returns when n bytes that are sent now will have arrived.
func (l *Link) due(n int, shaped bool) time.Time {
	now := time.Now()
	if !shaped {
		return now.Add(l.delay)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.free.Before(now) {
		l.free = now
	}
	l.free = l.free.Add(time.Duration(float64(n) / l.rate * float64(time.Second)))
	return l.free.Add(l.delay)
}
