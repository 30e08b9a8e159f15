package filter

import (
	"bytes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/binary"
	"math"

	"github.com/klauspost/compress/zlib"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/planes"
	"github.com/chaski-eo/chaski/internal/zstd"
)

// encode runs a filter over data. metas is the metadata of the filters before it, the latest first, which compressors
// and encryption take in.
type encode func(x *Encoder, f Filter, metas [][]byte, data []byte, e Elem) (meta, out []byte, err error)

// encoders are the filters that are written.
var encoders = map[ID]encode{
	Gzip: compressor(gzip), Zstd: compressor(zstandard), ByteShuffle: byteshuffle,
	AES256GCM: func(x *Encoder, _ Filter, metas [][]byte, data []byte, _ Elem) (meta, out []byte, err error) {
		if x.key == nil {
			return nil, nil, fault.New(fault.Unsupported, "", fault.NoOffset, "the filter needs a key")
		}
		return x.parts(metas, data, x.encrypt)
	},
}

// Encoder applies filter pipelines. It is not safe for concurrent use.
type Encoder struct {
	key cipher.AEAD
}

// NewEncoder returns an encoder. key may be nil.
func NewEncoder(key cipher.AEAD) *Encoder { return &Encoder{key: key} }

// Tile appends the stored form of a tile to out: its filtered chunks. Filters that are not written are
// fault.Unsupported.
func (x *Encoder) Tile(out, src []byte, p Pipeline, e Elem) (_ []byte, err error) {
	limit := max(int(min(p.MaxChunk, math.MaxInt32))/e.Cell*e.Cell, e.Cell)
	chunks := max((len(src)+limit-1)/limit, 1)
	out = binary.LittleEndian.AppendUint64(out, uint64(chunks))
	for range chunks {
		part := src[:min(limit, len(src))]
		src = src[len(part):]
		if out, err = x.chunk(out, part, p, e); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// chunk appends one chunk.
func (x *Encoder) chunk(out, src []byte, p Pipeline, e Elem) ([]byte, error) {
	var metas [][]byte // of the filters so far, the latest first; each a part of its own
	data := src
	for _, filter := range p.Filters {
		if !filter.acts(e) {
			continue
		}
		encode := encoders[filter.ID]
		if encode == nil {
			return nil, fault.New(fault.Unsupported, filter.ID.String(), fault.NoOffset, "it cannot be written")
		}
		meta, encoded, err := encode(x, filter, metas, data, e)
		if err != nil {
			return nil, fault.WithPart(err, filter.ID.String(), fault.NoOffset)
		}
		if kinds[filter.ID].compressor > 0 || filter.ID == AES256GCM {
			metas = nil
		}
		metas, data = append([][]byte{meta}, metas...), encoded
	}
	meta := bytes.Join(metas, nil)
	if !fits32(len(src)) || !fits32(len(data)) || !fits32(len(meta)) {
		return nil, fault.New(fault.Limit, "chunk", fault.NoOffset, "more than 4 GiB")
	}
	out = binary.LittleEndian.AppendUint32(out, uint32(len(src)))
	out = binary.LittleEndian.AppendUint32(out, uint32(len(data)))
	out = binary.LittleEndian.AppendUint32(out, uint32(len(meta)))
	return append(append(out, meta...), data...), nil
}

// parts runs f over every part: the metadata so far, and then the data. f appends the new bytes of
// the part to out, and returns the metadata about it that follows its size.
func (x *Encoder) parts(metas [][]byte, data []byte, f func(out, part []byte) (says, _ []byte,
	err error)) (meta, out []byte, err error) {
	meta = binary.LittleEndian.AppendUint32(nil, uint32(len(metas)))
	meta = binary.LittleEndian.AppendUint32(meta, 1)
	for i := 0; i <= len(metas); i++ {
		part := data
		if i < len(metas) {
			part = metas[i]
		}
		var says []byte
		if says, out, err = f(out, part); err != nil {
			return nil, nil, err
		}
		meta = binary.LittleEndian.AppendUint32(meta, uint32(len(part)))
		meta = append(meta, says...)
	}
	return meta, out, nil
}

func (x *Encoder) encrypt(out, part []byte) (says, _ []byte, err error) {
	var iv [12]byte
	if _, err := rand.Read(iv[:]); err != nil {
		return nil, nil, err
	}
	start := len(out)
	out = x.key.Seal(out, iv[:], part, nil)
	end := len(out) - x.key.Overhead()
	says = binary.LittleEndian.AppendUint32(nil, uint32(end-start))
	says = append(append(says, iv[:]...), out[end:]...)
	return says, out[:end], nil
}

// compressor returns what runs a compressor, which appends the stored form of a part.
func compressor(compress func(out []byte, f Filter, part []byte, e Elem) ([]byte, error)) encode {
	return func(x *Encoder, f Filter, metas [][]byte, data []byte, e Elem) (meta, out []byte, err error) {
		return x.parts(metas, data, func(out, part []byte) ([]byte, []byte, error) {
			start := len(out)
			out, err := compress(out, f, part, e)
			return binary.LittleEndian.AppendUint32(nil, uint32(len(out)-start)), out, err
		})
	}
}

func gzip(out []byte, f Filter, part []byte, _ Elem) ([]byte, error) {
	level := int(f.Level)
	if level < zlib.DefaultCompression || level > zlib.BestCompression {
		level = zlib.DefaultCompression
	}
	stored := bytes.NewBuffer(out)
	writer, err := zlib.NewWriterLevel(stored, level)
	if err == nil {
		_, err = writer.Write(part)
	}
	if err == nil {
		err = writer.Close()
	}
	return stored.Bytes(), err
}

func zstandard(out []byte, f Filter, part []byte, _ Elem) ([]byte, error) {
	if len(part) == 0 {
		return out, nil
	}
	level := 3 // libzstd's default
	if f.Level > 0 {
		level = int(f.Level)
	}
	return zstd.Append(out, part, level), nil
}

func byteshuffle(_ *Encoder, _ Filter, _ [][]byte, data []byte, e Elem) (meta, out []byte, err error) {
	out = make([]byte, len(data))
	planes.Split(out, data, e.Size)
	meta = binary.LittleEndian.AppendUint32(nil, 1) // part
	return binary.LittleEndian.AppendUint32(meta, uint32(len(data))), out, nil
}
