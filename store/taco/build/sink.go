package build

import (
	"context"
	"io"
)

// Store is an object store that a container is written to. Objects are named by URIs. It is safe for concurrent use.
type Store interface {
	// Create begins an object of about size bytes; 0 means an unknown size. The object appears when it is committed.
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
	// Hold announces, before n bytes at an offset are written, that they will be written once more.
	Hold(at, n int64)
	// Commit makes the object appear.
	Commit() error
	// Abort discards the written bytes and leaves an old object unchanged. After Commit it does nothing.
	Abort() error
}

// sink takes the files of a container, into one file or a folder.
type sink interface {
	// put writes a file, and returns where a container that is one file has its bytes.
	put(ctx context.Context, name string, l *loaded) (span, error)
}

// folderSink takes the files of a container that is a folder.
type folderSink interface {
	sink
	// path returns the path or URI of a file.
	path(name string) string
}

// entry is a table or a description, as a file of a container or an index has it.
type entry struct {
	name string
	data []byte
}

// putAll writes entries below a folder, "" for the container itself.
func putAll(ctx context.Context, t sink, folder string, entries []entry) (places []span, err error) {
	for _, e := range entries {
		place, err := t.put(ctx, folder+e.name, held(e.data))
		if err != nil {
			return nil, err
		}
		places = append(places, place)
	}
	return places, nil
}
