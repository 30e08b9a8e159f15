package server

import (
	"context"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/chaski-eo/chaski/grpc/internal/wire"
	"github.com/chaski-eo/chaski/internal/crash"
	chaskiv1 "github.com/chaski-eo/chaski/proto/chaski/v1"
)

// watch sends messages to a client that may stop reading. A context does not end SendMsg, only the return of the call's
// handler does. So the handler waits in run, and returns if a message takes too long: Options.SendTimeout, or
// Options.StallTimeout while others wait for memory that the client holds.
//
// SendMsg returns when the transport has taken a message, which may be long before the client reads it, or for ever.
// Until then the memory of the message is lent to the transport. So while others wait, the client has StallTimeout for
// that, too, and the call does not end before it has read everything. The status of a call that is cut comes behind
// the message, so that the memory comes back only if the client reads after all. If it does not do so soon, its
// connection is closed: gRPC has no other way to reset a stream of a client that does not read.
type watch struct {
	ctx     context.Context // of the call
	to      sender
	options *Options
	wanted  func() bool // others wait
	sent    func(n int) // is called with the bytes of each sent message; may be nil
	timer   *time.Timer // runs while a message is being sent
	stalled chan struct{}

	mu      sync.Mutex
	sending bool
	lent    int       // pieces of memory that the transport has
	begun   time.Time // when the last message began to be sent, or was
	over    bool
	read    chan struct{} // closed once lent is 0, if the handler waits for that
}

// looks is how often the timer looks whether others wait, in each StallTimeout: a client is cut at most a quarter of it
// late.
const looks = 4

func newWatch(ctx context.Context, to sender, o *Options, wanted func() bool) *watch {
	w := &watch{ctx: ctx, to: to, options: o, wanted: wanted, stalled: make(chan struct{})}
	w.timer = time.AfterFunc(time.Hour, w.look)
	w.timer.Stop()
	return w
}

// SendMsg sends a message, watched.
func (w *watch) SendMsg(m any) error { return w.send(m, dataOf(m)) }

// send sends a message that stands for n bytes of data.
func (w *watch) send(m any, n int) error {
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
	switch m := m.(type) {
	case *wire.Part:
		for _, d := range m.Data {
			n += len(d)
		}
	case *chaskiv1.AskReply:
		n = len(m.GetData())
	}
	return n
}

func (w *watch) set(sending bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sending, w.begun = sending, time.Now()
	if sending || w.lent > 0 {
		w.timer.Reset(min(w.options.StallTimeout, w.options.SendTimeout))
	} else {
		w.timer.Stop()
	}
}

// lend says that the transport has memory of the client's until it calls what lend returns, which calls release.
func (w *watch) lend(release func()) func() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lent++
	return func() {
		release()
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.lent--; w.lent > 0 {
			return
		}
		if !w.sending {
			w.timer.Stop()
		}
		if w.read != nil {
			close(w.read)
		}
	}
}

// unread returns a channel that is closed once the client has read everything.
func (w *watch) unread() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.read = make(chan struct{})
	if w.lent == 0 {
		close(w.read)
	}
	return w.read
}

// look ends the call if its message has waited for too long.
func (w *watch) look() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.sending && w.lent == 0 || w.over {
		return
	}
	waited := time.Since(w.begun)
	left := w.options.SendTimeout - waited
	if !w.sending {
		left = w.options.SendTimeout // while no other client waits, a sent message may stay unread for any time
	}
	if left <= 0 || waited >= w.options.StallTimeout && w.wanted() {
		w.over = true
		close(w.stalled)
		return
	}
	w.timer.Reset(min(left, max(w.options.StallTimeout-waited, w.options.StallTimeout/looks)))
}

// run calls f, which sends through w, in a goroutine of group, and returns its error; a panic becomes an error. If a
// message is not taken in time, it returns a status, and f ends when the caller has returned that.
func (w *watch) run(group *sync.WaitGroup, f func() error) error {
	done := make(chan error, 1)
	group.Go(func() { done <- crash.Call(f) })
	select {
	case err := <-done:
		if err != nil {
			return err
		}
	case <-w.stalled:
		return w.cut()
	}
	// At the end of a call gRPC keeps messages that the client has not read.
	select {
	case <-w.unread():
		return nil
	case <-w.ctx.Done(): // the transport frees its messages at the end of the call
		return nil
	case <-w.stalled:
		return w.cut()
	}
}

// cut returns the status of a client that does not read.
func (w *watch) cut() error {
	time.AfterFunc(w.options.StallTimeout/looks, func() {
		w.mu.Lock()
		lent := w.lent
		w.mu.Unlock()
		if lent > 0 {
			c, _ := w.ctx.Value(connectionKey{}).(*connection)
			w.options.Logger.Warn("closing the connection of a client that does not read", "client", clientOf(w.ctx))
			c.hangUp()
		}
	})
	w.mu.Lock()
	defer w.mu.Unlock()
	return status.Errorf(codes.DeadlineExceeded, "the client has not read for %v what it asked for",
		time.Since(w.begun).Round(time.Millisecond))
}
