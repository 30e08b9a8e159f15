package kernel

import (
	"encoding/binary"
	"math/bits"
)

// Limits of FSE tables.
const (
	MinFSELog = 5
	MaxFSELog = 12
)

// FSETable decodes byte symbols with finite state entropy.
type FSETable struct {
	t   [1 << MaxFSELog]fseState
	log int
}

// fseState is one state: its symbol, how many bits to read, and what to add to them for the next state.
// mask has that many ones; it is stored, because a load is cheaper than a shift.
type fseState struct {
	base, mask uint16
	bits, sym  uint8
	_          [2]uint8
}

// Log returns the logarithm of the number of states.
func (f *FSETable) Log() int { return f.log }

// Build builds the table from the counts of the symbols, where -1 means "less than one". It reports whether
// they are valid: at least two, at most 256, with a sum that is a power of two within the limits.
func (f *FSETable) Build(norm []int16) bool {
	if len(norm) < 2 || len(norm) > 256 {
		return false
	}
	sum := 0
	for _, count := range norm {
		if count < -1 {
			return false
		}
		sum += max(int(count), -int(count))
	}
	if sum < 1<<MinFSELog || sum > 1<<MaxFSELog || sum&(sum-1) != 0 {
		return false
	}
	f.log = bits.Len(uint(sum)) - 1
	var next [256]uint32
	var symbols [1 << MaxFSELog]uint8 // of each state
	high := sum - 1                   // symbols of probability below one go from here downwards
	for symbol, count := range norm {
		next[symbol] = uint32(count)
		if count == -1 {
			symbols[high] = uint8(symbol)
			high--
			next[symbol] = 1
		}
	}
	step, mask := sum>>1+sum>>3+3, (sum-1)&(len(symbols)-1)
	pos := 0
	for symbol, count := range norm {
		// If all symbols have probabilities of one or more, all positions are free: the test for it can
		// be left out.
		if high == sum-1 {
			for range int(count) {
				symbols[pos&mask] = uint8(symbol)
				pos += step
			}
			continue
		}
		for range int(count) {
			symbols[pos] = uint8(symbol)
			for pos = (pos + step) & mask; pos > high; {
				pos = (pos + step) & mask
			}
		}
	}
	f.states(symbols[:sum], &next)
	return true
}

// statesGo fills the table for the symbols of its 1<<f.log states. next holds the first count of each
// symbol.
func (f *FSETable) statesGo(symbols []uint8, next *[256]uint32) {
	for i, symbol := range symbols {
		state := next[symbol]
		next[symbol] = state + 1
		width := uint32(f.log) + 1 - uint32(bits.Len32(state))
		base := uint16(state<<(width&31) - uint32(len(symbols)))
		f.t[i] = fseState{base: base, mask: 1<<(width&31) - 1, bits: uint8(width), sym: symbol}
	}
}

// Decode fills the front of dst from src, which was written with 2 or 4 interleaved states. It returns the
// number of symbols, and whether they take exactly the bits of src and fit in dst.
func (f *FSETable) Decode(dst, src []byte, states int) (int, bool) {
	var reader backBits
	if !reader.open(src) {
		return 0, false
	}
	var state [4]uint64
	for i := range states {
		state[i] = reader.read(f.log)
	}
	if reader.bits < 0 {
		return 0, false
	}
	done := 0
	if states == 4 {
		done = f.decode4(dst, &reader, &state)
	} else {
		done = f.decode2(dst, &reader, &state)
	}
	mask := states - 1
	i := done
	for ; i < len(dst) && reader.bits > 0; i++ {
		entry := &f.t[state[i&mask]&(1<<MaxFSELog-1)]
		dst[i] = entry.sym
		state[i&mask] = uint64(entry.base) + reader.read(int(entry.bits))
	}
	if reader.bits != 0 {
		return 0, false
	}
	// At the end of the bits, a state continues only if its next state needs none. The first state that
	// would need some, and then the last symbols of the other states, end the stream.
	for i < len(dst) {
		entry := &f.t[state[i&mask]&(1<<MaxFSELog-1)]
		dst[i] = entry.sym
		state[i&mask] = uint64(entry.base)
		i++
		if entry.bits != 0 {
			break
		}
	}
	if len(dst)-i < states-1 {
		return 0, false
	}
	for end := i + states - 1; i < end; i++ {
		dst[i] = f.t[state[i&mask]&(1<<MaxFSELog-1)].sym
	}
	return i, true
}

// decode4Go decodes four symbols from each word, as long as bits are left behind them: four states take at most 48 of
// the 57 bits, and less than one where symbols are likely, so hundreds may come from the first word. It returns
// the number of symbols, a multiple of four.
func (f *FSETable) decode4Go(dst []byte, reader *backBits, states *[4]uint64) int {
	const mask = 1<<MaxFSELog - 1
	table, src, left := &f.t, reader.src, reader.bits
	a, b, c, d := states[0], states[1], states[2], states[3]
	i := 0
	for ; len(src) >= 8 && i+4 <= len(dst); i += 4 {
		end := max((left+7)>>3, 8)
		word := binary.LittleEndian.Uint64(src[end-8:])
		ea, eb, ec, ed := &table[a&mask], &table[b&mask], &table[c&mask], &table[d&mask]
		na := 64 - (8*end - left) - int(ea.bits) // bits of word that are left once a has its bits
		nb := na - int(eb.bits)
		nc := nb - int(ec.bits)
		nd := nc - int(ed.bits)
		if nd <= 0 {
			break
		}
		binary.LittleEndian.PutUint32(dst[i:i+4],
			uint32(ea.sym)|uint32(eb.sym)<<8|uint32(ec.sym)<<16|uint32(ed.sym)<<24)
		a = uint64(ea.base) + word>>(na&63)&uint64(ea.mask)
		b = uint64(eb.base) + word>>(nb&63)&uint64(eb.mask)
		c = uint64(ec.base) + word>>(nc&63)&uint64(ec.mask)
		d = uint64(ed.base) + word>>(nd&63)&uint64(ed.mask)
		left = 8*end - 64 + nd
	}
	reader.bits, *states = left, [4]uint64{a, b, c, d}
	return i
}

// decode2 is decode4Go for two states.
func (f *FSETable) decode2(dst []byte, reader *backBits, states *[4]uint64) int {
	const mask = 1<<MaxFSELog - 1
	table, src, left := &f.t, reader.src, reader.bits
	a, b := states[0], states[1]
	i := 0
	for ; len(src) >= 8 && i+4 <= len(dst); i += 4 {
		end := max((left+7)>>3, 8)
		word := binary.LittleEndian.Uint64(src[end-8:])
		ea, eb := &table[a&mask], &table[b&mask]
		unread := 64 - (8*end - left) - int(ea.bits)
		a1 := uint64(ea.base) + word>>(unread&63)&uint64(ea.mask)
		unread -= int(eb.bits)
		b1 := uint64(eb.base) + word>>(unread&63)&uint64(eb.mask)
		ec, ed := &table[a1&mask], &table[b1&mask]
		unread -= int(ec.bits)
		a2 := uint64(ec.base) + word>>(unread&63)&uint64(ec.mask)
		unread -= int(ed.bits)
		if unread <= 0 {
			break
		}
		a, b = a2, uint64(ed.base)+word>>(unread&63)&uint64(ed.mask)
		binary.LittleEndian.PutUint32(dst[i:i+4],
			uint32(ea.sym)|uint32(eb.sym)<<8|uint32(ec.sym)<<16|uint32(ed.sym)<<24)
		left = 8*end - 64 + unread
	}
	reader.bits, states[0], states[1] = left, a, b
	return i
}
