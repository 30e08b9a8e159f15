package remote

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/lru"
)

// errNoRanges is the failure of a server that answers range requests with whole objects.
type errNoRanges struct{ size int64 } // size of the object, or -1

func (e *errNoRanges) Error() string {
	if e.size < 0 {
		return "the server does not serve byte ranges"
	}
	return fmt.Sprintf("the server does not serve byte ranges, and the object has %d bytes", e.size)
}

// readsWhole reports whether a request failed because the server has no ranges, and the object may
// be read as a whole instead. If it is too large for that, the error states the limit.
func (o *Opener) readsWhole(err error) (size int64, ok bool, _ error) {
	var e *errNoRanges
	var f *fault.Error
	switch {
	case !errors.As(err, &e):
		return 0, false, err
	case e.size >= 1 && e.size <= o.options.MaxWhole:
		return e.size, true, nil
	case errors.As(err, &f) && e.size > 0 && o.options.MaxWhole > 0:
		f.Msg = fmt.Sprintf("%v, more than the %d that are read as a whole", e, o.options.MaxWhole)
	}
	return 0, false, err
}

// wholes caches the most recently used whole objects of servers without ranges, within a limit on
// their total size.
type wholes struct {
	*lru.Cache[objectName, *wholeObject]
	// Holds a token while an object is fetched, so at most one is in memory beyond the limit.
	turn chan struct{}
}

// wholeObject holds all bytes of an object as of a time.
type wholeObject struct {
	x   *objectVersion // the object that it was read for
	at  time.Time
	tag Tag
	b   []byte
}

// get returns all bytes of an object, or nil if they are not cached.
func (w *wholes) get(x *objectVersion, fresh time.Duration) []byte {
	whole, ok := w.Get(x.objectName)
	if !ok {
		return nil
	}
	held := Answer{Size: int64(len(whole.b)), Tag: whole.tag}
	if whole.x != x && (time.Since(whole.at) >= fresh || x.check(&held) != nil) {
		w.Remove(x.objectName)
		return nil
	}
	return whole.b
}

// wholeObject returns all bytes of an object of a server without ranges. If they were evicted, it
// reads them again.
func (o *Opener) wholeObject(ctx context.Context, x *objectVersion) ([]byte, error) {
	if b := o.wholes.get(x, o.options.Fresh); b != nil {
		return b, nil
	}
	select {
	case o.wholes.turn <- struct{}{}:
		defer func() { <-o.wholes.turn }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if b := o.wholes.get(x, o.options.Fresh); b != nil { // another caller has read it meanwhile
		return b, nil
	}
	held := &wholeObject{x: x, at: time.Now()}
	err := o.get(ctx, x.objectName, Range{0, x.size}, x.currentTag(), func(a *Answer) error {
		if err := x.check(a); err != nil {
			return err
		}
		if held.b == nil {
			held.b = make([]byte, x.size) // MaxWhole limits it
		}
		held.tag = a.Tag
		return o.readBody(a, held.b)
	})
	if e, ok := errors.AsType[*errNoRanges](err); ok { // it is longer than expected
		err = requestPlace{x.uri, "byte range",
			0}.fault(Fail(Changed, fmt.Errorf("it has %d bytes, expected %d", e.size, x.size)), 1)
	}
	if err != nil {
		return nil, err
	}
	o.wholes.Add(x.objectName, held, x.size)
	return held.b, nil
}
