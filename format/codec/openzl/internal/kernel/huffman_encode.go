package kernel

import (
	"encoding/binary"
	"math/bits"
	"slices"
)

// Histogram counts the bytes of src.
func Histogram(src []byte) (h [256]uint32) {
	// Four tables in turn, because an increment would otherwise wait for the increment of an equal neighbour.
	var a, b, c [256]uint32
	for len(src) >= 4 {
		h[src[0]]++
		a[src[1]]++
		b[src[2]]++
		c[src[3]]++
		src = src[4:]
	}
	for _, value := range src {
		h[value]++
	}
	for i := range h {
		h[i] += a[i] + b[i] + c[i]
	}
	return h
}

// HuffmanWeights returns the weights (see HuffmanTable.Build) of the best code of at most limit bits for
// symbols that occur counts times, the number of symbols up to the last that occurs, and the bits that all
// symbols take. At least two symbols must occur, and at most 1<<limit.
func HuffmanWeights(counts *[256]uint32, limit int) (weights [256]byte, used int, total uint64) {
	lengths := codeLengths(counts, limit)
	longest := slices.Max(lengths[:])
	for symbol, length := range lengths {
		if length > 0 {
			weights[symbol] = longest + 1 - length
			used = symbol + 1
			total += uint64(length) * uint64(counts[symbol])
		}
	}
	return weights, used, total
}

// codeLengths is the package-merge algorithm (Larmore and Hirschberg 1990). Every round merges the symbols
// with pairs of the round before. The cheapest items of the last round are taken; each symbol gets one bit
// for every round that it is taken from.
func codeLengths(counts *[256]uint32, limit int) (lengths [256]uint8) {
	var symbols []int
	for symbol, count := range counts {
		if count > 0 {
			symbols = append(symbols, symbol)
		}
	}
	slices.SortStableFunc(symbols, func(a, b int) int { return int(counts[a]) - int(counts[b]) })
	type item struct {
		cost uint64
		leaf bool
	}
	rounds := make([][]item, limit)
	var before []item
	for r := range rounds {
		round := make([]item, 0, 2*len(symbols))
		next, pair := 0, 0
		for next < len(symbols) || pair+1 < len(before) {
			cost := ^uint64(0)
			if pair+1 < len(before) {
				cost = before[pair].cost + before[pair+1].cost
			}
			if next < len(symbols) && uint64(counts[symbols[next]]) <= cost {
				round = append(round, item{uint64(counts[symbols[next]]), true})
				next++
			} else {
				round = append(round, item{cost, false})
				pair += 2
			}
		}
		rounds[r], before = round, round
	}
	take := 2*len(symbols) - 2
	for r := limit - 1; r >= 0; r-- {
		leaves := 0
		for _, entry := range rounds[r][:take] {
			if entry.leaf {
				lengths[symbols[leaves]]++
				leaves++
			}
		}
		take = 2 * (take - leaves)
	}
	return lengths
}

// symbolCode is the code of one symbol.
type symbolCode struct {
	bits uint16
	len  uint8
}

// huffmanCodes returns the codes that HuffmanTable decodes.
func huffmanCodes(weights []byte) (codes [256]symbolCode) {
	log, _ := HuffmanLog(weights, MaxHuffmanBits)
	var start [MaxHuffmanBits + 2]int
	codeStarts(start[:], weights)
	for symbol, weight := range weights {
		if weight > 0 {
			codes[symbol] = symbolCode{uint16(start[weight] >> (weight - 1)), uint8(log + 1 - int(weight))}
			start[weight] += 1 << (weight - 1)
		}
	}
	return codes
}

// AppendHuffman4 codes src as four streams and appends them to dst in the form that HuffmanTable.Decode4
// reads. It reports whether their sizes fit. src has at least 6 bytes and only symbols that have a weight.
func AppendHuffman4(dst, src, weights []byte) ([]byte, bool) {
	codes := huffmanCodes(weights)
	sizes := len(dst)
	dst = append(dst, 0, 0, 0, 0, 0, 0)
	quarter := (len(src) + 3) / 4
	for i := range 4 {
		start := len(dst)
		dst = appendHuffman(dst, src[i*quarter:min((i+1)*quarter, len(src))], &codes)
		size := len(dst) - start
		if i < 3 {
			if size > 1<<16-1 {
				return dst, false
			}
			binary.LittleEndian.PutUint16(dst[sizes+2*i:], uint16(size))
		}
	}
	return dst, true
}

// AppendHuffman1 codes src as one stream and appends it to dst in the form that HuffmanTable.Decode1 reads.
// src has only symbols that have a weight.
func AppendHuffman1(dst, src, weights []byte) []byte {
	codes := huffmanCodes(weights)
	return appendHuffman(dst, src, &codes)
}

func appendHuffman(dst, src []byte, codes *[256]symbolCode) []byte {
	var writer bitWriter
	writer.dst = slices.Grow(dst, len(src)*MaxHuffmanBits/8+16)
	// From the last symbol to the first, because the decoder reads the bits from the end.
	for len(src) >= 4 {
		end := len(src)
		a, b, c, d := codes[src[end-1]], codes[src[end-2]], codes[src[end-3]], codes[src[end-4]]
		writer.put(uint64(a.bits), uint(a.len))
		writer.put(uint64(b.bits), uint(b.len))
		writer.put(uint64(c.bits), uint(c.len))
		writer.put(uint64(d.bits), uint(d.len))
		writer.flush()
		src = src[:end-4]
	}
	for i := len(src) - 1; i >= 0; i-- {
		code := codes[src[i]]
		writer.put(uint64(code.bits), uint(code.len))
	}
	return writer.close()
}

// bitWriter writes numbers, lowest bit first, for backBits to read from the end.
type bitWriter struct {
	dst  []byte
	acc  uint64
	bits uint // bits in acc
}

// put adds n bits, with nothing above them. Between two calls of flush no more than 56 bits fit.
func (w *bitWriter) put(v uint64, n uint) {
	w.acc |= v << (w.bits & 63)
	w.bits += n
}

// flush writes whole bytes out.
func (w *bitWriter) flush() {
	whole := w.bits >> 3
	// Eight bytes are appended and the surplus cut off, because a loop over bytes would be slower.
	w.dst = binary.LittleEndian.AppendUint64(w.dst, w.acc)
	w.dst = w.dst[:uint(len(w.dst))-8+whole]
	w.acc >>= whole * 8 & 63
	w.bits &= 7
}

// close writes the end mark and the remaining bits.
func (w *bitWriter) close() []byte {
	w.flush()
	w.put(1, 1)
	w.bits = (w.bits + 7) &^ 7
	w.flush()
	return w.dst
}

// BitsFor returns how many bits hold every number of width bytes in src, at least 1.
func BitsFor(src []byte, width int) int {
	var total uint64
	for len(src) >= 8 {
		total |= binary.LittleEndian.Uint64(src)
		src = src[8:]
	}
	for i, value := range src {
		total |= uint64(value) << (8 * (i % 8))
	}
	for span := 64; span > 8*width; span >>= 1 {
		total |= total >> (span / 2)
		total &= 1<<(span/2) - 1
	}
	return max(1, bits.Len64(total))
}
