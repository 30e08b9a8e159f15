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
	held    int64
	wants   int64 // bytes
	waits   bool
	got     chan error
}

// step is what one account does.
type step struct {
	do  string
	who int
	n   int64
}

// does has the steps as often as they are drawn.
const does = "open open grow grow grow grow shrink close hold"

func steps() *rapid.Generator[[]step] {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) step {
		return step{
			do:  rapid.SampledFrom(strings.Fields(does)).Draw(t, "do"),
			who: rapid.IntRange(0, 7).Draw(t, "who"),
			n:   rapid.Int64Range(0, 300).Draw(t, "n"),
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
			if wrong == nil && (c.b.Used() != 0 || c.b.Waiting() != 0) {
				wrong = fmt.Errorf("%d bytes are charged, %d wait", c.b.Used(), c.b.Waiting())
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
	case "close":
		c.leave(m)
	}
	return c.look()
}

func (c *crowd) open(ctx context.Context, s step) error {
	a, err := c.b.Open(ctx, s.n)
	if err != nil {
		return err
	}
	c.members = append(c.members, &member{account: a, held: s.n})
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
		if c.canGoOn() {
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
			if o.waits && !slices.Contains(refused, o) && m.account.age < o.account.age {
				return errors.New("one that comes later still waits")
			}
		}
	}
	return nil
}

// first returns the oldest account that waits, or nil.
func (c *crowd) first() *member {
	for _, m := range c.members {
		if m.waits {
			return m
		}
	}
	return nil
}

// canGoOn is the slow and obvious answer: the oldest account that waits gets what it wants if everything ends that does
// not wait. It is true if none waits.
func (c *crowd) canGoOn() bool {
	first, free := c.first(), c.b.limit
	for _, m := range c.members {
		if m.waits {
			free -= m.held
		}
	}
	return first == nil || first.wants <= free
}

// check compares the budget with what is known of its accounts.
func (c *crowd) check() error {
	used := c.outside
	for _, m := range c.members {
		used += m.held
	}
	switch {
	case used != c.b.Used() || used > 800:
		return fmt.Errorf("%d bytes are charged, not %d", c.b.Used(), used)
	case !c.canGoOn():
		return errors.New("accounts wait for each other")
	}
	if next := c.first(); next != nil && next.wants <= c.b.limit-c.b.Used() {
		return fmt.Errorf("%d bytes are free, and an account waits for them", next.wants)
	}
	return nil
}
