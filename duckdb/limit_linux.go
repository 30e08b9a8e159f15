package duckdb

import "syscall"

// limit bounds the writable memory of this process. Since 4.7, Linux counts private writable mappings in RLIMIT_DATA.
// RLIMIT_AS would also count the address space that Go and DuckDB's allocator only reserve.
func limit(memory int64) error {
	l := syscall.Rlimit{Cur: uint64(memory), Max: uint64(memory)}
	return syscall.Setrlimit(syscall.RLIMIT_DATA, &l)
}
