package xz

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"

	"github.com/ulikunitz/xz/lzma"
)

// Chunks of LZMA2 begin with a byte that says what they are and what is forgotten before them. In front of a coded
// one, its lower bits are the highest bits of the size.
const (
	chunkEnd      = 0
	coded         = 1 << 7
	newProperties = coded | 2<<5
)

// Properties of LZMA are (pb*5 + lp)*9 + lc in one byte (I. Pavlov, LZMA specification, LZMA SDK).
const (
	maxProperties = (4*5+4)*9 + 8
	maxLCLP       = 4 // LZMA2 allows no more of lc and lp together
)

// chunkHead is the head of a chunk.
type chunkHead struct {
	size, stored int // bytes of the content, and of the chunk with its head
}

var (
	errCut        = errors.New("the stream ends early")
	errStored     = errors.New("a chunk is not as long as it states")
	errProperties = errors.New("a chunk of properties that LZMA2 does not allow")
)

// readHead reads the head of a chunk that is not the end. It checks what the library does not: tables of larger
// properties take 6 MiB for each chunk.
func readHead(b []byte) (c chunkHead, err error) {
	if len(b) < 3 {
		return c, errCut
	}
	c.size = 1 + int(binary.BigEndian.Uint16(b[1:]))
	if b[0] < coded {
		c.stored = 3 + c.size
		return c, nil
	}
	used := 5
	if b[0] >= newProperties {
		used = 6
	}
	if len(b) < used {
		return c, errCut
	}
	c.size += int(b[0]&0x1f) << 16
	c.stored = used + 1 + int(binary.BigEndian.Uint16(b[3:]))
	if p := b[used-1]; used == 6 && (p > maxProperties || p%9+p/9%5 > maxLCLP) {
		return c, errProperties
	}
	return c, nil
}

// content returns how many bytes the chunks have that hold the first n, as far as they are there.
func content(src []byte, n int) (size int) {
	for size < n && len(src) > 0 && src[0] != chunkEnd {
		c, err := readHead(src)
		if err != nil {
			break
		}
		size += c.size
		src = src[min(c.stored, len(src)):]
	}
	return size
}

// fill fills the front of dst from an LZMA2 stream. It returns how many bytes it wrote and how many of src it used;
// ended reports whether the stream holds no more. The library's dictionary has room for the chunks that dst needs,
// whatever the stream states: it decodes the last one whole, and no match reaches further.
func fill(dst, src []byte) (out, used int, ended bool, err error) {
	in := bytes.NewReader(src)
	room := min(max(int64(content(src, len(dst))), lzma.MinDictCap), lzma.MaxDictCap)
	stream, err := lzma.Reader2Config{DictCap: int(room)}.NewReader2(in)
	for err == nil {
		rest := src[used:]
		if len(rest) > 0 && rest[0] == chunkEnd {
			return out, used + 1, true, nil
		}
		if out == len(dst) {
			return out, used, false, nil // what follows may be damaged
		}
		var c chunkHead
		if c, err = readHead(rest); err != nil {
			break
		}
		whole := c.size <= len(dst)-out
		if whole && len(rest) < c.stored {
			err = errStored
			break
		}
		var n int
		n, err = io.ReadFull(stream, dst[out:min(out+c.size, len(dst))])
		if out += n; err != nil || !whole {
			break
		}
		if used += c.stored; in.Len() != len(src)-used {
			err = errStored
		}
	}
	return out, used, false, err
}
