package resources

import (
	"testing"
	"time"
)

// BenchmarkStages is what the clock of a worker costs for one raster: 8 laps and its end. A raster takes a worker
// 100 µs at the very least.
func BenchmarkStages(b *testing.B) {
	all := &Stages{}
	for _, c := range []struct {
		name  string
		clock *Clock
	}{{"off", nil}, {"on", (&Stages{Of: all}).Clock()}} {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				for range 8 {
					c.clock.Lap(StageScatter)
				}
				c.clock.Waited()
				c.clock.Done()
			}
		})
	}
}

// TestClock promises that a worker's time is divided without a rest, and counted for several engines together.
func TestClock(t *testing.T) {
	all := &Stages{}
	one := &Stages{Of: all}
	one.Coarse = true
	c := one.Clock()
	time.Sleep(time.Millisecond)
	c.Lap(StageRead)
	time.Sleep(time.Millisecond)
	c.Lap(StageDecode)
	time.Sleep(time.Millisecond)
	c.Lap(StageScatter)
	one.NoMemory(time.Hour)
	time.Sleep(time.Millisecond)
	c.Waited() // tickets waited for memory all the time
	work := c.Done()
	if work[StageRead] < time.Millisecond || work[StageMemory] < time.Millisecond || work[StageWait] != 0 ||
		work[StageDecode] < 2*time.Millisecond || work[StageScatter] != 0 {
		t.Errorf("%v", work)
	}
	time.Sleep(time.Millisecond)
	c.Waited() // since Done none waited for memory
	c.Stop()
	spent, sum := one.Spent(), time.Duration(0)
	for _, d := range spent {
		sum += d
	}
	if spent[StageWait] < time.Millisecond || spent != all.Spent() || sum != c.last {
		t.Errorf("%v, of all %v, in %v", spent, all.Spent(), c.last)
	}
}
