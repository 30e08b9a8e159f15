package openers

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/procs"
)

var errFull error = &os.PathError{Op: "open", Path: "a", Err: syscall.EMFILE}

// TestRunningOutOfDescriptorsIsWaiting: unused files are closed at once, and the next try comes; other errors end it.
func TestRunningOutOfDescriptorsIsWaiting(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a")
	write(t, path, "a")
	s := &Files{}
	defer s.Close()
	closeIdle() // what other tests left
	if _, err := read(t, s, path, 0, 1); err != nil {
		t.Fatal(err)
	}
	before, tries := openFiles(t), 0
	err := WithDescriptor(t.Context(), func() error {
		if tries++; tries < 4 {
			return errFull
		}
		return nil
	})
	if err != nil || tries != 4 || openFiles(t) != before-1 {
		t.Errorf("%v after %d tries, %d files are open, before %d", err, tries, openFiles(t), before)
	}
	if got, err := read(t, s, path, 0, 1); got != "a" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	tries = 0
	if err := WithDescriptor(t.Context(), func() error { tries++; return os.ErrPermission }); tries != 1 ||
		!errors.Is(err, os.ErrPermission) {
		t.Errorf("%v after %d tries", err, tries)
	}
}

// TestShareOfIdleFiles: unused files have a quarter of the descriptors of the process.
func TestShareOfIdleFiles(t *testing.T) {
	closeIdle()
	s, quarter := &Files{}, int(procs.Files()/4)
	if s.countIdle(quarter, quarter) || !s.countIdle(1, quarter+1) {
		t.Errorf("%d files are not the most of %d", quarter, procs.Files())
	}
	if s.countIdle(-quarter-1, 0) || idleFiles.n != 0 {
		t.Errorf("%d files are left", idleFiles.n)
	}
}

// TestWaitForDescriptorsEnds: with the context, or after a time, with an error that names the limit and has no kind.
func TestWaitForDescriptorsEnds(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := WithDescriptor(ctx, func() error { return errFull }); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	old := waitFor
	defer func() { waitFor = old }()
	waitFor = 50 * time.Millisecond
	err := WithDescriptor(t.Context(), func() error { return errFull })
	if !procs.OutOfDescriptors(err) || fault.KindOf(err) != 0 || !strings.Contains(err.Error(), "RLIMIT_NOFILE") {
		t.Error(err)
	}
}
