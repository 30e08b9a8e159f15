package server

import (
	"context"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/chaski-eo/chaski/grpc/internal/parts"
	"github.com/chaski-eo/chaski/internal/crash"
)

// sendWatch sends messages to a client that may stop reading. A context does not end SendMsg, only the return of the
// call's handler does. So the handler waits in run, and returns if a message takes too long: Options.SendTimeout, or
// Options.StallTimeout while others wait for memory that the client holds. gRPC keeps what it has taken of the message
// until the connection ends. The connection is therefore closed soon after.
type sendWatch struct {
	ctx        context.Context // of the call
	to         sender
	options    *Options
	othersWait func() bool
	sent       func(n int) // is called with the bytes of each sent message; may be nil
	timer      *time.Timer // runs while a message is being sent
	stalled    chan struct{}

	mu         sync.Mutex
	sending    bool
	start      time.Time // when the last message began to be sent
	hasStalled bool
}

// looks is how often the timer looks whether others wait, in each StallTimeout: a client is cut at most a quarter of it
// late.
const looks = 4

func newWatch(ctx context.Context, to sender, o *Options, othersWait func() bool) *sendWatch {
	made := &sendWatch{ctx: ctx, to: to, options: o, othersWait: othersWait, stalled: make(chan struct{})}
	made.timer = time.AfterFunc(time.Hour, made.look)
	made.timer.Stop()
	return made
}

// SendMsg sends a message, watched.
func (w *sendWatch) SendMsg(m any) error { return w.send(m, dataOf(m)) }

// send sends a message that stands for n bytes of data.
func (w *sendWatch) send(m any, n int) error {
	w.set(true)
	defer w.set(false)
	err := w.to.SendMsg(m)
	if err == nil && w.sent != nil {
		w.sent(n)
	}
	return err
}

// dataOf returns the bytes of data in a message.
func dataOf(m any) (n int) {
	if part, ok := m.(*parts.Part); ok {
		for _, piece := range part.Data {
			n += len(piece)
		}
	}
	return n
}

func (w *sendWatch) set(sending bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sending, w.start = sending, time.Now()
	if sending {
		w.timer.Reset(min(w.options.StallTimeout, w.options.SendTimeout))
	} else {
		w.timer.Stop()
	}
}

// look ends the call if its message has waited for too long.
func (w *sendWatch) look() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.sending || w.hasStalled {
		return
	}
	waited := time.Since(w.start)
	left := w.options.SendTimeout - waited
	if left <= 0 || waited >= w.options.StallTimeout && w.othersWait() {
		w.hasStalled = true
		close(w.stalled)
		return
	}
	w.timer.Reset(min(left, max(w.options.StallTimeout-waited, w.options.StallTimeout/looks)))
}

// run calls f, which sends through w, in a goroutine of group, and returns its error; a panic becomes an error. If a
// message is not taken in time, it returns a status, and f ends when the caller has returned that.
func (w *sendWatch) run(group *sync.WaitGroup, f func() error) error {
	done := make(chan error, 1)
	group.Go(func() { done <- crash.Call(f) })
	select {
	case err := <-done:
		return err
	case <-w.stalled:
		return w.cut()
	}
}

// cut returns the status of a client that does not read. It has a moment to read that, behind the message. A pipe ends
// with its call, and leaves nothing on the connection.
func (w *sendWatch) cut() error {
	_, piped := w.to.(*replyPipe)
	if conn := connectionOf(w.ctx); conn != nil && !piped {
		time.AfterFunc(w.options.StallTimeout/looks, func() {
			w.options.Logger.Warn("closing the connection of a client that does not read", "client", clientOf(w.ctx))
			conn.close()
		})
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return status.Errorf(codes.DeadlineExceeded, "the client has not read for %v what it asked for",
		time.Since(w.start).Round(time.Millisecond))
}
