package openers

import (
	"bytes"
	"errors"
	"os"
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

// TestStateOfClosedFile: the state of a file that cannot be asked is an error.
func TestStateOfClosedFile(t *testing.T) {
	f, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := stateOfFile(f); !errors.Is(err, os.ErrClosed) {
		t.Error(err)
	}
}

// TestShortReads: a file of which the system gives less at a time than is asked for is read on.
func TestShortReads(t *testing.T) {
	const path = "/proc/kallsyms" // a few pages at most
	want, err := os.ReadFile(path)
	if err != nil || len(want) < 1<<16 {
		t.Skip(err)
	}
	h, err := openHandle(path)
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	got := make([]byte, 1<<16)
	if n, err := h.ReadAt(got, 0); n != len(got) || err != nil || !bytes.Equal(got, want[:n]) {
		t.Errorf("%d bytes, %v", n, err)
	}
}

// TestAgain: only an interrupted call is made again.
func TestAgain(t *testing.T) {
	calls := 0
	if err := retry(func() error {
		if calls++; calls < 3 {
			return syscall.EINTR
		}
		return syscall.EIO
	}); err != syscall.EIO || calls != 3 {
		t.Errorf("%d calls: %v", calls, err)
	}
}
