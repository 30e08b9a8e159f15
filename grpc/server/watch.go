package server

import (
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/chaski-eo/chaski/internal/crash"
)

// watch sends messages to a client that may stop reading. A context does not end SendMsg, only the return of the call's
// handler does. So the handler waits in run, and returns if a message takes too long.
type watch struct {
	to      sender
	timeout time.Duration
	timer   *time.Timer // runs while a message is being sent
	stalled chan struct{}
}

func newWatch(to sender, timeout time.Duration) *watch {
	w := &watch{to: to, timeout: timeout, stalled: make(chan struct{})}
	w.timer = time.AfterFunc(timeout, func() { close(w.stalled) })
	w.timer.Stop()
	return w
}

// SendMsg sends a message, watched.
func (w *watch) SendMsg(m any) error {
	w.timer.Reset(w.timeout)
	defer w.timer.Stop()
	return w.to.SendMsg(m)
}

// run calls f, which sends through w, in a goroutine of group, and returns what it returns, a panic as an error; or, if
// a message is not taken in time, a status, and f ends when the caller has returned it.
func (w *watch) run(group *sync.WaitGroup, f func() error) error {
	done := make(chan error, 1)
	group.Go(func() { done <- crash.Call(f) })
	select {
	case err := <-done:
		return err
	case <-w.stalled:
		return status.Errorf(codes.DeadlineExceeded, "the client has not read for %v what it asked for", w.timeout)
	}
}
