package client

import (
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/chaski-eo/chaski/grpc/payload"
	"github.com/chaski-eo/chaski/internal/shm"
	"github.com/chaski-eo/chaski/loader/batch"
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

// leaseConn is the connection of a client to a lease socket (proto/chaski/v1/chaski.proto, at Shared). A batch is
// copied out of shared memory, so its lease ends at once.
type leaseConn struct {
	conn     *shm.Conn
	token    shm.Token // of the server
	secret   shm.Token
	patience time.Duration // sendFor
	done     chan struct{} // closed when read has ended

	mu       sync.Mutex
	changed  chan struct{} // closed and made anew when segments or hasEnded change
	segments map[uint64]*shm.Segment
	streams  map[uint64][]uint64 // leases that are recalled when the stream was read to its end
	last     uint64              // stream
	hasEnded bool                // the other side is gone
}

// connectLeases connects to the lease socket of a server.
func connectLeases(d *chaskiv1.Shared) (*leaseConn, error) {
	made := &leaseConn{
		patience: sendFor, done: make(chan struct{}), changed: make(chan struct{}),
		segments: map[uint64]*shm.Segment{}, streams: map[uint64][]uint64{},
	}
	if len(d.GetToken()) != len(made.token) {
		return nil, errors.New("the server has no shared memory")
	}
	copy(made.token[:], d.GetToken())
	var err error
	if made.conn, err = shm.Dial(d.GetAddress()); err != nil {
		return nil, err
	}
	if err := made.greet(); err != nil {
		return nil, errors.Join(err, made.conn.Close())
	}
	go made.read()
	return made, nil
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
	c.hasEnded = true
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
		if segment := c.segments[m.A]; segment != nil {
			delete(c.segments, m.A)
			return segment.Close()
		}
		return nil
	case shm.Recall:
		c.mu.Lock()
		defer c.mu.Unlock()
		if waiting, open := c.streams[m.B]; open {
			c.streams[m.B] = append(waiting, m.A)
			return nil
		}
		return c.giveBack(m.A)
	}
	return fmt.Errorf("lease socket: message of kind %d", m.Kind)
}

func (c *leaseConn) give(id, n uint64, file int) error {
	if n > 1<<40 {
		shm.CloseFile(file)
		return fmt.Errorf("lease socket: a segment of %d bytes", n)
	}
	segment, err := shm.Open(file, int(n))
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.segments[id] != nil {
		return errors.Join(fmt.Errorf("lease socket: segment %d is given twice", id), segment.Close())
	}
	c.segments[id] = segment
	c.wake()
	return nil
}

// giveBack tells the server that a lease has ended. An error closes the connection, so a server that does not read
// cannot hold the client for long, nor more than once. It needs the lock.
func (c *leaseConn) giveBack(lease uint64) error {
	err := c.conn.SetWriteDeadline(time.Now().Add(c.patience))
	if err == nil {
		err = c.conn.Send(shm.Message{Kind: shm.Return, A: lease}, -1)
	}
	if err != nil {
		// It is over at once, since read may see the end after the next stream has begun.
		c.hasEnded = true
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
		if c.giveBack(lease) != nil {
			break
		}
	}
	delete(c.streams, stream)
}

// claim copies the batch of a lease to memory, and ends the lease.
func (c *leaseConn) claim(l *chaskiv1.Lease, limit int64, memory payload.Memory) (*batch.Batch, error) {
	segment, err := c.find(l.GetSegment())
	if err != nil {
		return nil, err
	}
	defer c.mu.Unlock() // until then the segment stays mapped
	var batch *batch.Batch
	shared := segment.Bytes()
	if int64(len(l.GetHead()))+int64(len(shared)) > limit {
		err = fmt.Errorf("a batch of %d bytes in shared memory, at most %d", len(shared), limit)
	} else {
		batch, err = payload.Copy(l.GetHead(), shared, memory)
	}
	_ = c.giveBack(l.GetId()) // the batch is here, and the next stream finds that the connection is over
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrProtocol, err)
	}
	return batch, nil
}

// find returns a segment, which is on its way if it is not there yet. Without an error, the caller has the lock then.
func (c *leaseConn) find(id uint64) (*shm.Segment, error) {
	timeout := time.NewTimer(connectFor)
	defer timeout.Stop()
	for {
		c.mu.Lock()
		if segment := c.segments[id]; segment != nil {
			return segment, nil
		}
		done, changed := c.hasEnded, c.changed
		c.mu.Unlock()
		if done {
			return nil, io.ErrUnexpectedEOF
		}
		select {
		case <-changed:
		case <-timeout.C:
			return nil, fmt.Errorf("segment %d has not come", id)
		}
	}
}

// close closes the connection.
func (c *leaseConn) close() {
	c.mu.Lock()
	c.hasEnded = true
	for _, segment := range c.segments {
		_ = segment.Close() // there is nothing that could be done
	}
	clear(c.segments)
	c.mu.Unlock()
	c.conn.Close()
	<-c.done
}

// usable says whether new streams can attach.
func (c *leaseConn) usable(token []byte) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.hasEnded && string(c.token[:]) == string(token)
}

// leaseSocket returns the connection to the lease socket, made if need be, or nil if batches come over gRPC.
func (p *peer) leaseSocket(d *chaskiv1.Shared) (*leaseConn, error) {
	if p.options.Transport == GRPC {
		return nil, nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, errClosed
	}
	if p.leases != nil && p.leases.usable(d.GetToken()) {
		return p.leases, nil
	}
	err := p.noLeases
	if err == nil || p.noLeasesFor != string(d.GetToken()) {
		if p.leases != nil {
			p.leases.close()
			p.leases = nil
		}
		p.leases, err = connectLeases(d)
		p.noLeasesFor, p.noLeases = string(d.GetToken()), err
	}
	if err != nil && p.options.Transport == Shm {
		return nil, fmt.Errorf("%w: %w", ErrNoShared, err)
	}
	return p.leases, nil
}
