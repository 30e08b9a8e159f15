package source

import (
	"context"
	"io"
)

// Sequential returns the bytes of r, for what reads a file from its beginning to its end. Each Read is one ReadAt, so
// small ones need a buffer in front. It ends with ctx, also where r does not look at it.
func Sequential(ctx context.Context, r Reader) io.Reader { return &sequential{ctx: ctx, r: r} }

type sequential struct {
	ctx context.Context
	r   Reader
	off int64
}

// Read implements io.Reader.
func (s *sequential) Read(p []byte) (int, error) {
	left := s.r.Size() - s.off
	if left <= 0 {
		return 0, io.EOF
	}
	if err := s.ctx.Err(); err != nil { // reads of local files ignore the context
		return 0, err
	}
	p = p[:min(int64(len(p)), left)]
	if err := s.r.ReadAt(s.ctx, p, s.off); err != nil {
		return 0, err
	}
	s.off += int64(len(p))
	return len(p), nil
}
