// Package source reads byte ranges of files, by URI.
package source

import (
	"context"
	"time"
)

// Reader reads ranges of one object. It is safe for concurrent use.
type Reader interface {
	// ReadAt fills p from offset off, or returns an error: there is no partial read. A range past
	// the end is fault.Corrupt.
	ReadAt(ctx context.Context, p []byte, off int64) error
	// Size returns the object's size in bytes.
	Size() int64
	// Close gives the reader back to its opener. The reader is not used afterwards.
	Close() error
}

// Timed is a Reader that knows when its object was last modified, as of Open. Those of Files are.
type Timed interface {
	Reader
	ModTime() time.Time
}

// Opener opens objects by URI. It is safe for concurrent use.
type Opener interface {
	// Open returns a reader for a URI. A URI that names nothing is fault.NotFound.
	Open(ctx context.Context, uri string) (Reader, error)
}
