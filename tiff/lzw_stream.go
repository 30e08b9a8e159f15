package tiff

import (
	"github.com/chaski-eo/chaski/chunk"
	"github.com/chaski-eo/chaski/fault"
)

// lzwStream is the chunk.Stream of LZW. It accepts the same codes as lzwDecoder. Since the output is not at
// hand, an entry of its table is an earlier entry and one byte more, and strings are written from their end.
type lzwStream struct {
	src     chunk.Source
	acc     uint32 // bits not yet used, right-aligned
	have    uint
	width   uint
	next    int
	before  int // the previous code; -1 after a clear
	prefix  [lzwMax]uint16
	first   [lzwMax]byte // of the string of an entry
	last    [lzwMax]byte
	length  [lzwMax]uint16 // below lzwMax, because an entry is one byte longer than an earlier one
	text    [lzwMax]byte   // the last string
	pending []byte         // the part of it that Fill has not given yet
}

// Stream implements chunk.StreamDecompressor.
func (*lzwDecoder) Stream(src chunk.Source, _ int) (chunk.Stream, error) {
	s := &lzwStream{src: src, width: 9, next: lzwFirst, before: -1}
	for i := range lzwClear {
		s.first[i], s.last[i], s.length[i] = byte(i), byte(i), 1
	}
	var head [2]byte
	for n := range head {
		b, err := src.ReadByte()
		if err != nil { // Fill finds the end, or the fault of src, again
			break
		}
		head[n] = b
		s.acc, s.have = s.acc<<8|uint32(b), s.have+8
	}
	if s.have == 16 && oldLZW(head[:]) {
		return nil, errOldLZW()
	}
	return s, nil
}

// Fill implements chunk.Stream.
func (s *lzwStream) Fill(p []byte) error {
	for want := len(p); ; {
		n := copy(p, s.pending)
		s.pending, p = s.pending[n:], p[n:]
		if len(p) == 0 {
			return nil
		}
		if !s.decode() {
			return fault.New(fault.Corrupt, "lzw", fault.NoOffset, "ends or breaks off after %d of %d bytes",
				want-len(p), want)
		}
	}
}

// decode decodes the next code into pending. It reports false if the stream ends or is invalid.
func (s *lzwStream) decode() bool {
	for s.have < s.width {
		b, err := s.src.ReadByte()
		if err != nil {
			return false
		}
		s.acc, s.have = s.acc<<8|uint32(b), s.have+8
	}
	s.have -= s.width
	code := int(s.acc >> s.have & (1<<s.width - 1))
	switch {
	case code == lzwClear:
		s.next, s.width, s.before = lzwFirst, 9, -1
		return true
	case code == lzwEnd:
		return false
	}
	added := -1
	if s.before >= 0 && s.next < lzwMax {
		// The code may be the new entry itself, so that its first byte must be known before its last.
		added = s.next
		s.prefix[s.next], s.first[s.next] = uint16(s.before), s.first[s.before]
		s.length[s.next] = s.length[s.before] + 1
		s.next++
	}
	if code >= s.next {
		return false
	}
	if added >= 0 {
		s.last[added] = s.first[code]
	}
	n := int(s.length[code])
	at := code
	for i := n - 1; i >= 0; i-- {
		s.text[i] = s.last[at]
		at = int(s.prefix[at])
	}
	s.pending, s.before = s.text[:n], code
	if s.next >= 1<<s.width-1 && s.width < 12 {
		s.width++
	}
	return true
}

// End implements chunk.Stream: what follows the content is ignored.
func (*lzwStream) End() error { return nil }

// Close implements chunk.Stream.
func (*lzwStream) Close() {}
