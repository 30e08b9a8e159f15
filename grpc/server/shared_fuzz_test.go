package server

import (
	"cmp"
	"encoding/hex"
	"log/slog"
	"testing"

	"github.com/chaski-eo/chaski/internal/shm"
	"github.com/chaski-eo/chaski/loader/batch"
)

// fuzzLease is what the slow, obvious model of a lease socket knows of a lease.
type fuzzLease struct {
	bytes int64
	ends  []string // how its batch was given back
	want  string   // how it must have been; the empty string: by the end of the client
}

// FuzzLeaseSocket plays any packets of a client against any leases. A packet is refused if it is neither Return nor
// Discard, or of a lease that never was. A lease ends once: kept for the engine by Return, discarded by all other ends.
// The counts of leases and bytes are those of the leases that are left.
func FuzzLeaseSocket(f *testing.F) {
	if !shm.Supported {
		f.Skip("no shared memory on this system")
	}
	f.Add([]byte{0, 0, byte(shm.Return), 1, byte(shm.Return), 1, byte(shm.Discard), 2})
	f.Add([]byte{0, 9, byte(shm.Discard), 1, byte(shm.Return), 1, 0, 3, byte(shm.Return), 2})
	f.Add([]byte{byte(shm.Hello), 0})
	f.Add([]byte{0, 1, byte(shm.Return), 0})
	f.Add([]byte{0, 1, byte(shm.Give), 1})
	f.Fuzz(func(t *testing.T, script []byte) {
		c, peer := fuzzSide(t)
		defer peer.Close()
		e := &datasetEntry{}
		var model []*fuzzLease
		for len(script) >= 2 && len(model) < maxLeases {
			op, arg := script[0], script[1]
			script = script[2:]
			if op == 0 {
				model = append(model, fuzzLend(c, e, int64(arg)))
				continue
			}
			m := shm.Message{Kind: shm.Kind(op), A: uint64(arg)}
			err := c.take(m, -1)
			known := m.A >= 1 && m.A <= uint64(len(model))
			if good := known && (m.Kind == shm.Return || m.Kind == shm.Discard); good != (err == nil) {
				t.Fatalf("%+v of %d leases: %v", m, len(model), err)
			}
			if err != nil {
				break // the server closes the connection
			}
			if l := model[m.A-1]; l.want == "" {
				l.want = map[shm.Kind]string{shm.Return: "released", shm.Discard: "discarded"}[m.Kind]
			}
			checkLeases(t, c, e, model)
		}
		left := int64(0)
		for _, l := range model {
			if len(l.ends) == 0 {
				left++
			}
		}
		if n, _, _ := c.shared.figures(); int64(n) != left {
			t.Fatalf("%d leases, want %d", n, left)
		}
		c.end()
		for i, l := range model {
			if len(l.ends) != 1 || l.ends[0] != cmp.Or(l.want, "discarded") {
				t.Fatalf("lease %d of %d ended as %q", i+1, len(model), l.ends)
			}
		}
		checkLeases(t, c, e, model)
		if n, _, bytes := c.shared.figures(); n != 0 || bytes != 0 || len(c.shared.conns) != 0 {
			t.Fatalf("%d leases of %d bytes of %d clients are left", n, bytes, len(c.shared.conns))
		}
	})
}

// fuzzSide returns the connection of a client to the lease socket, without its goroutines, and the client's end.
func fuzzSide(t *testing.T) (*leaseConn, *shm.Conn) {
	t.Helper()
	name := newToken()
	address := "chaski-test-" + hex.EncodeToString(name[:])
	d, err := shm.Listen(address)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	peer, err := shm.Dial(address)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := d.Accept()
	if err != nil {
		t.Fatal(err)
	}
	s := &leaseTable{log: slog.New(slog.DiscardHandler), conns: map[*leaseConn]struct{}{}}
	c := &leaseConn{shared: s, conn: conn, open: true, out: make(chan packet, maxPackets), done: make(chan struct{}),
		leases: map[uint64]*clientHold{}}
	s.conns[c] = struct{}{}
	return c, peer
}

// fuzzLend adds a lease of n bytes, as lend does for a batch in a segment.
func fuzzLend(c *leaseConn, e *datasetEntry, n int64) *fuzzLease {
	l := &fuzzLease{bytes: n}
	b := &batch.Batch{}
	b.SetMemory(nil, func(keep bool) {
		l.ends = append(l.ends, map[bool]string{true: "released", false: "discarded"}[keep])
	})
	c.last++
	c.leases[c.last] = &clientHold{batch: b, bytes: n, entry: e}
	e.leased += n
	c.shared.bytes += n
	c.shared.leases++
	return l
}

func checkLeases(t *testing.T, c *leaseConn, e *datasetEntry, model []*fuzzLease) {
	t.Helper()
	count, bytes := 0, int64(0)
	for i, l := range model {
		if len(l.ends) > 1 || (c.leases[uint64(i+1)] != nil) != (len(l.ends) == 0) {
			t.Fatalf("lease %d ended as %q", i+1, l.ends)
		}
		if len(l.ends) == 0 {
			count++
			bytes += l.bytes
		}
	}
	if n, _, have := c.shared.figures(); n != count || have != bytes || e.leased != bytes {
		t.Fatalf("%d leases of %d bytes, %d of the engine; want %d of %d", n, have, e.leased, count, bytes)
	}
}
