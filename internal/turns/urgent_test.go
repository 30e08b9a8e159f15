package turns

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// busy is a client that computes all the time, with as many goroutines as there are places, in pieces of a length.
type busy struct {
	who    string
	urgent bool
	piece  time.Duration
}

// shares lets clients compute for ten seconds, and returns for how long each did, in seconds of places.
func shares(t *testing.T, places int, clients []busy) []float64 {
	used := make([]float64, len(clients))
	synctest.Test(t, func(t *testing.T) {
		p, stop := Processors(places), make(chan struct{})
		var group sync.WaitGroup
		var mu sync.Mutex
		for i, c := range clients {
			for range places {
				s := p.Slot(c.who)
				if c.urgent {
					s = s.Urgent().Beside() // which is urgent, too
				}
				group.Go(slotted(t, s, stop, func() {
					time.Sleep(c.piece)
					mu.Lock()
					defer mu.Unlock()
					used[i] += c.piece.Seconds()
				}))
			}
		}
		time.Sleep(10 * time.Second)
		if p.Taken() != places {
			t.Errorf("%d places of %d are taken", p.Taken(), places)
		}
		close(stop)
		group.Wait()
		if left(p) {
			t.Error("places or clients are left")
		}
	})
	return used
}

// TestUrgentWorkHasHalf: beside nine clients with long pieces of other work, the urgent work of one has half of the
// places; with a single place, and where it does not want half of them, each client has its part. Other work of a
// client with urgent work has its part, too.
func TestUrgentWorkHasHalf(t *testing.T) {
	others := make([]busy, 9)
	for i := range others {
		others[i] = busy{fmt.Sprint("other ", i), false, 20 * time.Millisecond}
	}
	few := make([]busy, 4)
	for i := range few {
		few[i] = busy{fmt.Sprint("trainer ", i), true, 300 * time.Microsecond}
	}
	trainer := busy{"trainer", true, 300 * time.Microsecond}
	for _, c := range []struct {
		name    string
		places  int
		clients []busy
		want    []float64 // seconds of the first clients
	}{
		{"nine others", 2, append([]busy{trainer}, others...), []float64{10, 10. / 9, 10. / 9}},
		{"three places", 3, append([]busy{trainer}, others...), []float64{20, 10. / 9, 10. / 9}},
		{"one place", 1, append([]busy{trainer}, others...), []float64{1, 1, 1}},
		{"four trainers", 2, append([]busy{others[0]}, few...), []float64{4, 4, 4, 4, 4}},
		{"its own", 2, append([]busy{trainer, {"trainer", false, 20 * time.Millisecond}}, others...),
			[]float64{10, 1, 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := shares(t, c.places, c.clients)
			for i, want := range c.want {
				if got[i] < 0.85*want || got[i] > 1.15*want {
					t.Errorf("client %d computed for %.2f s, want %.2f; all: %.2f", i, got[i], want, got)
				}
			}
		})
	}
}

// TestUrgentWorkComes: work that is not urgent has all places while no other waits. One of them is given to urgent work
// at the next Tick, whoever has used less, and goes back once that rests.
func TestUrgentWorkComes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := Processors(2)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel() // a goroutine that waits for ever would not let a test fail
		tick := func(s *Slot) chan struct{} {
			got := make(chan struct{})
			go func() {
				if s.Tick(ctx) == nil {
					close(got)
				}
			}()
			synctest.Wait()
			return got
		}
		has := func(got chan struct{}) bool {
			select {
			case <-got:
				return true
			default:
				return false
			}
		}
		a, b, trainer := p.Slot("a"), p.Slot("b"), p.Slot("trainer").Urgent()
		if !has(tick(trainer)) {
			t.Fatal("no place is free")
		}
		time.Sleep(time.Second) // the trainer has used more than the others
		trainer.Rest()
		if !has(tick(a)) || !has(tick(b)) {
			t.Fatal("other work does not have both places")
		}
		urgent := tick(trainer)
		time.Sleep(slice)
		if has(urgent) {
			t.Fatal("urgent work took a place away")
		}
		again := tick(a)
		if !has(urgent) || has(again) {
			t.Fatal("no place was passed on to urgent work")
		}
		if !has(tick(b)) {
			t.Error("both places were passed on")
		}
		time.Sleep(slice)
		late := p.Slot("late")
		c := tick(late)
		if !has(tick(trainer)) || has(again) || has(c) {
			t.Error("urgent work gave its place to other work, which has half")
		}
		trainer.Rest()
		if synctest.Wait(); !has(c) || has(again) {
			t.Fatal("the place did not go to who has used least")
		}
		late.Rest()
		if synctest.Wait(); !has(again) {
			t.Error("the place is free, and somebody waits")
		}
	})
}
