package tables

// Bytes returns about how much memory the loaded columns and the held pages take. It skips columns that are being
// loaded.
func (t *Table) Bytes() int64 {
	size := int64(0)
	for i := range t.loaded {
		if values := t.inMemory(i); values != nil {
			size += values.cost()
		}
	}
	if t.pages != nil {
		size += t.pages.f.Cache.Used()
	}
	return size
}
