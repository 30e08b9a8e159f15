package openers

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/chaski-eo/chaski/internal/procs"
)

// waitFor bounds the wait for a file descriptor. Readers hold a file for one read, which takes milliseconds, or
// seconds on a busy network file system. Tests wait for less.
var waitFor = 10 * time.Second

// pause is the wait between two tries: about the time of a read on a disk.
const pause = 10 * time.Millisecond

// idleFiles are all Files of the process that keep unused files open.
//
// They share a quarter of the descriptors that RLIMIT_NOFILE allows. A second quarter is for segments of shared memory
// (grpc/server has at most as many), a third one for connections of clients (internal/accept), and the last one for
// files that are being read, pipes and libraries. At the usual 1,024 that is 256 idle files, two datasets of
// DefaultKeep; at 64 it is 16.
var idleFiles struct {
	mu  sync.Mutex
	of  map[*Files]struct{}
	n   int   // of all of them
	max int64 // 0 until it is known
}

// countIdle adds by unused files of s, which has left of them now. It reports whether there are too many.
// The caller holds s.mu.
func (s *Files) countIdle(by, left int) (tooMany bool) {
	kept := &idleFiles
	kept.mu.Lock()
	defer kept.mu.Unlock()
	if kept.max == 0 {
		kept.max, kept.of = max(procs.Files()/4, 1), map[*Files]struct{}{}
	}
	kept.n += by
	if left > 0 {
		kept.of[s] = struct{}{}
	} else {
		delete(kept.of, s)
	}
	return int64(kept.n) > kept.max
}

// closeIdle closes all unused files of the process. It returns how many there were.
func closeIdle() (closed int) {
	idleFiles.mu.Lock()
	found := slices.Collect(maps.Keys(idleFiles.of))
	idleFiles.mu.Unlock()
	for _, files := range found {
		n, _ := files.dropIdle(false) // an error does not matter, since they were only read
		closed += n
	}
	return closed
}

// WithDescriptor calls open, which needs file descriptors. Where none is left, it closes the unused files of the
// process, and tries again until ctx or a time limit ends. Then the error names RLIMIT_NOFILE; it says nothing about a
// file and therefore lacks a kind.
func WithDescriptor(ctx context.Context, open func() error) error {
	err := open()
	if !procs.OutOfDescriptors(err) {
		return err
	}
	begin := time.Now()
	for time.Since(begin) < waitFor {
		if closeIdle() == 0 {
			select {
			case <-time.After(pause):
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		if err = open(); !procs.OutOfDescriptors(err) {
			return err
		}
	}
	return fmt.Errorf("no file descriptor was free for %v: RLIMIT_NOFILE (ulimit -n) is %d, raise it: %w",
		waitFor, procs.Files(), err)
}
