package tortilla

// Bytes implements model.Sized.
func (c *plain) Bytes() int64 {
	if !c.mu.TryLock() {
		return 0
	}
	defer c.mu.Unlock()
	n := c.root.tbl.Bytes()
	for _, level := range c.lazy {
		for _, b := range level {
			n += b.tbl.Bytes()
		}
	}
	for _, t := range c.tables {
		if t != nil {
			n += t.Bytes()
		}
	}
	for _, p := range c.parents {
		n += 4 * int64(cap(p))
	}
	return n
}

// indexCost estimates the memory of a chunk in the index.
const indexCost = 64

// Bytes implements model.Sized.
func (c *stream) Bytes() int64 {
	if !c.mu.TryLock() {
		return 0
	}
	defer c.mu.Unlock()
	n := c.chunks.tbl.Bytes() + indexCost*int64(len(c.index)) + 4*int64(cap(c.same))
	for _, l := range c.levels {
		n += l.tbl.Bytes()
	}
	return n
}
