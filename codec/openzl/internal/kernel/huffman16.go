package kernel

// MaxHuffman16Bits is the longest code of a two-byte symbol.
const MaxHuffman16Bits = 20

// BuildHuffman16 builds a table of 1<<log entries, indexed by the next log bits. Each entry has the symbol in
// its upper half and the length of its code in its lower half. log is HuffmanLog of weights.
func BuildHuffman16(table []uint32, weights []byte, log int) {
	var start [MaxHuffman16Bits + 2]int
	codeStarts(start[:], weights)
	for s, w := range weights {
		if w == 0 {
			continue
		}
		at, n := start[w], 1<<(w-1)
		start[w] += n
		e := uint32(s)<<16 | uint32(log+1-int(w))
		t := table[at : at+n]
		for i := range t {
			t[i] = e
		}
	}
}

// DecodeHuffman16 fills dst with two-byte symbols from one stream. It reports whether that takes exactly the
// bits of the stream. table has 1<<log entries, log >= 1.
func DecodeHuffman16(dst, src []byte, table []uint32, log int) bool {
	var r backBits
	if !r.open(src) {
		return false
	}
	shift := 64 - uint(log)
	for len(dst) >= 4 && r.left >= 2*MaxHuffman16Bits {
		w := r.peek()
		e := table[w>>(shift&63)]
		f := table[w<<(e&63)>>(shift&63)]
		r.left -= int(e&63) + int(f&63)
		dst[0], dst[1], dst[2], dst[3] = byte(e>>16), byte(e>>24), byte(f>>16), byte(f>>24)
		dst = dst[4:]
	}
	for i := 0; i+2 <= len(dst); i += 2 {
		e := table[r.peek()>>(shift&63)]
		if r.left -= int(e & 63); r.left < 0 {
			return false
		}
		dst[i], dst[i+1] = byte(e>>16), byte(e>>24)
	}
	return r.left == 0
}
