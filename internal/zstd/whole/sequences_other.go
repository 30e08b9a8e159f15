//go:build !amd64 || purego || twins

package whole

var hasLoop = false

// loop leaves all sequences to the loop in Go.
func (*run) loop() int { return notDecoded }

// loop is for processors that have one.
func (h *huffman) loop(dst, src []byte, streams *[4]codes, n, turns int) {}

func (h *huffman) double(k int) { h.doubleInGo(k) }

func (h *huffman) pairs(at, length int, firsts []uint8) { h.pairsInGo(at, length, firsts) }
