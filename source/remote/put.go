package remote

import (
	"context"
	"errors"
	"io"

	"github.com/chaski-eo/chaski/fault"
)

// Putter is a Backend that can write objects.
type Putter interface {
	Backend
	// Put writes an object of the bytes of body: as a whole, or after an error not at all. With fresh it fails with
	// Exists if there is an object.
	Put(ctx context.Context, uri string, body io.Reader, fresh bool) error
	// Remove removes an object. If there is no such object, it may return nil or an error of kind Missing.
	Remove(ctx context.Context, uri string) error
}

// ErrExists is the Failure.Err of Putter.Put about an object that is there.
var ErrExists = errors.New("the object exists")

// Put implements source.Putter. It tries as often as a read does.
func (o *Opener) Put(ctx context.Context, uri string, body io.ReadSeeker, fresh bool) error {
	size, err := body.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	return o.change(ctx, uri, size, func(ctx context.Context, backend Putter) error {
		if _, err := body.Seek(0, io.SeekStart); err != nil {
			return Fail(Refused, err)
		}
		return backend.Put(ctx, uri, body, fresh)
	})
}

// Remove implements source.Putter. It tries as often as a read does.
func (o *Opener) Remove(ctx context.Context, uri string) error {
	err := o.change(ctx, uri, 0, func(ctx context.Context, backend Putter) error { return backend.Remove(ctx, uri) })
	if fault.KindOf(err) == fault.NotFound {
		return nil
	}
	return err
}

// change changes an object by a request that sends size bytes.
func (o *Opener) change(ctx context.Context, uri string, size int64,
	request func(ctx context.Context, backend Putter) error) error {
	backend, ok := o.backend.(Putter)
	if !ok {
		return fault.WithFile(fault.New(fault.Unsupported, "object", "what this URI names is only read"), uri)
	}
	host := o.hosts.get(o.backend.Host(uri), &o.options)
	return o.try(ctx, host, requestPlace{uri, "object", fault.NoOffset}, size,
		func(ctx context.Context, _ *requestFlight) error {
			o.counters.requests.Add(1)
			return request(ctx, backend)
		})
}
