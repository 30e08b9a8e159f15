// Package counted has an opener for tests of how much is read of files.
package counted

import (
	"context"
	"sync/atomic"

	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/source/openers"
)

// Files opens local files and counts the bytes that are read of them.
type Files struct {
	openers.Files
	Bytes atomic.Int64
}

// Open implements source.Opener.
func (f *Files) Open(ctx context.Context, uri string) (source.Reader, error) {
	file, err := f.Files.Open(ctx, uri)
	if err != nil {
		return nil, err
	}
	return reader{file, f}, nil
}

type reader struct {
	source.Reader
	of *Files
}

// ReadAt implements source.Reader.
func (r reader) ReadAt(ctx context.Context, p []byte, off int64) error {
	r.of.Bytes.Add(int64(len(p)))
	return r.Reader.ReadAt(ctx, p, off)
}
