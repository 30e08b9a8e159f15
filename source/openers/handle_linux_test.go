package openers

import (
	"errors"
	"syscall"
	"testing"
)

// TestBadDescriptor: an error of closing is said.
func TestBadDescriptor(t *testing.T) {
	h := &handle{path: "a", fd: 1 << 20}
	if err := h.Close(); !errors.Is(err, syscall.EBADF) {
		t.Error(err)
	}
	if _, err := (&handle{path: "a", fd: 1 << 20}).stat(); !errors.Is(err, syscall.EBADF) {
		t.Error(err)
	}
}

// TestAgain: only an interrupted call is made again.
func TestAgain(t *testing.T) {
	calls := 0
	if err := again(func() error {
		if calls++; calls < 3 {
			return syscall.EINTR
		}
		return syscall.EIO
	}); err != syscall.EIO || calls != 3 {
		t.Errorf("%d calls: %v", calls, err)
	}
}
