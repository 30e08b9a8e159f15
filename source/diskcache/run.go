package diskcache

import "github.com/chaski-eo/chaski/source"

// Run announces the reads of a run to a Folder, which then holds what is read next. Places in the order of a run are
// numbers that grow. It is safe for concurrent use.
type Run struct {
	folder *Folder
	shift  int64 // from the order of the run to the order of all runs
	coming map[int64][]*announcedRead
	learns bool // see policy.learning
}

// NewRun returns a run that is about to read what stands at a place in its order.
func (f *Folder) NewRun(first int64) *Run {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.policy.learning++
	return &Run{folder: f, shift: f.policy.clock - first, coming: map[int64][]*announcedRead{}, learns: true}
}

// Expect announces a read of an Object. It keeps only reads of an Object whose bytes are a range.
func (r *Run) Expect(at int64, object any, bytes source.Range) {
	o, ok := object.(Object)
	s := spanOf(bytes)
	if !ok || !s.isRange() {
		return
	}
	r.folder.mu.Lock()
	defer r.folder.mu.Unlock()
	coming := &announcedRead{stored: stored{o, s}, at: at + r.shift}
	r.coming[at] = append(r.coming[at], coming)
	r.folder.policy.expect(coming)
}

// Full reports whether enough reads are announced.
func (r *Run) Full() bool {
	r.folder.mu.Lock()
	defer r.folder.mu.Unlock()
	return r.folder.policy.full(r.folder.quota)
}

// Ready says that what the run reads next is announced.
func (r *Run) Ready() {
	r.folder.mu.Lock()
	defer r.folder.mu.Unlock()
	r.ready()
}

// ready needs the lock.
func (r *Run) ready() {
	if r.learns {
		r.learns = false
		r.folder.policy.learning--
	}
}

// Begin says that the reads up to a place in the order may come now.
func (r *Run) Begin(at int64) {
	r.folder.mu.Lock()
	defer r.folder.mu.Unlock()
	r.folder.policy.begin(at + r.shift)
}

// Over says that all reads at a place in the order have come that will: some may have had their bytes from elsewhere.
func (r *Run) Over(at int64) {
	r.folder.mu.Lock()
	defer r.folder.mu.Unlock()
	r.end(at)
}

// end is Over for a caller that has the lock.
func (r *Run) end(at int64) {
	for _, coming := range r.coming[at] {
		r.folder.policy.forget(coming)
	}
	delete(r.coming, at)
}

// Close takes back what was announced.
func (r *Run) Close() {
	r.folder.mu.Lock()
	defer r.folder.mu.Unlock()
	r.ready()
	for place := range r.coming {
		r.end(place)
	}
}
