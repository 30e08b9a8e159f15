package build

import (
	"context"
	"io"
)

// Store is an object store that a container is written to. Objects are named by URIs. It is safe for concurrent use.
type Store interface {
	// Create begins an object of about size bytes, or of unknown size if that is 0. It appears when it is committed.
	Create(ctx context.Context, uri string, size int64) (Object, error)
	// Put writes an object in one request, or replaces it.
	Put(ctx context.Context, uri string, b []byte) error
	// Get reads a small object. One that does not exist is fault.NotFound.
	Get(ctx context.Context, uri string) ([]byte, error)
	// List calls each for all objects whose URIs begin with prefix, until it returns an error.
	List(ctx context.Context, prefix string, each func(uri string) error) error
	// Delete removes an object, if there is one.
	Delete(ctx context.Context, uri string) error
}

// Object is an object that is being written. One of Commit and Abort ends it.
type Object interface {
	io.Writer
	io.WriterAt
	// Hold announces that n bytes at an offset will be written again, once, before they are written.
	Hold(at, n int64)
	// Commit makes the object appear.
	Commit() error
	// Abort leaves what was there. After Commit it does nothing.
	Abort() error
}
