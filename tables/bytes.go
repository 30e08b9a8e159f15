package tables

// Bytes returns about how much memory the columns that were loaded so far take, and the pages that are held. A column
// that is being loaded does not count.
func (t *Table) Bytes() int64 {
	n := int64(0)
	for i := range t.loaded {
		l := &t.loaded[i]
		if !l.mu.TryLock() {
			continue
		}
		if l.v != nil {
			n += l.v.cost()
		}
		l.mu.Unlock()
	}
	if t.pages != nil {
		h := t.pages.held
		h.mu.Lock()
		n += h.bytes
		h.mu.Unlock()
	}
	return n
}
