package catalog

import "github.com/chaski-eo/chaski/store/catalog/internal/columns"

// CacheUsed returns the bytes of the pages and indexes that are kept.
func (t *Table) CacheUsed() int64 {
	return t.assets.Used() + t.table.(*columns.ParquetTable).Cache.Used()
}
