package budget

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/chaski-eo/chaski/fault"
)

// TestUnseatServesFirstSeats: seats that end leave their bytes charged for batches that still lie there. What is kept
// for first seats is free all the same, and goes to those that wait before any byte is released.
func TestUnseatServesFirstSeats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(1600, nil) // 200 are for growth, 100 for seats
		if err := b.Seat(t.Context(), 100); err != nil {
			t.Fatal(err)
		}
		if err := b.Acquire(t.Context(), 1200); err != nil {
			t.Fatal(err)
		}
		got := make(chan error, 2)
		go func() { got <- b.Acquire(t.Context(), 1000) }()
		synctest.Wait()
		go func() { got <- b.Seat(t.Context(), 60) }()
		synctest.Wait()
		if len(got) != 0 {
			t.Fatal("a seat was taken beyond what is kept")
		}
		b.Unseat(100)
		synctest.Wait()
		if len(got) != 1 || b.Used() != 1360 {
			t.Errorf("%d are done, %d bytes are charged", len(got), b.Used())
		}
		b.Release(1300)
		b.Unseat(60)
		b.Release(60)
		synctest.Wait()
		if len(got) != 2 || b.Used() != 1000 {
			t.Errorf("%d are done, %d bytes are charged", len(got), b.Used())
		}
		b.Release(1000)
	})
}

// TestSeatsGiveAccountsNoHope: what seats hold is not for accounts, and neither is it when they end. An account that
// wants more than there is beside both is refused at once.
func TestSeatsGiveAccountsNoHope(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(800, nil) // 100 are for growth, 50 for seats
		if err := b.Seat(t.Context(), 50); err != nil {
			t.Fatal(err)
		}
		a, err := b.Open(t.Context(), 640)
		if err != nil {
			t.Fatal(err)
		}
		if err := a.Grow(t.Context(), 20); err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		if err := a.Grow(t.Context(), 100); fault.KindOf(err) != fault.Limit || time.Since(begin) > 0 {
			t.Errorf("%v after %v", err, time.Since(begin))
		}
		a.Close()
		b.Unseat(50)
		b.Release(50)
		if b.Used() != 0 {
			t.Errorf("%d bytes are charged", b.Used())
		}
	})
}
