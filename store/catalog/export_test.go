package catalog

import "testing"

// CacheUsed returns the bytes of the pages and indexes that are kept.
func (t *Table) CacheUsed() int64 {
	return t.assets.Used() + t.table.Files[0].Cache.Used()
}

// HoldListing acts as a listing of a directory that hangs, until the test ends or release is called.
func HoldListing(t *testing.T, dir string) (release func()) {
	release, err := listers.Lock(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	return release
}
