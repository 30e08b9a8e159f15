package tiff

import (
	"bufio"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
)

// lzwStream is the chunk.Stream of LZW. It accepts the same codes as lzwDecoder. Since the output is not at
// hand, an entry of its table is an earlier entry and one byte more, and strings are written from their end.
type lzwStream struct {
	src     *bufio.Reader
	acc     uint32 // bits not yet used, right-aligned
	have    uint
	width   uint
	next    int
	before  int // the previous code; -1 after a clear
	table   [lzwMax]lzwEntry
	text    [lzwMax]byte // the last string, if p had no room for all of it
	pending []byte       // the part of it that Fill has not given yet
}

// lzwEntry is the string of entry prefix and the byte last.
type lzwEntry struct {
	prefix      uint16
	length      uint16 // below lzwMax, because an entry is one byte longer than an earlier one
	first, last byte
}

// Stream implements chunk.StreamDecompressor.
func (*lzwDecoder) Stream(src *bufio.Reader, _ int) (chunk.Stream, error) {
	stream := &lzwStream{src: src, width: 9, next: lzwFirst, before: -1}
	for i := range lzwClear {
		stream.table[i] = lzwEntry{first: byte(i), last: byte(i), length: 1}
	}
	// If src has fewer bytes or fails, Fill finds that again.
	if head, _ := src.Peek(2); len(head) == 2 && oldLZW(head) {
		return nil, errOldLZW()
	}
	return stream, nil
}

// Fill implements chunk.Stream.
func (s *lzwStream) Fill(p []byte) error {
	filled := copy(p, s.pending)
	s.pending = s.pending[filled:]
	for filled < len(p) {
		got, goesOn := s.decode(p[filled:])
		if filled += got; !goesOn {
			return fault.New(fault.Corrupt, "lzw", "ends or breaks off after %d of %d bytes", filled, len(p))
		}
	}
	return nil
}

// decode decodes the codes that src holds in memory, up to the one that fills p. It returns the bytes of p that
// are filled. more is false if the stream ends or is invalid before.
func (s *lzwStream) decode(p []byte) (out int, more bool) {
	if _, err := s.src.Peek(1); err != nil { // it reads if nothing is in memory
		return 0, false
	}
	src, _ := s.src.Peek(s.src.Buffered())
	in := 0
	// Local variables, since the compiler keeps fields in memory.
	acc, have, width, next, before := s.acc, s.have, s.width, s.next, s.before
	for more = true; out < len(p); {
		for have < width && in < len(src) {
			acc, have, in = acc<<8|uint32(src[in]), have+8, in+1
		}
		if have < width {
			break
		}
		have -= width
		code := int(acc >> have & (1<<width - 1))
		if code == lzwClear {
			next, width, before = lzwFirst, 9, -1
			continue
		}
		added := before >= 0 && next < lzwMax
		if added {
			// The code may be the new entry itself, so its first byte must be known before its last.
			prefix := &s.table[before]
			s.table[next] = lzwEntry{prefix: uint16(before), length: prefix.length + 1, first: prefix.first}
			next++
		}
		if code == lzwEnd || code >= next {
			more = false
			break
		}
		entry := &s.table[code]
		if added {
			s.table[next-1].last = entry.first
		}
		length := int(entry.length)
		dst := p[out:]
		if length > len(dst) {
			dst = s.text[:length]
		}
		for i, pos := length-1, code; i >= 0; i-- {
			dst[i] = s.table[pos&(lzwMax-1)].last
			pos = int(s.table[pos&(lzwMax-1)].prefix)
		}
		if length > len(p)-out {
			fits := copy(p[out:], dst)
			s.pending, length = dst[fits:], fits
		}
		out, before = out+length, code
		if next >= 1<<width-1 && width < 12 {
			width++
		}
	}
	s.acc, s.have, s.width, s.next, s.before = acc, have, width, next, before
	_, _ = s.src.Discard(in) // these bytes are in memory
	return out, more
}

// End implements chunk.Stream. Bytes after the content are ignored.
func (*lzwStream) End() error { return nil }

// Close implements chunk.Stream.
func (*lzwStream) Close() {}
