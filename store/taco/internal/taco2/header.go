package taco2

import (
	"encoding/binary"
	"strconv"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/store/taco/internal/model"
)

// The first entry of a TACO ZIP is stored under its name without an extra field, so its data
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

const localSignature = "PK\x03\x04"

// span is a byte range of an object.
type span = model.Span

// newSpan checks that a byte range lies in an object of total bytes, after its first min bytes, and is not empty.
func newSpan(off, size uint64, min, total int64, part string, at int64) (span, error) {
	if off < uint64(min) || off > uint64(total) || size > uint64(total)-off {
		return span{}, fault.At(fault.Corrupt, part, at,
			"%d bytes at %d: the file has %d bytes and its data begin at %d", size, off, total, min)
	}
	if size == 0 {
		return span{}, fault.At(fault.Corrupt, part, at, "is empty")
	}
	return span{Off: int64(off), Size: int64(size)}, nil
}

// parseHeader returns the places of the levels and of COLLECTION.json in a ZIP of total bytes. b
// has its first zipDataAt bytes, or all of them.
//
// It ignores the CRC of the entry, because tables appended to the archive later make it outdated.
func parseHeader(b []byte, total int64) (levels []span, collection span, err error) {
	bad := func(at int64, format string, args ...any) ([]span, span, error) {
		return nil, span{}, fault.At(fault.Corrupt, HeaderName, at, format, args...)
	}
	switch {
	case len(b) < 4 || string(b[:4]) != localSignature:
		return bad(0, "there is no local file header")
	case len(b) < zipDataAt:
		return bad(int64(len(b)), "ends inside the %d bytes of the header", zipDataAt)
	case string(b[30:HeaderAt]) != HeaderName || le16(b, 26) != uint16(len(HeaderName)):
		return nil, span{}, fault.At(fault.Unsupported, HeaderName, 30,
			"the first entry has another name: this ZIP is not a TACO container; "+
				"its members are called /vsizip/{FILE.zip}/MEMBER")
	case le16(b, 28) != 0:
		return bad(28, "it has an extra field of %d bytes", le16(b, 28))
	case le16(b, 8) != 0:
		return bad(8, "compression method %d, expected 0 (stored)", le16(b, 8))
	}
	b = b[HeaderAt:zipDataAt]
	entries := int(b[0])
	if entries < 2 || entries > HeaderPairs {
		return bad(int64(HeaderAt), "%d entries, expected 2 to %d", entries, HeaderPairs)
	}
	spans := make([]span, entries)
	for i := range spans {
		pos, part := 4+16*i, HeaderName+" entry "+strconv.Itoa(i)
		spans[i], err = newSpan(le64(b, pos), le64(b, pos+8), int64(zipDataAt), total, part, int64(HeaderAt+pos))
		if err != nil {
			return nil, span{}, err
		}
	}
	return spans[:entries-1], spans[entries-1], nil
}

func le16(b []byte, at int) uint16 { return binary.LittleEndian.Uint16(b[at:]) }
func le64(b []byte, at int) uint64 { return binary.LittleEndian.Uint64(b[at:]) }

// The header of a __TACOCAT__ file: magic number, u32 version, u32 deepest level, and seven pairs of u64 offset and
// size, little-endian, for six levels and COLLECTION.json. A missing level has zeros.
const (
	catMagic   = "TACOCAT\x00"
	catVersion = 1
	catLevels  = 6
	catDataAt  = 16 + 16*(catLevels+1)
)

// parseTacocat returns where the levels and COLLECTION.json lie in a __TACOCAT__ file that is total bytes long.
func parseTacocat(b []byte, total int64) (levels []span, collection span, err error) {
	const part = "TACOCAT header"
	bad := func(kind fault.Kind, at int64, format string, args ...any) ([]span, span, error) {
		return nil, span{}, fault.At(kind, part, at, format, args...)
	}
	switch {
	case len(b) < len(catMagic) || string(b[:len(catMagic)]) != catMagic:
		return bad(fault.Corrupt, 0, "it does not begin with the magic number")
	case len(b) < catDataAt:
		return bad(fault.Corrupt, int64(len(b)), "ends inside the %d bytes of the header", catDataAt)
	}
	version, deepest := binary.LittleEndian.Uint32(b[8:]), binary.LittleEndian.Uint32(b[12:])
	if version != catVersion {
		return bad(fault.Unsupported, 8, "version %d, only %d is supported", version, catVersion)
	}
	if deepest >= catLevels {
		return bad(fault.Corrupt, 12, "deepest level %d, at most %d", deepest, catLevels-1)
	}
	spans := make([]span, catLevels+1)
	for i := range spans {
		pos, name := 16+16*i, part+" level "+strconv.Itoa(i)
		if i == catLevels {
			name = part + " COLLECTION.json"
		}
		off, size := le64(b, pos), le64(b, pos+8)
		if i > int(deepest) && i < catLevels {
			if off != 0 || size != 0 {
				return bad(fault.Corrupt, int64(pos), "level %d exists, below the deepest level %d", i, deepest)
			}
			continue
		}
		if spans[i], err = newSpan(off, size, catDataAt, total, name, int64(pos)); err != nil {
			return nil, span{}, err
		}
	}
	return spans[:deepest+1], spans[catLevels], nil
}

// appendPlaces appends offset and size of each place.
func appendPlaces(b []byte, places []span) []byte {
	for _, p := range places {
		b = binary.LittleEndian.AppendUint64(b, uint64(p.Off))
		b = binary.LittleEndian.AppendUint64(b, uint64(p.Size))
	}
	return b
}

// HeaderOf returns the content of TACO_HEADER for the places of the tables of levels and of COLLECTION.json.
func HeaderOf(places []span) []byte {
	buf := appendPlaces([]byte{byte(len(places)), 0, 0, 0}, places)
	return append(buf, make([]byte, HeaderBytes-len(buf))...)
}

// TacocatHeader returns the header of a __TACOCAT__ of the tables of levels and a COLLECTION.json of these lengths,
// which follow it in that order.
func TacocatHeader(lengths ...int) []byte {
	levels := len(lengths) - 1
	places := make([]span, catLevels+1) // levels that do not exist have zeros
	pos := int64(catDataAt)
	for i, size := range lengths {
		if i == levels {
			i = catLevels
		}
		places[i] = span{Off: pos, Size: int64(size)}
		pos += int64(size)
	}
	buf := binary.LittleEndian.AppendUint32([]byte(catMagic), catVersion)
	return appendPlaces(binary.LittleEndian.AppendUint32(buf, uint32(levels-1)), places)
}
