package taco2

import (
	"context"
	"encoding/binary"
	"hash/crc32"
	"slices"
	"strconv"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/source"
)

// The first entry of a TACO ZIP is stored under its name without an extra field, so that its data
// are at a fixed offset: a count byte, three zero bytes, and seven pairs of offset and size. Pair i
// is level i, and the last one in use is COLLECTION.json.
const (
	HeaderName  = "TACO_HEADER"
	HeaderAt    = 30 + len(HeaderName) // offset of its data
	HeaderBytes = 4 + HeaderPairs*16
	HeaderPairs = 7
	// zipDataAt is the offset of the entry after TACO_HEADER.
	zipDataAt = HeaderAt + HeaderBytes
)

const (
	localSignature     = "PK\x03\x04"
	directorySignature = "PK\x01\x02"
	endSignature       = "PK\x05\x06"
	end64Signature     = "PK\x06\x06"
	locator64Signature = "PK\x06\x07"
)

// span is a byte range of an object.
type span struct{ off, size int64 }

func (s span) end() int64 { return s.off + s.size }

// in reports whether the range lies in an object of total bytes.
func (s span) in(total int64) bool {
	return s.off >= 0 && s.size >= 0 && s.off <= total && s.size <= total-s.off
}

// newSpan checks that a byte range lies in an object of total bytes, after its first min bytes.
func newSpan(off, size uint64, min, total int64, part string, at int64) (span, error) {
	if off < uint64(min) || off > uint64(total) || size > uint64(total)-off {
		return span{}, fault.New(fault.Corrupt, part, at,
			"%d bytes at %d: the file has %d bytes and its data begin at %d", size, off, total, min)
	}
	return span{int64(off), int64(size)}, nil
}

// parseHeader returns the places of the levels and of COLLECTION.json in a ZIP of total bytes. b
// has its first zipDataAt bytes, or all of them.
//
// It ignores the CRC of the entry, because tables appended to the archive later make it outdated.
func parseHeader(b []byte, total int64) (levels []span, collection span, err error) {
	bad := func(at int64, format string, args ...any) ([]span, span, error) {
		return nil, span{}, fault.New(fault.Corrupt, HeaderName, at, format, args...)
	}
	switch {
	case len(b) < 4 || string(b[:4]) != localSignature:
		return bad(0, "there is no local file header")
	case len(b) < zipDataAt:
		return bad(int64(len(b)), "ends inside the %d bytes of the header", zipDataAt)
	case string(b[30:HeaderAt]) != HeaderName || le16(b, 26) != uint16(len(HeaderName)):
		return nil, span{}, fault.New(fault.Unsupported, HeaderName, 30,
			"the first entry has another name: this ZIP is not a TACO container")
	case le16(b, 28) != 0:
		return bad(28, "it has an extra field of %d bytes", le16(b, 28))
	case le16(b, 8) != 0:
		return bad(8, "compression method %d, expected 0 (stored)", le16(b, 8))
	}
	b = b[HeaderAt:zipDataAt]
	n := int(b[0])
	if n < 2 || n > HeaderPairs {
		return bad(int64(HeaderAt), "%d entries, expected 2 to %d", n, HeaderPairs)
	}
	all := make([]span, n)
	for i := range all {
		at, part := 4+16*i, HeaderName+" entry "+strconv.Itoa(i)
		all[i], err = newSpan(le64(b, at), le64(b, at+8), int64(zipDataAt), total, part, int64(HeaderAt+at))
		if err == nil && all[i].size == 0 {
			err = fault.New(fault.Corrupt, part, int64(HeaderAt+at), "is empty")
		}
		if err != nil {
			return nil, span{}, err
		}
	}
	return all[:n-1], all[n-1], nil
}

func le16(b []byte, at int) uint16 { return binary.LittleEndian.Uint16(b[at:]) }
func le32(b []byte, at int) uint32 { return binary.LittleEndian.Uint32(b[at:]) }
func le64(b []byte, at int) uint64 { return binary.LittleEndian.Uint64(b[at:]) }

// zipEntry is an entry of the central directory.
type zipEntry struct {
	local int64 // offset of its local file header
	size  int64 // stored bytes
	bytes int64 // bytes of the content
	plain bool  // stored without compression and encryption
	crc   uint32
}

// maxDirectory limits the central directory that is read, in bytes: some ten million entries.
const maxDirectory = 1 << 30

// maxTail is the largest distance of the end-of-directory record from the end of a file: its
// comment of at most 65,535 bytes, the record of 22 bytes, and the locator and record of ZIP64.
const maxTail = 65535 + 22 + 20 + 56

// readDirectory reads the central directory of a ZIP and returns the entries that want accepts, by
// name. Tables may have been appended to the archive. If they are too long to search back over, it
// looks for the directory at after, the end of COLLECTION.json.
func readDirectory(ctx context.Context, r source.Reader, after int64,
	want func(name []byte) bool) (map[string]zipEntry, error) {
	where, n, err := findDirectory(ctx, r, after)
	if err != nil && after > r.Size()-maxTail { // the directory may be in front of COLLECTION.json
		where, n, err = findDirectory(ctx, r, 0)
	}
	if err != nil {
		sig := make([]byte, 4)
		if fault.KindOf(err) != fault.Corrupt || r.ReadAt(ctx, sig, after) != nil || string(sig) != directorySignature {
			return nil, err
		}
		where, n = span{after, r.Size() - after}, untilEnd
	}
	if where.size > maxDirectory {
		return nil, fault.New(fault.Limit, "central directory", where.off, "%d bytes, at most %d",
			where.size, maxDirectory)
	}
	b := make([]byte, where.size)
	if err := r.ReadAt(ctx, b, where.off); err != nil {
		return nil, fault.WithPart(err, "central directory", 0)
	}
	return parseDirectory(b, where.off, n, want)
}

// untilEnd as the number of entries means that the directory ends where no entry follows.
const untilEnd = 1<<64 - 1

// parseDirectory parses n entries of a central directory at offset base.
func parseDirectory(b []byte, base int64, n uint64, want func(name []byte) bool) (map[string]zipEntry, error) {
	dir := map[string]zipEntry{}
	at := 0
	for i := uint64(0); i < n; i++ {
		if len(b)-at < 46 || string(b[at:at+4]) != directorySignature {
			if n == untilEnd {
				break
			}
			return nil, fault.New(fault.Corrupt, "central directory", base+int64(at),
				"it has only %d of %d entries", i, n)
		}
		name, extra, comment := int(le16(b, at+28)), int(le16(b, at+30)), int(le16(b, at+32))
		if len(b)-at-46 < name+extra+comment {
			return nil, fault.New(fault.Corrupt, "central directory", base+int64(at), "ends inside an entry")
		}
		id := b[at+46 : at+46+name]
		if want(id) {
			e := zipEntry{local: int64(le32(b, at+42)), size: int64(le32(b, at+20)), bytes: int64(le32(b, at+24)),
				crc: le32(b, at+16)}
			e.plain = le16(b, at+10) == 0 && le16(b, at+8)&1 == 0
			if !e.extend(b[at+46+name:at+46+name+extra]) || e.local < 0 || e.size < 0 {
				return nil, fault.New(fault.Corrupt, "central directory", base+int64(at),
					"the ZIP64 sizes of an entry are invalid")
			}
			if _, twice := dir[string(id)]; twice {
				return nil, fault.New(fault.Corrupt, "central directory", base+int64(at),
					"there are two entries %q", id)
			}
			dir[string(id)] = e
		}
		at += 46 + name + extra + comment
	}
	return dir, nil
}

// extend reads fields that do not fit into 32 bits from the ZIP64 extra field.
func (e *zipEntry) extend(extra []byte) bool {
	const none = 1<<32 - 1
	if e.local != none && e.size != none && e.bytes != none {
		return true
	}
	for len(extra) >= 4 {
		id, n := le16(extra, 0), int(le16(extra, 2))
		if len(extra)-4 < n {
			return false
		}
		field := extra[4 : 4+n]
		extra = extra[4+n:]
		if id != 1 {
			continue
		}
		for _, v := range []*int64{&e.bytes, &e.size, &e.local} {
			if *v != none {
				continue
			}
			if len(field) < 8 {
				return false
			}
			*v = int64(le64(field, 0))
			field = field[8:]
		}
		return true
	}
	return false
}

// findDirectory searches for the end-of-directory record from the end of the file backwards, to
// offset from. It skips bytes appended to the archive; COLLECTION.json is right before the
// directory.
func findDirectory(ctx context.Context, r source.Reader, from int64) (span, uint64, error) {
	tail := min(int64(maxTail), r.Size()-min(max(from, 0), r.Size()))
	base := r.Size() - tail
	b := make([]byte, tail)
	if err := r.ReadAt(ctx, b, base); err != nil {
		return span{}, 0, fault.WithPart(err, "central directory", 0)
	}
	for at := len(b) - 22; at >= 0; at-- {
		if string(b[at:at+4]) == endSignature {
			s, n, ok, err := parseEnd(ctx, r, b, at, base)
			if ok || err != nil {
				return s, n, err
			}
		}
	}
	return span{}, 0, fault.New(fault.Corrupt, "central directory", base,
		"there is no end-of-directory record in the last %d bytes", tail)
}

// parseEnd parses the end-of-directory record at b[at:], where b begins at base of the file. ok is
// true if the record directly follows a directory.
func parseEnd(ctx context.Context, r source.Reader, b []byte, at int, base int64) (s span, entries uint64,
	ok bool, err error) {
	here := base + int64(at)
	n, size, off := uint64(le16(b, at+10)), uint64(le32(b, at+12)), uint64(le32(b, at+16))
	if n == 1<<16-1 || size == 1<<32-1 || off == 1<<32-1 {
		if at < 20 || string(b[at-20:at-16]) != locator64Signature {
			return span{}, 0, false, nil
		}
		rec := make([]byte, 56)
		at64 := le64(b, at-12)
		if at64 > uint64(here) || uint64(here)-at64 < uint64(len(rec)) {
			return span{}, 0, false, nil
		}
		if err := r.ReadAt(ctx, rec, int64(at64)); err != nil {
			return span{}, 0, false, fault.WithPart(err, "central directory", 0)
		}
		if string(rec[:4]) != end64Signature {
			return span{}, 0, false, nil
		}
		n, size, off, here = le64(rec, 32), le64(rec, 40), le64(rec, 48), int64(at64)
	}
	if off > uint64(here) || size != uint64(here)-off || n > size/46 {
		return span{}, 0, false, nil
	}
	return span{int64(off), int64(size)}, n, true, nil
}

// maxExtra limits the extra field of a local header that is skipped.
const maxExtra = 1 << 10

// localHeader checks that the data at an offset of a ZIP follow the local file header of an entry
// with a name. It returns the CRC-32 in that header, or 0 if it has none.
func localHeader(ctx context.Context, r source.Reader, name string, data span) (crc uint32, err error) {
	n := int64(30 + len(name))
	for _, extra := range [...]int64{0, maxExtra} {
		b := make([]byte, min(n+extra, data.off))
		if err := r.ReadAt(ctx, b, data.off-int64(len(b))); err != nil {
			return 0, err
		}
		for at := len(b) - int(n); at >= 0; at-- {
			h := b[at:]
			if string(h[:4]) == localSignature && int(le16(h, 26)) == len(name) && string(h[30:n]) == name &&
				int64(len(h)) == n+int64(le16(h, 28)) {
				return le32(h, 14), nil
			}
		}
	}
	return 0, fault.New(fault.Corrupt, "sample "+name, data.off,
		"its bytes do not follow a local file header with its name")
}

// checkSum checks that data have one of the CRC-32 that the ZIP states for them. Those that are 0
// are missing.
func checkSum(ctx context.Context, r source.Reader, name string, data span, sums ...uint32) error {
	sums = slices.DeleteFunc(sums, func(crc uint32) bool { return crc == 0 })
	if len(sums) == 0 {
		return nil
	}
	b := make([]byte, min(data.size, 1<<20))
	crc := uint32(0)
	for at := int64(0); at < data.size; at += int64(len(b)) {
		if err := ctx.Err(); err != nil { // reading local files ignores the context
			return err
		}
		b = b[:min(int64(len(b)), data.size-at)]
		if err := r.ReadAt(ctx, b, data.off+at); err != nil {
			return err
		}
		crc = crc32.Update(crc, crc32.IEEETable, b)
	}
	if slices.Contains(sums, crc) {
		return nil
	}
	return fault.New(fault.Corrupt, name, data.off, "the CRC-32 of its %d bytes is %08x, the ZIP says %08x",
		data.size, crc, sums[0])
}
