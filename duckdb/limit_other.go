//go:build unix && !linux

package duckdb

// limit does nothing: other systems do not count the memory that is mapped, and DuckDB's own limit has to do.
func limit(int64) error { return nil }
