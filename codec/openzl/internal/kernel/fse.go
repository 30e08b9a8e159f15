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
	for _, n := range norm {
		if n < -1 {
			return false
		}
		sum += max(int(n), -int(n))
	}
	if sum < 1<<MinFSELog || sum > 1<<MaxFSELog || sum&(sum-1) != 0 {
		return false
	}
	f.log = bits.Len(uint(sum)) - 1
	var next [256]uint32
	var symbols [1 << MaxFSELog]uint8 // of each state
	high := sum - 1                   // symbols of probability below one go from here downwards
	for s, n := range norm {
		next[s] = uint32(n)
		if n == -1 {
			symbols[high] = uint8(s)
			high--
			next[s] = 1
		}
	}
	step, mask := sum>>1+sum>>3+3, (sum-1)&(len(symbols)-1)
	pos := 0
	for s, n := range norm {
		// Without symbols of probability below one no position is taken, so that the test for it can be
		// left out.
		if high == sum-1 {
			for range int(n) {
				symbols[pos&mask] = uint8(s)
				pos += step
			}
			continue
		}
		for range int(n) {
			symbols[pos] = uint8(s)
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
	for i, s := range symbols {
		x := next[s]
		next[s] = x + 1
		n := uint32(f.log) + 1 - uint32(bits.Len32(x))
		f.t[i] = fseState{base: uint16(x<<(n&31) - uint32(len(symbols))), mask: 1<<(n&31) - 1, bits: uint8(n), sym: s}
	}
}

// Decode fills the front of dst from src, which was written with 2 or 4 interleaved states. It returns the
// number of symbols, and whether they take exactly the bits of src and fit in dst.
func (f *FSETable) Decode(dst, src []byte, states int) (int, bool) {
	var r backBits
	if !r.open(src) {
		return 0, false
	}
	var s [4]uint64
	for i := range states {
		s[i] = r.read(f.log)
	}
	if r.left < 0 {
		return 0, false
	}
	done := 0
	if states == 4 {
		done = f.decode4(dst, &r, &s)
	} else {
		done = f.decode2(dst, &r, &s)
	}
	mask := states - 1
	i := done
	for ; i < len(dst) && r.left > 0; i++ {
		e := &f.t[s[i&mask]&(1<<MaxFSELog-1)]
		dst[i] = e.sym
		s[i&mask] = uint64(e.base) + r.read(int(e.bits))
	}
	if r.left != 0 {
		return 0, false
	}
	// Without bits left, a state continues only if its next state needs none. The first state that would
	// need some, and then the last symbols of the other states, end the stream.
	for i < len(dst) {
		e := &f.t[s[i&mask]&(1<<MaxFSELog-1)]
		dst[i] = e.sym
		s[i&mask] = uint64(e.base)
		i++
		if e.bits != 0 {
			break
		}
	}
	if len(dst)-i < states-1 {
		return 0, false
	}
	for end := i + states - 1; i < end; i++ {
		dst[i] = f.t[s[i&mask]&(1<<MaxFSELog-1)].sym
	}
	return i, true
}

// decode4Go decodes four symbols from each word, as long as bits are left behind them: four states take at most 48 of
// the 57 bits, and less than one where symbols are likely, so that hundreds may come from the first word. It returns
// the number of symbols, a multiple of four.
func (f *FSETable) decode4Go(dst []byte, r *backBits, s *[4]uint64) int {
	const mask = 1<<MaxFSELog - 1
	t, src, left := &f.t, r.src, r.left
	a, b, c, d := s[0], s[1], s[2], s[3]
	i := 0
	for ; len(src) >= 8 && i+4 <= len(dst); i += 4 {
		end := max((left+7)>>3, 8)
		w := binary.LittleEndian.Uint64(src[end-8:])
		ea, eb, ec, ed := &t[a&mask], &t[b&mask], &t[c&mask], &t[d&mask]
		na := 64 - (8*end - left) - int(ea.bits) // bits of w that are left once a has its bits
		nb := na - int(eb.bits)
		nc := nb - int(ec.bits)
		nd := nc - int(ed.bits)
		if nd <= 0 {
			break
		}
		binary.LittleEndian.PutUint32(dst[i:i+4],
			uint32(ea.sym)|uint32(eb.sym)<<8|uint32(ec.sym)<<16|uint32(ed.sym)<<24)
		a = uint64(ea.base) + w>>(na&63)&uint64(ea.mask)
		b = uint64(eb.base) + w>>(nb&63)&uint64(eb.mask)
		c = uint64(ec.base) + w>>(nc&63)&uint64(ec.mask)
		d = uint64(ed.base) + w>>(nd&63)&uint64(ed.mask)
		left = 8*end - 64 + nd
	}
	r.left, *s = left, [4]uint64{a, b, c, d}
	return i
}

// decode2 is decode4Go for two states.
func (f *FSETable) decode2(dst []byte, r *backBits, s *[4]uint64) int {
	const mask = 1<<MaxFSELog - 1
	t, src, left := &f.t, r.src, r.left
	a, b := s[0], s[1]
	i := 0
	for ; len(src) >= 8 && i+4 <= len(dst); i += 4 {
		end := max((left+7)>>3, 8)
		w := binary.LittleEndian.Uint64(src[end-8:])
		ea, eb := &t[a&mask], &t[b&mask]
		n := 64 - (8*end - left) - int(ea.bits)
		a1 := uint64(ea.base) + w>>(n&63)&uint64(ea.mask)
		n -= int(eb.bits)
		b1 := uint64(eb.base) + w>>(n&63)&uint64(eb.mask)
		ec, ed := &t[a1&mask], &t[b1&mask]
		n -= int(ec.bits)
		a2 := uint64(ec.base) + w>>(n&63)&uint64(ec.mask)
		n -= int(ed.bits)
		if n <= 0 {
			break
		}
		a, b = a2, uint64(ed.base)+w>>(n&63)&uint64(ed.mask)
		binary.LittleEndian.PutUint32(dst[i:i+4],
			uint32(ea.sym)|uint32(eb.sym)<<8|uint32(ec.sym)<<16|uint32(ed.sym)<<24)
		left = 8*end - 64 + n
	}
	r.left, s[0], s[1] = left, a, b
	return i
}
