package server

import (
	"context"
	"sync"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/crash"
	"github.com/chaski-eo/chaski/loader/resources"
)

// openings run the work that clients wait for before their first batch, such as listing a directory of a million
// files. Those who ask for the same wait for one opening, which ends with the last of them.
type openings struct {
	ctx     context.Context // ends with the server
	options Options
	clients *clients
	// An opening that runs has a place of local or of remote: an opening of local files computes most of the time, and
	// others wait for a store.
	local, remote *places

	mu    sync.Mutex
	byKey map[string]*sharedOpening // those that a client may join
	all   int                       // openings, with and without a place
}

// sharedOpening is one piece of work. value and err are set before done is closed.
type sharedOpening struct {
	done   chan struct{}
	value  any
	err    error
	cancel context.CancelFunc
	users  int // clients that wait for it; guarded by openings.mu
}

func newOpenings(ctx context.Context, o Options, c *clients) *openings {
	return &openings{ctx: ctx, options: o, clients: c, local: newPlaces(min(o.MaxOpenings, o.computing())),
		remote: newPlaces(o.MaxOpenings), byKey: map[string]*sharedOpening{}}
}

// do calls f, or waits for a call with the same key that has begun already, and returns its result. local says that f
// opens local files alone. The context of f ends when no caller waits for it any more. f may use v until it returns.
func (o *openings) do(ctx context.Context, v *fileView, key string, local bool, f func(context.Context) (any, error)) (
	any, error) {
	waits := o.remote
	if local {
		waits = o.local
	}
	opening, err := o.join(clientOf(ctx), v, key, waits, f)
	if err != nil {
		return nil, err
	}
	defer o.leave(key, opening)
	select {
	case <-opening.done:
		return opening.value, opening.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// join returns the opening of a key, and starts it if nobody has.
func (o *openings) join(id clientID, v *fileView, key string, p *places,
	f func(context.Context) (any, error)) (*sharedOpening, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	joined := o.byKey[key]
	if joined == nil {
		if o.all >= o.options.MaxOpenings+o.options.MaxQueuedOpenings {
			return nil, fault.New(fault.Limit, "server", "%d datasets or files are being opened or wait for that, "+
				"which is the limit (--max-openings, --max-queued-openings)", o.all)
		}
		if err := o.clients.opening(id); err != nil {
			return nil, err
		}
		o.all++
		joined = &sharedOpening{done: make(chan struct{})}
		var lasting context.Context
		lasting, joined.cancel = context.WithCancel(resources.WithCaller(o.ctx, resources.Caller{Client: id}))
		o.byKey[key] = joined
		leave := v.hold()
		go func() {
			defer leave()
			o.run(lasting, id, key, joined, p, f)
		}()
	}
	joined.users++
	return joined, nil
}

// leave ends the opening if the caller was the last one to wait for it.
func (o *openings) leave(key string, w *sharedOpening) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if w.users--; w.users == 0 {
		w.cancel()
		// The next caller must not get the error of this opening.
		o.forget(key, w)
	}
}

// forget needs the lock.
func (o *openings) forget(key string, w *sharedOpening) {
	if o.byKey[key] == w {
		delete(o.byKey, key)
	}
}

func (o *openings) run(ctx context.Context, id clientID, key string, w *sharedOpening, p *places,
	f func(context.Context) (any, error)) {
	var free func()
	if free, w.err = p.take(ctx); w.err == nil {
		limited, cancel := context.WithTimeout(ctx, o.options.OpenTimeout)
		w.err = crash.Call(func() (err error) { w.value, err = f(limited); return err })
		crash.Report(o.options.Logger, w.err)
		cancel()
		free()
	}
	o.mu.Lock()
	o.forget(key, w)
	o.all--
	o.mu.Unlock()
	o.clients.opened(id)
	w.cancel()
	close(w.done)
}
