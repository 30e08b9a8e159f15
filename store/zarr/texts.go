package zarr

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/chaski-eo/chaski/format/chunk"
)

// fixedText is a type of strings of one length: an array of bytes, whose last dimension is a string.
type fixedText struct {
	bytes int64
	wide  bool // UTF-32 in place of bytes
	big   bool
}

// vlenText is the codec of strings of any length.
const vlenText = "vlen-utf8"

// maxText bounds the bytes of a string.
const maxText = 1 << 20

// textType parses a type of version 2, such as "<U8" or "|S3".
func textType(typ string) (t fixedText, ok bool) {
	if len(typ) < 3 || !strings.Contains("<>|", typ[:1]) || typ[1] != 'U' && typ[1] != 'S' {
		return t, false
	}
	n, err := strconv.ParseInt(typ[2:], 10, 32)
	if t = (fixedText{bytes: n, wide: typ[1] == 'U', big: typ[0] == '>'}); t.wide {
		t.bytes *= 4
	}
	return t, err == nil && t.bytes > 0 && t.bytes <= maxText
}

// textType3 parses a type of version 3.
func textType3(raw json.RawMessage) (t fixedText, ok bool) {
	var typ struct {
		Name string `json:"name"`
		Conf struct {
			Bytes int64 `json:"length_bytes"`
		} `json:"configuration"`
	}
	if json.Unmarshal(raw, &typ) != nil || typ.Conf.Bytes < 1 || typ.Conf.Bytes > maxText {
		return t, false
	}
	t = fixedText{bytes: typ.Conf.Bytes, wide: typ.Name == "fixed_length_utf32"}
	return t, t.wide && t.bytes%4 == 0 || typ.Name == "null_terminated_bytes"
}

// hold turns the metadata of an array of strings into metadata of their bytes, with one axis more, before its codecs
// are read.
func (t fixedText) hold(m *meta) {
	m.DType, m.Fill = chunk.Uint8, []byte{0}
	m.Shape, m.Chunks = append(m.Shape, t.bytes), append(m.Chunks, t.bytes)
	m.Texts = t.texts
}

// texts implements arrays.Texts. As for numpy, zeros end a string.
func (t fixedText) texts(ctx context.Context, data []byte) ([]string, error) {
	list := make([]string, 0, int64(len(data))/t.bytes)
	for ; int64(len(data)) >= t.bytes; data = data[t.bytes:] {
		element := data[:t.bytes]
		if t.wide {
			var runes []rune
			for i := 0; i < len(element); i += 4 {
				order := binary.ByteOrder(binary.LittleEndian)
				if t.big {
					order = binary.BigEndian
				}
				runes = append(runes, rune(order.Uint32(element[i:])))
			}
			list = append(list, strings.TrimRight(string(runes), "\x00"))
		} else {
			list = append(list, strings.TrimRight(string(element), "\x00"))
		}
	}
	return list, ctx.Err()
}
