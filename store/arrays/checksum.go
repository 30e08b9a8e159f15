package arrays

import (
	"encoding/binary"
	"hash/crc32"
)

// sumBytes is the size of a checksum, little-endian behind the bytes that it is of.
const sumBytes = 4

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// checked returns the bytes before the checksum of a step, if they have it.
func checked(b []byte, s *decodeStep) ([]byte, error) {
	size := len(b) - sumBytes
	if size < 0 || s.size >= 0 && size != s.size {
		return nil, broken("", "%d bytes, %d needed", len(b), max(s.size, 0)+sumBytes)
	}
	if s.sum(b[:size]) != binary.LittleEndian.Uint32(b[size:]) {
		return nil, broken("", "the checksum does not match")
	}
	return b[:size], nil
}

// CRC32C returns the checksum that codecs of this name have.
func CRC32C(b []byte) uint32 { return crc32.Checksum(b, castagnoli) }

// fletcherRun is how many words are added up before a sum is reduced. The first sum then has less than
// 2^16 + 2^16 · 2^16 < 2^33, and the second less than 2^16 + 2^16 · 2^33 < 2^50.
const fletcherRun = 1 << 16

// fletcher32 returns the checksum of HDF5's filter of this name: Fletcher's, of words of 16 bits, big-endian, the last
// of them filled up with a zero byte. (The codec of numcodecs is the same.)
func fletcher32(b []byte) uint32 {
	first, second := uint64(0), uint64(0)
	for len(b) > 0 {
		run := b[:min(len(b), 2*fletcherRun)]
		b = b[len(run):]
		for ; len(run) >= 2; run = run[2:] {
			first += uint64(binary.BigEndian.Uint16(run))
			second += first
		}
		if len(run) > 0 { // only at the end, as a run has whole words
			first += uint64(run[0]) << 8
			second += first
		}
		first, second = fold(first), fold(second)
	}
	return uint32(second)<<16 | uint32(first)
}

// fold returns what HDF5 gets when it adds up the halves of a sum until they fit 16 bits: the remainder by 65535, but
// 65535 for a multiple of it that is not 0.
func fold(n uint64) uint64 {
	if n == 0 {
		return 0
	}
	return (n-1)%0xffff + 1
}
