// Package zipdir reads the directory of a ZIP archive from the few bytes that it has, and checks what it says of
// entries.
package zipdir

import (
	"context"
	"encoding/binary"
	"hash/crc32"
	"slices"

	"github.com/chaski-eo/chaski/fault"
)

// Reader reads ranges of a file: a source.Reader is one.
type Reader interface {
	ReadAt(ctx context.Context, p []byte, off int64) error
	Size() int64
}

// Signatures of records (APPNOTE 6.3): of an entry, of the end, and of the end and its locator in ZIP64.
const (
	localSignature     = "PK\x03\x04"
	Signature          = "PK\x01\x02"
	EndSignature       = "PK\x05\x06"
	End64Signature     = "PK\x06\x06"
	Locator64Signature = "PK\x06\x07"
)

// Span is a byte range of an object.
type Span struct{ Off, Size int64 }

func le16(b []byte, at int) uint16 { return binary.LittleEndian.Uint16(b[at:]) }
func le32(b []byte, at int) uint32 { return binary.LittleEndian.Uint32(b[at:]) }
func le64(b []byte, at int) uint64 { return binary.LittleEndian.Uint64(b[at:]) }

// Entry is an entry of the central directory.
type Entry struct {
	Local  int64 // offset of its local file header
	Size   int64 // stored bytes
	Bytes  int64 // bytes of the content
	Plain  bool  // stored without compression and encryption
	Method uint16
	// Encrypted says that its bytes are encrypted.
	Encrypted bool
	CRC       uint32
}

// MaxBytes limits the central directory that is read, in bytes: some ten million entries.
const MaxBytes = 1 << 30

// MaxTail is the largest distance of the end-of-directory record from the end of a file: its
// comment of at most 65,535 bytes, the record of 22 bytes, and the locator and record of ZIP64.
const MaxTail = 65535 + 22 + 20 + 56

// Read returns the entries of a ZIP that want accepts, by name. Two of one name are an error. See Each.
func Read(ctx context.Context, r Reader, after int64, want func(name []byte) bool) (map[string]Entry, error) {
	dir := map[string]Entry{}
	err := Each(ctx, r, after, func(name []byte, parse func() (Entry, error)) error {
		if !want(name) {
			return nil
		}
		entry, err := parse()
		if _, twice := dir[string(name)]; twice {
			err = fault.New(fault.Corrupt, "central directory", "there are two entries %q", name)
		}
		dir[string(name)] = entry
		return err
	})
	if err != nil {
		return nil, err
	}
	return dir, nil
}

// Each reads the central directory of a ZIP, and calls each for its entries until that returns an error. The name is
// valid during the call. Tables may have been appended to the archive. If they are too long to search back over, it
// looks for the directory at after, the end of COLLECTION.json.
func Each(ctx context.Context, r Reader, after int64,
	each func(name []byte, parse func() (Entry, error)) error) error {
	where, left, err := Find(ctx, r, after)
	if err != nil && after > r.Size()-MaxTail { // the directory may be in front of COLLECTION.json
		where, left, err = Find(ctx, r, 0)
	}
	if err != nil {
		sig := make([]byte, 4)
		if fault.KindOf(err) != fault.Corrupt || r.ReadAt(ctx, sig, after) != nil || string(sig) != Signature {
			return err
		}
		where, left = Span{after, r.Size() - after}, UntilEnd
	}
	if where.Size > MaxBytes {
		return fault.At(fault.Limit, "central directory", where.Off, "%d bytes, at most %d",
			where.Size, MaxBytes)
	}
	return walk(ctx, r, where, left, each)
}

// UntilEnd as the number of entries means that the directory ends where no entry follows.
const UntilEnd = 1<<64 - 1

// Data returns the place of an entry's data, from its local header.
func Data(ctx context.Context, r Reader, name string, e Entry) (Span, error) {
	data := make([]byte, 30)
	if err := r.ReadAt(ctx, data, e.Local); err != nil {
		return Span{}, fault.WithPart(err, "local file header of "+name, 0)
	}
	span := Span{e.Local + 30 + int64(le16(data, 26)) + int64(le16(data, 28)), e.Size}
	if string(data[:4]) != localSignature || span.Off > r.Size() || span.Size > r.Size()-span.Off {
		return Span{}, fault.At(fault.Corrupt, "local file header of "+name, e.Local,
			"is invalid, or its %d bytes are outside the file", e.Size)
	}
	return span, nil
}

// pieceBytes is how much of a directory is read at a time, so its size, which a sparse file may state without
// having it, sizes no memory: 40,000 entries, in one request.
const pieceBytes = 4 << 20

// longestEntry is the size of an entry whose name, extra field and comment are as long as they can be.
const longestEntry = 46 + 3*(1<<16-1)

// walk calls each for the n entries of a central directory.
func walk(ctx context.Context, r Reader, where Span, n uint64,
	each func(name []byte, parse func() (Entry, error)) error) error {
	data := make([]byte, min(where.Size, pieceBytes))
	end := where.Off + where.Size
	var b []byte // of data, what is not walked over yet; it begins at offset pos
	for i, pos := uint64(0), where.Off; i < n; i++ {
		if unread := end - pos - int64(len(b)); len(b) < longestEntry && unread > 0 {
			kept := copy(data, b)
			b = data[:min(int64(len(data)), int64(kept)+unread)]
			if err := r.ReadAt(ctx, b[kept:], pos+int64(kept)); err != nil {
				return fault.WithPart(err, "central directory", 0)
			}
		}
		if len(b) < 46 || string(b[:4]) != Signature {
			if n == UntilEnd {
				break
			}
			return fault.At(fault.Corrupt, "central directory", pos, "it has only %d of %d entries", i, n)
		}
		name, extra, comment := int(le16(b, 28)), int(le16(b, 30)), int(le16(b, 32))
		size := 46 + name + extra + comment
		if len(b) < size {
			return fault.At(fault.Corrupt, "central directory", pos, "ends inside an entry")
		}
		record := b[:46+name+extra]
		err := each(record[46:46+name], func() (Entry, error) {
			entry, ok := parse(record, name)
			if !ok {
				return entry, fault.At(fault.Corrupt, "central directory", pos,
					"the ZIP64 sizes of an entry are invalid")
			}
			return entry, nil
		})
		if err != nil {
			return fault.AtOffset(err, pos)
		}
		b, pos = b[size:], pos+int64(size)
	}
	return nil
}

// parse parses a record of the directory whose name has so many bytes.
func parse(record []byte, name int) (entry Entry, ok bool) {
	entry = Entry{Local: int64(le32(record, 42)), Size: int64(le32(record, 20)), Bytes: int64(le32(record, 24)),
		CRC: le32(record, 16), Method: le16(record, 10), Encrypted: le16(record, 8)&1 != 0}
	entry.Plain = entry.Method == 0 && !entry.Encrypted
	return entry, entry.extend(record[46+name:]) && entry.Local >= 0 && entry.Size >= 0 && entry.Bytes >= 0
}

// extend reads fields that do not fit into 32 bits from the ZIP64 extra field.
func (e *Entry) extend(extra []byte) bool {
	const none = 1<<32 - 1
	if e.Local != none && e.Size != none && e.Bytes != none {
		return true
	}
	for len(extra) >= 4 {
		kind, size := le16(extra, 0), int(le16(extra, 2))
		if len(extra)-4 < size {
			return false
		}
		field := extra[4 : 4+size]
		extra = extra[4+size:]
		if kind != 1 {
			continue
		}
		for _, member := range []*int64{&e.Bytes, &e.Size, &e.Local} {
			if *member != none {
				continue
			}
			if len(field) < 8 {
				return false
			}
			*member = int64(le64(field, 0))
			field = field[8:]
		}
		return true
	}
	return false
}

// Find searches for the end-of-directory record from the end of the file backwards, to
// offset from. It skips bytes appended to the archive; COLLECTION.json is right before the
// directory.
func Find(ctx context.Context, r Reader, from int64) (Span, uint64, error) {
	tail := min(int64(MaxTail), r.Size()-min(max(from, 0), r.Size()))
	base := r.Size() - tail
	data := make([]byte, tail)
	if err := r.ReadAt(ctx, data, base); err != nil {
		return Span{}, 0, fault.WithPart(err, "central directory", 0)
	}
	for pos := len(data) - 22; pos >= 0; pos-- {
		if string(data[pos:pos+4]) == EndSignature {
			s, n, ok, err := parseEnd(ctx, r, data, pos, base)
			if ok || err != nil {
				return s, n, err
			}
		}
	}
	return Span{}, 0, fault.At(fault.Corrupt, "central directory", base,
		"there is no end-of-directory record in the last %d bytes", tail)
}

// parseEnd parses the end-of-directory record at b[at:], where b begins at base of the file. ok is
// true if the record directly follows a directory.
func parseEnd(ctx context.Context, r Reader, b []byte, at int, base int64) (s Span, entries uint64,
	ok bool, err error) {
	start := base + int64(at)
	count, size, off := uint64(le16(b, at+10)), uint64(le32(b, at+12)), uint64(le32(b, at+16))
	large := count == 1<<16-1 || size == 1<<32-1 || off == 1<<32-1
	located := at >= 20 && string(b[at-20:at-16]) == Locator64Signature
	if large && !located {
		return Span{}, 0, false, nil
	}
	if large || located && off+size != uint64(start) { // torch.save writes both records for small numbers, too
		rec := make([]byte, 56)
		at64 := le64(b, at-12)
		if at64 > uint64(start) || uint64(start)-at64 < uint64(len(rec)) {
			return Span{}, 0, false, nil
		}
		if err := r.ReadAt(ctx, rec, int64(at64)); err != nil {
			return Span{}, 0, false, fault.WithPart(err, "central directory", 0)
		}
		if string(rec[:4]) != End64Signature {
			return Span{}, 0, false, nil
		}
		count, size, off, start = le64(rec, 32), le64(rec, 40), le64(rec, 48), int64(at64)
	}
	if off > uint64(start) || size != uint64(start)-off || count > size/46 {
		return Span{}, 0, false, nil
	}
	return Span{int64(off), int64(size)}, count, true, nil
}

// maxExtra limits the extra field of a local header that is skipped.
const maxExtra = 1 << 10

// LocalHeader checks that the data at an offset of a ZIP follow the local file header of an entry
// with a name. It returns the CRC-32 in that header, or 0 if it has none.
func LocalHeader(ctx context.Context, r Reader, name string, data Span) (crc uint32, err error) {
	size := int64(30 + len(name))
	for _, extra := range [...]int64{0, maxExtra} {
		head := make([]byte, min(size+extra, data.Off))
		if err := r.ReadAt(ctx, head, data.Off-int64(len(head))); err != nil {
			return 0, err
		}
		for pos := len(head) - int(size); pos >= 0; pos-- {
			h := head[pos:]
			if string(h[:4]) == localSignature && int(le16(h, 26)) == len(name) && string(h[30:size]) == name &&
				int64(len(h)) == size+int64(le16(h, 28)) {
				return le32(h, 14), nil
			}
		}
	}
	return 0, fault.At(fault.Corrupt, "sample "+name, data.Off,
		"its bytes do not follow a local file header with its name")
}

// CheckSum checks that data have one of the CRC-32 that the ZIP states for them. Those that are 0
// are missing.
func CheckSum(ctx context.Context, r Reader, name string, data Span, sums ...uint32) error {
	sums = slices.DeleteFunc(sums, func(crc uint32) bool { return crc == 0 })
	if len(sums) == 0 {
		return nil
	}
	buffer := make([]byte, min(data.Size, 1<<20))
	crc := uint32(0)
	for pos := int64(0); pos < data.Size; pos += int64(len(buffer)) {
		if err := ctx.Err(); err != nil { // reading local files ignores the context
			return err
		}
		buffer = buffer[:min(int64(len(buffer)), data.Size-pos)]
		if err := r.ReadAt(ctx, buffer, data.Off+pos); err != nil {
			return err
		}
		crc = crc32.Update(crc, crc32.IEEETable, buffer)
	}
	if slices.Contains(sums, crc) {
		return nil
	}
	return fault.At(fault.Corrupt, name, data.Off, "the CRC-32 of its %d bytes is %08x, the ZIP says %08x",
		data.Size, crc, sums[0])
}
