package resources

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
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
