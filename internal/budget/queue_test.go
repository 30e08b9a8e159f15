package budget

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

type clientKey struct{}

// as returns a context for the requests of a client.
func as(ctx context.Context, client any) context.Context {
	return context.WithValue(ctx, clientKey{}, client)
}

func clientOf(ctx context.Context) any { return ctx.Value(clientKey{}) }

// request is what the tests know of a request.
type request struct {
	client int
	n      int64
	ctx    context.Context
	cancel context.CancelFunc
	got    chan error
	state  string // waits, has, over
}

// shared is a budget and the requests that clients have made, in the order in which they came.
type shared struct {
	b        *Budget
	requests []*request
	log      []moment
}

// moment is one state of the queue: who waits, and what each client has been served until then.
type moment struct {
	waits  [clients]bool
	served [clients]int64
}

const (
	clients = 4
	largest = 300 // bytes of a request
)

// TestClientsShareTheQueue: whatever clients ask for, give back and give up, between any two moments from which to
// which both of two clients wait all the time, neither is served more than the other by more than a request of each;
// the requests of one client are served in their order; and nobody waits for memory that is there and that no other
// request waits for.
func TestClientsShareTheQueue(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := steps().Draw(rt, "steps")
		var wrong error
		synctest.Test(t, func(t *testing.T) {
			c := &shared{b: New(800, clientOf), log: make([]moment, 1)}
			for i := 0; i < len(s) && wrong == nil; i++ {
				if wrong = c.do(t.Context(), s[i]); wrong != nil {
					wrong = fmt.Errorf("step %d, %+v: %w", i, s[i], wrong)
				}
			}
			for r := c.oldest("has"); r != nil && wrong == nil; r = c.oldest("has") {
				wrong = c.end(r) // so that all are served
			}
			for _, r := range c.requests {
				if wrong == nil && r.state == "waits" {
					wrong = errors.New("everything was given back, and a request waits")
				}
				r.cancel()
			}
			synctest.Wait()
			q, used := &c.b.queue, c.b.Used()
			if wrong == nil && (used != 0 || q.waiting != 0 || len(q.clients) != 0) {
				wrong = fmt.Errorf("%d bytes are charged, %d requests wait, %d clients", used, q.waiting,
					len(q.clients))
			}
		})
		if wrong != nil {
			rt.Fatal(wrong)
		}
	})
}

func (c *shared) do(ctx context.Context, s step) error {
	switch {
	case s.do == "grow" || s.do == "open": // ask
		r := &request{client: s.who % clients, n: max(1, s.n), got: make(chan error, 1), state: "waits"}
		r.ctx, r.cancel = context.WithCancel(as(ctx, r.client))
		c.requests = append(c.requests, r)
		go func() { r.got <- c.b.Acquire(r.ctx, r.n) }()
		return c.look()
	case s.do == "settle": // give up
		for _, r := range c.requests {
			if r.state == "waits" && r.client == s.who%clients {
				r.state = "over"
				r.cancel()
				return c.look()
			}
		}
	default:
		if r := c.oldest("has"); r != nil {
			return c.end(r)
		}
	}
	return nil
}

func (c *shared) oldest(state string) *request {
	for _, r := range c.requests {
		if r.state == state {
			return r
		}
	}
	return nil
}

func (c *shared) end(r *request) error {
	r.state = "over"
	c.b.Release(r.n)
	return c.look()
}

// look finds out who was served, and checks that it was right.
func (c *shared) look() error {
	synctest.Wait()
	now := moment{served: c.log[len(c.log)-1].served}
	var behind [clients]bool
	used := int64(0)
	for _, r := range c.requests {
		if r.state == "waits" && len(r.got) > 0 {
			if err := <-r.got; err != nil {
				return err
			}
			if behind[r.client] {
				return errors.New("a request has passed an older one of its client")
			}
			r.state = "has"
			now.served[r.client] += r.n
		}
		switch r.state {
		case "waits":
			now.waits[r.client], behind[r.client] = true, true
		case "has":
			used += r.n
		}
	}
	if used != c.b.Used() || used > 700 {
		return fmt.Errorf("%d bytes are charged, not %d", c.b.Used(), used)
	}
	c.log = append(c.log, now)
	return errors.Join(c.fair(), c.busy(700-used))
}

// fair compares what each two clients were served from each moment until now, for as long as both waited.
func (c *shared) fair() error {
	now := c.log[len(c.log)-1]
	for a := range clients {
		for b := range a {
			for i := len(c.log) - 1; i >= 0 && c.log[i].waits[a] && c.log[i].waits[b]; i-- {
				was := c.log[i]
				d := (now.served[a] - was.served[a]) - (now.served[b] - was.served[b])
				// Each may be one request ahead at the beginning, and one at the end. What clients begin with
				// grows by a little at each request.
				if d < 0 {
					d = -d
				}
				if d > 2*largest+largest/8 {
					return fmt.Errorf("client %d was served %d bytes more or fewer than %d", a, d, b)
				}
			}
		}
	}
	return nil
}

// busy checks that of the requests that are first of their clients, one has no room.
func (c *shared) busy(free int64) error {
	first, seen := []int64{}, [clients]bool{}
	for _, r := range c.requests {
		if r.state == "waits" && !seen[r.client] {
			seen[r.client] = true
			first = append(first, r.n)
		}
	}
	for _, n := range first {
		if n > free {
			return nil
		}
	}
	if len(first) > 0 {
		return fmt.Errorf("%d clients wait, and each of their next requests fits into %d bytes", len(first), free)
	}
	return nil
}

// all is what requests can have of 1024 bytes.
const all = 896

// line is a budget of which each request takes all that there is, and who was served, in this order.
type line struct {
	t   *testing.T
	b   *Budget
	got chan string
}

func newLine(t *testing.T) *line {
	l := &line{t: t, b: New(1024, clientOf), got: make(chan string, 10_000)}
	if !l.b.TryAcquire(all) {
		t.Fatal("no room")
	}
	return l
}

// ask lets a client ask for all.
func (l *line) ask(client string) {
	go func() {
		if err := l.b.Acquire(as(l.t.Context(), client), all); err != nil {
			l.t.Errorf("%s: %v", client, err)
		}
		l.got <- client
	}()
	synctest.Wait()
}

// next gives all back, and returns who has it then.
func (l *line) next() string {
	l.b.Release(all)
	synctest.Wait()
	if len(l.got) != 1 {
		l.t.Fatalf("%d were served at once", len(l.got))
	}
	return <-l.got
}

// TestManyRequestsDelayOthersByOne: a client with a thousand requests in the queue delays another one's first by at
// most one of its own, and its further ones by one each.
func TestManyRequestsDelayOthersByOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLine(t)
		for range 1000 {
			l.ask("greedy")
		}
		for range 3 {
			l.ask("modest")
		}
		var order []string
		for range 8 {
			order = append(order, l.next())
		}
		if got := strings.Join(order, " "); got != "greedy modest greedy modest greedy modest greedy greedy" {
			t.Error(got)
		}
		l.ask("late") // begins with what the others have, not with more
		if got := l.next() + " " + l.next(); !strings.Contains(got, "late") {
			t.Error(got)
		}
		for range 1000 - 5 - 1 {
			l.next()
		}
		l.b.Release(all)
		if l.b.Used() != 0 {
			t.Errorf("%d bytes are charged", l.b.Used())
		}
	})
}

// TestNewClientsStarveNobody: clients that come once each, one after the other, pass a request of a client that was
// served before them, but not for ever.
func TestNewClientsStarveNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLine(t)
		l.ask("old")
		l.ask("old")
		l.ask("other")
		if got := l.next(); got != "old" {
			t.Fatal(got)
		}
		passed := 0
		for l.ask(fmt.Sprint(passed)); l.next() != "old"; l.ask(fmt.Sprint(passed)) {
			if passed++; passed > newcomers+2 {
				t.Fatalf("%d have passed it", passed)
			}
		}
		if passed < 2 {
			t.Errorf("%d new clients have passed it, before it has as much as they do", passed)
		}
		for l.b.Waiting() > 0 {
			l.next()
		}
		l.b.Release(all)
	})
}

// TestSmallRequestsDoNotWaitForLargeOnes: a request that fits passes one of another client that does not, until its
// client was given as much as the other one would have been: 600 bytes that it was, and 600 that it asks for.
func TestSmallRequestsDoNotWaitForLargeOnes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(800, clientOf)
		if !b.TryAcquire(700) {
			t.Fatal("no room")
		}
		ctx, cancel := context.WithCancel(t.Context())
		got := make(chan error, 2)
		for range 2 {
			go func() { got <- b.Acquire(as(ctx, "reader"), 600) }()
		}
		synctest.Wait()
		b.Release(700)
		if err := <-got; err != nil { // the second one waits
			t.Fatal(err)
		}
		passed := 0
		for ; passed < 100; passed++ {
			ctx, cancel := context.WithTimeout(as(t.Context(), "trainer"), time.Second)
			err := b.Acquire(ctx, 30)
			cancel()
			if err != nil {
				break
			}
			b.Release(30)
		}
		if passed < 1200/30-1 || passed > 1200/30+1 {
			t.Errorf("%d requests of 30 bytes have passed one of 600", passed)
		}
		cancel()
		if err := <-got; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		b.Release(600)
	})
}
