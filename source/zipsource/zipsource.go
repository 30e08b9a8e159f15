// Package zipsource opens files in ZIP archives by the names that GDAL has for them, /vsizip/ARCHIVE.zip/FILE or
// /vsizip/{ARCHIVE}/FILE. An archive may be local or remote, and of it the directory and the file are read.
package zipsource

import (
	"compress/flate"
	"context"
	"errors"
	"hash/crc32"
	"io"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/source/zipdir"
)

// Scheme is the scheme of the names.
const Scheme = "vsizip"

// Opener opens files in archives that Archives opens. A file that is stored without compression is read range by range,
// and one of DEFLATE is unpacked into memory when it is opened; other methods are fault.Unsupported. Each file that is
// opened reads the directory of its archive.
type Opener struct{ Archives source.Opener }

// maxUnpacked bounds the bytes of a file that is unpacked. Scenes are larger, but kept in archives as they are.
const maxUnpacked = 256 << 20

// Open implements source.Opener.
func (o *Opener) Open(ctx context.Context, uri string) (source.Reader, error) {
	archive, file, ok := source.InZip(uri)
	if !ok {
		return nil, fault.WithFile(fault.New(fault.Unsupported, "name", fault.NoOffset,
			"names no file in an archive: it must be /vsizip/ARCHIVE.zip/FILE or /vsizip/{ARCHIVE}/FILE"), uri)
	}
	r, err := o.Archives.Open(ctx, archive)
	if err != nil {
		return nil, err
	}
	in, err := open(ctx, r, file)
	if err != nil {
		return nil, errors.Join(fault.WithFile(err, archive), r.Close())
	}
	return in, nil
}

// open opens a file in an archive. It closes r only with what it returns.
func open(ctx context.Context, r source.Reader, file string) (source.Reader, error) {
	entries, err := zipdir.Read(ctx, r, 0, func(name []byte) bool { return string(name) == file })
	if err != nil {
		return nil, err
	}
	e, ok := entries[file]
	if !ok {
		return nil, fault.New(fault.NotFound, "file "+file, fault.NoOffset, "is not in the archive")
	}
	data, err := zipdir.Data(ctx, r, file, e)
	if err != nil {
		return nil, err
	}
	part, err := source.SectionOf(r, data.Off, data.Size)
	switch {
	case err != nil || e.Plain:
		return part, err
	case e.Method != 8 || e.Encrypted:
		return nil, fault.New(fault.Unsupported, "file "+file, e.Local, "is encrypted or of the method %d: files that "+
			"are stored, or compressed by DEFLATE (8), are read", e.Method)
	case e.Bytes < 0 || e.Bytes > maxUnpacked:
		return nil, fault.New(fault.Limit, "file "+file, e.Local, "has %d bytes, at most %d are unpacked", e.Bytes,
			maxUnpacked)
	}
	b, err := unpacked(source.Sequential(ctx, part, 0), e)
	if err != nil {
		return nil, fault.WithPart(err, "file "+file, e.Local)
	}
	return &memory{b, r}, nil
}

// unpacked returns the bytes of a file. They take memory as they come: sizes in an archive may be lies.
func unpacked(r io.Reader, e zipdir.Entry) ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(flate.NewReader(r), e.Bytes+1))
	var damaged flate.CorruptInputError
	switch {
	case errors.As(err, &damaged) || errors.Is(err, io.ErrUnexpectedEOF):
		return nil, fault.Wrap(fault.Corrupt, "", fault.NoOffset, err)
	case err != nil:
		return nil, err
	case int64(len(b)) != e.Bytes:
		return nil, fault.New(fault.Corrupt, "", fault.NoOffset, "has other than the %d bytes that the archive says",
			e.Bytes)
	case crc32.ChecksumIEEE(b) != e.CRC:
		return nil, fault.New(fault.Corrupt, "", fault.NoOffset, "the CRC-32 is %08x, the archive says %08x",
			crc32.ChecksumIEEE(b), e.CRC)
	}
	return b, nil
}

// memory is an unpacked file, and the archive that it came from.
type memory struct {
	b []byte
	r source.Reader
}

// Size implements source.Reader.
func (m *memory) Size() int64 { return int64(len(m.b)) }

// Close implements source.Reader.
func (m *memory) Close() error { return m.r.Close() }

// ETag implements source.Tagged.
func (m *memory) ETag() string { return source.ETag(m.r) }

// ReadAt implements source.Reader.
func (m *memory) ReadAt(ctx context.Context, b []byte, off int64) error {
	if off < 0 || off > m.Size() || int64(len(b)) > m.Size()-off {
		return fault.New(fault.Corrupt, "byte range", off, "%d bytes reach past the file's %d", len(b), m.Size())
	}
	copy(b, m.b[off:])
	return ctx.Err()
}
