package server

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/chaski-eo/chaski/grpc/payload"
	"github.com/chaski-eo/chaski/internal/crash"
	"github.com/chaski-eo/chaski/internal/invariants"
	"github.com/chaski-eo/chaski/internal/procs"
	"github.com/chaski-eo/chaski/internal/shm"
	"github.com/chaski-eo/chaski/loader/batch"
	"github.com/chaski-eo/chaski/loader/resources"
	chaskiv1 "github.com/chaski-eo/chaski/proto/chaski/v1"
)

// Bounds of shared memory.
const (
	minShared     = 16 << 10 // bytes; smaller batches cost less to copy than to lease
	maxSegments   = 256      // each is an open file here and at its client; a process may open 1,024 by default
	maxLeaseConns = 256      // since each is a socket and two goroutines
	// maxLeases bounds the leases of one client, so all of their returns fit into the buffer of its socket: it
	// returns them from finalizers, which must not wait.
	maxLeases = 128
	// maxArrayLeases is how many leases a client may have before its arrays come in parts. The other half is for
	// batches, since clients keep arrays for as long as they like.
	maxArrayLeases = maxLeases / 2
	maxPackets     = 1024 // that wait for one client: maxSegments are given and forgotten, maxLeases recalled
	handshakeFor   = 5 * time.Second
)

// leaseTable hands batches to clients on this host in shared memory (proto/chaski/v1/chaski.proto, at
// Shared). All batches of a server lie in it; a lease passes one on without a copy.
//
// A segment belongs to the first client that it is given to, and to no other: a client may keep its mapping, and write
// into it at any time. Engines fill it with batches for this client only (resources.WithOwner), and free it when the
// client is gone.
//
// Leases count within the memory of their engine, and always leave room in it for one batch more, of all rows of a
// step: a client that keeps all its leases cannot block others, because batches that do not fit are sent over gRPC, as
// to any client.
type leaseTable struct {
	log      *slog.Logger
	listener *shm.Listener
	address  string
	token    shm.Token
	done     sync.WaitGroup
	failed   sync.Once // told

	mu       sync.Mutex
	closed   bool
	conns    map[*leaseConn]struct{}
	segments int
	most     int    // segments: maxSegments, or a quarter of the descriptors that RLIMIT_NOFILE allows
	mostLent int64  // bytes of leases: half of the budget, since clients keep them for as long as they like; 0: any
	last     uint64 // id of the last segment
	owned    int    // segments that belong to a client
	leases   int
	bytes    int64            // of leases
	forget   func(*leaseConn) // frees the idle segments of a client that is gone
}

// leaseConn is the connection of one client to the lease socket.
type leaseConn struct {
	shared *leaseTable
	conn   *shm.Conn
	secret shm.Token
	out    chan packet
	done   chan struct{} // closed by end

	// Guarded by leaseTable.mu.
	open     bool // it has shown the token
	hasEnded bool
	leases   map[uint64]*clientHold
	last     uint64 // id of the last lease
}

// packet is a message that waits to be sent, with a file of its own or -1.
type packet struct {
	shm.Message
	file int
}

// lender is an Engine that can lend its batches in shared memory. *loader.Serving implements it.
type lender interface {
	Lend(n int64) bool
	Returned(n int64)
}

// back gives back a batch that the client has returned, by Release or Discard. It must not be called under
// leaseTable.mu.
func (h *clientHold) back(give func()) {
	if l, ok := h.entry.engine.(lender); ok {
		l.Returned(h.bytes)
	}
	give()
}

// clientHold is a batch that a client has.
type clientHold struct {
	batch  *batch.Batch
	bytes  int64
	entry  *datasetEntry
	stream uint64
}

// sharedSegment is a batch.Buffer in shared memory.
type sharedSegment struct {
	shared *leaseTable
	id     uint64
	memory *shm.Segment
	owner  atomic.Pointer[leaseConn] // nil until it is given to a client; written under leaseTable.mu
}

// Owner implements batch.Owned.
func (g *sharedSegment) Owner() batch.Owner {
	if c := g.owner.Load(); c != nil {
		return c
	}
	return nil
}

// Over implements batch.Owner.
func (c *leaseConn) Over() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

// newShared opens the lease socket.
func newShared(log *slog.Logger, b *resources.Budget) (*leaseTable, error) {
	made := &leaseTable{log: log, conns: map[*leaseConn]struct{}{}, token: newToken(),
		most: int(min(maxSegments, procs.Files()/4)), mostLent: b.Limit() / 2}
	probe, err := shm.New(1)
	if err != nil {
		return nil, err
	}
	if err := probe.Close(); err != nil {
		return nil, err
	}
	name := newToken()
	made.address = fmt.Sprintf("chaski-%d-%s", os.Getpid(), hex.EncodeToString(name[:]))
	if made.listener, err = shm.Listen(made.address); err != nil {
		return nil, err
	}
	made.done.Go(made.guarded(made.accept))
	return made, nil
}

// guarded wraps f: a panic ends f and not the process.
func (s *leaseTable) guarded(f func()) func() {
	return func() { crash.Report(s.log, crash.Call(func() error { f(); return nil })) }
}

func newToken() (t shm.Token) {
	_, _ = rand.Read(t[:]) // it does not fail
	return t
}

// onEnd sets a function that is called when a client is gone.
func (s *leaseTable) onEnd(forget func(*leaseConn)) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forget = forget
}

// describe returns the address of the lease socket for clients.
func (s *leaseTable) describe() *chaskiv1.Shared {
	if s == nil {
		return nil
	}
	return &chaskiv1.Shared{Address: s.address, Token: s.token[:]}
}

// alloc is loader.Options.Alloc.
func (s *leaseTable) alloc(n int) batch.Buffer {
	if n < minShared {
		return batch.NewHeap(n)
	}
	s.mu.Lock()
	full := s.segments >= s.most || s.closed
	if !full {
		s.segments++
		s.last++
	}
	id := s.last
	s.mu.Unlock()
	if full {
		return batch.NewHeap(n)
	}
	memory, err := shm.New(n)
	if err != nil {
		s.failed.Do(func() { s.log.Warn("no shared memory for a batch", "bytes", n, "error", err) })
		s.mu.Lock()
		s.segments--
		s.mu.Unlock()
		return batch.NewHeap(n)
	}
	return &sharedSegment{shared: s, id: id, memory: memory}
}

// Bytes implements batch.Buffer.
func (g *sharedSegment) Bytes() []byte { return g.memory.Bytes() }

// Free implements batch.Buffer. The client that has the segment is told to let go of it.
func (g *sharedSegment) Free() {
	shared := g.shared
	shared.mu.Lock()
	shared.segments--
	if c := g.owner.Load(); c != nil {
		shared.owned--
		c.post(packet{shm.Message{Kind: shm.Forget, A: g.id}, -1})
	}
	shared.mu.Unlock()
	if err := g.memory.Close(); err != nil {
		shared.log.Warn("freeing shared memory", "error", err)
	}
}

// accept lets clients in until the lease socket is closed.
func (s *leaseTable) accept() {
	for {
		conn, err := s.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			// Most likely the process has no file descriptors left. Connected clients go on, and the pause avoids a
			// busy loop.
			s.log.Warn("lease socket", "error", err)
			time.Sleep(100 * time.Millisecond)
			continue
		}
		client := &leaseConn{
			shared: s, conn: conn, secret: newToken(), out: make(chan packet, maxPackets), done: make(chan struct{}),
			leases: map[uint64]*clientHold{},
		}
		s.mu.Lock()
		full := s.closed || len(s.conns) >= maxLeaseConns
		if !full {
			s.conns[client] = struct{}{}
			s.done.Go(s.guarded(client.serve))
		}
		s.mu.Unlock()
		if full {
			conn.Close()
		}
	}
}

// serve greets a client and takes back its leases, until it is gone.
func (c *leaseConn) serve() {
	defer c.end()
	if err := c.greet(); err != nil {
		c.shared.log.Info("lease socket: refused", "error", err)
		return
	}
	c.shared.done.Go(c.shared.guarded(c.write))
	for {
		m, file, err := c.conn.Receive()
		if err == nil {
			err = c.take(m, file)
		}
		if err != nil {
			if !errors.Is(err, io.EOF) && !errors.Is(err, net.ErrClosed) {
				c.shared.log.Warn("lease socket: closed", "error", err)
			}
			return
		}
	}
}

func (c *leaseConn) greet() error {
	if err := c.conn.SetDeadline(time.Now().Add(handshakeFor)); err != nil {
		return err
	}
	message, file, err := c.conn.Receive()
	if err != nil {
		return err
	}
	shm.CloseFile(file)
	token := message.Token()
	if message.Kind != shm.Hello || message.C != shm.Version || subtle.ConstantTimeCompare(token[:],
		c.shared.token[:]) != 1 {
		return errors.New("wrong token or version")
	}
	c.shared.mu.Lock()
	// It is open before the client knows the secret, since its streams may come at once.
	c.open = true
	c.shared.mu.Unlock()
	if err := c.conn.Send(shm.Greeting(shm.Welcome, c.secret), -1); err != nil {
		return err
	}
	return c.conn.SetDeadline(time.Time{})
}

// take handles a message of a client.
func (c *leaseConn) take(m shm.Message, file int) error {
	if file >= 0 {
		shm.CloseFile(file)
		return errors.New("a client gives a segment")
	}
	if m.Kind != shm.Return && m.Kind != shm.Discard {
		return fmt.Errorf("message of kind %d from a client", m.Kind)
	}
	shared := c.shared
	shared.mu.Lock()
	hold, last := c.leases[m.A], c.last
	if hold != nil {
		c.remove(m.A, hold)
	}
	shared.mu.Unlock()
	switch {
	case hold == nil && (m.A == 0 || m.A > last):
		return fmt.Errorf("lease %d is returned, the last was %d", m.A, last)
	case hold == nil: // after a recall a lease may come back twice
	case m.Kind == shm.Return:
		hold.back(hold.batch.Release)
	default:
		hold.back(hold.batch.Discard)
	}
	return nil
}

// remove needs the lock.
func (c *leaseConn) remove(id uint64, h *clientHold) {
	delete(c.leases, id)
	h.entry.leased -= h.bytes
	c.shared.bytes -= h.bytes
	c.shared.leases--
	if invariants.Enabled {
		invariants.Check(c.shared.leases >= 0 && c.shared.bytes >= 0 && h.entry.leased >= 0,
			"%d leases of %d bytes are left, %d of the engine", c.shared.leases, c.shared.bytes, h.entry.leased)
	}
}

// end takes back all leases of a client. It may be alive and look at the memory, so no batch uses that again.
func (c *leaseConn) end() {
	shared := c.shared
	c.conn.Close()
	shared.mu.Lock()
	delete(shared.conns, c)
	c.hasEnded = true
	close(c.done)
	var held []*clientHold
	for id, taken := range c.leases {
		c.remove(id, taken)
		held = append(held, taken)
	}
	forget := shared.forget
	shared.mu.Unlock()
	for _, taken := range held {
		taken.back(taken.batch.Discard)
	}
	if forget != nil {
		forget(c)
	}
}

// post queues a packet, and takes its file. A client that does not read is thrown out. It needs the
// lock.
func (c *leaseConn) post(p packet) {
	if !c.hasEnded {
		select {
		case c.out <- p:
			return
		default:
			c.conn.Close()
		}
	}
	shm.CloseFile(p.file)
}

// write sends posted packets until the client is gone.
func (c *leaseConn) write() {
	for {
		select {
		case posted := <-c.out:
			c.send(posted)
			continue
		case <-c.done:
		}
		// Nothing is posted any more, and so nobody else would close the files of what still waits.
		for {
			select {
			case posted := <-c.out:
				shm.CloseFile(posted.file)
			default:
				return
			}
		}
	}
}

func (c *leaseConn) send(p packet) {
	if c.conn.Send(p.Message, p.file) != nil {
		c.conn.Close() // serve ends
	}
	shm.CloseFile(p.file)
}

// leaseConnOf returns the client with the secret of an Attach, or nil.
func (s *leaseTable) leaseConnOf(a *chaskiv1.Attach) (*leaseConn, error) {
	secret := a.GetSecret()
	if len(secret) != 0 && len(secret) != len(shm.Token{}) {
		return nil, status.Errorf(codes.InvalidArgument, "attach has a secret of %d bytes, not 16", len(secret))
	}
	if s == nil {
		return nil, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var found *leaseConn
	for client := range s.conns {
		if client.open && subtle.ConstantTimeCompare(client.secret[:], secret) == 1 {
			found = client
		}
	}
	return found, nil
}

// maxLeases returns how many leases a client may have before the next one of e.
func (e *datasetEntry) maxLeases() int {
	if e.engine == nil {
		return maxArrayLeases
	}
	return maxLeases
}

// lend gives a batch that lies in g to a client. It is not lent, and stays the caller's, if the
// client is gone, or if too much is lent.
func (c *leaseConn) lend(b *batch.Batch, g *sharedSegment, e *datasetEntry, stream uint64) (id uint64, ok bool) {
	shared, size := c.shared, int64(len(g.Bytes()))
	// It is found before the lock, because the engine takes that when it frees segments.
	engine, _ := e.engine.(lender)
	if engine != nil {
		if !engine.Lend(size) {
			return 0, false
		}
		defer func() {
			if !ok {
				engine.Returned(size)
			}
		}()
	}
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if c.hasEnded || len(c.leases) >= e.maxLeases() || e.leased+size+max(size, e.largestBatch) > e.memory ||
		shared.mostLent > 0 && shared.bytes+size > shared.mostLent {
		return 0, false
	}
	owner := g.owner.Load()
	if owner != nil && owner != c {
		return 0, false
	}
	if owner == nil {
		// A file of its own, because the segment may be freed before the packet is sent.
		file, err := g.memory.Dup()
		if err != nil {
			shared.log.Warn("passing shared memory", "error", err)
			return 0, false
		}
		g.owner.Store(c)
		shared.owned++
		c.post(packet{shm.Message{Kind: shm.Give, A: g.id, B: uint64(size)}, file})
	}
	c.last++
	c.leases[c.last] = &clientHold{b, size, e, stream}
	e.leased += size
	shared.bytes += size
	shared.leases++
	return c.last, true
}

// sharedMemory returns the segment that a batch lies in, or nil.
func sharedMemory(b *batch.Batch) *sharedSegment {
	memory, ok := b.Memory().(*sharedSegment)
	if !ok || !payload.InMemory(b, memory.Bytes()) {
		return nil
	}
	return memory
}

// recall asks the client which leases of an ended stream it still holds.
func (c *leaseConn) recall(stream uint64) {
	c.shared.mu.Lock()
	defer c.shared.mu.Unlock()
	for id, held := range c.leases {
		if held.stream == stream {
			c.post(packet{shm.Message{Kind: shm.Recall, A: id, B: stream}, -1})
		}
	}
}

// close closes the lease socket and its connections.
func (s *leaseTable) close() {
	if s == nil {
		return
	}
	s.mu.Lock()
	s.closed = true
	for c := range s.conns {
		c.conn.Close()
	}
	s.mu.Unlock()
	if err := s.listener.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
		s.log.Warn("lease socket", "error", err)
	}
	s.done.Wait()
}

// figures returns what metrics tell.
func (s *leaseTable) figures() (leases, segments int, bytes int64) {
	if s == nil {
		return 0, 0, 0
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.leases, s.segments, s.bytes
}
