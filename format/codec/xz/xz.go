package xz

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"hash/crc32"
	"hash/crc64"

	"github.com/chaski-eo/chaski/fault"
)

// Filters of the xz format (The .xz File Format 1.1, section 5.3).
const (
	filterDelta = 0x03
	filterLZMA2 = 0x21
)

// Checks of the xz format (section 2.1.1.2).
const (
	checkNone   = 0
	checkCRC32  = 1
	checkCRC64  = 4
	checkSHA256 = 10
)

// checkSizes are the sizes of checks in bytes by their number.
var checkSizes = [16]int{0, 4, 4, 4, 8, 8, 8, 16, 16, 16, 32, 32, 32, 64, 64, 64}

var crc64Table = crc64.MakeTable(crc64.ECMA)

func corrupt(format string, args ...any) error {
	return fault.New(fault.Corrupt, "lzma", format, args...)
}

func unsupported(format string, args ...any) error {
	return fault.New(fault.Unsupported, "lzma", format, args...)
}

// Decode fills dst. A stream may hold more, because some writers pad the last strip. Checks are verified of blocks that
// end in dst.
func Decode(dst, src []byte) error {
	const header = 12
	magic := []byte("\xfd7zXZ\x00\x00") // and the first flag, which is 0
	if len(src) < header || !bytes.HasPrefix(src, magic) || src[7] > 15 ||
		crc32.ChecksumIEEE(src[6:8]) != binary.LittleEndian.Uint32(src[8:]) {
		return corrupt("not the header of an xz stream")
	}
	check, pos := int(src[7]), header
	for out := 0; out < len(dst); {
		size, distance, err := blockHeader(src[pos:])
		if err != nil {
			return err
		}
		pos += size
		count, used, ended, err := fill(dst[out:], src[pos:])
		if err != nil {
			return corrupt("after %d of %d bytes: %v", out+count, len(dst), err)
		}
		block := dst[out : out+count]
		if distance > 0 {
			undoDelta(block, distance)
		}
		if out += count; !ended {
			break // the samples are complete, and the block holds more
		}
		if pos += (used + 3) &^ 3; len(src) < pos+checkSizes[check] {
			return corrupt("the check of a block is missing")
		}
		if err := verify(check, block, src[pos:]); err != nil {
			return err
		}
		if pos += checkSizes[check]; count == 0 && out < len(dst) {
			return corrupt("a block without content, after %d of %d bytes", out, len(dst))
		}
	}
	return nil
}

// blockHeader reads the header of a block, whose size it returns, and the distance of its delta filter, 0 if it has
// none.
func blockHeader(b []byte) (size, distance int, err error) {
	if len(b) == 0 || b[0] == 0 { // the index
		return 0, 0, corrupt("the blocks end early")
	}
	size = (int(b[0]) + 1) * 4
	if len(b) < size || crc32.ChecksumIEEE(b[:size-4]) != binary.LittleEndian.Uint32(b[size-4:]) {
		return 0, 0, corrupt("the header of a block is damaged")
	}
	flags, b := b[1], b[2:size-4]
	if flags&0x3c != 0 {
		return 0, 0, unsupported("flags %#x of a block", flags)
	}
	field := func() uint64 {
		number, length := binary.Uvarint(b)
		if length <= 0 {
			err, length = corrupt("the header of a block ends early"), 0
		}
		b = b[length:]
		return number
	}
	for bit := byte(0x40); bit != 0; bit <<= 1 { // sizes, compressed and not, which LZMA2 does not need
		if flags&bit != 0 {
			field()
		}
	}
	for last := flags & 3; ; last-- {
		id, n := field(), field()
		if err != nil || n > uint64(len(b)) {
			return 0, 0, corrupt("the header of a block ends early")
		}
		properties := b[:n]
		b = b[n:]
		switch {
		case id == filterLZMA2 && last == 0 && n == 1:
			return size, distance, nil // the property is the size of the dictionary, which is dst
		case id == filterDelta && last > 0 && n == 1 && distance == 0:
			distance = int(properties[0]) + 1
		default:
			return 0, 0, unsupported("filter %#x of %d", id, flags&3+1)
		}
		if last == 0 {
			return 0, 0, corrupt("a block without LZMA2")
		}
	}
}

// undoDelta adds to each byte the one that lies distance before it.
func undoDelta(b []byte, distance int) {
	for first := range b[:min(distance, len(b))] {
		// The sum stays in a register, so it does not wait for the memory of the one before.
		sum := byte(0)
		for i := first; i < len(b); i += distance {
			sum += b[i]
			b[i] = sum
		}
	}
}

// verify compares the check of a block, which is followed by other bytes.
func verify(check int, block, want []byte) error {
	same := true
	switch check {
	case checkCRC32:
		same = crc32.ChecksumIEEE(block) == binary.LittleEndian.Uint32(want)
	case checkCRC64:
		same = crc64.Checksum(block, crc64Table) == binary.LittleEndian.Uint64(want)
	case checkSHA256:
		same = sha256.Sum256(block) == [sha256.Size]byte(want)
	case checkNone:
	default:
		return unsupported("check %d", check)
	}
	if !same {
		return corrupt("the content does not have the checksum of its block")
	}
	return nil
}
