package guard

import (
	"testing"

	"golang.org/x/sys/unix"
)

// New returns a room of at least n bytes, zeroed.
func New(t testing.TB, n int) *Room {
	t.Helper()
	page := unix.Getpagesize()
	n = (n + page - 1) / page * page
	pages, err := unix.Mmap(-1, 0, n+2*page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Munmap(pages); err != nil {
			t.Error(err)
		}
	})
	for _, p := range [][]byte{pages[:page], pages[page+n:]} {
		if err := unix.Mprotect(p, unix.PROT_NONE); err != nil {
			t.Fatal(err)
		}
	}
	return &Room{data: pages[page : page+n : page+n], all: pages}
}
