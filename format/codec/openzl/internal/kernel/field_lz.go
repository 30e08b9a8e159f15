package kernel

import "encoding/binary"

// MaxFieldWidth is the widest element of FieldLZ. It bounds arithmetic.
const MaxFieldWidth = 1 << 20

// FieldSequences are the inputs of FieldLZ: literals of one width, 16-bit tokens, and 32-bit
// numbers for the rest.
type FieldSequences struct {
	Literals, Tokens, Offsets, MoreLiterals, MoreMatch []byte
}

// A token holds, lowest bits first: which offset (0 to 2 one of the last three, 3 a new one), the
// number of literals and the number of matched elements beyond the least. The highest number says that
// more is to be added.
const (
	fieldLongest   = 15
	fieldNewOffset = 3
)

// fieldState is where FieldLZ stands. All numbers but shift and least are in bytes.
type fieldState struct {
	dst, lits, tokens, offsets, moreLit, moreMatch *byte

	at, lit, token, offset, ml, mm int

	// Sequences are done in the fast loop if they begin before, or end no later than, these.
	dstSafe, litSafe, tokenEnd, offsetEnd, mlEnd, mmEnd int

	r            [3]int // the last offsets
	shift, least int    // elements of 1<<shift bytes, and the fewest of a match
}

// Up to 32 literals, or 16 bytes of a match, too much are copied where that is within bounds: it
// is cheaper than copying exactly.
const (
	fieldRun   = 32
	fieldMatch = 16
)

// newFieldState returns where FieldLZ begins.
func newFieldState(dst []byte, shift uint, s *FieldSequences) fieldState {
	f := fieldState{
		dstSafe: len(dst) - fieldRun - fieldMatch, litSafe: len(s.Literals) - fieldRun, tokenEnd: len(s.Tokens) - 1,
		offsetEnd: max(len(s.Offsets)-3, 0), mlEnd: max(len(s.MoreLiterals)-3, 0), mmEnd: max(len(s.MoreMatch)-3, 0),
		r: [3]int{1 << shift, 2 << shift, 4 << shift}, shift: int(shift), least: 1,
	}
	switch shift {
	case 0:
		f.least = 4
	case 1:
		f.least = 2
	}
	return f
}

// FieldLZ fills the front of dst from sequences of literals and matches on elements of 1<<shift
// bytes. It returns how many bytes it wrote, and whether every sequence was sound and every input
// used up.
func FieldLZ(dst []byte, shift uint, s FieldSequences) (int, bool) {
	f := newFieldState(dst, shift, &s)
	for {
		if f.dstSafe > 0 && f.litSafe > 0 {
			f.sequences(dst, &s)
		}
		if f.token >= f.tokenEnd {
			break
		}
		if !f.sequence(dst, &s) {
			return 0, false
		}
	}
	lits := s.Literals[f.lit:]
	if len(lits) > len(dst)-f.at || f.offset != len(s.Offsets) || f.ml != len(s.MoreLiterals) ||
		f.mm != len(s.MoreMatch) {
		return 0, false
	}
	return f.at + copy(dst[f.at:], lits), true
}

// sequence executes one sequence of any kind, and reports whether it is valid.
func (f *fieldState) sequence(dst []byte, s *FieldSequences) bool {
	token := int(binary.LittleEndian.Uint16(s.Tokens[f.token:]))
	r0, r1, r2 := f.r[0], f.r[1], f.r[2]
	switch token & 3 {
	case fieldNewOffset:
		if f.offset >= f.offsetEnd {
			return false
		}
		r0, r1, r2 = int(binary.LittleEndian.Uint32(s.Offsets[f.offset:]))<<f.shift, r0, r1
		f.offset += 4
	case 1:
		r0, r1 = r1, r0
	case 2:
		r0, r1, r2 = r2, r0, r1
	}
	nlit, nmatch := token>>2&15, token>>6&15
	if nlit == fieldLongest {
		if f.ml >= f.mlEnd {
			return false
		}
		nlit += int(binary.LittleEndian.Uint32(s.MoreLiterals[f.ml:]))
		f.ml += 4
	}
	if nmatch == fieldLongest {
		if f.mm >= f.mmEnd {
			return false
		}
		nmatch += int(binary.LittleEndian.Uint32(s.MoreMatch[f.mm:]))
		f.mm += 4
	}
	nlit, nmatch = nlit<<f.shift, (nmatch+f.least)<<f.shift
	end := f.at + nlit
	if nlit > len(s.Literals)-f.lit || nlit+nmatch > len(dst)-f.at || r0 <= 0 || r0 > end {
		return false
	}
	copy(dst[f.at:], s.Literals[f.lit:f.lit+nlit])
	CopyMatch(dst, end, r0, nmatch)
	f.at, f.lit, f.token = end+nmatch, f.lit+nlit, f.token+2
	f.r = [3]int{r0, r1, r2}
	return true
}

// sequencesGo does sequences until one of them is not known to be sound, is too close to an end
// of its input or output to copy too much, or copies from less than 16 bytes before.
func (f *fieldState) sequencesGo(dst []byte, s *FieldSequences) {
	lits, tokens, offsets, moreLit, moreMatch := s.Literals, s.Tokens, s.Offsets, s.MoreLiterals, s.MoreMatch
	pos, lit, token, offset, ml, mm := f.at, f.lit, f.token, f.offset, f.ml, f.mm
	r0, r1, r2 := f.r[0], f.r[1], f.r[2]
	shift := uint(f.shift) & 63
	for token < f.tokenEnd {
		t := int(binary.LittleEndian.Uint16(tokens[token:]))
		n0, n1, n2, no := r0, r1, r2, offset
		switch t & 3 {
		case fieldNewOffset:
			if offset >= f.offsetEnd {
				goto leave
			}
			n0, n1, n2, no = int(binary.LittleEndian.Uint32(offsets[offset:]))<<shift, r0, r1, offset+4
		case 1:
			n0, n1 = r1, r0
		case 2:
			n0, n1, n2 = r2, r0, r1
		}
		nlit, nmatch, nl, nm := t>>2&15, t>>6&15, ml, mm
		if nlit == fieldLongest {
			if ml >= f.mlEnd {
				goto leave
			}
			nlit += int(binary.LittleEndian.Uint32(moreLit[ml:]))
			nl += 4
		}
		if nmatch == fieldLongest {
			if mm >= f.mmEnd {
				goto leave
			}
			nmatch += int(binary.LittleEndian.Uint32(moreMatch[mm:]))
			nm += 4
		}
		nlit, nmatch = nlit<<shift, (nmatch+f.least)<<shift
		end := pos + nlit
		start := end - n0
		if lit+nlit > f.litSafe || end+nmatch > f.dstSafe || start < 0 || n0 < fieldMatch {
			goto leave
		}
		*(*[fieldRun]byte)(dst[pos:]) = *(*[fieldRun]byte)(lits[lit:])
		if nlit > fieldRun {
			copy(dst[pos+fieldRun:end], lits[lit+fieldRun:])
		}
		*(*[fieldMatch]byte)(dst[end:]) = *(*[fieldMatch]byte)(dst[start:])
		for k := fieldMatch; k < nmatch; k += fieldMatch {
			*(*[fieldMatch]byte)(dst[end+k:]) = *(*[fieldMatch]byte)(dst[start+k:])
		}
		pos, lit, token, offset, ml, mm = end+nmatch, lit+nlit, token+2, no, nl, nm
		r0, r1, r2 = n0, n1, n2
	}
leave:
	f.at, f.lit, f.token, f.offset, f.ml, f.mm = pos, lit, token, offset, ml, mm
	f.r = [3]int{r0, r1, r2}
}

// CopyMatch copies n bytes within dst from at-offset to at, in order, so bytes it writes may
// be read again. 0 < offset <= at, n <= len(dst)-at.
func CopyMatch(dst []byte, at, offset, n int) {
	out := dst[at : at+n]
	done := copy(out, dst[at-offset:at])
	for done < n {
		// What stands before out[done] repeats with the period offset.
		done += copy(out[done:], out[:done])
	}
}
