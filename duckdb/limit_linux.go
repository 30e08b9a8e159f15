package duckdb

import "syscall"

// limit bounds what this process may write to: Linux counts private writable mappings in RLIMIT_DATA since 4.7, but not
// the address space that Go and DuckDB's allocator reserve, which RLIMIT_AS would.
func limit(memory int64) error {
	l := syscall.Rlimit{Cur: uint64(memory), Max: uint64(memory)}
	return syscall.Setrlimit(syscall.RLIMIT_DATA, &l)
}
