package tables

// Bytes returns about how much memory the loaded columns and the held pages take. It skips columns that are being
// loaded.
func (t *Table) Bytes() int64 {
	size := int64(0)
	for i := range t.loaded {
		lazy := &t.loaded[i]
		// Waiting for a column that is being loaded would stall the cache that asks.
		if !lazy.mu.TryLock() {
			continue
		}
		if lazy.v != nil {
			size += lazy.v.cost()
		}
		lazy.mu.Unlock()
	}
	if t.pages != nil {
		size += t.pages.cache.Used()
	}
	return size
}
