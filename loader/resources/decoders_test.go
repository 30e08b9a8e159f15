package resources

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// TestDecodersOfAClient promises that each client has as many decoders as there may be and no more, and that clients
// which come once and go do not fill the memory.
func TestDecodersOfAClient(t *testing.T) {
	const most, clients, goroutines, rounds = 3, 4, 10, 200
	d := NewDecoders(most)
	var now [clients]atomic.Int64
	var group sync.WaitGroup
	for client := range clients {
		for range goroutines {
			group.Go(func() {
				for range rounds {
					d.Begin(client)
					if n := now[client].Add(1); n > most {
						t.Errorf("%d decoders of a client", n)
					}
					now[client].Add(-1)
					d.End(client)
				}
			})
		}
	}
	group.Wait()
	for range most {
		if d.AllBusy() {
			t.Error("all are busy")
		}
		d.Begin("one")
	}
	if !d.AllBusy() {
		t.Error("not all are busy")
	}
	d.Begin("other") // it does not wait for the first client
	for i := range 10 * keptClients {
		d.Begin(fmt.Sprint(i))
		d.End(fmt.Sprint(i))
	}
	if n := len(d.clients); n > keptClients+2 {
		t.Errorf("%d clients are known", n)
	}
}

// TestAside: while all decoders are busy, other work has its share of their time, and else all that it wants.
func TestAside(t *testing.T) {
	const share = 0.25
	d := NewDecoders(2)
	d.Begin("one")
	d.Aside(time.Hour) // of an idle processor
	if !d.MayAside(share) {
		t.Error("one of two decoders is idle")
	}
	d.Begin("one")
	begin := time.Now()
	for worked := time.Duration(0); worked < 5*time.Millisecond; {
		if d.MayAside(share) {
			worked += time.Millisecond
			d.Aside(time.Millisecond)
		}
	}
	if least := 4 * time.Millisecond / 2 * 4; time.Since(begin) < least*9/10 { // two decode, one ms goes before
		t.Errorf("5 ms of work after %v of two decoders", time.Since(begin))
	}
	d.Aside(time.Hour)
	if d.MayAside(share) {
		t.Error("an hour was too little")
	}
	d.End("one")
	if !d.MayAside(share) {
		t.Error("an idle decoder does not count")
	}
}
