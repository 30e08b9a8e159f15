package build

import (
	"context"
	"hash/crc32"
	"io"
	"slices"
	"sync"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/catalog"
)

// wholeBytes is the size up to which a file is read into memory by a worker. Larger ones are copied in pieces by the
// one goroutine that writes, as then the disk is the bound and not the opening of files.
const wholeBytes = 4 << 20

// loaded is the bytes of a file, or a reader of them.
type loaded struct {
	bytes []byte
	crc   uint32 // of bytes
	r     source.Reader
	size  int64
	lent  *[]byte // what bytes are of, for the next file; nil if they are the caller's
	// made, if it is not nil, writes the bytes of an archive, which are about size.
	made func(f archiveFile) error
}

// held returns a file in memory.
func held(b []byte) *loaded {
	return &loaded{bytes: b, crc: crc32.ChecksumIEEE(b), size: int64(len(b))}
}

// close ends the use of the bytes.
func (l *loaded) close() error {
	if l.lent != nil {
		buffers.Put(l.lent)
		l.bytes, l.lent = nil, nil
	}
	if l.r == nil {
		return nil
	}
	return l.r.Close()
}

// writeTo writes the bytes to a file.
func (l *loaded) writeTo(ctx context.Context, f archiveFile) error {
	var err error
	switch {
	case l.made != nil:
		return l.made(f)
	case l.r != nil:
		_, err = io.Copy(f, source.Sequential(ctx, l.r, 0))
	default:
		_, err = f.Write(l.bytes)
	}
	return err
}

// keep returns the bytes for use after close.
func (l *loaded) keep() []byte {
	l.lent = nil
	return l.bytes
}

// load opens a file, and reads it if it is small.
func load(ctx context.Context, o source.Opener, r *Row) (*loaded, error) {
	if r.bytes != nil {
		return held(r.bytes), nil
	}
	file, err := r.Open(ctx, o)
	if err != nil {
		return nil, fault.WithFile(err, r.uri())
	}
	l := &loaded{r: file, size: file.Size()}
	if l.size > wholeBytes {
		return l, nil
	}
	l.lent = buffers.Get().(*[]byte)
	*l.lent = slices.Grow((*l.lent)[:0], int(l.size))
	l.bytes = (*l.lent)[:l.size]
	err = file.ReadAt(ctx, l.bytes, 0)
	if cerr := file.Close(); err == nil {
		err = cerr
	}
	l.r = nil
	if err != nil {
		return nil, fault.WithFile(err, r.uri())
	}
	l.crc = crc32.ChecksumIEEE(l.bytes)
	return l, nil
}

// buffers holds the memory of files that were written, each at most twice wholeBytes.
var buffers = sync.Pool{New: func() any { return new([]byte) }}

// open returns a reader of the bytes, which close closes.
func (l *loaded) open() source.Reader {
	if l.r != nil {
		return l.r
	}
	return (&catalog.Asset{Size: l.size, Bytes: l.bytes}).Reader()
}
