package geozl

import (
	"encoding/binary"

	"github.com/chaski-eo/chaski/fault"
)

// Parts of a comment with coefficients: magic, version, number of vectors, then each vector after its length.
const (
	coefficientsMagic   = "GZC1"
	coefficientsVersion = 1
	coefficientsHead    = len(coefficientsMagic) + 2
)

// Coefficients returns the vectors of integers that the comment of a frame holds (openzl.Info.Comment), or nil if
// the comment is missing or another one. Their meaning is up to writer and reader. A comment that begins like
// coefficients but is malformed is fault.Corrupt.
func Coefficients(comment []byte) ([][]int32, error) {
	if len(comment) < len(coefficientsMagic) || string(comment[:len(coefficientsMagic)]) != coefficientsMagic {
		return nil, nil
	}
	bad := func(off int, format string, args ...any) ([][]int32, error) {
		return nil, fault.New(fault.Corrupt, "coefficients", int64(off), format, args...)
	}
	if len(comment) < coefficientsHead || comment[4] != coefficientsVersion || comment[5] == 0 {
		return bad(0, "header % x", comment[:min(len(comment), coefficientsHead)])
	}
	vectors := make([][]int32, 0, comment[5])
	pos := coefficientsHead
	for range comment[5] {
		if len(comment)-pos < 4 {
			return bad(pos, "vector %d is missing", len(vectors))
		}
		n := uint64(binary.LittleEndian.Uint32(comment[pos:]))
		pos += 4
		if n == 0 || 4*n > uint64(len(comment)-pos) {
			return bad(pos-4, "vector of %d numbers in %d bytes", n, len(comment)-pos)
		}
		v := make([]int32, n)
		for i := range v {
			v[i] = int32(binary.LittleEndian.Uint32(comment[pos+4*i:]))
		}
		vectors = append(vectors, v)
		pos += 4 * len(v)
	}
	if pos < len(comment) {
		return bad(pos, "%d bytes after the last vector", len(comment)-pos)
	}
	return vectors, nil
}
