package batch

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"testing"

	"github.com/chaski-eo/chaski/shuffle/steps"
)

// tape answers tickets in their order, and fails with the errors of fail by the number of the answer.
type tape struct {
	added      []steps.Ticket
	most, drop int
	answers    int
	fail       map[int]error
}

func (f *tape) Add(t steps.Ticket) {
	f.added = append(f.added, t)
	f.most = max(f.most, len(f.added))
}

func (f *tape) Next(ctx context.Context) (*Batch, error) {
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	first := f.added[0]
	f.added = f.added[1:]
	f.answers++
	if err := f.fail[f.answers]; err != nil {
		return nil, err
	}
	return &Batch{Epoch: first.Epoch, First: first.First, Rows: first.Rows()}, nil
}

func (f *tape) Drop() { f.added, f.drop = nil, f.drop+1 }

// TestLoaderGoesOverAllSteps: a loader yields the first positions of all steps of 11 samples in batches of 4, one after
// the other, with at most Ahead tickets in work. An error repeats its step, a wait that ends loses none, and a state
// resumes at any step.
func TestLoaderGoesOverAllSteps(t *testing.T) {
	type step struct {
		epoch uint64
		first int64
	}
	want := []step{{0, 0}, {0, 4}, {0, 8}, {1, 0}, {1, 4}, {1, 8}}
	broken := errors.New("broken")
	over, cancel := context.WithCancel(t.Context())
	cancel()
	for resumed := range want {
		var states []steps.State
		tickets := &tape{fail: map[int]error{2: broken, 3: broken}}
		run := Run{Cut: steps.Cut{BatchSize: 4}, Samples: 11, State: steps.State{Version: steps.Version, Spec: "s"},
			Ahead: 3, Tickets: tickets, Logger: slog.New(slog.DiscardHandler)}
		state := run.State
		state.Epoch, state.Samples = want[resumed].epoch, want[resumed].first
		loader, err := NewLoader(run, LoaderOptions{Epochs: 2, State: &state})
		if err != nil {
			t.Fatal(err)
		}
		for k := resumed; ; {
			if _, err := loader.Next(over); k < len(want) && !errors.Is(err, context.Canceled) {
				t.Errorf("a wait that ended: %v", err)
			}
			b, err := loader.Next(t.Context())
			if errors.Is(err, broken) {
				continue
			}
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil || k >= len(want) || (step{b.Epoch, b.First}) != want[k] {
				t.Fatalf("from %v, step %d: %+v, %v", want[resumed], k, b, err)
			}
			k++
			states = append(states, loader.State())
		}
		last := states[len(states)-1]
		if len(states) != len(want)-resumed || last.Epoch != 1 || last.Samples != 11 {
			t.Errorf("from %v: %d steps, and then %+v", want[resumed], len(states), last)
		}
		drops := 2 // one for each error
		if len(states) < 2 {
			drops = 0
		}
		if tickets.most > 3 || tickets.drop != drops {
			t.Errorf("%d tickets in work, %d times dropped", tickets.most, tickets.drop)
		}
		loader.Close()
		if _, err := loader.Next(t.Context()); !errors.Is(err, ErrClosed) || len(tickets.added) != 0 {
			t.Errorf("after Close: %v, and %d tickets in work", err, len(tickets.added))
		}
	}
}
