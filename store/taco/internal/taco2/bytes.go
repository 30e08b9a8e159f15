package taco2

// Bytes implements model.Sized.
func (c *Container) Bytes() int64 {
	if !c.mu.TryLock() {
		return 0
	}
	defer c.mu.Unlock()
	n := int64(0)
	for _, l := range c.levels {
		if l != nil {
			n += l.tbl.Bytes() + 4*int64(cap(l.parents)+cap(l.first)+cap(l.rows)) + 16*int64(cap(l.spans))
		}
	}
	return n
}
