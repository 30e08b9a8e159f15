package loader

import (
	"cmp"

	"github.com/chaski-eo/chaski/loader/batch"
	"github.com/chaski-eo/chaski/loader/resources"
)

// Serving is the side of an engine for a server, which lends batches to clients and tells how the work goes.
type Serving Engine

// Serving returns the side of the engine for a server.
func (e *Engine) Serving() *Serving { return (*Serving)(e) }

// MemoryBytes returns the bytes of memory for batches: Options.MemoryBytes or its default, less
// those for decoded tiles.
func (s *Serving) MemoryBytes() int64 { return s.options.MemoryBytes }

// Forget frees the idle batch memory of an owner that is gone: see resources.WithOwner.
func (s *Serving) Forget(o batch.Owner) { s.memory.forget(o) }

// Wanted reports whether tickets of other streams than t wait for memory.
func (s *Serving) Wanted(t resources.Caller) bool { return s.queue.othersWait(t) }

// Lend counts n bytes of a batch as held by a client for as long as it likes. It reports false if there must be no more
// of them: the other batches of this engine, and of others, need the memory.
func (s *Serving) Lend(n int64) bool { return s.memory.lend(n, (*Engine)(s).BatchBytes()) }

// Returned says that a client holds n bytes of Lend no more.
func (s *Serving) Returned(n int64) { s.memory.returned(n, (*Engine)(s).BatchBytes()) }

// Slow returns where the time of the workers went, by source, and the rasters that took longest. Both are empty without
// Options.Stages.
func (s *Serving) Slow() (sources []resources.SourceTime, slowest []resources.RasterTime) {
	sources, slowest = s.slow.times()
	for i := range sources {
		sources[i].Source = cmp.Or(s.sets[i].name, s.spec.Source)
	}
	return sources, slowest
}
