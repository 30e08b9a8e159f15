package tiledb

import (
	"encoding/binary"
	"fmt"
	"strings"
)

// A string dimension has the first eight bytes of each string as coordinate, filled up with zeros: they have the order
// of the strings, except that strings which begin with the same eight bytes have the same coordinate. Boxes and R-trees
// are compared by these; what orders cells, or makes one the same as another, compares the whole strings.

// textCoord returns the coordinate of a string.
func textCoord(s []byte) Coord {
	var head [8]byte
	copy(head[:], s)
	return Coord(binary.BigEndian.Uint64(head[:]))
}

// textBound is the longest string that bounds a box: a string of eight bytes cannot be told apart from longer ones.
const textBound = 7

// parseTextCoord parses a bound of a string dimension: at most seven bytes, or *, which stands for the last string.
func parseTextCoord(s string) (Coord, error) {
	switch {
	case s == "*":
		return StringASCII.largest(), nil
	case len(s) > textBound:
		return 0, fmt.Errorf("%q has %d bytes: a bound of a dimension of strings has at most %d", s, len(s), textBound)
	}
	return textCoord([]byte(s)), nil
}

// formatTextCoord is the inverse of parseTextCoord.
func formatTextCoord(c Coord) string {
	if c == StringASCII.largest() {
		return "*"
	}
	return strings.TrimRight(string(binary.BigEndian.AppendUint64(nil, uint64(c))), "\x00")
}
