package xz

// States of LZMA: what the last packets were. Those below firstMatch follow a literal.
const (
	numStates  = 12
	firstMatch = 7
)

const (
	maxLowBits = 4       // lc + lp of LZMA2
	maxPosBits = 4       // pb
	probInit   = 1 << 10 // one half, in units of 2^-11
	topValue   = 1 << 24
	minMatch   = 2
	endPosSlot = 14 // slots of distances from here on have direct bits
	alignBits  = 4
)

// lengthCoder holds the probabilities of lengths: 8 short ones and 8 middle ones for each position, and 256 long ones.
type lengthCoder struct {
	choice   [2]uint16
	low, mid [1 << maxPosBits][8]uint16
	high     [256]uint16
}

// probabilities are those that a reset of the state sets to one half.
type probabilities struct {
	isMatch    [numStates][1 << maxPosBits]uint16
	isRep      [numStates]uint16
	isRepG0    [numStates]uint16
	isRepG1    [numStates]uint16
	isRepG2    [numStates]uint16
	isRep0Long [numStates][1 << maxPosBits]uint16
	posSlot    [4][64]uint16
	special    [128]uint16
	align      [1 << alignBits]uint16
	length     lengthCoder
	repLength  lengthCoder
	literal    [0x300 << maxLowBits]uint16
}

// lzmaDecoder decodes LZMA2. The output is the dictionary.
type lzmaDecoder struct {
	p          probabilities
	lc, lp, pb uint
	state      int
	reps       [4]int // the last distances, less 1
	dst        []byte
	out        int // bytes written
	dict       int // where the dictionary begins

	in        []byte // of the current chunk
	code, rng uint32
	short     bool // in ended early
}

// decode fills at least the first need bytes of dst from an LZMA2 stream. It returns how many bytes it wrote and how
// many of src it used; ended reports whether the stream ended there, so that it holds no more than dst.
func (d *lzmaDecoder) decode(dst, src []byte, need int) (out, used int, ended bool, err error) {
	d.dst, d.out, d.dict = dst, 0, 0
	defer func() { d.dst, d.in = nil, nil }()
	fresh, known := true, false // nothing was written; the properties are known
	for pos := 0; ; {
		if pos >= len(src) {
			return 0, 0, false, corrupt("ends early, after %d of %d bytes", d.out, len(dst))
		}
		control := src[pos]
		if control == 0 {
			return d.out, pos + 1, true, nil
		}
		if d.out >= need {
			return d.out, pos, false, nil
		}
		if len(src)-pos < 6 {
			return 0, 0, false, corrupt("ends early, after %d of %d bytes", d.out, len(dst))
		}
		if fresh && control != 1 && control < 0xe0 {
			return 0, 0, false, corrupt("a stream that does not begin with a reset of its dictionary")
		}
		if control == 1 || control >= 0xe0 {
			d.dict, known = d.out, false
		}
		fresh = false
		size := int(src[pos+1])<<8 | int(src[pos+2])
		if control < 0x80 {
			if control > 2 {
				return 0, 0, false, corrupt("a chunk of kind %#x", control)
			}
			size++
			if pos += 3; size > len(src)-pos {
				return 0, 0, false, corrupt("ends early, after %d of %d bytes", d.out, len(dst))
			}
			n := copy(dst[d.out:], src[pos:pos+size])
			d.out += n
			if pos += size; n < size {
				return d.out, pos, false, nil
			}
			continue
		}
		size += int(control&0x1f)<<16 + 1
		stored := (int(src[pos+3])<<8 | int(src[pos+4])) + 1
		pos += 5
		if control >= 0xc0 {
			if !d.properties(src[pos]) {
				return 0, 0, false, corrupt("properties %d of LZMA", src[pos])
			}
			known = true
			pos++
		}
		if !known {
			return 0, 0, false, corrupt("a chunk before the properties of LZMA")
		}
		if control >= 0xa0 {
			d.reset()
		}
		if stored > len(src)-pos {
			return 0, 0, false, corrupt("ends early, after %d of %d bytes", d.out, len(dst))
		}
		rest := len(dst) - d.out
		if !d.chunk(src[pos:pos+stored], size) {
			return 0, 0, false, corrupt("an invalid chunk, after %d of %d bytes", d.out, len(dst))
		}
		if pos += stored; size > rest {
			return d.out, pos, false, nil
		}
	}
}

// properties reads lc, lp and pb.
func (d *lzmaDecoder) properties(v byte) bool {
	if v >= 9*5*5 {
		return false
	}
	d.lc, d.lp, d.pb = uint(v%9), uint(v/9%5), uint(v/45)
	return d.lc+d.lp <= maxLowBits
}

func (d *lzmaDecoder) reset() {
	d.state, d.reps = 0, [4]int{}
	p := &d.p
	fill(p.isRep[:], p.isRepG0[:], p.isRepG1[:], p.isRepG2[:], p.special[:], p.align[:], p.literal[:0x300<<(d.lc+d.lp)])
	for s := range p.isMatch {
		fill(p.isMatch[s][:], p.isRep0Long[s][:])
	}
	for s := range p.posSlot {
		fill(p.posSlot[s][:])
	}
	for _, l := range [...]*lengthCoder{&p.length, &p.repLength} {
		fill(l.choice[:], l.high[:])
		for s := range l.low {
			fill(l.low[s][:], l.mid[s][:])
		}
	}
}

func fill(slices ...[]uint16) {
	for _, s := range slices {
		for i := range s {
			s[i] = probInit
		}
	}
}

// chunk decodes the packets of one chunk of size bytes, as far as they fit in dst. It reports false if they are
// invalid.
func (d *lzmaDecoder) chunk(in []byte, size int) bool {
	if len(in) < 5 || in[0] != 0 {
		return false
	}
	d.code = uint32(in[1])<<24 | uint32(in[2])<<16 | uint32(in[3])<<8 | uint32(in[4])
	d.in, d.rng, d.short = in[5:], 0xffffffff, false
	end := d.out + size
	cut := end > len(d.dst)
	end = min(end, len(d.dst))
	for d.out < end {
		if !d.packet(end, cut) || d.short {
			return false
		}
	}
	if cut {
		return true
	}
	d.normalize()
	return !d.short && len(d.in) == 0 && d.code == 0
}

// packet decodes a literal or a match. A match may pass end if cut says that its chunk does.
func (d *lzmaDecoder) packet(end int, cut bool) bool {
	p, s := &d.p, d.state
	pos := (d.out - d.dict) & (1<<d.pb - 1)
	if d.bit(&p.isMatch[s][pos]) == 0 {
		d.literal()
		return true
	}
	n := 0
	switch {
	case d.bit(&p.isRep[s]) == 0:
		n = d.length(&p.length, pos)
		distance := d.distance(n)
		d.reps = [4]int{distance, d.reps[0], d.reps[1], d.reps[2]}
		d.state = 7
	case d.bit(&p.isRepG0[s]) == 0:
		if d.bit(&p.isRep0Long[s][pos]) == 0 {
			n, d.state = 1, 9
			break
		}
		n, d.state = d.length(&p.repLength, pos), 8
	default:
		i := 1
		if d.bit(&p.isRepG1[s]) == 1 {
			i = 2 + int(d.bit(&p.isRepG2[s]))
		}
		distance := d.reps[i]
		copy(d.reps[1:i+1], d.reps[:i])
		d.reps[0] = distance
		n, d.state = d.length(&p.repLength, pos), 8
	}
	if s >= firstMatch && d.state != 7 {
		d.state = 11
	} else if s >= firstMatch {
		d.state = 10
	}
	start := d.out - d.reps[0] - 1
	if start < d.dict || n > end-d.out && !cut {
		return false
	}
	for n = min(n, end-d.out); n > 0; n-- {
		d.dst[d.out] = d.dst[start]
		d.out++
		start++
	}
	return true
}

func (d *lzmaDecoder) literal() {
	before := byte(0)
	if d.out > d.dict {
		before = d.dst[d.out-1]
	}
	context := (uint(d.out-d.dict)&(1<<d.lp-1))<<d.lc | uint(before)>>(8-d.lc)
	probs := d.p.literal[0x300*context:][:0x300]
	symbol := uint32(1)
	if start := d.out - d.reps[0] - 1; d.state >= firstMatch && start >= d.dict {
		match := uint32(d.dst[start])
		for symbol < 0x100 {
			match <<= 1
			guess := match & 0x100
			bit := d.bit(&probs[0x100+guess+symbol])
			symbol = symbol<<1 | bit
			if guess>>8 != bit {
				break
			}
		}
	}
	for symbol < 0x100 {
		symbol = symbol<<1 | d.bit(&probs[symbol])
	}
	d.dst[d.out] = byte(symbol)
	d.out++
	switch {
	case d.state < 4:
		d.state = 0
	case d.state < 10:
		d.state -= 3
	default:
		d.state -= 6
	}
}

func (d *lzmaDecoder) length(l *lengthCoder, pos int) int {
	switch {
	case d.bit(&l.choice[0]) == 0:
		return minMatch + int(d.tree(l.low[pos][:]))
	case d.bit(&l.choice[1]) == 0:
		return minMatch + 8 + int(d.tree(l.mid[pos][:]))
	}
	return minMatch + 16 + int(d.tree(l.high[:]))
}

// distance decodes the distance, less 1, of a match of n bytes.
func (d *lzmaDecoder) distance(n int) int {
	slot := d.tree(d.p.posSlot[min(n-minMatch, 3)][:])
	if slot < 4 {
		return int(slot)
	}
	bits := slot>>1 - 1
	v := (2 | slot&1) << bits
	if slot < endPosSlot {
		return int(v + d.reverseTree(d.p.special[v-slot:], int(bits)))
	}
	direct := uint32(0)
	for range bits - alignBits {
		d.normalize()
		d.rng >>= 1
		direct <<= 1
		if d.code >= d.rng {
			d.code -= d.rng
			direct |= 1
		}
	}
	return int(v + direct<<alignBits + d.reverseTree(d.p.align[:], alignBits))
}

// tree decodes a number by len(probs) probabilities, the most significant bit first.
func (d *lzmaDecoder) tree(probs []uint16) uint32 {
	n := uint32(len(probs))
	m := uint32(1)
	for m < n {
		m = m<<1 | d.bit(&probs[m])
	}
	return m - n
}

// reverseTree decodes a number of that many bits, the least significant first.
func (d *lzmaDecoder) reverseTree(probs []uint16, bits int) (v uint32) {
	m := uint32(1)
	for i := range bits {
		b := d.bit(&probs[m])
		m = m<<1 | b
		v |= b << i
	}
	return v
}

func (d *lzmaDecoder) normalize() {
	if d.rng >= topValue {
		return
	}
	b := byte(0)
	if len(d.in) > 0 {
		b, d.in = d.in[0], d.in[1:]
	} else {
		d.short = true
	}
	d.rng, d.code = d.rng<<8, d.code<<8|uint32(b)
}

// bit decodes a bit and moves its probability.
func (d *lzmaDecoder) bit(prob *uint16) uint32 {
	d.normalize()
	const probBits, shift = 11, 5
	bound := d.rng >> probBits * uint32(*prob)
	if d.code < bound {
		d.rng = bound
		*prob += (1<<probBits - *prob) >> shift
		return 0
	}
	d.rng, d.code = d.rng-bound, d.code-bound
	*prob -= *prob >> shift
	return 1
}
