package taco3

import (
	"bytes"
	"context"
	"encoding/binary"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/taco/internal/model"
)

// IndexName is the first entry of a cozip: the index of the others.
const IndexName = "__cozip__"

const (
	extraAt    = 30 + len(IndexName) // the extra field: identifier, length, checksum
	ChecksumAt = int64(extraAt + 4)
	indexAt    = ChecksumAt + 8
	extraID    = 0xCA0C
	// TailBytes is how many of the last bytes the checksum covers. It holds the tables of a small container.
	TailBytes = 32 << 10
	// MinBytes is the least size of a cozip: the header and the tail do not overlap. Writers pad smaller ones.
	MinBytes = TailBytes + indexAt
)

// Profiles of a cozip that are read.
const (
	profileFlat = 1
	profileTACO = 2
)

const indexPart = "index of cozip"

// IsCozip reports whether a file with these first bytes is a cozip.
func IsCozip(head []byte) bool {
	return len(head) >= extraAt && string(head[:4]) == "PK\x03\x04" && string(head[30:extraAt]) == IndexName
}

// corrupt returns an error about a part without an offset.
func corrupt(part, format string, args ...any) error {
	return fault.New(fault.Corrupt, part, format, args...)
}

// span is a byte range of an archive.
type span = model.Span

// zipIndex is the index of a cozip.
type zipIndex struct {
	profile   uint8
	names     []string
	spans     map[string]span
	end       int64 // of the index in the file
	tailBytes int64 // bytes of the end of the file in memory
}

// maxIndex bounds the index that is read. taco-eo lists a few tables.
const maxIndex = 64 << 20

// maxBlock is the largest block of listed entries that is read at once. The tables of 100,000 samples have some 4 MB.
const maxBlock = 32 << 20

// readIndex reads the index of a cozip and compares its checksum. head has the first bytes of the file. The reader that
// it returns has the end of the file in memory: the entries that the index lists, unless they are too large, and the
// tail that the checksum covers. With a head that holds the index, this is one request.
func readIndex(ctx context.Context, r source.Reader, head []byte) (*zipIndex, source.Reader, error) {
	size := r.Size()
	if size < MinBytes || int64(len(head)) < indexAt {
		return nil, r, fault.At(fault.Corrupt, "archive", size, "has %d bytes: a cozip has at least %d", size,
			MinBytes)
	}
	length, err := indexSize(head)
	switch {
	case err != nil:
		return nil, r, err
	case length > size-indexAt:
		return nil, r, fault.At(fault.Corrupt, indexPart, 18, "has %d bytes, the file has %d", length, size)
	case length > maxIndex:
		return nil, r, fault.At(fault.Limit, indexPart, 18, "has %d bytes, at most %d", length, maxIndex)
	}
	data := head[indexAt:min(int64(len(head)), indexAt+length)]
	if int64(len(data)) < length {
		if data, err = source.Read(ctx, r, indexAt, length); err != nil {
			return nil, r, err
		}
	}
	parsed, err := parseIndex(data, size)
	if err != nil {
		return nil, r, err
	}
	off := size - TailBytes
	for _, s := range parsed.spans {
		off = min(off, s.Off)
	}
	// Tables that large would make opening slow: they are read when they are asked for.
	if size-off > maxBlock {
		off = size - TailBytes
	}
	end, err := model.ReadTail(ctx, r, off)
	if err != nil {
		return nil, r, err
	}
	want, sum := binary.LittleEndian.Uint64(head[ChecksumAt:]), Checksum(data, end.Bytes[size-TailBytes-end.Off:], size)
	if want != sum {
		return nil, r, fault.At(fault.Corrupt, "archive", ChecksumAt,
			"the checksum of its index and of its last %d bytes is %016x, stored is %016x", TailBytes, sum, want)
	}
	parsed.tailBytes = int64(len(end.Bytes))
	return parsed, end, nil
}

// indexSize checks the local header of the index, and returns the size of the index.
func indexSize(b []byte) (int64, error) {
	bad := func(at int64, format string, args ...any) (int64, error) {
		return 0, fault.At(fault.Corrupt, "entry "+IndexName, at, format, args...)
	}
	le := binary.LittleEndian
	size := le.Uint32(b[18:])
	switch {
	case !IsCozip(b) || le.Uint16(b[26:]) != uint16(len(IndexName)):
		return bad(0, "is not the first entry")
	case le.Uint16(b[6:])&(1|8) != 0: // encrypted; sizes behind the data
		return bad(6, "has the flags %#x", le.Uint16(b[6:]))
	case le.Uint16(b[8:]) != 0:
		return bad(8, "has compression method %d: it must be stored", le.Uint16(b[8:]))
	case le.Uint16(b[28:]) != 12 || le.Uint16(b[extraAt:]) != extraID || le.Uint16(b[extraAt+2:]) != 8:
		return bad(28, "has no extra field with a checksum")
	case size != le.Uint32(b[22:]) || size == 0 || size == 1<<32-1:
		return bad(18, "has the sizes %d and %d", size, le.Uint32(b[22:]))
	}
	return int64(size), nil
}

// headBytes is the size of the head of an index: magic, version, profile and the number of entries.
const headBytes = 4 + 2 + 1 + 4

// parseIndex parses the index of an archive of total bytes.
func parseIndex(b []byte, total int64) (*zipIndex, error) {
	bad := func(at int, format string, args ...any) (*zipIndex, error) {
		return nil, fault.At(fault.Corrupt, indexPart, indexAt+int64(at), format, args...)
	}
	if len(b) < headBytes || string(b[:4]) != "CZIP" {
		return bad(0, "does not begin with CZIP")
	}
	le := binary.LittleEndian
	if v := le.Uint16(b[4:]); v != 1 {
		return nil, fault.At(fault.Unsupported, indexPart, indexAt+4, "version %d: version 1 is read", v)
	}
	parsed := &zipIndex{profile: b[6], spans: map[string]span{}, end: indexAt + int64(len(b))}
	if parsed.profile != profileFlat && parsed.profile != profileTACO {
		return nil, fault.At(fault.Unsupported, indexPart, indexAt+6,
			"profile %d: profiles %d (Flat) and %d (TACO) are read", parsed.profile, profileFlat, profileTACO)
	}
	entries := int64(le.Uint32(b[7:]))
	if entries*(2+1+8+8) > int64(len(b)-headBytes) { // the length of a name, a letter of it, an offset and a size
		return bad(7, "%d entries do not fit into %d bytes", entries, len(b))
	}
	lengths, names := b[headBytes:headBytes+2*entries], b[headBytes+2*entries:]
	letters := 0
	for i := range entries {
		letters += int(le.Uint16(lengths[2*i:]))
	}
	if int64(len(names)) != int64(letters)+16*entries {
		return bad(headBytes, "%d entries with %d letters do not fill its %d bytes", entries, letters, len(b))
	}
	numbers := names[letters:]
	for i := range entries {
		length := le.Uint16(lengths[2*i:])
		name := string(names[:length])
		names = names[length:]
		pos := len(b) - len(numbers) + 8*int(i)
		off, size := le.Uint64(numbers[8*i:]), le.Uint64(numbers[8*(entries+i):])
		_, twice := parsed.spans[name]
		switch {
		case name == "" || bytes.ContainsFunc([]byte(name), notPrintable) || strings.HasPrefix(name, "__cozip"):
			return bad(pos, "entry %d has the name %.80q", i, name)
		case twice:
			return bad(pos, "%.80q is there twice", name)
		case size == 0 || off < uint64(parsed.end) || off > uint64(total) || size > uint64(total)-off:
			return bad(pos, "%.80q has %d bytes at %d: the file has %d, and its data begin at %d", name, size, off,
				total, parsed.end)
		}
		parsed.names, parsed.spans[name] = append(parsed.names, name), span{Off: int64(off), Size: int64(size)}
	}
	return parsed, nil
}

// notPrintable reports whether a letter may not stand in names: they are printable ASCII.
func notPrintable(r rune) bool { return r < 0x20 || r > 0x7E }
