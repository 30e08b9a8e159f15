package budget

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/chaski-eo/chaski/fault"
	_ "github.com/chaski-eo/chaski/tools/testkit/seed"
)

// crowd is a budget and what the test knows of it: who holds what, and who waits for what.
type crowd struct {
	b       *Budget
	members []*member
	outside int64 // bytes that no account has
}

// member is one account.
type member struct {
	account *Account
	asks    bool
	first   int64 // bytes from its opening
	held    int64
	wants   int64 // bytes
	waits   bool
	got     chan error
}

// step is what one account does.
type step struct {
	do   string
	who  int
	n    int64
	asks bool
}

// does has the steps as often as they are drawn.
const does = "open open grow grow grow grow shrink close hold"

func steps() *rapid.Generator[[]step] {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) step {
		return step{
			do:   rapid.SampledFrom(strings.Fields(does)).Draw(t, "do"),
			who:  rapid.IntRange(0, 7).Draw(t, "who"),
			n:    rapid.Int64Range(0, 300).Draw(t, "n"),
			asks: rapid.Bool().Draw(t, "asks"),
		}
	}), 40, 120) // fewer hardly fill the memory
}

// TestNobodyWaitsForEachOther: whatever accounts do, once all have done what they can at this moment, without any time
// passing, one of those that wait gets its memory if everything that does not wait ends. An account is refused only if
// that was not so.
func TestNobodyWaitsForEachOther(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := steps().Draw(rt, "steps")
		var wrong error
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			c := &crowd{b: New(800, nil)}
			begin := time.Now()
			for i := 0; i < len(s) && wrong == nil; i++ {
				if wrong = c.do(ctx, s[i]); wrong == nil {
					wrong = c.check()
				}
				if wrong != nil {
					wrong = fmt.Errorf("step %d, %+v: %w", i, s[i], wrong)
				}
			}
			if wrong == nil && time.Since(begin) > 0 {
				wrong = fmt.Errorf("it took %v", time.Since(begin))
			}
			cancel()
			synctest.Wait()
			for _, m := range c.members {
				m.account.Close()
			}
			c.b.Release(c.outside)
			if wrong == nil && (c.b.Used() != 0 || c.b.questionUse != 0 || c.b.Waiting() != 0 || c.b.Asking()) {
				wrong = fmt.Errorf("%d bytes are charged, %d of questions, %d wait", c.b.Used(), c.b.questionUse,
					c.b.Waiting())
			}
		})
		if wrong != nil {
			rt.Fatal(wrong)
		}
	})
}

// do does one step.
func (c *crowd) do(ctx context.Context, s step) error {
	if s.do == "open" && len(c.members) < 8 && s.n <= c.b.limit-c.b.limit/8-c.b.Used() {
		return c.open(ctx, s)
	}
	if s.do == "hold" {
		if c.outside > 0 {
			c.b.Release(c.outside)
			c.outside = 0
		} else if c.b.TryAcquire(s.n) {
			c.outside = s.n
		}
		return c.look()
	}
	if s.who >= len(c.members) || c.members[s.who].waits {
		return nil
	}
	m := c.members[s.who]
	switch s.do {
	case "grow":
		m.wants, m.waits, m.got = s.n, true, make(chan error, 1)
		go func() { m.got <- m.account.Grow(ctx, m.wants) }()
	case "shrink":
		n := min(s.n, m.held)
		m.account.Shrink(n)
		m.held -= n
		m.first = min(m.first, m.held) // what has grown goes first
	case "close":
		c.leave(m)
	}
	return c.look()
}

func (c *crowd) open(ctx context.Context, s step) error {
	open := c.b.Open
	if s.asks {
		open = c.b.OpenQuestion
	}
	a, err := open(ctx, s.n)
	if err != nil {
		return err
	}
	c.members = append(c.members, &member{account: a, asks: s.asks, first: s.n, held: s.n})
	return nil
}

func (c *crowd) leave(m *member) {
	m.account.Close()
	kept := c.members[:0]
	for _, o := range c.members {
		if o != m {
			kept = append(kept, o)
		}
	}
	c.members = kept
}

// look finds out who waits no more, until nothing changes. Who is refused leaves, as requests do.
func (c *crowd) look() error {
	for again := true; again; {
		again = false
		synctest.Wait()
		var refused []*member
		for _, m := range c.members {
			if !m.waits || len(m.got) == 0 {
				continue
			}
			switch err := <-m.got; {
			case err == nil:
				m.held += m.wants
				m.waits = false
			case fault.KindOf(err) == fault.Limit:
				refused = append(refused, m)
			default:
				return err
			}
		}
		if len(refused) == 0 {
			return nil
		}
		if c.canGoOn(false) && c.canGoOn(true) {
			return fmt.Errorf("%d were refused, and nobody waited for each other", len(refused))
		}
		if err := c.inOrder(refused); err != nil {
			return err
		}
		for _, m := range refused {
			c.leave(m)
		}
		again = true
	}
	return nil
}

// inOrder checks that those were refused that come last.
func (c *crowd) inOrder(refused []*member) error {
	for _, m := range refused {
		for _, o := range c.members {
			if o.waits && !slices.Contains(refused, o) && m.account.before(o.account) {
				return errors.New("one that comes later still waits")
			}
		}
	}
	return nil
}

// first returns the account that comes first of those of a kind that wait, or nil.
func (c *crowd) first(asks bool) *member {
	for _, m := range c.members {
		if m.waits && m.asks == asks {
			return m
		}
	}
	return nil
}

// free reports whether what an account waits for is free.
func (c *crowd) free(m *member) bool {
	free := c.b.limit - c.b.Used()
	if m.asks {
		free -= c.b.limit / 8
		asked := c.b.limit / 2
		for _, o := range c.members {
			if o.asks {
				asked -= o.held - o.first
			}
		}
		free = min(free, asked)
	}
	return m.wants <= free
}

// canGoOn is the slow and obvious answer: of the accounts of one kind that wait, the first one gets what it wants if
// everything ends that does not wait. It is true if none waits.
func (c *crowd) canGoOn(asks bool) bool {
	first := c.first(asks)
	free, forQuestions := c.b.limit, c.b.limit/2
	for _, m := range c.members {
		if m.waits {
			free -= m.held
		}
		if m.waits && m.asks {
			forQuestions -= m.held - m.first
		}
	}
	if asks {
		free -= c.b.limit / 8
	}
	return first == nil || first.wants <= free && (!asks || first.wants <= forQuestions)
}

// check compares the budget with what is known of its accounts.
func (c *crowd) check() error {
	used, asked := c.outside, int64(0)
	for _, m := range c.members {
		used += m.held
		if m.asks {
			asked += m.held - m.first
		}
	}
	switch {
	case used != c.b.Used() || used > 800:
		return fmt.Errorf("%d bytes are charged, not %d", c.b.Used(), used)
	case asked > 400:
		return fmt.Errorf("questions have %d bytes", asked)
	case !c.canGoOn(false) || !c.canGoOn(true):
		return errors.New("accounts wait for each other")
	}
	next := c.first(false)
	if next == nil {
		next = c.first(true)
	}
	if next != nil && c.free(next) {
		return fmt.Errorf("%d bytes are free, and an account waits for them", next.wants)
	}
	return nil
}

// TestQuestionsLeaveHalf: questions take half of the budget and no more, engines are not asked for memory for them
// while there is enough, and others find room at once.
func TestQuestionsLeaveHalf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(800, nil)
		var log []Level
		if !b.TryAcquire(100) {
			t.Fatal("no room")
		}
		k := &keeper{b: b, level: Unused, n: 100, log: &log}
		defer b.Join(k)()
		var questions [2]*Account
		for i := range questions {
			q, err := b.OpenQuestion(t.Context(), 10)
			if err != nil {
				t.Fatal(err)
			}
			if err := q.Grow(t.Context(), 175); err != nil {
				t.Fatal(err)
			}
			questions[i] = q
		}
		got := make(chan error, 1)
		go func() { got <- questions[0].Grow(t.Context(), 100) }()
		synctest.Wait()
		if len(got) > 0 || !b.Asking() || b.Waiting() != 0 || len(log) > 0 {
			t.Errorf("asking %v, %d wait, %d reclaimed", b.Asking(), b.Waiting(), len(log))
		}
		engine, err := b.Open(t.Context(), 230)
		if err != nil || !b.TryAcquire(0) {
			t.Errorf("no room beside questions: %v", err)
		}
		// The second one grows too: now they wait for each other, and the younger one is refused.
		if err := questions[1].Grow(t.Context(), 100); fault.KindOf(err) != fault.Limit {
			t.Errorf("%v", err)
		}
		questions[1].Close()
		if err := <-got; err != nil {
			t.Error(err)
		}
		if err := questions[0].Grow(t.Context(), 401); fault.KindOf(err) != fault.Limit {
			t.Errorf("%v", err)
		}
		questions[0].Close()
		engine.Close()
		k.Reclaim(Unused)
		if b.Used() != 0 || b.Asking() {
			t.Errorf("%d bytes are charged", b.Used())
		}
	})
}

// TestWhatIsKeptIsNotForQuestions: holders give for a question, in the queue or as it grows, only what is not kept.
func TestWhatIsKeptIsNotForQuestions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(800, nil)
		var log []Level
		if !b.TryAcquire(690) {
			t.Fatal("no room")
		}
		defer b.Join(&keeper{b: b, level: Kept, n: 690, log: &log})()
		q, err := b.OpenQuestion(t.Context(), 10)
		if err != nil {
			t.Fatal(err)
		}
		if err := q.Grow(t.Context(), 100); fault.KindOf(err) != fault.Limit || len(log) > 0 {
			t.Errorf("%v, %d reclaimed", err, len(log))
		}
		if _, err := b.OpenQuestion(t.Context(), 100); fault.KindOf(err) != fault.Limit || len(log) > 0 {
			t.Errorf("%v, %d reclaimed", err, len(log))
		}
		a, err := b.Open(t.Context(), 100)
		if err != nil || len(log) != 1 {
			t.Errorf("%v, %d reclaimed", err, len(log))
		}
		a.Close()
		q.Close()
	})
}
