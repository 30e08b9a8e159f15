package resources

import (
	"sync/atomic"
	"time"
)

// decodedChunks counts the chunks and bytes that workers decode.
type decodedChunks struct{ chunks, bytes atomic.Int64 }

// Decoded counts one decoded chunk of n bytes.
func (c *Clock) Decoded(n int) {
	if c != nil {
		c.stages.decodes.chunks.Add(1)
		c.stages.decodes.bytes.Add(int64(n))
	}
}

// Decoded returns how many chunks were decoded, and how many bytes they decoded to.
func (s *Stages) Decoded() (chunks, bytes int64) {
	return s.decodes.chunks.Load(), s.decodes.bytes.Load()
}

// Stage is a part of what workers do.
type Stage int

// Stages of a worker. Each moment of its time belongs to exactly one, so that they add up to Total.
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
	list := make([]Stage, numStages)
	for i := range list {
		list[i] = Stage(i)
	}
	return list
}

// Stages measures where the time of workers goes. The zero value is ready to use. It is safe for
// concurrent use.
type Stages struct {
	spent [numStages]atomic.Int64 // ns
	total atomic.Int64            // ns, of the clocks that have stopped
	sent  atomic.Int64            // ns
	rows  atomic.Int64

	decodes decodedChunks
}

// Spent returns the time that all workers spent in a stage. Laps that still run are not included.
func (s *Stages) Spent(stage Stage) time.Duration { return time.Duration(s.spent[stage].Load()) }

// Total returns the time of the workers that have ended, each from its start to its end. Once all have
// ended, it is the sum of all stages.
func (s *Stages) Total() time.Duration { return time.Duration(s.total.Load()) }

// Sent returns the time in which batches were passed on. Other goroutines than workers do that, so it is
// not part of Total.
func (s *Stages) Sent() time.Duration { return time.Duration(s.sent.Load()) }

// Samples returns how many valid samples were counted.
func (s *Stages) Samples() int64 { return s.rows.Load() }

// AddSent adds the time d in which one batch was passed on. It does nothing if s is nil.
func (s *Stages) AddSent(d time.Duration) {
	if s != nil {
		s.sent.Add(int64(d))
	}
}

// Count counts the true values of valid, one for each row of a batch. It does nothing if s is nil.
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

// Clock starts the clock of one worker. It returns nil if s is nil, so that workers do not read the time
// unless they are measured.
func (s *Stages) Clock() *Clock {
	if s == nil {
		return nil
	}
	now := time.Now()
	return &Clock{stages: s, start: now, last: now}
}

// Clock measures the time of one worker. It is not safe for concurrent use. A nil Clock does nothing.
type Clock struct {
	stages      *Stages
	start, last time.Time
}

// Lap adds the time since the last lap to a stage.
func (c *Clock) Lap(stage Stage) {
	if c == nil {
		return
	}
	now := time.Now()
	c.stages.spent[stage].Add(int64(now.Sub(c.last)))
	c.last = now
}

// Stop stops the clock. The time since the last lap goes into StageOther.
func (c *Clock) Stop() {
	if c == nil {
		return
	}
	c.Lap(StageOther)
	c.stages.total.Add(int64(c.last.Sub(c.start)))
}
