//go:build !amd64 || purego || twins

package kernel

// hasLoops says that there are no other loops than those in Go.
var hasLoops = false

var pivcoLoops = PivcoGo

func (h *HuffmanTable) four5(out *[4][]byte, r *[4]backBits) int { return h.four5Go(out, r) }

func (f *FSETable) decode4(dst []byte, r *backBits, s *[4]uint64) int { return f.decode4Go(dst, r, s) }

func (f *fieldState) sequences(dst []byte, s *FieldSequences) { f.sequencesGo(dst, s) }

func (q *Quantizer) pairs(dst, codes, extra []byte) (done, pos int) {
	return q.pairsGo(dst, codes, extra)
}

func (h *HuffmanTable) quadRounds(s *[4]*quadState, rounds int) { h.quadRoundsGo(s, rounds) }

func (f *FSETable) states(symbols []uint8, next *[256]uint32) { f.statesGo(symbols, next) }

func putAhead(to, from []uint64, add uint64) { putAheadGo(to, from, add) }

func putLooks(to, from []uint64, add uint64) { putLooksGo(to, from, add) }

func pivcoMerge(out, zeros, ones, m []byte) { pivcoMergeGo(out, zeros, ones, m) }

func pivcoFill(out, in, m []byte, v byte, invert uint64) { pivcoFillGo(out, in, m, v, invert) }

func pivcoFlat(out, m []byte, depth int, symbols []byte) { pivcoFlatGo(out, m, depth, symbols) }

func planarZigzagRow(_, _, _ []byte, _ int) bool { return false }

func union(block []byte) uint64 { return unionGo(block) }

func below(block []byte, width int, mask uint64) int { return belowGo(block, width, mask) }

func above(masks *aboveMasks, block []byte, width int, mask uint64) {
	aboveGo(masks, block, width, mask)
}

func pack(dst, block []byte, lowest *laneMasks, nbits, width int) {
	packGo(dst, block, lowest, nbits, width)
}
