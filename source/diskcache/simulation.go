package diskcache

import "github.com/chaski-eo/chaski/source"

// Simulation says what a Folder would have, without a disk. Reads in the order of a run give the run's hits.
type Simulation struct {
	quota, used int64
	ranges      int64 // that it holds
	policy      policy
	queue       []*announcedRead // announced, and not read yet
	// Through is the place in the order from which on reads were not announced yet.
	Through  int64
	hasFirst bool
	first    uint64 // the epoch from which places count, or those of late epochs would overflow
	// HitBytes would come from the folder, MissedBytes from the store.
	HitBytes, MissedBytes int64
}

// NewSimulation returns the simulation of an empty folder.
func NewSimulation(quota int64) *Simulation { return &Simulation{quota: quota, policy: newPolicy()} }

// Begin says that an epoch is read now. The first one gives places their beginning.
func (s *Simulation) Begin(epoch uint64) {
	if !s.hasFirst {
		s.hasFirst, s.first = true, epoch
	}
}

// Place returns the place of a position of an epoch in the order of all reads, of so many samples in each epoch.
func (s *Simulation) Place(samples int64, epoch uint64, position int64) int64 {
	return int64(epoch-s.first)*samples + position
}

// Add counts a read of a file at a place in the order of a run. With foresees, the run knows its reads beforehand. kept
// says that a cache keeps the file.
func (s *Simulation) Add(at int64, uri string, bytes source.Range, kept, foresees bool) {
	object, span := NameObject(uri, "", "", 0), spanOf(bytes)
	switch {
	case foresees && at < s.Through: // the forecast of the epoch before has looked ahead
	case !kept:
		s.MissedBytes += bytes.Len
	case foresees:
		s.Expect(at, object, span)
	default:
		s.Read(object, span)
	}
}

// Announced says that all reads before a place in the order have been added.
func (s *Simulation) Announced(end int64) { s.Through = max(s.Through, end) }

// Found returns HitBytes and MissedBytes.
func (s *Simulation) Found() (hit, missed int64) { return s.HitBytes, s.MissedBytes }

// Expect announces a read, at a place in the order of a run. Reads come in their order.
func (s *Simulation) Expect(at int64, o Object, span Span) {
	if !span.isRange() { // it is read at once, and not found
		s.Read(o, span)
		return
	}
	r := &announcedRead{stored: stored{o, span}, at: at}
	s.queue = append(s.queue, r)
	s.policy.expect(r)
}

// Known reports whether the future is known as far as a run knows it, which looks ahead at most so many places: then
// the next read can be decided.
func (s *Simulation) Known(ahead int64) bool {
	// Not all of the queue are announced: see crowd.
	full := s.policy.full(s.quota) || len(s.queue) >= maxComing
	return len(s.queue) > 0 && (full || s.Through > s.queue[0].at+ahead)
}

// rangeBytes is the memory of a range that a Simulation holds, or that was announced to it: 56 bytes in each of two
// indexes with its key, and what maps and slices that grow have to spare.
const rangeBytes = 256

// Bytes returns about how much memory it takes.
func (s *Simulation) Bytes() int64 { return rangeBytes * (int64(len(s.queue)) + s.ranges) }

// Next reads what was announced first of what was not read yet, if its place in the order is before end.
func (s *Simulation) Next(end int64) bool {
	if len(s.queue) == 0 || s.queue[0].at >= end {
		return false
	}
	reading := s.queue[0]
	s.queue[0] = nil
	s.queue = s.queue[1:]
	s.policy.begin(reading.at)
	s.Read(reading.Object, reading.Span)
	return true
}

// Read reads a range of an object, and keeps what is missing of it.
func (s *Simulation) Read(o Object, span Span) {
	if !span.isRange() {
		s.MissedBytes += max(span.len(), 0)
		return
	}
	gaps := gapsOf(s.policy.spans.touching(o, span), span)
	s.policy.read(stored{o, span})
	if len(gaps) == 0 {
		s.HitBytes += span.len()
		return
	}
	missing := gaps[len(gaps)-1].End - gaps[0].From
	s.MissedBytes += missing
	s.HitBytes += span.len() - missing
	for _, gap := range gaps {
		s.keep(stored{o, gap})
	}
}

// keep holds a range if the quota has room for it.
func (s *Simulation) keep(r stored) {
	cost, next := costOf(r.len()), s.policy.next(r)
	for s.used > s.quota-cost && cost <= s.quota {
		old, ok := s.policy.evictable(next)
		if !ok {
			return
		}
		s.policy.drop(old)
		s.ranges--
		s.used -= costOf(old.len())
	}
	if s.used <= s.quota-cost {
		s.used += cost
		s.policy.hold(r)
		s.ranges++
	}
}
