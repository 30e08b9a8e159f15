package loader

import (
	"testing"
	"time"

	"github.com/chaski-eo/chaski/loader/batch"
	"github.com/chaski-eo/chaski/loader/resources"
	"github.com/chaski-eo/chaski/shuffle/steps"
)

// TestStagesAreAllOfTheTime: the stages add up to the workers' time, for any number of workers and
// whatever happens to the tickets. That time is at most the time that passed, and at least the
// work's own.
func TestStagesAreAllOfTheTime(t *testing.T) {
	for _, workers := range []int{1, 3} {
		tab := chips(3, 40)
		spec := windowSpec()
		var s resources.Stages
		begin := time.Now()
		e, err := newEngine(t.Context(), spec.WithDefaults(), Options{
			Workers: workers, Opener: tab, Stages: &s,
		}.WithDefaults(), tab.table())
		if err != nil {
			t.Fatal(err)
		}
		l, err := NewLoader(e, LoaderOptions{Epochs: 2})
		if err != nil {
			t.Fatal(err)
		}
		first := time.Time{}
		for _, err := range l.All(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			if first.IsZero() {
				first = time.Now()
			}
		}
		l.Close()
		worked := time.Since(first)
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
		passed := time.Since(begin)

		var sum time.Duration
		for _, stage := range resources.AllStages() {
			spent := s.Spent()[stage]
			sum += spent
			if spent <= 0 && stage != resources.StageTurn && stage != resources.StageMemory {
				t.Errorf("%d workers: %v in stage %v", workers, spent, stage)
			}
		}
		if sum > time.Duration(workers)*passed || sum < worked {
			t.Errorf("%d workers: stages of %v; %v passed, %v with batches", workers, sum, passed, worked)
		}
	}
}

// TestNoStages: without stages no clock is read, and asking for one costs nothing.
func TestNoStages(t *testing.T) {
	var s *resources.Stages
	c := s.Clock()
	n := testing.AllocsPerRun(10, func() { c.Lap(resources.StageRead); c.Waited(); c.Done(); c.Stop(); s.NoMemory(1) })
	if c != nil || n != 0 {
		t.Errorf("clock %v, %g allocations", c, n)
	}
}

// TestWorkersWithoutMemory: while a batch that is not given back takes all of the memory, workers wait for memory, and
// without tickets they wait for work.
func TestWorkersWithoutMemory(t *testing.T) {
	tab := chips(3, 40)
	spec := windowSpec().WithDefaults()
	var s resources.Stages
	options := Options{Workers: 1, Opener: tab, Stages: &s, MemoryBytes: 1 << 30}.WithDefaults()
	e, err := newEngine(t.Context(), spec, options, tab.table())
	if err != nil {
		t.Fatal(err)
	}
	bytes := e.BatchBytes()
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	options.MemoryBytes = bytes
	if e, err = newEngine(t.Context(), spec, options, tab.table()); err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	const pause = 100 * time.Millisecond
	ticket := steps.Ticket{Count: spec.BatchSize, RowStride: 1}
	wait := func(p *Pending) *batch.Batch {
		b, err := p.Wait(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	first := wait(e.Start(t.Context(), ticket, false))
	second := e.Start(t.Context(), ticket, false)
	time.Sleep(pause)
	first.Release()
	wait(second).Release()
	if full := s.Spent()[resources.StageMemory]; full < pause/2 {
		t.Errorf("%v without memory, for %v", full, pause)
	}
	before := s.Spent()
	time.Sleep(pause)
	wait(e.Start(t.Context(), ticket, false)).Release()
	if later := s.Spent().Sub(before); later[resources.StageWait] < pause/2 || later[resources.StageMemory] > pause/2 {
		t.Errorf("without tickets for %v: %v", pause, later)
	}
}
