package diskcache

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/zeebo/xxh3"
)

// request is a request to the store that has no answer yet. Others wait for it that need bytes of it.
type request struct {
	span Span
	done chan struct{} // closed after the answer

	mu      sync.Mutex
	answer  bool
	waiting []*waiting
}

// waiting is a read whose bytes are all part of a request.
type waiting struct {
	p        []byte
	off      int64
	hasBytes bool
}

const (
	// othersTake is how long an engine waits for a range that another one is reading: as long as a request may take.
	othersTake = 10 * time.Second
	// lookEvery is how often it looks whether the other one has it: a small part of what a request takes.
	lookEvery = 5 * time.Millisecond
)

// Fill fills p with bytes of an object from off on: what the folder has, and the rest by get, one range in one call.
// Of reads that need the same range at a time, also by other engines with this folder, one gets it for all.
func (f *Folder) Fill(ctx context.Context, o Object, p []byte, off int64,
	get func(p []byte, off int64) error) error {
	for {
		missing := f.Read(o, p, off)
		if missing.len() == 0 {
			return ctx.Err()
		}
		mine, other := f.begin(o, missing)
		if mine != nil {
			return f.getFor(ctx, o, p, off, mine, get)
		}
		if other == nil {
			continue
		}
		filled, err := other.wait(ctx, p[missing.From-off:missing.End-off], missing)
		if err != nil {
			return err
		}
		if filled {
			f.share(stored{o, Span{off, off + int64(len(p))}})
			return nil
		}
	}
}

// share counts a read that had its bytes from the request for another one.
func (f *Folder) share(s stored) {
	f.stats.shared.Add(1)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.policy.read(s)
}

// begin returns a new request for a range that is missing, or one in progress that has some of its bytes, or neither if
// some of it has come meanwhile.
func (f *Folder) begin(o Object, s Span) (mine, other *request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	gaps := gapsOf(f.policy.spans.touching(o, s), s)
	if !time.Now().Before(f.unread) && (len(gaps) == 0 || gaps[0].From > s.From || gaps[len(gaps)-1].End < s.End) {
		return nil, nil
	}
	for _, r := range f.reading[o] {
		if r.span.From < s.End && s.From < r.span.End {
			return nil, r
		}
	}
	mine = &request{span: s, done: make(chan struct{})}
	f.reading[o] = append(f.reading[o], mine)
	return mine, nil
}

// getFor fills p by a request, and all that wait for it.
func (f *Folder) getFor(ctx context.Context, o Object, p []byte, off int64, r *request,
	get func(p []byte, off int64) error) error {
	defer func() { // also if get panics
		f.mu.Lock()
		defer f.mu.Unlock()
		f.reading[o] = slices.DeleteFunc(f.reading[o], func(other *request) bool { return other == r })
		if len(f.reading[o]) == 0 {
			delete(f.reading, o)
		}
		close(r.done)
	}()
	missing := r.span
	if f.keeps(o, missing) {
		unlock, waited := f.lockRange(ctx, o, missing)
		defer unlock()
		if waited || f.adopt(o, missing) {
			missing = f.Read(o, p, off)
		}
	}
	if missing.len() > 0 {
		if err := get(p[missing.From-off:missing.End-off], missing.From); err != nil {
			return err
		}
		f.stats.storeBytes.Add(missing.len())
		f.Keep(o, p, off)
	}
	r.share(p[r.span.From-off : r.span.End-off])
	return ctx.Err()
}

// wait fills p, which is a range, from the answer of a request that has all of it. It reports whether it has.
func (r *request) wait(ctx context.Context, p []byte, s Span) (filled bool, err error) {
	mine := &waiting{p: p, off: s.From}
	r.mu.Lock()
	if !r.answer && s.From >= r.span.From && s.End <= r.span.End {
		r.waiting = append(r.waiting, mine)
	}
	r.mu.Unlock()
	select {
	case <-r.done:
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.waiting = slices.DeleteFunc(r.waiting, func(w *waiting) bool { return w == mine }) // p is the caller's again
	return mine.hasBytes, err
}

// share gives the answer to all that wait.
func (r *request) share(answer []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answer = true
	for _, w := range r.waiting {
		copy(w.p, answer[w.off-r.span.From:])
		w.hasBytes = true
	}
}

// keeps reports whether a range would be stored.
func (f *Folder) keeps(o Object, s Span) bool {
	f.mu.Lock()
	_, evictable := f.policy.evictable(f.policy.next(stored{o, s}))
	paused := time.Now().Before(f.paused)
	f.mu.Unlock()
	return !paused && (evictable || f.Used()+costOf(s.len()) <= f.quota)
}

// lockRange lets other engines wait for a range until unlock. It waits itself while another one reads it, unless that
// takes too long, and reports whether it did.
func (f *Folder) lockRange(ctx context.Context, o Object, s Span) (unlock func(), waited bool) {
	place := int64(xxh3.HashString(nameOf(o, s)) >> 2) // the system counts in int64
	for start := time.Now(); ; waited = true {
		free, err := lockByte(f.reads, place)
		if free || err != nil {
			return func() { _ = unlockByte(f.reads, place) }, waited // it ends with the process at the latest
		}
		if time.Since(start) > othersTake {
			return func() {}, waited
		}
		select {
		case <-time.After(lookEvery):
		case <-ctx.Done():
			return func() {}, waited
		}
	}
}
