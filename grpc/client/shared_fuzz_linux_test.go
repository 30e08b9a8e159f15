package client

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/chaski-eo/chaski/internal/shm"
	"github.com/chaski-eo/chaski/loader/batch"
	chaskiv1 "github.com/chaski-eo/chaski/proto/chaski/v1"
)

// What the bytes of a script of FuzzLeaseSocket mean, beside the kinds of packets.
const (
	opBegin = 0xf0 + iota
	opEnd
	opClaim
)

// FuzzLeaseSocket plays any packets of a server, with any files, between any calls of a client. Only sealed memory of
// the size that the packet says becomes a segment, and a segment that is given twice is refused. A lease of a segment
// is read, here without a batch in it. In the end no descriptor is left.
func FuzzLeaseSocket(f *testing.F) {
	f.Add([]byte{byte(shm.Give), 1, 0, opClaim, 1, 7, byte(shm.Forget), 1, 0})
	f.Add([]byte{byte(shm.Give), 1, 0, byte(shm.Give), 1, 0})
	f.Add([]byte{opBegin, 0, 0, byte(shm.Recall), 7, 1, opEnd, 1, 0, byte(shm.Recall), 7, 1})
	f.Add([]byte{byte(shm.Give), 1, 0, opClaim, 1, 7, opClaim, 1, 7, opClaim, 1, 8, byte(shm.Recall), 7, 0})
	for pick := byte(1); pick < 5; pick++ {
		f.Add([]byte{byte(shm.Give), 1, pick})
	}
	f.Fuzz(func(t *testing.T, script []byte) {
		const most = 3 * 50 // packets of answers: all fit into the buffer of the socket
		before := descriptors(t)
		c, server := fuzzSide(t)
		for script = script[:min(len(script), most)]; len(script) >= 3; script = script[3:] {
			op, a, b := script[0], uint64(script[1]), script[2]
			var err error
			switch op {
			case opBegin:
				c.begin()
			case opEnd:
				c.end(a)
			case opClaim:
				if c.segments[a] == nil {
					continue // it would wait for it
				}
				lease := &chaskiv1.Lease{Id: uint64(b), Segment: a}
				if _, e := c.claim(lease, 1<<20, new(batch.Pool)); !errors.Is(e,
					ErrProtocol) {
					t.Fatalf("lease %d of segment %d: %v", b, a, e)
				}
			case byte(shm.Give):
				err = fuzzGive(t, c, a, b)
			default:
				err = c.take(shm.Message{Kind: shm.Kind(op), A: a, B: uint64(b)}, -1)
				if known := op == byte(shm.Forget) || op == byte(shm.Recall); known != (err == nil) {
					t.Fatalf("packet %d of %d and %d: %v", op, a, b, err)
				}
			}
			if err != nil {
				break // as the client closes the connection
			}
		}
		close(c.done) // there is no goroutine that reads
		c.close()
		if len(c.segments) != 0 {
			t.Fatalf("%d segments are left", len(c.segments))
		}
		_ = server.Close() // the client has closed its end
		_ = c.conn.Close()
		if now := descriptors(t); now != before {
			t.Fatalf("%d descriptors, before %d", now, before)
		}
	})
}

// fuzzGive gives a segment, with one of several files.
func fuzzGive(t *testing.T, c *leaseConn, id uint64, pick byte) error {
	t.Helper()
	const size = 4096
	file, err := -1, error(nil)
	said := uint64(size)
	switch pick % 5 {
	case 0, 1: // a good one, and one of another size
		s, err := shm.New(size)
		if err != nil {
			t.Fatal(err)
		}
		if file, err = s.Dup(); err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		said += uint64(pick % 5)
	case 2: // its sender could cut it
		if file, err = unix.MemfdCreate("soft", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING); err == nil {
			err = unix.Ftruncate(file, size)
		}
	case 3:
		file, err = unix.Open(os.DevNull, unix.O_RDWR|unix.O_CLOEXEC, 0)
	case 4:
		file, err = unix.Open("/", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		said = 1 << 62
	}
	if err != nil {
		t.Fatal(err)
	}
	good := pick%5 == 0 && c.segments[id] == nil
	err = c.take(shm.Message{Kind: shm.Give, A: id, B: said}, file)
	if good != (err == nil) {
		t.Fatalf("segment %d with file %d: %v", id, pick%5, err)
	}
	return err
}

// fuzzSide returns a connection to a lease socket, without its goroutine, and the server's end.
func fuzzSide(t *testing.T) (*leaseConn, *shm.Conn) {
	t.Helper()
	var name [8]byte
	_, _ = rand.Read(name[:]) // it does not fail
	address := "chaski-test-" + hex.EncodeToString(name[:])
	d, err := shm.Listen(address)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	conn, err := shm.Dial(address)
	if err != nil {
		t.Fatal(err)
	}
	server, err := d.Accept()
	if err != nil {
		t.Fatal(err)
	}
	return &leaseConn{
		conn: conn, patience: sendFor, done: make(chan struct{}), changed: make(chan struct{}),
		segments: map[uint64]*shm.Segment{}, streams: map[uint64][]uint64{},
	}, server
}

func descriptors(t *testing.T) int {
	t.Helper()
	e, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip(err)
	}
	return len(e)
}
