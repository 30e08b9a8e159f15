package resources

import (
	"sync/atomic"
	"time"
)

// Decoded counts one decoded chunk of n bytes.
func (c *Clock) Decoded(n int) {
	if c == nil {
		return
	}
	for s := c.stages; s != nil; s = s.Of {
		s.chunks.Add(1)
		s.bytes.Add(int64(n))
	}
}

// Decoded returns how many chunks were decoded, and how many bytes they decoded to.
func (s *Stages) Decoded() (chunks, bytes int64) {
	return s.chunks.Load(), s.bytes.Load()
}

// Stage is a part of what workers do.
type Stage int

// Stages of a worker. Each moment of its time belongs to exactly one.
const (
	StageRead      Stage = iota // bytes of chunks are read
	StageDecode                 // chunks are decompressed
	StagePredictor              // predictors and byte order are undone
	StageScatter                // samples are cast, normalised and put in their place
	StageTurn                   // a processor, or a chunk that another worker decodes, is waited for
	StageMemory                 // there is no memory for the next batch
	StageWait                   // there is nothing to do
	StageOther                  // the rest: looking samples up, padding, finishing batches
	numStages
)

var stageNames = [numStages]string{"read", "decode", "predictor", "scatter", "turn", "memory", "wait", "other"}

// Spent is the time spent in each stage.
type Spent [numStages]time.Duration

// Sub returns the time since another moment.
func (s Spent) Sub(from Spent) Spent {
	for i := range s {
		s[i] -= from[i]
	}
	return s
}

// Reading returns the time for which bytes were waited.
func (s *Spent) Reading() time.Duration { return s[StageRead] }

// Decoding returns the time that pixels took once their bytes were there, with the wait for a processor.
func (s *Spent) Decoding() time.Duration {
	return s[StageDecode] + s[StagePredictor] + s[StageScatter] + s[StageTurn] + s[StageOther]
}

// String returns the stage's name.
func (s Stage) String() string { return stageNames[s] }

// AllStages lists the stages in the order of the work.
func AllStages() []Stage {
	list := make([]Stage, numStages)
	for i := range list {
		list[i] = Stage(i)
	}
	return list
}

// Stages measures where the time of workers goes. The zero value is ready to use. It is safe for
// concurrent use.
type Stages struct {
	// Of, if it is not nil, counts what the workers of several engines do, these among them.
	Of *Stages
	// Coarse counts StagePredictor and StageScatter as StageDecode. A clock is then read once for a chunk and not three
	// times: a window may have hundreds of chunks.
	Coarse bool

	spent [numStages]atomic.Int64 // ns
	full  atomic.Int64            // ns in which a ticket had no memory

	chunks, bytes atomic.Int64 // that were decoded
}

// Spent returns the time that all workers spent in each stage, in the pieces of work that are done. It is 0 if
// s is nil.
func (s *Stages) Spent() (all Spent) {
	if s != nil {
		for i := range s.spent {
			all[i] = time.Duration(s.spent[i].Load())
		}
	}
	return all
}

// NoMemory counts a time in which tickets waited for memory. It does nothing if s is nil.
func (s *Stages) NoMemory(d time.Duration) {
	if s != nil {
		s.full.Add(int64(d))
	}
}

// Clock starts the clock of one worker. It returns nil if s is nil, so workers do not read the time
// unless they are measured.
func (s *Stages) Clock() *Clock {
	if s == nil {
		return nil
	}
	now := time.Now()
	return &Clock{stages: s, start: now}
}

// Clock measures the time of one worker. It is not safe for concurrent use. A nil Clock does nothing.
type Clock struct {
	stages *Stages
	start  time.Time
	last   time.Duration // since start
	spent  Spent         // since the last Done
	full   time.Duration // Stages.full at the last Done
}

// Lap adds the time since the last lap to a stage.
func (c *Clock) Lap(stage Stage) {
	if c == nil {
		return
	}
	if c.stages.Coarse {
		switch stage {
		case StageDecode, StagePredictor: // the lap goes on to the end of the chunk
			return
		case StageScatter:
			stage = StageDecode
		}
	}
	now := time.Since(c.start) // of the monotonic clock alone, in half of the time of time.Now
	c.spent[stage] += now - c.last
	c.last = now
}

// Done counts the laps of a piece of work, and returns them.
func (c *Clock) Done() (work Spent) {
	if c == nil {
		return work
	}
	for s := c.stages; s != nil; s = s.Of {
		for i, d := range c.spent {
			if d > 0 {
				s.spent[i].Add(int64(d))
			}
		}
	}
	work, c.spent = c.spent, Spent{}
	c.full = time.Duration(c.stages.full.Load())
	return work
}

// Waited adds the time since the last lap, in which there was no work, to StageMemory as far as tickets waited for
// memory, and to StageWait.
func (c *Clock) Waited() {
	if c == nil {
		return
	}
	before := c.last
	c.Lap(StageWait)
	full := min(c.last-before, time.Duration(c.stages.full.Load())-c.full)
	c.spent[StageWait] -= full
	c.spent[StageMemory] += full
}

// Stop stops the clock. The time since the last lap goes into StageOther.
func (c *Clock) Stop() {
	if c == nil {
		return
	}
	c.Lap(StageOther)
	c.Done()
}

// SourceTime is what the workers spent on the rasters of one source.
type SourceTime struct {
	Source       string // its name in a mixture, else where it lies
	Rasters      int64
	Read, Decode time.Duration
}

// RasterTime is what a worker spent on one raster of a sample: of all such times, one of the longest.
type RasterTime struct {
	ID, Field    string
	Read, Decode time.Duration
}
