package whole

import (
	"encoding/binary"
	"math/bits"
)

// sequence is a number of literals, and then a match: bytes that are the same as those offset bytes before.
type sequence struct{ lits, match, offset uint64 }

// run is the state of decoding the sequences of a block. The bits are read from the end of the stream to its start: the
// next ones lie in the word at src[at:at+8] below its upper `used` bits; between sequences, used is less than
// 8. The word may begin up to 8 bytes before the stream.
//
// The loop in assembly has the offsets of the fields.
type run struct {
	src     *byte // 0: the frame
	at      int
	floor   int // 16: what at must not be less than
	used    uint64
	entries [3]fseEntry // 32: of the states
	rep     [3]uint64
	dst     *byte // 80
	out     int
	outSafe int // 96: where a sequence may end so that slack bytes behind it may be written
	lits    *byte
	lit     int                    // 112
	litSafe int                    // where literals may end so that slack bytes behind them may be read
	window  uint64                 // 128
	count   int                    // sequences that were not decoded yet
	old     sequence               // 144: the one to execute
	next    sequence               // 168: the one behind it
	tables  *[3][tableMax]fseEntry // 192

	in, buf, literals []byte // src up to the end of the stream, dst, and lits
}

// Why the loop ended.
const (
	decodedAll  = iota // but the last sequence, and all but that are executed but the one before it
	notExecuted        // old is near the end of some memory, or corrupt; next is decoded
	notDecoded         // the next sequence takes more bits than a word has; old is not executed
	corrupt
)

// sequences decodes and executes the sequences of a block that ends at end, and appends its remaining literals.
func (d *Decoder) sequences(l *literals, count, end int) bool {
	f, r := &d.frame, &d.run
	start := f.at
	if start < 8 || end-start < 1 || f.size == 0 || f.src[end-1] == 0 {
		return false
	}
	*r = run{src: &f.src[0], at: end - 8, floor: start - 8, used: uint64(bits.LeadingZeros8(f.src[end-1])) + 1,
		rep: f.rep, dst: &f.buf[0], out: f.out, outSafe: min(f.size, len(f.buf)-slack),
		litSafe: min(l.size, len(l.limit)-slack), window: f.window, count: count - 1, tables: &d.tables.entries,
		in: f.src[:end], buf: f.buf[:f.size], literals: l.bytes}
	if len(l.bytes) > 0 {
		r.lits = &l.bytes[0]
	}
	for _, k := range [3]int{literalLengths, offsets, matchLengths} {
		r.entries[k] = d.tables.entries[k][r.read(uint64(d.tables.log[k]))]
	}
	if r.settle(); r.at < r.floor || !r.all() || 8*(r.at-start)+64 != int(r.used) {
		return false
	}
	rest := l.bytes[r.lit:]
	if len(rest) > f.size-r.out {
		return false
	}
	f.out = r.out + copy(r.buf[r.out:], rest)
	f.rep, f.at = r.rep, end
	return true
}

// all decodes and executes the sequences.
func (r *run) all() bool {
	if !r.decode() {
		return false
	}
	for r.count > 0 {
		r.old = r.next
		if r.count > 1 {
			switch r.loop() {
			case decodedAll:
				continue
			case notExecuted:
				if !r.execute() {
					return false
				}
				continue
			case corrupt:
				return false
			}
		}
		r.count--
		if !r.decode() || !r.execute() {
			return false
		}
	}
	r.old = r.next
	return r.execute()
}

// read takes n bits, at most 31, from a stream. If it has too few, at is below floor.
func (r *run) read(n uint64) uint64 {
	if r.settle(); r.at < r.floor {
		return 0
	}
	value := binary.LittleEndian.Uint64(r.in[r.at:]) << r.used >> 1 >> (63 - n)
	r.used += n
	return value
}

// settle moves on to the word in which fewer than 8 bits are used.
func (r *run) settle() {
	r.at -= int(r.used >> 3)
	r.used &= 7
}

// decode decodes the next sequence, which left more follow.
func (r *run) decode() bool {
	states := r.entries
	offset := uint64(1)<<(states[offsets]>>32&63) + r.value(states[offsets])
	r.next.match = r.value(states[matchLengths])
	r.next.lits = r.value(states[literalLengths])
	if r.count > 0 {
		for _, k := range [3]int{literalLengths, matchLengths, offsets} {
			state := uint64(states[k]>>16&0xffff) + r.read(uint64(states[k]&0xff))
			r.entries[k] = r.tables[k][state&(tableMax-1)]
		}
	}
	r.next.offset = r.offset(offset, r.next.lits == 0)
	r.settle()
	return r.at >= r.floor && r.next.offset != 0
}

// value reads the value of a state.
func (r *run) value(e fseEntry) uint64 { return uint64(e>>40) + r.read(uint64(e>>32&0xff)) }

// offset returns what v stands for: one of the last three offsets, or another (RFC 8878, 3.1.1.5).
func (r *run) offset(v uint64, noLits bool) uint64 {
	if v > 3 {
		r.rep = [3]uint64{v - 3, r.rep[0], r.rep[1]}
		return v - 3
	}
	if noLits {
		v++
	}
	switch v {
	case 2:
		r.rep[0], r.rep[1] = r.rep[1], r.rep[0]
	case 3:
		r.rep = [3]uint64{r.rep[2], r.rep[0], r.rep[1]}
	case 4:
		r.rep = [3]uint64{r.rep[0] - 1, r.rep[0], r.rep[1]}
	}
	return r.rep[0]
}

// execute writes the old sequence.
func (r *run) execute() bool {
	old := r.old
	if old.lits > uint64(len(r.literals)-r.lit) || old.lits+old.match > uint64(len(r.buf)-r.out) {
		return false
	}
	r.out += copy(r.buf[r.out:], r.literals[r.lit:r.lit+int(old.lits)])
	r.lit += int(old.lits)
	if old.offset > uint64(r.out) || old.offset > r.window {
		return false
	}
	start, end := r.out-int(old.offset), r.out+int(old.match)
	for r.out < end { // more than once if the match overlaps itself
		r.out += copy(r.buf[r.out:end], r.buf[start:r.out])
	}
	return true
}
