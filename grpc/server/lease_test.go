package server

import (
	"runtime"
	"testing"
	"time"

	"google.golang.org/grpc/mem"

	"github.com/chaski-eo/chaski/grpc/internal/wire"
)

// TestForgottenPiecesComeBack: memory that the transport has forgotten without giving it back is released when nothing
// refers to it any more, and not before.
func TestForgottenPiecesComeBack(t *testing.T) {
	c := &connection{leases: map[*lease]struct{}{}}
	released := make(chan struct{})
	l := c.lend(func() { close(released) })
	m := message(t, l)
	l.done()

	runtime.GC()
	runtime.GC()
	select {
	case <-released:
		t.Fatal("memory is released while the transport has it")
	default:
	}
	runtime.KeepAlive(m)

	m = nil
	for deadline := time.Now().Add(5 * time.Minute); ; {
		runtime.GC()
		select {
		case <-released:
			if len(c.leases) > 0 {
				t.Fatal("the connection still knows the lease")
			}
			return
		case <-time.After(time.Millisecond):
		}
		if time.Now().After(deadline) {
			t.Fatal("memory that nothing refers to is not released")
		}
	}
}

// TestPiecesComeBackOnce: a piece that the transport gave back does not come back again by the garbage collector.
func TestPiecesComeBackOnce(t *testing.T) {
	c := &connection{leases: map[*lease]struct{}{}}
	times := 0
	l := c.lend(func() { times++ })
	message(t, l).Free()
	kept := message(t, l) // two pieces given back twice would end the lease
	l.done()
	for range 4 {
		runtime.GC()
		time.Sleep(time.Millisecond) // for what must not come: too short hides a fault, and makes none
	}
	if times != 0 {
		t.Error("released while the transport has a piece")
	}
	kept.Free()
	if times != 1 {
		t.Errorf("released %d times", times)
	}
}

// message returns a message with two pieces of a lease.
func message(t *testing.T, l *lease) mem.BufferSlice {
	t.Helper()
	data := [][]byte{make([]byte, 1<<16), make([]byte, 1<<16)}
	m, err := wire.NewCodec().Marshal(&wire.Part{Total: 1 << 17, Data: data, Owner: l})
	if err != nil {
		t.Fatal(err)
	}
	return m
}
