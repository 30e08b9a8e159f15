package resources

import (
	"sync/atomic"
	"time"
)

// decodedChunks counts what workers decode: for Stages.
type decodedChunks struct{ chunks, bytes atomic.Int64 }

// Decoded says that a chunk of n bytes was decoded.
func (c *Clock) Decoded(n int) {
	if c != nil {
		c.stages.decodes.chunks.Add(1)
		c.stages.decodes.bytes.Add(int64(n))
	}
}

// Decoded returns how many chunks were decoded, and their size in bytes.
func (s *Stages) Decoded() (chunks, bytes int64) {
	return s.decodes.chunks.Load(), s.decodes.bytes.Load()
}

// Stage is a part of what workers do.
type Stage int

// Stages of a worker. Together they are all of its time.
const (
	StageRead      Stage = iota // bytes of chunks are read
	StageDecode                 // chunks are decompressed
	StagePredictor              // predictors and byte order are undone
	StageScatter                // samples are cast, normalised and put in their place
	StageWait                   // there is nothing to do, or no memory to do it in
	StageOther                  // the rest: looking samples up, opening files, padding, finishing batches
	numStages
)

var stageNames = [numStages]string{"read", "decode", "predictor", "scatter", "wait", "other"}

// String returns the stage's name.
func (s Stage) String() string { return stageNames[s] }

// AllStages lists the stages in the order of the work.
func AllStages() []Stage {
	all := make([]Stage, numStages)
	for i := range all {
		all[i] = Stage(i)
	}
	return all
}

// Stages counts where the time of workers goes. The zero value is ready. It is safe for concurrent use.
type Stages struct {
	spent [numStages]atomic.Int64 // ns
	total atomic.Int64            // ns, of the clocks that have stopped
	sent  atomic.Int64            // ns
	rows  atomic.Int64

	decodes decodedChunks
}

// Spent returns the time of all workers in a stage, without what they are in the middle of.
func (s *Stages) Spent(stage Stage) time.Duration { return time.Duration(s.spent[stage].Load()) }

// Total returns the time of the workers that have ended, from beginning to end. Once all of them have,
// it is the sum of all stages.
func (s *Stages) Total() time.Duration { return time.Duration(s.total.Load()) }

// Sent returns the time in which batches were passed on, by goroutines that are no workers.
func (s *Stages) Sent() time.Duration { return time.Duration(s.sent.Load()) }

// Samples returns how many samples came out valid.
func (s *Stages) Samples() int64 { return s.rows.Load() }

// AddSent says that a batch was passed on in so much time. It does nothing where s is nil.
func (s *Stages) AddSent(d time.Duration) {
	if s != nil {
		s.sent.Add(int64(d))
	}
}

func (s *Stages) Count(valid []bool) {
	if s == nil {
		return
	}
	n := int64(0)
	for _, ok := range valid {
		if ok {
			n++
		}
	}
	s.rows.Add(n)
}

// Clock begins the time of one worker; nil where s is nil.
func (s *Stages) Clock() *Clock {
	if s == nil {
		return nil
	}
	now := time.Now()
	return &Clock{stages: s, start: now, last: now}
}

// Clock is the time of one worker, for that worker alone. A nil clock does nothing.
type Clock struct {
	stages      *Stages
	start, last time.Time
}

// Lap says that the time since the last lap went into a stage.
func (c *Clock) Lap(stage Stage) {
	if c == nil {
		return
	}
	now := time.Now()
	c.stages.spent[stage].Add(int64(now.Sub(c.last)))
	c.last = now
}

// Stop ends the worker's time. What is left of it goes into StageOther.
func (c *Clock) Stop() {
	if c == nil {
		return
	}
	c.Lap(StageOther)
	c.stages.total.Add(int64(c.last.Sub(c.start)))
}
