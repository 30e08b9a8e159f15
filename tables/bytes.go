package tables

// Bytes returns about how much memory the loaded columns and the held pages take. It skips columns that are being
// loaded: waiting for them would stall the cache that asks.
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
