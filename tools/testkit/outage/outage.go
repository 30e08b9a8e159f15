// Package outage has an opener that fails one read.
package outage

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/source/openers"
)

// Err is the error of the read that fails, as of a request after its retries.
var Err error = &fault.RequestError{Err: errors.New("the network is down"), Attempts: 5}

// opener opens local files. The call of Open or ReadAt that makes left 0 fails.
type opener struct {
	files openers.Files
	left  atomic.Int64
}

// Open implements source.Opener.
func (o *opener) Open(ctx context.Context, name string) (source.Reader, error) {
	if o.left.Add(-1) == 0 {
		return nil, Err
	}
	r, err := o.files.Open(ctx, name)
	return reader{r, o}, err
}

type reader struct {
	source.Reader
	opener *opener
}

func (r reader) ReadAt(ctx context.Context, p []byte, off int64) error {
	if r.opener.left.Add(-1) == 0 {
		return Err
	}
	return r.Reader.ReadAt(ctx, p, off)
}

// ModTime implements source.Timed.
func (r reader) ModTime() time.Time { return r.Reader.(source.Timed).ModTime() }

// Each calls do once for each of its reads of local files (every fifth, if -short), which then fails: do must fail, or
// return what it returns without an outage, as JSON.
func Each(t *testing.T, name string, do func(o source.Opener) (any, error)) {
	t.Helper()
	files := &opener{}
	run := func() ([]byte, error) {
		found, err := do(&openers.Mux{Files: files})
		if err != nil {
			return nil, err
		}
		return json.Marshal(found)
	}
	want, err := run()
	if err != nil {
		t.Errorf("%s: %v", name, err)
		return
	}
	step := int64(1)
	if testing.Short() {
		step = 5
	}
	for call, calls := int64(1), -files.left.Load(); call <= calls; call += step {
		files.left.Store(call)
		if got, err := run(); err == nil && !bytes.Equal(got, want) {
			t.Errorf("%s: read %d of %d fails: %s, want %s", name, call, calls, got, want)
		}
	}
}
