package client

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/chaski-eo/chaski/grpc/payload"
	"github.com/chaski-eo/chaski/internal/shm"
	"github.com/chaski-eo/chaski/loader"
	chaskiv1 "github.com/chaski-eo/chaski/proto/chaski/v1"
)

// Transport is how batches come.
type Transport string

// Transports. The batches are the same.
const (
	Auto Transport = ""     // in shared memory where that works, else over gRPC
	Shm  Transport = "shm"  // in shared memory, or not at all; single ones may still come over gRPC
	GRPC Transport = "grpc" // over gRPC
)

// ErrNoShared ends a run at its only server: it would not have shared memory the next time either. Of several servers
// the others go on.
var ErrNoShared = errors.New("no shared memory")

// connectFor bounds the waits at the lease socket.
const connectFor = 5 * time.Second

// sendFor is how long a message to the server may stay unread. A healthy server reads at once, and the socket holds
// some hundred messages. gRPC's keepalive takes as long.
const sendFor = 20 * time.Second

// leaseConn is the connection of a client to a lease socket (proto/chaski/v1/chaski.proto, at Shared). A batch in
// shared memory is leased until it is released.
type leaseConn struct {
	conn     *shm.Conn
	token    shm.Token // of the server
	secret   shm.Token
	patience time.Duration // sendFor
	done     chan struct{} // closed when read has ended

	mu       sync.Mutex
	changed  chan struct{} // closed and made anew when segments or over change
	segments map[uint64]*segment
	held     map[uint64]*segment // by lease
	streams  map[uint64][]uint64 // leases that are recalled when the stream was read to its end
	last     uint64              // stream
	over     bool                // the other side is gone
	closing  bool
}

// segment is a mapped segment. Its fields are guarded by leaseConn.mu.
type segment struct {
	memory *shm.Segment
	users  int
	gone   bool // it is not in leaseConn.segments any more: the last user unmaps it
}

// connectLeases connects to the lease socket of a server.
func connectLeases(d *chaskiv1.Shared) (*leaseConn, error) {
	c := &leaseConn{
		patience: sendFor, done: make(chan struct{}), changed: make(chan struct{}),
		segments: map[uint64]*segment{}, held: map[uint64]*segment{}, streams: map[uint64][]uint64{},
	}
	if len(d.GetToken()) != len(c.token) {
		return nil, errors.New("the server has no shared memory")
	}
	copy(c.token[:], d.GetToken())
	var err error
	if c.conn, err = shm.Dial(d.GetAddress()); err != nil {
		return nil, err
	}
	if err := c.greet(); err != nil {
		return nil, errors.Join(err, c.conn.Close())
	}
	go c.read()
	return c, nil
}

func (c *leaseConn) greet() error {
	if err := c.conn.SetDeadline(time.Now().Add(connectFor)); err != nil {
		return err
	}
	if err := c.conn.Send(shm.Greeting(shm.Hello, c.token), -1); err != nil {
		return err
	}
	message, file, err := c.conn.Receive()
	if err != nil {
		return err
	}
	if message.Kind != shm.Welcome || message.C != shm.Version {
		shm.CloseFile(file)
		return errors.New("lease socket: the server does not let this client in")
	}
	c.secret = message.Token()
	return c.conn.SetDeadline(time.Time{})
}

// read takes messages of the server until it is gone or breaks the protocol.
func (c *leaseConn) read() {
	defer close(c.done)
	for {
		m, file, err := c.conn.Receive()
		if err == nil {
			err = c.take(m, file)
		}
		if err != nil {
			break
		}
	}
	c.conn.Close()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.over = true
	c.wake()
}

// wake needs the lock.
func (c *leaseConn) wake() {
	close(c.changed)
	c.changed = make(chan struct{})
}

func (c *leaseConn) take(m shm.Message, file int) error {
	switch m.Kind {
	case shm.Give:
		return c.give(m.A, m.B, file)
	case shm.Forget:
		c.mu.Lock()
		defer c.mu.Unlock()
		if g := c.segments[m.A]; g != nil {
			delete(c.segments, m.A)
			return g.leave()
		}
		return nil
	case shm.Recall:
		c.mu.Lock()
		defer c.mu.Unlock()
		if waiting, open := c.streams[m.B]; open {
			c.streams[m.B] = append(waiting, m.A)
			return nil
		}
		return c.answer(m.A)
	}
	return fmt.Errorf("lease socket: message of kind %d", m.Kind)
}

func (c *leaseConn) give(id, n uint64, file int) error {
	if n > 1<<40 {
		shm.CloseFile(file)
		return fmt.Errorf("lease socket: a segment of %d bytes", n)
	}
	m, err := shm.Open(file, int(n))
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.segments[id] != nil {
		return errors.Join(fmt.Errorf("lease socket: segment %d is given twice", id), m.Close())
	}
	c.segments[id] = &segment{memory: m}
	c.wake()
	return nil
}

// leave takes g out of use. It needs the lock.
func (g *segment) leave() error {
	g.gone = true
	if g.users > 0 {
		return nil
	}
	return g.memory.Close()
}

// answer answers a recall of a lease: is it still held here? It needs the lock.
func (c *leaseConn) answer(lease uint64) error {
	if c.held[lease] != nil {
		return nil
	}
	return c.giveBack(lease)
}

// giveBack tells the server that a lease has ended. An error closes the connection, so that a server that does not read
// cannot hold the client for long, nor more than once. It needs the lock.
func (c *leaseConn) giveBack(lease uint64) error {
	err := c.conn.SetSendDeadline(time.Now().Add(c.patience))
	if err == nil {
		err = c.conn.Send(shm.Message{Kind: shm.Return, A: lease}, -1)
	}
	if err != nil {
		c.over = true // at once: read may see the end after the next stream has begun
		c.wake()
		return errors.Join(err, c.conn.Close())
	}
	return nil
}

// begin returns the number of a new stream.
func (c *leaseConn) begin() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last++
	c.streams[c.last] = nil
	return c.last
}

// end says that all replies of a stream were seen.
func (c *leaseConn) end(stream uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, lease := range c.streams[stream] {
		if c.answer(lease) != nil {
			break
		}
	}
	delete(c.streams, stream)
}

// claim returns the batch of a lease, which ends when the batch is released. With memory, the batch is put there and
// the lease ends at once.
func (c *leaseConn) claim(l *chaskiv1.Lease, limit int64, memory payload.Memory) (*loader.Batch, error) {
	segment, err := c.hold(l)
	if err != nil {
		return nil, err
	}
	shared := segment.memory.Bytes()
	if int64(len(l.GetHead()))+int64(len(shared)) > limit {
		c.release(l.GetId())
		return nil, fmt.Errorf("%w: a batch of %d bytes in shared memory, at most %d", ErrProtocol, len(shared), limit)
	}
	var b *loader.Batch
	if memory != nil {
		b, err = payload.Copy(l.GetHead(), shared, memory)
	} else if b, err = payload.DecodeShared(l.GetHead(), shared); err == nil {
		for i := range b.Tensors {
			err = cmp.Or(err, payload.Apply(&b.Tensors[i]))
		}
	}
	if memory != nil || err != nil {
		c.release(l.GetId())
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrProtocol, err)
	}
	if memory == nil {
		b.OnRelease(func() { c.release(l.GetId()) })
	}
	return b, nil
}

// hold finds the segment of a lease, which is on its way if it is not there yet.
func (c *leaseConn) hold(l *chaskiv1.Lease) (*segment, error) {
	timeout := time.NewTimer(connectFor)
	defer timeout.Stop()
	for {
		c.mu.Lock()
		segment, done, changed := c.segments[l.GetSegment()], c.over, c.changed
		if segment != nil {
			defer c.mu.Unlock()
			if c.held[l.GetId()] != nil {
				return nil, fmt.Errorf("%w: lease %d comes twice", ErrProtocol, l.GetId())
			}
			segment.users++
			c.held[l.GetId()] = segment
			return segment, nil
		}
		c.mu.Unlock()
		if done {
			return nil, io.ErrUnexpectedEOF
		}
		select {
		case <-changed:
		case <-timeout.C:
			return nil, fmt.Errorf("segment %d has not come", l.GetSegment())
		}
	}
}

// release ends a lease.
func (c *leaseConn) release(lease uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	segment := c.held[lease]
	if segment == nil {
		return
	}
	delete(c.held, lease)
	segment.users--
	// Last, because the server may write to the memory from here on.
	err := c.giveBack(lease)
	if segment.gone && segment.users == 0 {
		err = errors.Join(err, segment.memory.Close())
	}
	if err != nil || c.closing && len(c.held) == 0 {
		c.conn.Close()
	}
}

// close closes the connection when the last batch is released.
func (c *leaseConn) close() {
	c.mu.Lock()
	c.closing = true
	for _, g := range c.segments {
		_ = g.leave() // there is nothing that could be done
	}
	clear(c.segments)
	idle := len(c.held) == 0
	c.mu.Unlock()
	if idle {
		c.conn.Close()
		<-c.done
	}
}

// usable says whether new streams can attach.
func (c *leaseConn) usable(token []byte) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.over && !c.closing && string(c.token[:]) == string(token)
}

// leaseSocket returns the connection to the lease socket, made if need be, or nil if batches come over gRPC.
func (p *peer) leaseSocket(d *chaskiv1.Shared) (*leaseConn, error) {
	if p.options.Transport == GRPC {
		return nil, nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, fmt.Errorf("%w: the client is closed", errFinal)
	}
	if p.leases != nil && p.leases.usable(d.GetToken()) {
		return p.leases, nil
	}
	err := p.noLeases
	if err == nil || p.refused != string(d.GetToken()) {
		if p.leases != nil {
			p.leases.close()
			p.leases = nil
		}
		p.leases, err = connectLeases(d)
		p.refused, p.noLeases = string(d.GetToken()), err
	}
	if err != nil && p.options.Transport == Shm {
		return nil, fmt.Errorf("%w: %w", ErrNoShared, err)
	}
	return p.leases, nil
}
