package build

import (
	"archive/zip"
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/magic"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/taco/internal/model"
	"github.com/chaski-eo/chaski/store/taco/internal/taco3"
)

// zipArchive writes a ZIP whose entries are stored, without compression.
type zipArchive struct {
	patched
	zip     *zip.Writer
	buffer  []byte
	entries int
	utf8    bool // all names are flagged as UTF-8
	// directory is how many bytes the entries so far have in the directory of a small archive.
	directory int64
}

// countingWriter counts the bytes written to a file, and keeps the last ones that are written in order.
type countingWriter struct {
	archiveFile
	n    int64
	tail []byte
}

// Write implements io.Writer.
func (c *countingWriter) Write(p []byte) (int, error) {
	n, err := c.archiveFile.Write(p)
	c.n += int64(n)
	c.tail = append(c.tail, p[max(0, n-taco3.TailBytes):n]...)
	// The tail grows first, so each byte is moved once for each seven that are written.
	if len(c.tail) > 8*taco3.TailBytes {
		c.tail = append(c.tail[:0], c.last()...)
	}
	return n, err
}

// last returns the last bytes, at most taco3.TailBytes.
func (c *countingWriter) last() []byte { return c.tail[max(0, len(c.tail)-taco3.TailBytes):] }

// span is a byte range of a ZIP.
type span = model.Span

const (
	// bufferBytes is the size of the write buffer. Of entries of 100 KB, a usual size of chips, it joins ten into
	// one system call.
	bufferBytes = 1 << 20
	// copyBytes is the size of the blocks in which a large file is copied.
	copyBytes = 1 << 18
	// crcAt is where a local file header has the CRC-32, of crcBytes.
	crcAt    = 14
	crcBytes = 4
	// dosDate is 1980-01-01, the first day that a ZIP can name: the same input gives the same bytes.
	dosDate = 1<<5 | 1
	// utf8Flag says that a name is UTF-8.
	utf8Flag = 0x800
	// zip64Version is the version of ZIP that has sizes of 64 bits.
	zip64Version = 45
	maxName      = math.MaxUint16
)

func newArchive(f archiveFile) *zipArchive {
	a := &zipArchive{patched: newPatched(f)}
	// It takes a.out for its own buffer, because that is larger than the one that it would make.
	a.zip = zip.NewWriter(a.out)
	return a
}

// begin writes the local file header of an entry, with an extra field that the directory has not. Its CRC-32 may be set
// in the header until close.
func (a *zipArchive) begin(name string, size int64, crc uint32, extra []byte) (*zip.FileHeader, io.Writer, error) {
	if len(name) > maxName {
		return nil, nil, fault.New(fault.Limit, "sample", "its path has %d bytes, a ZIP allows %d", len(name), maxName)
	}
	header := &zip.FileHeader{Name: name, Method: zip.Store, CRC32: crc, CompressedSize64: uint64(size),
		UncompressedSize64: uint64(size)}
	//lint:ignore SA1019 CreateRaw writes this field, and does not look at Modified
	header.ModifiedDate = dosDate
	header.SetMode(0o644)
	if a.utf8 || strings.ContainsFunc(name, func(letter rune) bool { return letter >= 0x80 }) {
		header.Flags |= utf8Flag
	}
	if size >= math.MaxUint32 {
		// Set here, since the library adds this field in the central directory only.
		header.ReaderVersion = zip64Version
		header.Extra = binary.LittleEndian.AppendUint16(nil, 1)
		header.Extra = binary.LittleEndian.AppendUint16(header.Extra, 16)
		header.Extra = binary.LittleEndian.AppendUint64(header.Extra, uint64(size))
		header.Extra = binary.LittleEndian.AppendUint64(header.Extra, uint64(size))
	}
	header.Extra = append(header.Extra, extra...)
	a.directory += int64(directoryBytes + len(name))
	a.entries++
	w, err := a.zip.CreateRaw(header)
	// The directory must not have the extra field of the local header.
	header.Extra = nil
	return header, w, err
}

// add writes an entry and returns the place of its bytes.
func (a *zipArchive) add(name string, b []byte, crc uint32) (span, error) {
	_, writer, err := a.begin(name, int64(len(b)), crc, nil)
	if err != nil {
		return span{}, err
	}
	s := span{Off: a.at(), Size: int64(len(b))}
	_, err = writer.Write(b)
	return s, err
}

// put implements sink.
func (a *zipArchive) put(ctx context.Context, name string, l *loaded) (span, error) {
	if l.r != nil {
		return a.copy(name, l.size, source.Sequential(ctx, l.r))
	}
	return a.add(name, l.bytes, l.crc)
}

// copy writes an entry of size bytes, which it reads once: the CRC-32 is set afterwards.
func (a *zipArchive) copy(name string, size int64, from io.Reader) (span, error) {
	head := a.at()
	header, writer, err := a.begin(name, size, 0, nil)
	if err != nil {
		return span{}, err
	}
	place := span{Off: a.at(), Size: size}
	if a.buffer == nil {
		a.buffer = make([]byte, copyBytes)
	}
	sum := crc32.NewIEEE()
	n, err := io.CopyBuffer(io.MultiWriter(writer, sum), io.LimitReader(from, size), a.buffer)
	if err == nil && n != size {
		err = fmt.Errorf("%d bytes of %d: %w", n, size, io.ErrUnexpectedEOF)
	}
	if err != nil {
		return span{}, err
	}
	header.CRC32 = sum.Sum32()
	a.patch(head+crcAt, binary.LittleEndian.AppendUint32(nil, header.CRC32))
	return place, nil
}

// reserve writes the first entry, with content of the size of the one that seal gets.
func (a *zipArchive) reserve(name string, content, extra []byte) (*zip.FileHeader, error) {
	header, writer, err := a.begin(name, int64(len(content)), 0, extra)
	if err != nil {
		return nil, err
	}
	_, err = writer.Write(content)
	return header, err
}

// seal writes the directory of the ZIP, and sets the CRC-32 of the first entry, whose content has the places of others.
// The caller patches the content.
func (a *zipArchive) seal(first *zip.FileHeader, content []byte) error {
	first.CRC32 = crc32.ChecksumIEEE(content)
	a.patch(crcAt, binary.LittleEndian.AppendUint32(nil, first.CRC32))
	return errors.Join(a.zip.Close(), a.out.Flush())
}

// Bytes of ZIP: a local header, an entry of the directory and the end, without names (APPNOTE 6.3, 4.3).
const (
	localBytes     = 30
	directoryBytes = 46
	endBytes       = 22
)

// pad adds the entry that brings a small archive to the least size, in front of the block that follows.
func (a *zipArchive) pad(ctx context.Context, block []entry) error {
	size := a.at() + a.directory + endBytes
	for _, e := range block {
		size += int64(localBytes + directoryBytes + 2*len(e.name) + len(e.data))
	}
	missing := taco3.MinBytes - size
	if missing <= 0 {
		return nil
	}
	n := max(1, missing-int64(localBytes+directoryBytes+2*len(taco3.PaddingName)))
	_, err := a.put(ctx, taco3.PaddingName, inMemory(bytes.Repeat([]byte{taco3.PaddingByte}, int(n))))
	return err
}

// archiveFile is a file that an archive is written to: from its beginning on, and at some places again.
type archiveFile interface {
	io.Writer
	io.WriterAt
}

// Tests replace this to fail.
var disk = func(f *os.File) archiveFile { return f }

// patched is a file that is written from its beginning on, through a buffer, and at some places again.
type patched struct {
	file    *countingWriter
	out     *bufio.Writer
	patches []filePatch
}

// filePatch is a few bytes of the file whose values are known only after later bytes are written.
type filePatch struct {
	at    int64
	bytes []byte
}

func newPatched(f archiveFile) patched {
	p := patched{file: &countingWriter{archiveFile: f}}
	p.out = bufio.NewWriterSize(p.file, bufferBytes)
	return p
}

// at returns where the next byte will be in the file.
func (p *patched) at() int64 { return p.file.n + int64(p.out.Buffered()) }

// patch replaces bytes in finish, as a file on a disk is best written without a seek between.
func (p *patched) patch(at int64, b []byte) { p.patches = append(p.patches, filePatch{at, b}) }

// finish writes the buffer and the patches.
func (p *patched) finish() error {
	if err := p.out.Flush(); err != nil {
		return err
	}
	for _, patch := range p.patches {
		if _, err := p.file.WriteAt(patch.bytes, patch.at); err != nil {
			return err
		}
	}
	return nil
}

// wholeBytes is the size up to which a file is read into memory by a worker. Larger ones are copied in pieces by the
// one goroutine that writes, as then the disk is the bound and not the opening of files.
const wholeBytes = 4 << 20

// loaded is the bytes of a file, or a reader of them.
type loaded struct {
	bytes  []byte
	crc    uint32 // of bytes
	r      source.Reader
	size   int64
	buffer *[]byte // what bytes are of, for the next file; nil if they are the caller's
}

// inMemory returns a file in memory.
func inMemory(b []byte) *loaded {
	return &loaded{bytes: b, crc: crc32.ChecksumIEEE(b), size: int64(len(b))}
}

// close ends the use of the bytes.
func (l *loaded) close() error {
	if l.buffer != nil {
		buffers.Put(l.buffer)
		l.bytes, l.buffer = nil, nil
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
	case l.r != nil:
		_, err = io.Copy(f, source.Sequential(ctx, l.r))
	default:
		_, err = f.Write(l.bytes)
	}
	return err
}

// load opens a file, and reads it if it is small.
func load(ctx context.Context, o source.Opener, r *Row) (*loaded, error) {
	if r.bytes != nil {
		return inMemory(r.bytes), nil
	}
	file, err := r.Open(ctx, o)
	if err != nil {
		return nil, fault.WithFile(err, r.uri())
	}
	content := &loaded{r: file, size: file.Size()}
	if content.size > wholeBytes {
		return content, nil
	}
	content.buffer = buffers.Get().(*[]byte)
	*content.buffer = slices.Grow((*content.buffer)[:0], int(content.size))
	content.bytes = (*content.buffer)[:content.size]
	err = file.ReadAt(ctx, content.bytes, 0)
	if cerr := file.Close(); err == nil {
		err = cerr
	}
	content.r = nil
	if err == nil && magic.Of(content.bytes) == magic.VRT {
		err = fault.At(fault.Unsupported, "file", 0, "a virtual raster is of no use in a container, as it names "+
			"other files: make a TIFF of it, as by 'gdal_translate x.vrt x.tif'")
	}
	if err != nil {
		return nil, fault.WithFile(err, r.uri())
	}
	content.crc = crc32.ChecksumIEEE(content.bytes)
	return content, nil
}

// buffers holds the memory of files that were written, each at most twice wholeBytes.
var buffers = sync.Pool{New: func() any { return new([]byte) }}

// open returns a reader of the bytes, which close closes.
func (l *loaded) open() source.Reader {
	if l.r != nil {
		return l.r
	}
	return source.Memory(l.bytes)
}
