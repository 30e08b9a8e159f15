package xz

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"

	"github.com/ulikunitz/xz/lzma"
)

// Chunks of LZMA2 begin with a byte that says what they are. In front of a coded one, its lower bits are the highest
// bits of the size.
const (
	chunkEnd      = 0
	coded         = 1 << 7
	newProperties = coded | 2<<5
)

// maxProperties is what LZMA2 allows for pb, and for lc and lp together. The library takes more, and 6 MiB for them.
const maxProperties = 4

// longestMatch is the room that the library wants behind the last byte.
const longestMatch = 273

// highestRatio is more than LZMA reaches: a match of 273 bytes has 14 bits of 0.022 bits each at least, so a byte
// holds 7,000.
const highestRatio = 1 << 13

var (
	errCut        = errors.New("the stream ends early")
	errStored     = errors.New("the chunks are not as long as they state")
	errProperties = errors.New("a chunk of properties that LZMA2 does not allow")
)

// measure walks over the chunks of the LZMA2 stream that src begins with, until they hold more than limit bytes. It
// returns how many bytes they hold, how many they are stored in, and whether the end of the stream is among them.
func measure(src []byte, limit int) (content, used int, ended bool, err error) {
	for content <= limit {
		rest := src[used:]
		if len(rest) > 0 && rest[0] == chunkEnd {
			return content, used + 1, true, nil
		}
		head, stored := 3, 0
		switch {
		case len(rest) > 0 && rest[0] >= newProperties:
			head = 6
		case len(rest) > 0 && rest[0] >= coded:
			head = 5
		}
		if len(rest) < head {
			return 0, 0, false, errCut
		}
		size := 1 + int(binary.BigEndian.Uint16(rest[1:]))
		if stored = size; rest[0] >= coded {
			size += int(rest[0]&0x1f) << 16
			stored = 1 + int(binary.BigEndian.Uint16(rest[3:]))
			if size > stored*highestRatio {
				return 0, 0, false, errStored
			}
		}
		if rest[0] >= newProperties {
			lc, lp, pb := rest[5]%9, rest[5]/9%5, rest[5]/45
			if lc+lp > maxProperties || pb > maxProperties {
				return 0, 0, false, errProperties
			}
		}
		content += size
		if used += head + stored; used > len(src) {
			return 0, 0, false, errCut
		}
	}
	return content, used, false, nil
}

// fill fills the front of dst from an LZMA2 stream. It returns how many bytes it wrote and how many of src it used;
// ended reports whether the stream holds no more. The dictionary holds all chunks that dst needs, whatever size the
// stream states: the library decodes the last chunk ahead, past dst, where matches reach as far back. One chunk has
// 2 MiB at most.
func fill(dst, src []byte) (out, used int, ended bool, err error) {
	content, used, ended, err := measure(src, len(dst))
	if err != nil {
		return 0, 0, false, err
	}
	out = min(content, len(dst))
	r := bytes.NewReader(src[:used])
	stream, err := lzma.Reader2Config{DictCap: max(lzma.MinDictCap, content+longestMatch)}.NewReader2(r)
	if err != nil {
		return 0, 0, false, err
	}
	if n, err := io.ReadFull(stream, dst[:out]); err != nil {
		return n, 0, false, err
	}
	if ended {
		if n, err := stream.Read(make([]byte, 1)); n > 0 || !errors.Is(err, io.EOF) || !stream.EOS() || r.Len() > 0 {
			return out, 0, false, errStored
		}
	}
	return out, used, ended, nil
}
