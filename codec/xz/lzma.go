package xz

import "errors"

// Numbers of LZMA (I. Pavlov, LZMA specification, LZMA SDK). lc, lp and pb are how many bits of the byte before, and
// of the position, choose probabilities.
const (
	maxPB    = 4
	maxLCLP  = 4  // LZMA2 allows no more of both together
	minMatch = 2  // bytes
	modelled = 4  // distances from this slot on have further bits
	aligned  = 14 // and those from this one on, direct bits before the last four
)

// States are what the last symbols were: below afterMatch, the last one was a literal.
const (
	afterMatch = 7
	numStates  = 12
)

// afterLiteral has the state that follows each state when a literal came.
var afterLiteral = [numStates]uint8{0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 4, 5}

// lengths has the probabilities of lengths.
type lengths struct {
	above    [2]uint16 // the low ones, the middle ones
	low, mid [1 << maxPB][8]uint16
	high     [256]uint16
}

// model has the probability of 0 for each bit, XOR even: it is even before the first symbol.
type model struct {
	isMatch, isLong   [numStates][1 << maxPB]uint16
	isRepeat          [numStates]uint16
	older             [3][numStates]uint16 // a repeated distance is older than the last, the one before, and so on
	matched, repeated lengths
	slots             [4][64]uint16
	special           [128]uint16
	align             [16]uint16
	literals          [1 << maxLCLP][literalSize]uint16
}

// decoder decodes the chunks of an LZMA2 stream.
type decoder struct {
	coder
	model
	state      uint8
	far        [4]int // the last distances, the newest first
	lc, lp, pb int
}

// reset forgets what symbols came.
func (d *decoder) reset() {
	d.model, d.state, d.far = model{}, 0, [4]int{1, 1, 1, 1}
}

// setProperties takes the byte that states lc, lp and pb.
func (d *decoder) setProperties(b byte) bool {
	d.lc, d.lp, d.pb = int(b%9), int(b/9%5), int(b/45)
	return d.pb <= maxPB && d.lc+d.lp <= maxLCLP
}

var (
	errCut     = errors.New("the stream ends early")
	errStored  = errors.New("a chunk is not as long as it states")
	errSymbols = errors.New("the symbols of a chunk do not make its content")
)

// symbols decodes one chunk of size bytes to dst from out on, and stops where dst ends. Matches begin at start or after
// it. It returns where it stopped.
func (d *decoder) symbols(dst []byte, start, out, size int) (int, error) {
	end := out + size
	for out < min(end, len(dst)) {
		offset := (out - start) & (1<<d.pb - 1)
		if !d.bit(&d.isMatch[d.state][offset]) {
			before, other, compared := byte(0), uint32(0), uint32(0)
			if out > start {
				before = dst[out-1]
			}
			if d.state >= afterMatch {
				if !d.near(out - start) {
					return out, errSymbols
				}
				other, compared = uint32(dst[out-d.far[0]]), 1<<8
			}
			which := ((out-start)&(1<<d.lp-1))<<d.lc | int(before)>>(8-d.lc)
			dst[out] = byte(d.number(d.literals[which][:], 1<<8, other, compared))
			out++
			d.state = afterLiteral[d.state]
			continue
		}
		length := d.match(offset)
		if !d.near(out-start) || length > end-out || d.pos > len(d.src) {
			return out, errSymbols
		}
		out = repeat(dst, out, d.far[0], length)
	}
	if out == end {
		// The code is 0 after the last symbol, unless one was decoded otherwise than it was written.
		if d.refill(); d.code != 0 {
			return out, errSymbols
		}
		if d.pos < len(d.src) {
			return out, errStored
		}
	}
	if d.pos > len(d.src) {
		return out, errCut
	}
	return out, nil
}

// near reports whether the last distance lies within so many bytes.
func (d *decoder) near(n int) bool { return uint(d.far[0]-1) < uint(n) }

// repeat copies n bytes, or as many as there is room for, from so far before, and returns where they end.
func repeat(dst []byte, out, far, n int) int {
	target := dst[out:min(out+n, len(dst))]
	if far >= len(target) {
		return out + copy(target, dst[out-far:])
	}
	from := dst[out-far:]
	for i := range target {
		target[i] = from[i]
	}
	return out + len(target)
}

// match decodes the length of a match, and puts its distance first.
func (d *decoder) match(offset int) int {
	state, after := d.state, uint8(0)
	if state >= afterMatch {
		after = numStates - 2 - afterMatch // states 10 and 11 follow matches that follow a match
	}
	if !d.bit(&d.isRepeat[state]) {
		d.state = afterMatch + after
		length := d.length(&d.matched, offset)
		d.far = [4]int{d.distance(length), d.far[0], d.far[1], d.far[2]}
		return length
	}
	which := 0
	for which < len(d.older) && d.bit(&d.older[which][state]) {
		which++
	}
	if which == 0 && !d.bit(&d.isLong[state][offset]) {
		d.state = min(afterMatch+2+after, numStates-1)
		return 1
	}
	far := d.far[which]
	copy(d.far[1:], d.far[:which])
	d.far[0] = far
	d.state = min(afterMatch+1+after, numStates-1)
	return d.length(&d.repeated, offset)
}

// length decodes the length of a match.
func (d *decoder) length(l *lengths, at int) int {
	switch {
	case !d.bit(&l.above[0]):
		return minMatch + d.tree(l.low[at][:])
	case !d.bit(&l.above[1]):
		return minMatch + 8 + d.tree(l.mid[at][:])
	}
	return minMatch + 16 + d.tree(l.high[:])
}

// distance decodes the distance of a match of n bytes.
func (d *decoder) distance(n int) int {
	slot := d.tree(d.slots[min(n-minMatch, len(d.slots)-1)][:])
	if slot < modelled {
		return 1 + slot
	}
	more := slot>>1 - 1
	base := uint32(2|slot&1) << more
	if slot < aligned {
		return 1 + int(base+d.reverse(d.special[int(base)-slot:], more))
	}
	// The largest one ends a stream of LZMA, and is too far in one of LZMA2.
	return 1 + int(base+d.direct(more-4)<<4+d.reverse(d.align[:], 4))
}
