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
// number of literals and that of matched elements beyond the least. The highest number says that
// more is to be added.
const (
	fieldLongest   = 15
	fieldNewOffset = 3
)

// FieldLZ fills the front of dst from sequences of literals and matches on elements of 1<<shift
// bytes. It returns how many bytes it wrote, and whether every sequence was sound and every input
// used up.
func FieldLZ(dst []byte, shift uint, s FieldSequences) (int, bool) {
	least := 1
	if shift == 0 {
		least = 4
	} else if shift == 1 {
		least = 2
	}
	lits, offsets, moreLit, moreMatch := s.Literals, s.Offsets, s.MoreLiterals, s.MoreMatch
	r0, r1, r2 := 1<<shift, 2<<shift, 4<<shift // the last three offsets, in bytes
	at, lit := 0, 0
	// Up to here copying too much is within bounds, and cheaper than copying exactly.
	const run, match = 32, 16
	litSafe, atSafe := len(lits)-run, len(dst)-run-match
	for tokens := s.Tokens; len(tokens) >= 2; tokens = tokens[2:] {
		token := int(binary.LittleEndian.Uint16(tokens))
		switch token & 3 {
		case fieldNewOffset:
			if len(offsets) < 4 {
				return 0, false
			}
			r0, r1, r2 = int(binary.LittleEndian.Uint32(offsets))<<shift, r0, r1
			offsets = offsets[4:]
		case 1:
			r0, r1 = r1, r0
		case 2:
			r0, r1, r2 = r2, r0, r1
		}
		nlit, nmatch := token>>2&15, token>>6&15
		if nlit == fieldLongest {
			if len(moreLit) < 4 {
				return 0, false
			}
			nlit += int(binary.LittleEndian.Uint32(moreLit))
			moreLit = moreLit[4:]
		}
		if nmatch == fieldLongest {
			if len(moreMatch) < 4 {
				return 0, false
			}
			nmatch += int(binary.LittleEndian.Uint32(moreMatch))
			moreMatch = moreMatch[4:]
		}
		nlit, nmatch = nlit<<shift, (nmatch+least)<<shift
		to := at + nlit
		if from := to - r0; nlit <= run && nmatch <= match && r0 >= match && from >= 0 && lit <= litSafe && at <= atSafe {
			// Most runs and matches are short, and most matches far away.
			*(*[run]byte)(dst[at:]) = *(*[run]byte)(lits[lit:])
			*(*[match]byte)(dst[to:]) = *(*[match]byte)(dst[from:])
			at, lit = to+nmatch, lit+nlit
			continue
		}
		if nlit > len(lits)-lit || nlit+nmatch > len(dst)-at || r0 <= 0 || r0 > to {
			return 0, false
		}
		copy(dst[at:], lits[lit:lit+nlit])
		CopyMatch(dst, to, r0, nmatch)
		at, lit = to+nmatch, lit+nlit
	}
	if len(lits)-lit > len(dst)-at || len(offsets)|len(moreLit)|len(moreMatch) != 0 {
		return 0, false
	}
	at += copy(dst[at:], lits[lit:])
	return at, true
}

// CopyMatch copies n bytes within dst from at-offset to at, in order, so that bytes it writes may
// be read again. 0 < offset <= at, n <= len(dst)-at.
func CopyMatch(dst []byte, at, offset, n int) {
	out := dst[at : at+n]
	done := copy(out, dst[at-offset:at])
	for done < n {
		// What stands before out[done] repeats with the period offset.
		done += copy(out[done:], out[:done])
	}
}
