package source

import (
	"context"
	"errors"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/meter"
)

// Read returns n bytes of r from offset off on. The caller limits n, which may be a number that the file claims: a hole
// of more than some megabytes is fault.Limit, before there is memory for all of it.
func Read(ctx context.Context, r Reader, off, n int64) ([]byte, error) {
	if n <= meter.Piece {
		data := make([]byte, n)
		return data, r.ReadAt(ctx, data, off)
	}
	return meter.New().Read(ctx, r, "byte range", off, n)
}

// ReadAll returns the bytes of an object. More than limit are fault.Limit.
func ReadAll(ctx context.Context, o Opener, uri string, limit int64) (data []byte, err error) {
	file, err := o.Open(ctx, uri)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if file.Size() > limit {
		return nil, fault.New(fault.Limit, "file", "%d bytes, at most %d", file.Size(), limit)
	}
	return Read(ctx, file, 0, file.Size())
}

// SectionOf returns a reader of size bytes of r from offset off on. Closing it closes r. Bytes past the end of r are
// fault.Corrupt.
func SectionOf(r Reader, off, size int64) (Reader, error) {
	if !Fits(off, size, r.Size()) {
		return nil, fault.At(fault.Corrupt, "", off, "%d bytes in a file of %d", size, r.Size())
	}
	return &section{r, off, size}, nil
}

// OpenSection opens a range of a file: offset 0 of the reader is byte off. If the file's size is known, opening it
// costs no request where the opener supports that, and each read is one request for exactly its range. Errors name
// part.
func OpenSection(ctx context.Context, o Opener, uri string, k Known, part string, off, size int64) (Reader, error) {
	file, err := OpenKnown(ctx, o, uri, k)
	if err != nil {
		return nil, err
	}
	reader, err := SectionOf(file, off, size)
	if err != nil {
		err = fault.WithFile(fault.WithPart(err, part, 0), uri)
		return nil, errors.Join(err, file.Close())
	}
	return reader, nil
}

// section reads a range of a reader.
type section struct {
	Reader
	off, size int64
}

// Size implements Reader.
func (s *section) Size() int64 { return s.size }

// Gap implements Gapped, ETag Tagged. Both are the object's.
func (s *section) Gap() int64   { return Gap(s.Reader) }
func (s *section) ETag() string { return ETag(s.Reader) }

// Place implements Placed.
func (s *section) Place() (object any, off int64) {
	object, off = Place(s.Reader)
	return object, off + s.off
}

// ReadAt implements Reader.
func (s *section) ReadAt(ctx context.Context, p []byte, off int64) error {
	if !Fits(off, int64(len(p)), s.size) {
		return fault.At(fault.Corrupt, "byte range", off, "%d bytes reach past the %d of a part of the file", len(p),
			s.size)
	}
	return s.Reader.ReadAt(ctx, p, s.off+off)
}

// Memory is a Reader of bytes in memory.
type Memory []byte

// Size implements Reader.
func (m Memory) Size() int64 { return int64(len(m)) }

// Close implements Reader.
func (m Memory) Close() error { return nil }

// ReadAt implements Reader.
func (m Memory) ReadAt(_ context.Context, p []byte, off int64) error {
	if off < 0 || off > int64(len(m)) || len(p) > len(m)-int(off) {
		return fault.At(fault.Corrupt, "byte range", off, "%d bytes in %d", len(p), len(m))
	}
	copy(p, m[off:])
	return nil
}

// Reopened reads an object that it opens for each range, so it does not stay open: a table may have more files
// than a process has descriptors. Openers of local files keep some open, and openers of remote files need no request
// for a known size.
type Reopened struct {
	Opener Opener
	URI    string
	Known  Known
	Now    Reader // the object, as long as it is open already, or nil
}

// ReadAt implements Reader.
func (r *Reopened) ReadAt(ctx context.Context, p []byte, off int64) error {
	if r.Now != nil {
		return r.Now.ReadAt(ctx, p, off)
	}
	file, err := OpenKnown(ctx, r.Opener, r.URI, r.Known)
	if err != nil {
		return err
	}
	return errors.Join(file.ReadAt(ctx, p, off), file.Close())
}

// Size implements Reader.
func (r *Reopened) Size() int64 { return r.Known.Size }

// Close implements Reader.
func (r *Reopened) Close() error { return nil }
