package remote

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http/httptrace"
	"sync/atomic"
	"time"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/trace"
	"github.com/chaski-eo/chaski/source/openers"
)

// Stats counts the work of an Opener.
type Stats struct {
	Requests int64 // with retries
	Retries  int64
	Bytes    int64 // read and used
}

type counters struct{ requests, retries, bytes atomic.Int64 }

// Stats returns the counts so far.
func (o *Opener) Stats() Stats {
	c := &o.counters
	return Stats{c.requests.Load(), c.retries.Load(), c.bytes.Load()}
}

// get requests the bytes r of an object until use has read a response. use may be called again
// after it failed. Errors are of package fault, a *fault.RequestError, or the error of ctx.
func (o *Opener) get(ctx context.Context, n objectName, r Range, tag Tag, use func(*Answer) error) error {
	host := o.hosts.get(o.backend.Host(n.uri), &o.options)
	ctx = openers.WithRoots(ctx, n.roots)
	place := requestPlace{n.uri, "byte range", r.Off}
	return o.try(ctx, host, place, r.Len, func(ctx context.Context, f *requestFlight) error {
		o.counters.requests.Add(1)
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		answer, release, err := o.ask(ctx, f, n.uri, r, tag)
		defer release()
		if err != nil {
			return err
		}
		defer answer.Body.Close()
		answer.Body = &flow{answer.Body, cancel, o.options.Stall, f}
		return use(answer)
	})
}

// flow is the body of a response. Its request is cancelled when a read gets no byte for a while.
type flow struct {
	io.ReadCloser
	cancel context.CancelFunc
	limit  time.Duration
	flight *requestFlight
}

// Read implements io.Reader.
func (f *flow) Read(p []byte) (int, error) {
	timer := time.AfterFunc(f.limit, f.cancel)
	n, err := f.ReadCloser.Read(p)
	f.flight.brought(n)
	if !timer.Stop() && err != nil {
		err = errTimeout
	}
	return n, err
}

// requestPlace says what a request was for, in errors.
type requestPlace struct {
	uri, part string
	off       int64
}

// try repeats a request within the limits until it succeeds. n is the number of bytes that it
// should bring.
func (o *Opener) try(ctx context.Context, h *hostState, at requestPlace, n int64,
	once func(context.Context, *requestFlight) error) error {
	for tries := 1; ; tries++ {
		err := o.attempt(ctx, h, n, once)
		if err == nil {
			h.worked(&o.options)
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		failure := Classify(err)
		if failure.Class != Transient || tries == o.options.Attempts {
			return at.fault(failure, tries)
		}
		if !h.mayRetry() {
			return at.fault(Fail(Transient,
				fmt.Errorf("%w (not retried, because too many requests to this host fail)", failure.Err)), tries)
		}
		o.counters.retries.Add(1)
		if err := sleep(ctx, o.backoff(tries, failure.After)); err != nil {
			return err
		}
	}
}

// fault returns the error for a failure that is not retried.
func (p requestPlace) fault(f *Failure, attempts int) error {
	failed := &fault.Error{File: p.uri, Part: p.part, Off: p.off, Msg: f.Error(), Err: f}
	switch f.Class {
	case Missing:
		failed.Kind, failed.Part, failed.Off = fault.NotFound, "object", fault.NoOffset
	case Changed:
		failed.Kind, failed.Msg = fault.Corrupt, "the object is another one now: "+failed.Msg
	case PastEnd:
		if f.Size > p.off { // the server refuses bytes that the object has
			return &fault.RequestError{URI: p.uri, Part: p.part, Off: p.off, Attempts: attempts, Err: f.Err}
		}
		failed.Kind, failed.Msg = fault.Corrupt, "the object has become shorter: "+failed.Msg
	case Refused:
		failed.Kind = fault.Unsupported
	default:
		return &fault.RequestError{URI: p.uri, Part: p.part, Off: p.off, Attempts: attempts,
			Denied: f.Class == Denied, Err: f.Err}
	}
	return failed
}

// backoff returns the wait after n attempts: a random time below a limit that doubles ("full
// jitter"), or what the server asks for, at most MaxBackoff.
func (o *Opener) backoff(n int, after time.Duration) time.Duration {
	bound := min(o.options.Backoff<<min(n-1, 20), o.options.MaxBackoff)
	return min(max(after, rand.N(bound+1)), o.options.MaxBackoff)
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// attempt makes one request, within the limits on simultaneous requests and on time.
func (o *Opener) attempt(ctx context.Context, h *hostState, n int64,
	once func(context.Context, *requestFlight) error) (err error) {
	ctx, span := trace.Begin(ctx, "chaski.request")
	span.Set("chaski.bytes", n)
	defer func() { span.End(err) }()
	flight, err := h.enter(ctx, n)
	if err != nil {
		return err
	}
	defer flight.leave()
	limit := o.options.Timeout + time.Duration(float64(n)/float64(o.options.MinRate)*float64(time.Second))
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		WroteRequest: func(httptrace.WroteRequestInfo) { flight.wrote() },
	})
	defer time.AfterFunc(maxHold, flight.wrote).Stop()
	return once(ctx, flight)
}

// readBody fills p from a response that must have exactly these bytes.
func (o *Opener) readBody(a *Answer, p []byte) error {
	if a.Len != int64(len(p)) {
		return Fail(Transient, fmt.Errorf("requested %d bytes at %d, but got %d", len(p), a.Off, a.Len))
	}
	if count, err := io.ReadFull(a.Body, p); err != nil {
		if f := Classify(err); f.Err == errTimeout {
			return Fail(Transient, fmt.Errorf("only %d of %d bytes arrived in time", count, len(p)))
		}
		return Fail(Transient, fmt.Errorf("the response ends after %d of %d bytes: %w", count, len(p), err))
	}
	// It reads to the end, so the connection can be used again.
	var rest [1]byte
	if n, _ := a.Body.Read(rest[:]); n > 0 {
		return Fail(Transient, fmt.Errorf("the response has more than the %d requested bytes", len(p)))
	}
	o.counters.bytes.Add(int64(len(p)))
	return nil
}
