// Package digest hashes records of numbers and strings with XXH3-128.
package digest

import (
	"bufio"
	"encoding/binary"
	"encoding/hex"

	"github.com/zeebo/xxh3"
)

// Digest is a hash that is written through a buffer of 8 KiB, because a Write for each number of 8 bytes is slow.
// Writing to it never fails.
type Digest struct {
	*bufio.Writer
	hash *xxh3.Hasher
}

// New returns a digest of no bytes.
func New() Digest {
	hash := xxh3.New()
	return Digest{bufio.NewWriterSize(hash, 1<<13), hash}
}

// Number adds a number as 8 little-endian bytes.
func (d Digest) Number(n uint64) {
	_, _ = d.Write(binary.LittleEndian.AppendUint64(d.AvailableBuffer(), n))
}

// Record adds the length of a string as a number, and the string, so "ab", "c" and "a", "bc" differ.
func (d Digest) Record(s []byte) {
	d.Number(uint64(len(s)))
	_, _ = d.Write(s)
}

// Sum returns the hash, big-endian as the author of XXH3 writes it.
func (d Digest) Sum() [16]byte {
	_ = d.Flush()
	return d.hash.Sum128().Bytes()
}

// Hex returns the hash as 32 hexadecimal digits.
func (d Digest) Hex() string {
	sum := d.Sum()
	return hex.EncodeToString(sum[:])
}
