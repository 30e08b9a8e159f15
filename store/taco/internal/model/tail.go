package model

import (
	"context"

	"github.com/chaski-eo/chaski/source"
)

// Tail is a reader with the bytes from Off to Off+len(Bytes) in memory.
type Tail struct {
	source.Reader
	Off   int64
	Bytes []byte
}

// ReadAt implements source.Reader.
func (t *Tail) ReadAt(ctx context.Context, p []byte, off int64) error {
	if i := off - t.Off; i >= 0 && i <= int64(len(t.Bytes)) && int64(len(p)) <= int64(len(t.Bytes))-i {
		copy(p, t.Bytes[i:])
		return ctx.Err()
	}
	return t.Reader.ReadAt(ctx, p, off)
}
