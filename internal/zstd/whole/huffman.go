package whole

import (
	"encoding/binary"
	"math/bits"
	"slices"

	"github.com/chaski-eo/chaski/internal/fse"
)

const (
	// lookBits is how many bits of a stream a look into the table takes. A code has codeBits at most, so each look
	// finds one, and mostly two: in differences of imagery, codes have 5.2 to 5.6 bits on average, and a look finds
	// 1.42 to 1.61 symbols by 11 bits, 1.60 to 1.78 by 12, and 1.68 to 1.85 by 13, whose table is 24 KiB.
	lookBits = 12
	// codeBits is the longest code (RFC 8878, 4.2.1).
	codeBits = 11
	// turnLooks is how many looks a turn of the loop takes, 4 * 12 of 64 bits. It can replace 56 at its start.
	turnLooks = 4
	// turnSymbols is the most symbols that a turn decodes.
	turnSymbols = 2 * turnLooks
	// turnBytes is how far back in a stream a turn moves at most. At its start it reads from 7 bytes before its word.
	turnBytes = turnLooks * lookBits / 8
	// manyTurns is how many turns there are between two looks at whether a stream ends.
	manyTurns = 8
	// rowSlack is how many entries the loops in assembly may read and write past those that they are for.
	rowSlack = 32
)

// looks is a table of what looks find. It is in two parts, because the bits that a look takes are what the next one
// waits for: a byte is there a cycle earlier than a wider entry, whose index is scaled.
//
// The loop in assembly has the offset of symbols.
type looks struct {
	// counts has the bits of the codes in its lowest 6 bits, and above them the number of symbols, 1 or 2.
	counts [1<<lookBits + rowSlack]uint8
	// symbols has the first symbol in its lowest 8 bits, and above them the second one, or 0.
	symbols [1<<lookBits + rowSlack]uint16
}

// one is what taken has of a symbol whose code has so many bits.
func one(length int) uint8 { return 1<<6 | uint8(length) }

// huffman is a table of Huffman codes.
type huffman struct {
	looks   looks
	weights [256]uint8 // of the symbols; a code of weight w has log+1-w bits, and 0 is none
	log     int        // the bits of the longest codes

	// seconds has at 1<<k, for each number of bits k that may be left behind a first symbol, what these are: 1<<k
	// entries of second symbols, or 0 where a code is longer than k. An entry of first and second symbol is the sum of
	// their entries.
	seconds looks
	sorted  [256]uint8 // the symbols, the longest codes first
}

// read reads a table (RFC 8878, 4.2.1), and returns how many bytes of code it takes.
func (h *huffman) read(code []byte) (size int, ok bool) {
	if len(code) < 2 {
		return 0, false
	}
	h.weights = [256]uint8{}
	size, count := int(code[0]), 0
	if size < 128 {
		size++
		if size > len(code) {
			return 0, false
		}
		count, ok = readWeights(&h.weights, code[1:size])
		return size, ok && h.build(count)
	}
	count = size - 127
	size = 1 + (count+1)/2
	if size > len(code) {
		return 0, false
	}
	for i, pair := range code[1:size] {
		h.weights[2*i], h.weights[2*i+1] = pair>>4, pair&15
	}
	return size, h.build(count)
}

// weightLog is the logarithm of the largest table for weights (RFC 8878, 4.2.1.2).
const weightLog = 6

// readWeights reads weights that are stored by finite state entropy, in turns from two states that read the bits of one
// stream from its end to its start (RFC 8878, 4.2.1.2). It returns how many there are. It refuses streams that do not
// end with the bits of a state.
func readWeights(to *[256]uint8, code []byte) (count int, ok bool) {
	var counts [256]int16
	symbols, size, ok := fse.Counts(counts[:], code)
	if !ok || size == len(code) || code[len(code)-1] == 0 {
		return 0, false
	}
	var states [1 << weightLog]fseEntry
	log, ok := build(states[:], codeWeights, counts[:symbols])
	// A table of one state takes no bits: the stream would be endless.
	if !ok || slices.Contains(counts[:symbols], 1<<log) {
		return 0, false
	}
	// The bits of the stream that are left, code having 127 bytes at most, and 8 bytes before them.
	var stream [8 + 128]byte
	left := 8*(8+copy(stream[8:], code[size:])) - bits.LeadingZeros8(code[len(code)-1]) - 1
	const before = 8 * 8
	word := func() uint64 { // begins with the next bits, 57 at least
		start := uint(left - 57)
		return binary.LittleEndian.Uint64(stream[start>>3&127:]) << (7 - start&7)
	}
	first := word()
	state, other := first>>(64-log), first<<log>>(64-log)
	for left -= 2 * log; left >= before && count < 254; {
		if left < before+8*weightLog {
			entry := states[state&(1<<weightLog-1)]
			to[count] = uint8(entry >> 40)
			count++
			if left == before && entry&7 > 0 {
				to[count] = uint8(states[other&(1<<weightLog-1)] >> 40)
				return count + 1, true
			}
			state, other = other, uint64(uint16(entry>>16))+word()>>1>>((63-entry&7)&63)
			left -= int(entry & 7)
			continue
		}
		next := word()
		for range 8 {
			entry := states[state&(1<<weightLog-1)]
			to[count&255] = uint8(entry >> 40)
			count++
			taken := entry & 7
			state, other = other, uint64(uint16(entry>>16))+next>>1>>((63-taken)&63)
			next <<= taken
			left -= int(taken)
		}
	}
	return 0, false
}

// build builds the table from the weights of the symbols but the last one. A code of weight w stands for 1<<(w-1)
// shares of 1<<log (RFC 8878, 4.2.1.1).
func (h *huffman) build(count int) bool {
	weights := &h.weights
	weights[count] = 0
	// In quarters, so a count does not wait for the one before.
	var quarters [4][16]uint8
	for i := range 64 {
		quarters[0][weights[i]&15]++
		quarters[1][weights[64+i]&15]++
		quarters[2][weights[128+i]&15]++
		quarters[3][weights[192+i]&15]++
	}
	var ranks [16]int // how many codes have a weight
	for weight := range ranks {
		for quarter := range quarters {
			ranks[weight] += int(quarters[quarter][weight])
		}
		if weight > codeBits && ranks[weight] > 0 {
			return false
		}
	}
	sum := 0
	for i, number := range ranks[1:] {
		sum += number << i
	}
	log := bits.Len(uint(sum))
	rest := 1<<log - sum // for the last symbol
	if sum == 0 || log > codeBits || rest&(rest-1) != 0 {
		return false
	}
	last := bits.Len(uint(rest))
	weights[count] = uint8(last)
	ranks[last]++
	if ranks[1] < 2 || ranks[1]&1 != 0 {
		return false
	}
	ranks[0]--
	quarters[count/64][0]--
	quarters[count/64][last]++
	// The places of the next symbols in sorted, by weight and quarter. Symbols without code come last.
	place := 0
	for weight := 1; weight <= log+1; weight++ {
		for quarter := range quarters {
			number := quarters[quarter][weight%(log+1)]
			quarters[quarter][weight%(log+1)] = uint8(place)
			place += int(number)
		}
	}
	for i := range uint8(64) {
		h.sort(&quarters[0], i, weights[i])
		h.sort(&quarters[1], 64+i, weights[64+i])
		h.sort(&quarters[2], 128+i, weights[128+i])
		h.sort(&quarters[3], 192+i, weights[192+i])
	}
	h.log = log
	h.fill(ranks[1:log+1], h.sorted[:len(h.sorted)-ranks[0]])
	return true
}

// sort puts a symbol into the place that the symbols of its weight have reached.
func (h *huffman) sort(places *[16]uint8, symbol, weight uint8) {
	place := places[weight&15]
	h.sorted[place] = symbol
	places[weight&15] = place + 1
}

// fill fills the table for the codes of sorted symbols: counts[0] symbols of len(counts) bits, counts[1] of a bit less,
// and so on. The longest codes are the lowest, as numbers of lookBits bits, and a symbol of n bits has the
// 1<<(lookBits-n) entries of all that may follow its code.
func (h *huffman) fill(counts []int, sorted []uint8) {
	longest := len(counts)
	shortest := 1
	for counts[longest-shortest] == 0 {
		shortest++
	}
	// With each bit more, an entry becomes two, and the symbols whose codes have that many bits take places that were
	// of longer codes, which are the first ones.
	h.seconds.counts[1], h.seconds.symbols[1] = 0, 0
	longer, rest := 1, sorted
	for width := 1; width <= lookBits-shortest; width++ {
		h.double(width)
		longer *= 2
		if width > longest {
			continue
		}
		number := counts[longest-width]
		longer -= number
		for i, symbol := range rest[len(rest)-number:] {
			h.seconds.counts[1<<width+longer+i], h.seconds.symbols[1<<width+longer+i] = one(width), uint16(symbol)<<8
		}
		rest = rest[:len(rest)-number]
	}
	start := 0
	for i, number := range counts {
		if number > 0 {
			h.pairs(start, longest-i, sorted[:number])
		}
		start += number << (lookBits - longest + i)
		sorted = sorted[number:]
	}
}

// doubleInGo makes the entries of seconds for k bits from those for a bit less.
func (h *huffman) doubleInGo(k int) {
	for i := 1 << k; i < 2<<k; i++ {
		h.seconds.counts[i], h.seconds.symbols[i] = h.seconds.counts[i/2], h.seconds.symbols[i/2]
	}
}

// pairsInGo makes the entries from at on, of first symbols whose codes have so many bits.
func (h *huffman) pairsInGo(at, length int, firsts []uint8) {
	behind := lookBits - length
	for _, symbol := range firsts {
		for i := range 1 << behind {
			h.looks.counts[at+i] = one(length) + h.seconds.counts[1<<behind+i]
			h.looks.symbols[at+i] = uint16(symbol) + h.seconds.symbols[1<<behind+i]
		}
		at += 1 << behind
	}
}

// codes is a stream of Huffman codes, which is read from its end to its start, and where its symbols go. The next
// codes are in the word at src[word:word+8] below its upper `used` bits. The word may begin before the stream.
//
// The loop in assembly has the offsets of the first fields.
type codes struct {
	word  int
	used  uint64
	out   int // where the next symbol goes
	safe  int // 24: turns of the loop may begin with out up to here
	end   int // of the symbols
	start int // of the stream
}

// open opens the stream of codes src[start:end], whose symbols go to out and up to limit.
func open(src []byte, start, end, out, limit int) (codes, bool) {
	// Words reach back over the 8 bytes before a stream, which the headers of frame, block and literals have.
	if start < 8 || end <= start || src[end-1] == 0 {
		return codes{}, false
	}
	stream := codes{word: end - 8, used: uint64(bits.LeadingZeros8(src[end-1])) + 1, start: start,
		out: out, end: limit}
	stream.settle()
	return stream, true
}

// settle moves on to the word in which fewer than 8 bits are used.
func (c *codes) settle() {
	c.word -= int(c.used >> 3)
	c.used &= 7
}

// decode fills dst with symbols by the codes of src[start:end], which are one stream, or four with the sizes of the
// first three before them (RFC 8878, 4.2.2). Each stream must have just the bits of its symbols.
func (h *huffman) decode(dst, src []byte, start, end int, four bool) bool {
	if !four {
		stream, ok := open(src, start, end, 0, len(dst))
		return ok && h.all(dst, src, &[4]codes{stream}, 1)
	}
	const sizes = 6
	part := (len(dst) + 3) / 4
	if end-start < sizes || 3*part > len(dst) {
		return false
	}
	var streams [4]codes
	pos := start + sizes
	for i := range streams {
		stop, limit := end, len(dst)
		if i < 3 {
			stop, limit = pos+int(binary.LittleEndian.Uint16(src[start+2*i:])), (i+1)*part
		}
		if stop > end {
			return false
		}
		var ok bool
		if streams[i], ok = open(src, pos, stop, i*part, limit); !ok {
			return false
		}
		pos = stop
	}
	return h.all(dst, src, &streams, 4)
}

// all decodes the first n streams.
func (h *huffman) all(dst, src []byte, streams *[4]codes, n int) bool {
	turns := manyTurns
	for going := n; hasLoop && going > 0; {
		// The streams that go on come first.
		busy := 0
		for i := range streams[:going] {
			stream := &streams[i]
			if stream.word < stream.start-8 {
				return false // more bits were used than there are
			}
			stream.safe = stream.end - turns*turnSymbols
			if stream.out <= stream.safe && stream.word > turns*turnBytes {
				streams[i], streams[busy] = streams[busy], streams[i]
				busy++
			}
		}
		if turns > 1 && busy < going {
			turns = 1 // until each stream is at its end
			continue
		}
		if going = busy; going > 0 {
			h.loop(dst, src, streams, going, turns)
		}
	}
	for i := range streams[:n] {
		if !h.finish(dst, src, &streams[i]) {
			return false
		}
	}
	return true
}

// finish decodes what is left of a stream, and says whether it had just the bits of its symbols.
func (h *huffman) finish(dst, src []byte, c *codes) bool {
	for c.out < c.end {
		if c.settle(); c.word < c.start-8 {
			return false
		}
		word := binary.LittleEndian.Uint64(src[c.word:]) << c.used
		taken, pair := h.looks.counts[word>>(64-lookBits)], h.looks.symbols[word>>(64-lookBits)]
		dst[c.out] = uint8(pair)
		c.out++
		if taken>>6 == 1 || c.out == c.end {
			c.used += uint64(h.log + 1 - int(h.weights[uint8(pair)]))
			continue
		}
		dst[c.out] = uint8(pair >> 8)
		c.out++
		c.used += uint64(taken & 63)
	}
	return 8*(c.word-c.start)+64 == int(c.used)
}
