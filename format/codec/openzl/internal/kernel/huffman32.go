package kernel

import "encoding/binary"

// Lanes is the number of bit streams that DecodeHuffman32 reads in turn.
const Lanes = 32

// HuffmanLanes is where 32 interleaved streams stand: what each of them begins with, and down to
// which place of the words that they share each of them takes more. States are bits, left-aligned.
type HuffmanLanes struct {
	State [Lanes]uint32
	Used  [Lanes]uint32 // bits of State that hold nothing, at most 32
	Floor [Lanes]uint32
}

// DecodeHuffman32 fills dst with symbols of width bytes (1 or 2), from the lanes in turn: one whose
// state has 16 bits or fewer takes the two bytes before those that were taken last, from the end of
// words on. It reports whether that takes exactly the bits there are. table has 1<<log entries as
// BuildHuffman16 makes them, 1 <= log <= 16; lanes is used up.
func DecodeHuffman32(dst, words []byte, table []uint32, log, width int, lanes *HuffmanLanes) bool {
	shift := 32 - uint(log)
	pos := len(words)
	for len(dst) > 0 {
		for i := range lanes.State {
			if len(dst) < width {
				break
			}
			entry := table[lanes.State[i]>>(shift&31)]
			dst[0] = byte(entry >> 16)
			if width == 2 {
				dst[1] = byte(entry >> 24)
			}
			dst = dst[width:]
			lanes.State[i] <<= entry & 31
			used := lanes.Used[i] + entry&31
			if used > 16 && uint64(pos) > uint64(lanes.Floor[i])+1 {
				used -= 16
				pos -= 2
				lanes.State[i] |= uint32(binary.LittleEndian.Uint16(words[pos:])) << used
			}
			lanes.Used[i] = used
		}
		if len(dst) < width {
			break
		}
	}
	for _, unused := range lanes.Used {
		if unused != 32 {
			return false
		}
	}
	return pos == 0
}
