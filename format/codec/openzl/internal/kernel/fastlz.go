package kernel

import "encoding/binary"

// Parts of a token of fastlz: how its offset is stored (2 bits), the number of literals (4 bits) and the length
// of the match (5 bits).
const (
	fastLeastOffset = 16
	fastFirst       = 15 << 2 // as the first token: 15 literals and no match
)

// FastLZ holds the streams of fastlz, which FastLZ.Decode takes from the front.
type FastLZ struct {
	Literals, Tokens, Offsets, Extra []byte
}

// Decode fills dst. It reports whether the streams make exactly that: all literals are used, those that are
// left come last.
func (f *FastLZ) Decode(dst []byte) bool {
	pos, lastOffset := 0, fastLeastOffset
	for i := 0; i+2 <= len(f.Tokens); i += 2 {
		token := binary.LittleEndian.Uint16(f.Tokens[i:])
		first := i == 0 && token == fastFirst
		if offsetSize := int(token & 3); offsetSize > 0 {
			if len(f.Offsets) < offsetSize {
				return false
			}
			lastOffset = int(Word(f.Offsets[:offsetSize]))
			f.Offsets = f.Offsets[offsetSize:]
		}
		literals, match := int(token>>2&15), int(token>>6&31)
		if token>>2 == 0 && (!f.extra(&literals) || !f.extra(&match)) {
			return false
		}
		if literals > len(f.Literals) || literals+match > len(dst)-pos {
			return false
		}
		copy(dst[pos:], f.Literals[:literals])
		pos += literals
		f.Literals = f.Literals[literals:]
		if first {
			continue
		}
		if lastOffset < fastLeastOffset || lastOffset > pos {
			return false
		}
		CopyMatch(dst, pos, lastOffset, match)
		pos += match
	}
	return len(dst)-pos == len(f.Literals) && copy(dst[pos:], f.Literals) == len(f.Literals)
}

// extra reads a long length: a byte and, if that is full, numbers of 16 bits up to the first that is not full.
func (f *FastLZ) extra(length *int) bool {
	if len(f.Extra) < 1 {
		return false
	}
	*length, f.Extra = int(f.Extra[0]), f.Extra[1:]
	for goesOn := *length == 255; goesOn; {
		if len(f.Extra) < 2 {
			return false
		}
		addend := int(binary.LittleEndian.Uint16(f.Extra))
		*length, f.Extra, goesOn = *length+addend, f.Extra[2:], addend == 1<<16-1
	}
	return true
}
