package tortilla

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/store/taco/internal/model"
)

// HeaderSize is the size of the header, and so the smallest offset of anything else.
const HeaderSize = 200

// The magic numbers.
const (
	MagicTortilla = "#y"
	MagicTACO     = "WX"
)

// PartName returns the name of a part of a container in several: NAME.0003.part.tortilla of NAME.tortilla. Writers
// number parts from 0.
func PartName(whole string, number int) string {
	name, extension, _ := model.CutLast(whole, ".")
	return fmt.Sprintf("%s.%04d.part.%s", name, number, extension)
}

// span is a byte range.
type span = model.Span

// Header is the fixed first part of a container: magic number, FO, FL, DP, and for a TACO CO and CL.
type Header struct {
	TACO       bool
	Footer     span
	Partitions uint64 // number of files that the container is split into
	Collection span   // of a TACO
}

// ParseHeader parses the header of a container of size bytes. b has its first bytes.
func ParseHeader(b []byte, size int64) (Header, error) {
	var h Header
	bad := func(part string, off int64, format string, args ...any) (Header, error) {
		return h, fault.At(fault.Corrupt, "header "+part, off, format, args...)
	}
	if len(b) < 2 || string(b[:2]) != MagicTortilla && string(b[:2]) != MagicTACO {
		return bad("magic number", 0, "is neither that of a Tortilla nor of a TACO")
	}
	if len(b) < HeaderSize || size < HeaderSize {
		return bad("", 0, "%d bytes, %d are needed", min(int64(len(b)), size), HeaderSize)
	}
	h.TACO = string(b[:2]) == MagicTACO
	place := func(at int) span {
		return span{Off: int64(binary.LittleEndian.Uint64(b[at:])),
			Size: int64(binary.LittleEndian.Uint64(b[at+8:]))}
	}
	h.Footer = place(2)
	h.Partitions = binary.LittleEndian.Uint64(b[18:])
	if !h.Footer.In(HeaderSize, size) || h.Footer.Size == 0 {
		return bad("footer", 2, "%d bytes at %d in %d bytes", uint64(h.Footer.Size), uint64(h.Footer.Off), size)
	}
	if !h.TACO {
		return h, nil
	}
	h.Collection = place(26)
	if !h.Collection.In(HeaderSize, size) || h.Collection.Size == 0 {
		return bad("COLLECTION", 26, "%d bytes at %d in %d bytes", uint64(h.Collection.Size),
			uint64(h.Collection.Off), size)
	}
	return h, nil
}

// pointerKey is the key in the metadata of a table whose value is the place of the next table.
const pointerKey = "pointer"

// pointerPattern is OFFSETLENGTH(A, B), with or without the space.
var pointerPattern = regexp.MustCompile(`^OFFSETLENGTH\(\s*([0-9]+)\s*,\s*([0-9]+)\s*\)$`)

// parsePointer parses a pointer: OFFSETLENGTH(A, B), or NULL for the end of the chain (ok is false), bare or as a JSON
// string.
func parsePointer(text string) (next span, ok bool, err error) {
	s := strings.TrimSpace(text)
	if inner := ""; strings.HasPrefix(s, `"`) && json.Unmarshal([]byte(s), &inner) == nil {
		s = strings.TrimSpace(inner)
	}
	if strings.EqualFold(s, "NULL") {
		return span{}, false, nil
	}
	if place := pointerPattern.FindStringSubmatch(s); place != nil {
		off, err := strconv.ParseInt(place[1], 10, 64)
		size, err2 := strconv.ParseInt(place[2], 10, 64)
		if err == nil && err2 == nil {
			return span{Off: off, Size: size}, true, nil
		}
	}
	return span{}, false, fault.New(fault.Corrupt, "pointer", "%.100q is neither OFFSETLENGTH(A, B) nor NULL", text)
}
