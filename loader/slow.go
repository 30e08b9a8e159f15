package loader

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/chaski-eo/chaski/loader/resources"
)

// slow counts where the time of workers goes, by source, and keeps the rasters that took longest. It counts with
// Options.Stages only.
type slow struct {
	sources []sourceTime // by dataset.number
	least   atomic.Int64 // ns that a raster must take to be among the slowest
	mu      sync.Mutex
	slowest []resources.RasterTime // the slowest first
}

type sourceTime struct{ rasters, read, decode atomic.Int64 }

// maxSlowest is how many of the slowest rasters are kept: as many as a table shows.
const maxSlowest = 5

// note counts the work on a raster of the source with a number. name returns its id and field.
func (s *slow) note(number int, spent resources.Spent, name func() (id, field string)) {
	source := &s.sources[number]
	read, decode := spent.Reading(), spent.Decoding()
	source.rasters.Add(1)
	source.read.Add(int64(read))
	source.decode.Add(int64(decode))
	if int64(read+decode) > s.least.Load() {
		id, field := name()
		s.keep(resources.RasterTime{ID: id, Field: field, Read: read, Decode: decode})
	}
}

// keep puts a raster among the slowest, in place of what it took there before.
func (s *slow) keep(r resources.RasterTime) {
	s.mu.Lock()
	defer s.mu.Unlock()
	longer := func(a, b resources.RasterTime) int { return cmp.Compare(b.Read+b.Decode, a.Read+a.Decode) }
	same := slices.IndexFunc(s.slowest, func(a resources.RasterTime) bool { return a.ID == r.ID && a.Field == r.Field })
	switch {
	case same < 0:
		s.slowest = append(s.slowest, r)
	case longer(r, s.slowest[same]) < 0:
		s.slowest[same] = r
	}
	slices.SortFunc(s.slowest, longer)
	if len(s.slowest) >= maxSlowest {
		s.slowest = s.slowest[:maxSlowest]
		last := s.slowest[maxSlowest-1]
		s.least.Store(int64(last.Read + last.Decode))
	}
}

// times returns the times of all sources, which the caller names, and the slowest rasters.
func (s *slow) times() (sources []resources.SourceTime, slowest []resources.RasterTime) {
	for i := range s.sources {
		source := &s.sources[i]
		sources = append(sources, resources.SourceTime{Rasters: source.rasters.Load(),
			Read: time.Duration(source.read.Load()), Decode: time.Duration(source.decode.Load())})
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return sources, slices.Clone(s.slowest)
}
