package tables

// Bytes returns about how much memory the loaded columns and the held pages take. It skips columns that are being
// loaded: waiting for them would stall the cache that asks.
func (t *Table) Bytes() int64 {
	n := int64(0)
	for i := range t.loaded {
		lazy := &t.loaded[i]
		if !lazy.mu.TryLock() {
			continue
		}
		if lazy.v != nil {
			n += lazy.v.cost()
		}
		lazy.mu.Unlock()
	}
	if t.pages != nil {
		n += t.pages.held.Used()
	}
	return n
}
