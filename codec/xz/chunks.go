package xz

import (
	"encoding/binary"
	"errors"
)

// Chunks of LZMA2 begin with a byte that says what they are and what is forgotten before them. In front of a coded
// one, its lower bits are the highest bits of the size.
const (
	chunkEnd      = 0
	plainReset    = 1 // stored as it is; no match reaches further back
	plain         = 2
	coded         = 1 << 7
	resetState    = coded | 1<<5
	newProperties = coded | 2<<5
	resetAll      = coded | 3<<5
)

// chunkHead is the head of a chunk.
type chunkHead struct {
	kind               byte
	properties         byte
	used, size, stored int // bytes of the head itself, of the content, and those that it is stored in
}

// readHead reads the head of a chunk that is not the end.
func readHead(b []byte) (c chunkHead, ok bool) {
	if len(b) < 3 {
		return c, false
	}
	c = chunkHead{kind: b[0], used: 3, size: 1 + int(binary.BigEndian.Uint16(b[1:]))}
	c.stored = c.size
	if c.kind < coded {
		return c, true
	}
	if c.used = 5; c.kind >= newProperties {
		c.used = 6
	}
	if len(b) < c.used {
		return c, false
	}
	c.size += int(c.kind&0x1f) << 16
	c.stored = 1 + int(binary.BigEndian.Uint16(b[3:]))
	c.properties = b[c.used-1]
	return c, true
}

var (
	errChunk      = errors.New("a chunk of a kind that is unknown, or cannot stand here")
	errProperties = errors.New("a chunk of properties that LZMA2 does not allow")
)

// fill fills the front of dst from an LZMA2 stream. It returns how many bytes it wrote and how many of src it used;
// ended reports whether the stream holds no more. The dictionary is dst, whatever the stream states: no match within
// dst reaches further.
func (d *decoder) fill(dst, src []byte) (out, used int, ended bool, err error) {
	// ready says that lc, lp and pb are known: no symbol must come before them.
	start, begun, ready := 0, false, false
	for {
		rest := src[used:]
		if len(rest) > 0 && rest[0] == chunkEnd {
			return out, used + 1, true, nil
		}
		if out == len(dst) {
			return out, used, false, nil // what follows may be damaged
		}
		head, ok := readHead(rest)
		if !ok {
			return out, used, false, errCut
		}
		if head.kind == plainReset || head.kind >= resetAll {
			start, begun, ready = out, true, false
		}
		if head.kind >= newProperties {
			if ready = d.setProperties(head.properties); !ready {
				return out, used, false, errProperties
			}
		}
		known := head.kind <= plain || head.kind >= coded && ready
		if !begun || !known {
			return out, used, false, errChunk
		}
		if head.kind >= resetState {
			d.reset()
		}
		content := rest[head.used:min(head.used+head.stored, len(rest))]
		whole := head.size <= len(dst)-out
		if whole && len(content) < head.stored {
			return out, used, false, errStored
		}
		end := min(out+head.size, len(dst))
		switch {
		case head.kind >= coded && !d.start(content):
			return out, used, false, errSymbols
		case head.kind >= coded:
			out, err = d.symbols(dst, start, out, head.size)
		default:
			out += copy(dst[out:end], content)
		}
		if err == nil && out < end {
			err = errCut
		}
		if err != nil || !whole {
			return out, used, false, err
		}
		used += head.used + len(content)
	}
}
