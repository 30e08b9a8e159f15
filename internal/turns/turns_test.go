package turns

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/chaski-eo/chaski/internal/pace"
)

// left reports whether something is left of clients that are gone.
func left(p *Turns) bool {
	return len(p.seats) != 0 || len(p.queue) != 0 || len(p.slots) != 0 || p.Taken() != 0 || p.Waiting() != 0
}

// take waits for a place, and returns it, or nil if ctx ended before.
func take(ctx context.Context, p *Turns, who any) *Slot {
	s := p.Slot(who)
	if s.Tick(ctx) != nil {
		return nil
	}
	return s
}

// TestPlacesInTurn: a client with many requests and one with few get places in turn, no client has more than each, and
// those who gave up leave nothing.
func TestPlacesInTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New(2, 2)
		got := make(chan *Slot, 100)
		ctx, cancel := context.WithCancel(t.Context())
		var group sync.WaitGroup
		ask := func(ctx context.Context, id string) {
			group.Go(func() {
				if s := take(ctx, p, id); s != nil {
					got <- s
				}
			})
			synctest.Wait()
		}
		for range 10 {
			ask(t.Context(), "greedy")
		}
		for range 20 {
			ask(ctx, "gone")
		}
		for range 3 {
			ask(t.Context(), "modest")
		}
		cancel()
		synctest.Wait()
		var order strings.Builder
		for range 13 {
			s := <-got
			order.WriteString(s.key.(string)[:1])
			s.Rest()
			synctest.Wait()
		}
		group.Wait()
		if order.String() != "ggmgmgmgggggg" {
			t.Errorf("places went to %s", order.String())
		}
		if left(p) {
			t.Errorf("left: %d clients, %d places, %d requests", len(p.seats), p.Taken(), p.Waiting())
		}
	})
}

// TestPlacesAreNeverTooMany: whatever comes, goes and gives up, no more places are taken than there are, and at the end
// all are free.
func TestPlacesAreNeverTooMany(t *testing.T) {
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 3))
			p := New(4, 3)
			var mu sync.Mutex
			held, all := map[string]int{}, 0
			var group sync.WaitGroup
			for range 200 {
				id := fmt.Sprint(r.IntN(5))
				patience, work := time.Duration(r.IntN(50))*time.Millisecond, time.Duration(r.IntN(9))*time.Millisecond
				group.Go(func() {
					ctx, cancel := context.WithTimeout(t.Context(), patience)
					defer cancel()
					s := take(ctx, p, id)
					if s == nil {
						return
					}
					mu.Lock()
					held[id]++
					all++
					if held[id] > 3 || all > 4 {
						t.Errorf("%d places are taken, %d of them by one client", all, held[id])
					}
					mu.Unlock()
					time.Sleep(work)
					mu.Lock()
					held[id]--
					all--
					mu.Unlock()
					s.Rest()
				})
			}
			group.Wait()
			if left(p) {
				t.Errorf("left: %d clients, %d places, %d requests", len(p.seats), p.Taken(), p.Waiting())
			}
		})
	}
}

// TestPlacesStop: requests that wait end with their context, by its cause.
func TestPlacesStop(t *testing.T) {
	p := New(1, 1)
	take(t.Context(), p, "a")
	ctx, stop := context.WithCancelCause(t.Context())
	stopped := errors.New("stopped")
	stop(stopped)
	if err := p.Slot("b").Tick(ctx); !errors.Is(err, stopped) {
		t.Error(err)
	}
}

// worker computes for a client, in pieces of work that take each long, until stop is closed, and counts the time.
func worker(t *testing.T, p *Turns, who string, each time.Duration, stop chan struct{}, used *time.Duration) func() {
	return ticking(t, p, who, stop, func() {
		time.Sleep(each)
		*used += each
	})
}

// ticking does pieces of work for a client, in a slot of its own, until stop is closed.
func ticking(t *testing.T, p *Turns, who string, stop chan struct{}, piece func()) func() {
	return slotted(t, p.Slot(who), stop, piece)
}

// slotted does pieces of work in a slot, until stop is closed.
func slotted(t *testing.T, s *Slot, stop chan struct{}, piece func()) func() {
	return func() {
		defer s.Rest()
		for {
			select {
			case <-stop:
				return
			default:
			}
			if err := s.Tick(t.Context()); err != nil {
				t.Error(err)
			}
			piece()
		}
	}
}

// TestClientsGetEqualTime: a client with one goroutine and short pieces of work gets as much of one processor as
// another with many goroutines and long pieces.
func TestClientsGetEqualTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, stop := Processors(1), make(chan struct{})
		var group sync.WaitGroup
		var modest time.Duration
		greedy := make([]time.Duration, 20)
		for i := range greedy {
			group.Go(worker(t, p, "greedy", 14*time.Millisecond, stop, &greedy[i]))
		}
		synctest.Wait()
		group.Go(worker(t, p, "modest", 300*time.Microsecond, stop, &modest))
		time.Sleep(10 * time.Second)
		close(stop)
		group.Wait()
		if modest < 4900*time.Millisecond || modest > 5100*time.Millisecond {
			t.Errorf("the modest one computed for %v of 10 s, want half", modest)
		}
		if left(p) {
			t.Error("places or clients are left")
		}
	})
}

// TestWhoComesBackOwes: a client that leaves and comes back for each piece of work does not get more than others, and
// none that was away has saved anything.
func TestWhoComesBackOwes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New(1, 1)
		var group sync.WaitGroup
		used := map[string]*atomic.Int64{"short": {}, "long": {}, "late": {}}
		run := func(who string, each, from time.Duration) {
			group.Go(func() {
				time.Sleep(from)
				for begin := time.Now(); time.Since(begin) < 10*time.Second; {
					s := take(t.Context(), p, who)
					time.Sleep(each)
					s.Rest()
					used[who].Add(int64(each))
				}
			})
		}
		run("long", 50*time.Millisecond, 0)
		run("short", time.Millisecond, 0)
		run("short", time.Millisecond, 0)
		run("late", 10*time.Millisecond, 5*time.Second)
		time.Sleep(6 * time.Second)
		if n := time.Duration(used["late"].Load()); n > 500*time.Millisecond {
			t.Errorf("who comes late computed for %v of its first second, want a third", n)
		}
		group.Wait()
		if a, b := used["short"].Load(), used["long"].Load(); a < b*9/10 || a > b*11/10 {
			t.Errorf("short pieces got %v, long ones %v", time.Duration(a), time.Duration(b))
		}
	})
}

// TestPlacesThatAreStuck: others get the places of slots whose goroutines do not come back, as on a file system that
// does not answer, for as long as they are away, whoever's they are. Those that come back have no place.
func TestPlacesThatAreStuck(t *testing.T) {
	for _, other := range []string{"other", "stuck"} {
		synctest.Test(t, func(t *testing.T) {
			p, stop := Processors(2), make(chan struct{})
			var stuck [2]*Slot
			for i := range stuck {
				stuck[i] = p.Slot("stuck")
				if err := stuck[i].Tick(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			var group sync.WaitGroup
			var used [4]time.Duration
			for i := range used {
				group.Go(worker(t, p, other, 10*time.Millisecond, stop, &used[i]))
			}
			time.Sleep(100 * time.Second)
			if err := stuck[0].Tick(t.Context()); err != nil || p.Taken() != 2 {
				t.Errorf("%v, and %d places of 2 are taken", err, p.Taken())
			}
			stuck[0].Rest()
			stuck[1].Rest()
			if n := p.Taken(); n != 2 {
				t.Errorf("%d places of 2 are taken", n)
			}
			close(stop)
			group.Wait()
			var all time.Duration
			for _, u := range used {
				all += u
			}
			if all < 2*90*time.Second || all > 2*(100*time.Second-stuckFor) {
				t.Errorf("the others computed for %v in 100 s of 2 places, want 180 to 196 s", all)
			}
			if left(p) {
				t.Errorf("%d slots are left", len(p.slots))
			}
		})
	}
}

// TestLongPiecesAreNotStuck: places of slots that tick stay theirs, however long others wait.
func TestLongPiecesAreNotStuck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, stop := Processors(1), make(chan struct{})
		var group sync.WaitGroup
		var running atomic.Int64
		var together atomic.Bool
		for range 3 {
			group.Go(ticking(t, p, "a", stop, func() {
				if running.Add(1) > 1 {
					together.Store(true)
				}
				time.Sleep(stuckFor - time.Millisecond)
				running.Add(-1)
			}))
		}
		time.Sleep(time.Hour)
		close(stop)
		group.Wait()
		if together.Load() {
			t.Error("two goroutines computed at a time, in one place")
		}
	})
}

// TestWhoWasAloneOwesLittle: a client that had all places to itself for minutes, without giving one back, still gets
// its part when another one comes.
func TestWhoWasAloneOwesLittle(t *testing.T) {
	for _, goroutines := range []int{1, 3} {
		synctest.Test(t, func(t *testing.T) {
			p, stop := Processors(1), make(chan struct{})
			var group sync.WaitGroup
			alone, late := make([]time.Duration, goroutines), time.Duration(0)
			for i := range alone {
				group.Go(worker(t, p, "alone", 5*time.Millisecond, stop, &alone[i]))
			}
			time.Sleep(2 * time.Minute)
			group.Go(worker(t, p, "late", 5*time.Millisecond, stop, &late))
			time.Sleep(10 * time.Second)
			close(stop)
			group.Wait()
			if want := 5*time.Second + maxDebt/2 + 50*time.Millisecond; late < 4900*time.Millisecond || late > want {
				t.Errorf("who came after minutes computed for %v of 10 s, want 5 s to %v", late, want)
			}
		})
	}
}

// TestGoroutinesOfOneClientTakeTurns: no goroutine of a client keeps the place from another one of the same client.
func TestGoroutinesOfOneClientTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, stop := Processors(2), make(chan struct{})
		var group sync.WaitGroup
		var used [6]time.Duration
		for i := range used {
			group.Go(worker(t, p, "a", 10*time.Millisecond, stop, &used[i]))
		}
		time.Sleep(60 * time.Second)
		close(stop)
		group.Wait()
		for i, u := range used {
			if u < 19*time.Second || u > 21*time.Second {
				t.Errorf("goroutine %d computed for %v of 60 s, want a third", i, u)
			}
		}
	})
}

// TestManyClientsLeaveNothing: clients that come once each are forgotten while others go on.
func TestManyClientsLeaveNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New(2, 2)
		steady := take(t.Context(), p, "steady")
		for i := range 10_000 {
			s := take(t.Context(), p, i)
			time.Sleep(100 * time.Millisecond)
			s.Rest()
			if n := len(p.seats); n > 3 {
				t.Fatalf("%d clients are remembered", n)
			}
		}
		steady.Rest()
		if left(p) {
			t.Error("clients are left")
		}
	})
}

// TestSlot: a goroutine keeps its place for a slice, gives it to whoever has used less, and may rest twice. A nil slot
// bounds nothing.
func TestSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := Processors(1)
		s := p.Slot("a")
		for range 2 {
			if s.Tick(t.Context()) != nil || p.Taken() != 1 {
				t.Error("one goroutine has no place, or two")
			}
		}
		got := make(chan struct{})
		go func() {
			o := p.Slot("b")
			if err := o.Tick(t.Context()); err != nil {
				t.Error(err)
			}
			close(got)
			o.Rest()
			o.Rest()
		}()
		synctest.Wait()
		if s.Tick(t.Context()) != nil {
			t.Error("no place")
		}
		select {
		case <-got:
			t.Error("the place was passed on before the slice was over")
		default:
		}
		time.Sleep(slice)
		if s.Tick(t.Context()) != nil {
			t.Error("no place")
		}
		<-got
		s.For("c") // somebody else pays from now on
		err := s.Tick(t.Context())
		if c := p.seats[seatKey{"c", other}]; err != nil || c == nil || c.places != 1 {
			t.Errorf("c does not have the place: %v", err)
		}
		s.Rest()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if s.Tick(ctx) == nil || (*Slot)(nil).Tick(ctx) == nil || p.Taken() != 0 {
			t.Error("a context that is over gets a place")
		}
		b := s.Beside()
		if b.Tick(t.Context()) != nil || p.seats[seatKey{"c", other}].places != 1 {
			t.Error("a slot beside another one has no place of its client")
		}
		b.Rest()
		var none *Turns
		if err := pace.Tick(With(t.Context(), none.Slot("a").Beside())); err != nil {
			t.Error(err)
		}
		pace.Rest(t.Context())
	})
}

// TestHalvedWorkHasHalf: halved work has half of the places although nobody else wants them, and leaves the rest to
// others that come.
func TestHalvedWorkHasHalf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, stop := Processors(4), make(chan struct{})
		var group sync.WaitGroup
		var running, most atomic.Int64
		for range 4 {
			group.Go(slotted(t, p.Slot("a").Halved().Beside(), stop, func() {
				if n := running.Add(1); n > most.Load() {
					most.Store(n)
				}
				time.Sleep(10 * time.Millisecond)
				running.Add(-1)
			}))
		}
		time.Sleep(time.Second)
		if most.Load() != 2 || p.Taken() != 2 {
			t.Errorf("%d goroutines computed at a time, %d places are taken", most.Load(), p.Taken())
		}
		b := p.Slot("b")
		if err := b.Tick(t.Context()); err != nil || p.Taken() != 3 {
			t.Errorf("%v, %d places are taken", err, p.Taken())
		}
		b.Rest()
		close(stop)
		group.Wait()
		if left(p) {
			t.Error("places or clients are left")
		}
	})
}

// TestSpareWorkHasTheRest: spare work gets a place as soon as one is free that nobody else wants, passes it on at its
// next Tick, and delays nobody for longer.
func TestSpareWorkHasTheRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := Processors(2)
		var has atomic.Int64
		tick := func(s *Slot, done *atomic.Bool) {
			go func() {
				if s.Tick(t.Context()) == nil {
					done.Store(true)
					has.Add(1)
				}
			}()
			synctest.Wait()
		}
		var a, b, c, first, second, again atomic.Bool
		slots := [3]*Slot{p.Slot("a").Urgent(), p.Slot("b"), p.Slot("a").Urgent()}
		spares := [2]*Slot{p.Slot("a").Spare(), p.Slot("c").Spare()}
		start := time.Now()
		tick(slots[0], &a)
		tick(slots[1], &b)
		tick(spares[0], &first)
		tick(spares[1], &second)
		if p.Wanted() || has.Load() != 2 || first.Load() || second.Load() {
			t.Fatal("spare work has a place of others, or is waited for")
		}
		slots[1].Rest()
		if synctest.Wait(); !first.Load() || second.Load() || time.Since(start) != 0 {
			t.Fatal("a free place did not go to spare work at once")
		}
		tick(slots[2], &c)
		if c.Load() {
			t.Fatal("the place was taken away")
		}
		tick(spares[0], &again)
		if !c.Load() || again.Load() {
			t.Fatal("spare work kept a place that others want")
		}
		slots[0].Rest()
		slots[2].Rest()
		if synctest.Wait(); !again.Load() || !second.Load() || time.Since(start) != 0 {
			t.Fatal("free places did not go to spare work at once")
		}
		for _, s := range append(slots[:], spares[:]...) {
			s.Rest()
		}
		if left(p) {
			t.Error("places or clients are left")
		}
	})
}

// BenchmarkTick measures the cost of a Tick while nobody else wants the place, and of passing the place to and fro.
func BenchmarkTick(b *testing.B) {
	b.Run("alone", func(b *testing.B) {
		s := Processors(1).Slot("a")
		for b.Loop() {
			_ = s.Tick(b.Context())
		}
	})
	b.Run("rest", func(b *testing.B) {
		s := Processors(1).Slot("a")
		for b.Loop() {
			_ = s.Tick(b.Context())
			s.Rest()
		}
	})
	b.Run("passed", func(b *testing.B) {
		p := New(1, 1)
		var over atomic.Bool
		var group sync.WaitGroup
		group.Go(func() {
			s := p.Slot("b")
			for !over.Load() && s.Tick(b.Context()) == nil {
				s.Rest()
			}
		})
		s := p.Slot("a")
		for b.Loop() {
			_ = s.Tick(b.Context())
			s.Rest()
		}
		over.Store(true)
		group.Wait()
	})
}
