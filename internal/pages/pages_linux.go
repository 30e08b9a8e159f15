package pages

import (
	"os"

	"golang.org/x/sys/unix"
)

func take(n int) ([]byte, error) {
	// Before the pages are used, so the heap makes room for them.
	count(n)
	data, err := unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		count(-n)
		return nil, os.NewSyscallError("mmap", err)
	}
	// Faults for each page of 4 KiB take as long as decoding some chips. The end of the memory that does not fill a
	// huge page has small ones. A kernel that lacks huge pages returns an error, which does no harm.
	_ = unix.Madvise(data, unix.MADV_HUGEPAGE)
	return data, nil
}

func give(data []byte) {
	if unix.Munmap(data) != nil {
		// The kernel has joined the mapping with its neighbours, and the process has no mapping left to divide it.
		// Then the addresses stay taken, but the memory is free.
		_ = unix.Madvise(data, unix.MADV_DONTNEED) // it does not fail on such memory
	}
	count(-len(data))
}
