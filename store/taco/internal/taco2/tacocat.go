package taco2

import (
	"encoding/binary"
	"strconv"

	"github.com/chaski-eo/chaski/fault"
)

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
		return nil, span{}, fault.New(kind, part, at, format, args...)
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

// TacocatHeader returns the header of a __TACOCAT__ with levels and a COLLECTION.json of these lengths, which follow it
// in that order.
func TacocatHeader(levels []int, collection int) []byte {
	buf := append(make([]byte, 0, catDataAt), catMagic...)
	buf = binary.LittleEndian.AppendUint32(buf, catVersion)
	buf = binary.LittleEndian.AppendUint32(buf, uint32(len(levels)-1))
	pos := catDataAt
	put := func(size int) {
		buf = binary.LittleEndian.AppendUint64(buf, uint64(pos))
		buf = binary.LittleEndian.AppendUint64(buf, uint64(size))
		pos += size
	}
	for _, size := range levels {
		put(size)
	}
	buf = buf[:16+16*catLevels] // levels that are not there have zeros
	put(collection)
	return buf
}
