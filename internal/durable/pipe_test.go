//go:build unix

package durable

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestPipesAreNotOpened: a named pipe with the name of a temporary file is left alone. Opening it would wait for a
// writer that never comes.
func TestPipesAreNotOpened(t *testing.T) {
	dir := t.TempDir()
	pipe := filepath.Join(dir, ".a.chaski-0123456789abcdef.tmp")
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Skip(err)
	}
	long := time.Now().Add(-2 * staleAge)
	if err := os.Chtimes(pipe, long, long); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { clean(dir); close(done) }()
	select {
	case <-done:
	case <-time.After(5 * time.Minute):
		t.Fatal("clean waits for a writer of the pipe")
	}
	if got := names(t, dir); !slices.Equal(got, []string{filepath.Base(pipe)}) {
		t.Errorf("the folder holds %v", got)
	}
}
