package diskcache

import (
	"math"
	"slices"

	"github.com/chaski-eo/chaski/internal/heaps"
)

// policy decides which ranges a cache holds. A range for which there is no room takes the place of the one that is read
// last, if that is read later than it (Belady's rule). Runs announce what they read; of all other ranges nothing is
// known, and they stay. Folder and Simulation have the same policy, so a plan says what a run does.
type policy struct {
	spans index // all ranges that are held
	// candidates may make room: this process has stored them, or a run has announced to read them. Others
	// belong to runs of other processes.
	candidates map[stored]*candidate
	last       heaps.Heap[*candidate] // the range that is read last first, of several the oldest candidate
	numbers    int64                  // of candidates, so far
	// coming has the announced reads by what they touch.
	coming map[spanBucket][]*announcedRead
	count  int   // of coming
	bytes  int64 // of coming
	clock  int64 // the last read that has begun, in the order of all runs
	// learning is how many runs have just begun and have not announced enough. Until they have, nothing makes room:
	// what they read soon would go for what they read later.
	learning int
}

// never is when a range is read that nobody has announced.
const never = math.MaxInt64

// candidate is a range that may make room for another one.
type candidate struct {
	stored
	next   int64 // when it is read next
	number int64 // the order in which ranges became candidates
	place  int   // in policy.last
}

// Before implements heaps.Item.
func (c *candidate) Before(o *candidate) bool {
	return c.next > o.next || c.next == o.next && c.number < o.number
}

// Place implements heaps.Item.
func (c *candidate) Place() *int { return &c.place }

// announcedRead is a range that a run has announced to read.
type announcedRead struct {
	stored
	at int64 // the place in the order of all reads
}

const (
	// maxComing bounds the announced reads: their memory is up to 50 MB, 200 bytes each.
	maxComing = 1 << 18
	// farEnough is how many times the quota the announced reads have in bytes when more would change little: if each
	// byte of a set comes at random, and a cache has room for the part c of the set, what it should hold comes within
	// sqrt(2/c) times the quota. That is 4.5 for a tenth, and 14 for a hundredth.
	farEnough = 16
	// crowd bounds the announced reads of one bucket, which are searched for each read: that takes a microsecond. Where
	// there are more, the ranges of the bucket are read soon.
	crowd = 1024
)

func newPolicy() policy {
	return policy{spans: index{}, candidates: map[stored]*candidate{}, coming: map[spanBucket][]*announcedRead{}}
}

// full reports whether enough reads are announced for a cache of quota bytes.
func (p *policy) full(quota int64) bool {
	return p.count >= maxComing || p.bytes/farEnough >= quota
}

// hold adds a range that may make room for others later.
func (p *policy) hold(s stored) {
	p.spans.add(s.Object, s.Span)
	if p.count > 0 {
		p.note(s)
	}
}

// note makes a range that is held a candidate, and finds out when it is read next.
func (p *policy) note(s stored) {
	c := p.candidates[s]
	if c == nil {
		p.numbers++
		c = &candidate{stored: s, number: p.numbers}
		p.candidates[s] = c
		p.last.Add(c)
	}
	c.next = p.next(s)
	p.last.Fix(c)
}

// drop removes a range.
func (p *policy) drop(s stored) {
	p.spans.remove(s.Object, s.Span)
	if c := p.candidates[s]; c != nil {
		delete(p.candidates, s)
		p.last.Remove(c)
	}
}

// next returns when a range is read next.
func (p *policy) next(s stored) int64 {
	next := int64(never)
	if first := p.first(s, never); first != nil {
		next = first.at
	}
	return next
}

// first returns the first announced read that touches a range, of those that begin before end; or nil.
func (p *policy) first(s stored, end int64) (first *announcedRead) {
	for b := range bucketsOf(s.Object, s.Span) {
		for _, r := range p.coming[b] {
			touches := r.From < s.End && s.From < r.End
			if touches && r.at < end && (first == nil || r.at < first.at) {
				first = r
			}
		}
	}
	return first
}

// expect adds a read that a run has announced.
func (p *policy) expect(r *announcedRead) {
	for b := range bucketsOf(r.Object, r.Span) {
		if len(p.coming[b]) >= crowd {
			return
		}
	}
	for b := range bucketsOf(r.Object, r.Span) {
		p.coming[b] = append(p.coming[b], r)
	}
	p.count++
	p.bytes += r.len()
	p.renew(r.stored)
}

// forget removes an announced read: it has come, or will not.
func (p *policy) forget(r *announcedRead) {
	for bucket := range bucketsOf(r.Object, r.Span) {
		place := slices.Index(p.coming[bucket], r)
		if place < 0 {
			return // it was removed before, or is one of a crowd
		}
		if p.coming[bucket] = slices.Delete(p.coming[bucket], place, place+1); len(p.coming[bucket]) == 0 {
			delete(p.coming, bucket)
		}
	}
	p.count--
	p.bytes -= r.len()
	p.renew(r.stored)
}

// renew finds out anew when the ranges that a read touches are read next.
func (p *policy) renew(s stored) {
	for _, span := range p.spans.touching(s.Object, s.Span) {
		p.note(stored{s.Object, span})
	}
}

// read says that a range is read now: the first announced read of it has come.
func (p *policy) read(s stored) {
	if p.count == 0 {
		return
	}
	if first := p.first(s, p.clock+1); first != nil {
		p.forget(first)
	}
}

// begin says that the reads up to a place in the order may come now.
func (p *policy) begin(at int64) { p.clock = max(p.clock, at) }

// evictable returns the range that is read last, if that is after next.
func (p *policy) evictable(next int64) (s stored, ok bool) {
	if p.learning > 0 || len(p.last) == 0 || p.last[0].next <= next {
		return s, false
	}
	return p.last[0].stored, true
}
