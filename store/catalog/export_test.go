package catalog

// CacheUsed returns the bytes of the pages and indexes that are kept.
func (t *Table) CacheUsed() int64 {
	return t.assets.Used() + t.table.Files[0].Cache.Pages.Used()
}
