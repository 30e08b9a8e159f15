package filter

import "encoding/binary"

// rleLength returns the decoded size of src in bytes; a cell has cell bytes. It reports false unless src holds whole
// runs, each of at least one cell. A run is a cell and, as a big-endian uint16, how often it is repeated.
func rleLength(src []byte, cell int) (n int64, ok bool) {
	if cell <= 0 || len(src)%(cell+2) != 0 {
		return 0, false
	}
	for i := cell; i < len(src); i += cell + 2 {
		run := binary.BigEndian.Uint16(src[i:])
		if run == 0 {
			return 0, false
		}
		n += int64(run)
	}
	return n * int64(cell), true
}

// rleDecode fills dst from src. len(dst) must be the result of rleLength.
func rleDecode(dst, src []byte, cell int) {
	for ; len(src) > 0; src = src[cell+2:] {
		size := int(binary.BigEndian.Uint16(src[cell:])) * cell
		run := dst[:size]
		copy(run, src[:cell])
		for done := cell; done < size; done *= 2 { // a run of n cells takes log2 n copies
			copy(run[done:], run[:done])
		}
		dst = dst[size:]
	}
}
