package kernel

import "encoding/binary"

// Sizes of the table of rolz: the hash of two bytes picks a row, which holds the last 16 places after them.
const (
	rolzRows = 1 << 12
	rolzRow  = 1 << 4
	// rolzPrime spreads two bytes over the rows.
	rolzPrime = 506832829
	rolzDepth = 2 // bytes that are hashed
	rolzLeast = 3 // shortest match in the table
	rolzLZ    = 7 // shortest match by its offset
	rolzRep   = 3 // shortest match by an offset that was used
)

// Kinds of matches.
const (
	RolzByOffset = iota
	RolzByTable
	RolzByLast
	RolzByEarlier
	RolzKinds
)

// rolzPlace is a place that followed a context, and how long the match there is expected to be.
type rolzPlace struct {
	index  uint32 // plus one; 0: no index
	expect uint32
}

// Rolz undoes rolz: LZ77 whose matches may be named by their turn among the places with the same context.
type Rolz struct {
	rows  [rolzRows][rolzRow]rolzPlace
	heads [rolzRows]uint8
	reps  [3]uint32
}

// RolzLiterals are literals in one stream, or in one for every cluster of preceding bytes.
type RolzLiterals struct {
	Clusters [][]byte
	Of       *[256]int16 // the cluster of each preceding byte, -1 for none; nil for one stream
	Left     int         // literals not yet taken
}

// take moves literals to dst[at:at+n] and reports whether there are as many.
func (l *RolzLiterals) take(dst []byte, at, n int) bool {
	if n > l.Left || n > len(dst)-at {
		return false
	}
	l.Left -= n
	if l.Of == nil {
		copy(dst[at:at+n], l.Clusters[0])
		l.Clusters[0] = l.Clusters[0][n:]
		return true
	}
	var before byte
	if at > 0 {
		before = dst[at-1]
	}
	for i := range n {
		cluster := l.Of[before]
		if cluster < 0 || len(l.Clusters[cluster]) == 0 {
			return false
		}
		before = l.Clusters[cluster][0]
		l.Clusters[cluster] = l.Clusters[cluster][1:]
		dst[at+i] = before
	}
	return true
}

// row returns the row of the context before at, at >= 2.
func rolzContext(dst []byte, at int) int {
	pair := uint32(binary.LittleEndian.Uint16(dst[at-rolzDepth:]))
	return int((pair << 16) * rolzPrime >> 20)
}

// put stores at in the row of its context.
func (r *Rolz) put(dst []byte, at, length int) {
	context := rolzContext(dst, at)
	head := (r.heads[context] - 1) & (rolzRow - 1)
	r.heads[context] = head
	r.rows[context][head] = rolzPlace{uint32(at) + 1, uint32(min(length, 255))}
}

// get returns the place that a code names in the row of the context before at, and the length of the match.
func (r *Rolz) get(dst []byte, at int, code, length uint32) (place, n int) {
	context := rolzContext(dst, at)
	known := r.rows[context][(uint32(r.heads[context])+code)&(rolzRow-1)]
	switch {
	case length+rolzLeast > known.expect:
		length += rolzLeast
	case length >= 1:
		length += rolzLeast - 1
	default:
		length = known.expect
	}
	return int(known.index) - 1, int(length)
}

// RolzSequences holds, for every sequence, the kind of its match and its numbers.
type RolzSequences struct {
	Kinds                      []byte
	Literals, Lengths, Matches []uint32
}

// Decode fills dst, whose size is below 1<<31. It reports whether sequences and literals make exactly that.
func (r *Rolz) Decode(dst []byte, s *RolzSequences, lits *RolzLiterals) bool {
	clear(r.rows[:])
	clear(r.heads[:])
	r.reps = [3]uint32{1, 4, 8}
	pos := 0
	for i, kind := range s.Kinds {
		count := int(s.Literals[i])
		if !lits.take(dst, pos, count) {
			return false
		}
		// Where fewer than two bytes stand before the literals, two are not stored, as the original has it.
		start := 0
		if pos < rolzDepth {
			start = rolzDepth
		}
		for k := start; k < count; k++ {
			r.put(dst, pos+k, 0)
		}
		pos += count
		place, length, ok := r.match(dst, pos, kind, s.Matches[i], s.Lengths[i])
		if !ok || place < 0 || place >= pos || length > len(dst)-pos {
			return false
		}
		if kind == RolzByTable {
			r.put(dst, pos, length)
		}
		CopyMatch(dst, pos, pos-place, length)
		if kind != RolzByTable && pos >= rolzDepth {
			r.put(dst, pos, length)
			r.put(dst, pos+1, length-1)
		}
		pos += length
	}
	return lits.take(dst, pos, len(dst)-pos) && lits.Left == 0
}

// match returns where a match begins and its length.
func (r *Rolz) match(dst []byte, at int, kind byte, code, length uint32) (place, n int, ok bool) {
	// An int of 32 bits would be negative below.
	if length >= 1<<31 {
		return 0, 0, false
	}
	switch kind {
	case RolzByOffset:
		if code == 0 || code > uint32(at) {
			return 0, 0, false
		}
		r.reps = [3]uint32{code, r.reps[0], r.reps[1]}
		return at - int(code), int(length) + rolzLZ, true
	case RolzByTable:
		if at < rolzDepth {
			return 0, 0, false
		}
		place, n = r.get(dst, at, code, length)
		r.reps = [3]uint32{uint32(at - place), r.reps[0], r.reps[1]}
		return place, n, true
	case RolzByLast, RolzByEarlier:
		which := code & 3
		if which == 3 {
			return 0, 0, false
		}
		offset := r.reps[which]
		if code != 0 {
			offset += code>>2 - 4
		}
		if offset == 0 || offset > uint32(at) {
			return 0, 0, false
		}
		switch which {
		case 1:
			r.reps[0], r.reps[1] = offset, r.reps[0]
		case 2:
			r.reps = [3]uint32{offset, r.reps[0], r.reps[1]}
		}
		return at - int(offset), int(length) + rolzRep, true
	}
	return 0, 0, false
}

// rolzStates are the states of the numbers of a sequence: where a state and the kind of a match lead.
var rolzStates = [6][RolzKinds]uint8{
	{0, 1, 2, 5}, {0, 1, 3, 5}, {0, 1, 4, 5}, {0, 1, 4, 5}, {0, 1, 4, 5}, {0, 1, 2, 5},
}

// RolzStates is how many states the codes of a number are sorted by.
const RolzStates = len(rolzStates)

// RolzNumbers fills dst, a number for every kind. Codes are sorted by state; the codes of state k end at
// ends[k]. A code below 32 is its number; others say how many bits of src, read backwards, follow. It reports
// whether the codes fit the kinds and src has the bits.
func RolzNumbers(dst []uint32, kinds, codes []byte, ends [RolzStates]int, src []byte) bool {
	var bits backBits
	if !bits.open(src) {
		return false
	}
	var next [RolzStates]int
	copy(next[1:], ends[:RolzStates-1])
	state := uint8(0)
	for i, kind := range kinds {
		state = rolzStates[state][kind]
		if next[state] >= ends[state] {
			return false
		}
		code := codes[next[state]]
		next[state]++
		dst[i] = uint32(code)
		if code >= 32 {
			if code > 58 {
				return false
			}
			width := int(code) - 32 + 5
			dst[i] = 1<<width + uint32(bits.read(width))
			if bits.bits < 0 {
				return false
			}
		}
	}
	return true
}
