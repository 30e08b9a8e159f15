package shards

import (
	"context"
	"errors"
	"io"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/source"
)

// Bytes that are read at a time while the places of files are looked up. Of a local shard, 4 KiB is a page, and holds
// the header of a member or the sizes and numbers of a sample; a request to a server costs as much as 64 KiB or more.
const (
	localWindow  = 4 << 10
	remoteWindow = 64 << 10
)

// window reads small pieces of a shard in ascending order through a buffer. It is an io.ReadSeeker for archive/tar.
type window struct {
	ctx  context.Context
	r    source.Reader
	size int
	at   int64 // of Read
	off  int64 // of held in the shard
	held []byte
}

func newWindow(ctx context.Context, uri string, r source.Reader) *window {
	w := &window{ctx: ctx, r: r, size: localWindow}
	if source.IsRemote(uri) {
		w.size = remoteWindow
	}
	return w
}

// bytes returns n bytes at an offset, which are valid until the next call. Those behind the end are Corrupt, and so
// nothing is allocated for them.
func (w *window) bytes(off int64, n int) ([]byte, error) {
	if off < 0 || off > w.r.Size() || int64(n) > w.r.Size()-off {
		return nil, fault.New(fault.Corrupt, "byte range", off, "%d bytes in a file of %d", n, w.r.Size())
	}
	if off < w.off || off+int64(n) > w.off+int64(len(w.held)) {
		want := int(min(int64(max(n, w.size)), w.r.Size()-off))
		if cap(w.held) < want {
			w.held = make([]byte, want)
		}
		w.off, w.held = off, w.held[:want]
		if err := w.r.ReadAt(w.ctx, w.held, off); err != nil {
			w.held = w.held[:0]
			return nil, err
		}
	}
	return w.held[off-w.off:][:n], nil
}

// Read implements io.Reader.
func (w *window) Read(p []byte) (int, error) {
	left := w.r.Size() - w.at
	if left <= 0 {
		return 0, io.EOF
	}
	data, err := w.bytes(w.at, int(min(int64(len(p)), left, int64(w.size))))
	w.at += int64(len(data))
	return copy(p, data), err
}

var errSeek = errors.New("shards: seek before the beginning")

// Seek implements io.Seeker.
func (w *window) Seek(off int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		off += w.at
	case io.SeekEnd:
		off += w.r.Size()
	}
	if off < 0 {
		return 0, errSeek
	}
	w.at = off
	return off, nil
}
