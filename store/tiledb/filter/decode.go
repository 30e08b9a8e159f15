package filter

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/binary"
	"slices"
	"strconv"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/cast"
	"github.com/chaski-eo/chaski/internal/expand"
	"github.com/chaski-eo/chaski/internal/kernel"
	"github.com/chaski-eo/chaski/internal/planes"
	"github.com/chaski-eo/chaski/internal/zstd"
)

// Spare is the capacity that the destination of Decoder.Tile should have past its length, because
// the fastest decoding writes past the end.
const Spare = zstd.Spare

// NewKey makes the cipher of AES-256-GCM from a key of 32 bytes.
func NewKey(key []byte) (cipher.AEAD, error) {
	if len(key) != 32 {
		return nil, fault.New(fault.Unsupported, "key", "an AES-256 key has 32 bytes, this one %d", len(key))
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, fault.Wrap(fault.Unsupported, "key", err)
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		return nil, fault.Wrap(fault.Unsupported, "key", err)
	}
	return aead, nil
}

// Decoder undoes filter pipelines. It reuses its scratch memory from tile to tile and is not safe for concurrent use.
type Decoder struct {
	key     cipher.AEAD // nil: encrypted tiles are unsupported
	streams expand.Decoder

	data     [2][]byte // the data between two filters, alternating
	meta     [2][]byte
	turn     int
	metaTurn int
	wet      []byte // ciphertext and tag joined, as the cipher needs them
	steps    []step
}

// step is a filter of a pipeline that changes a tile, and the values that it sees.
type step struct {
	Filter
	e Elem
}

// NewDecoder returns a decoder for one worker. key may be nil.
func NewDecoder(key cipher.AEAD) *Decoder { return &Decoder{key: key} }

// tileChunk is one chunk of a tile.
type tileChunk struct {
	off        int // of its header, in the tile's stored bytes
	orig       int // decoded bytes
	meta, data []byte
}

const chunkHeader = 12

// nextChunk reads the chunk at src[off:].
func nextChunk(src []byte, off int) (tileChunk, int, error) {
	if len(src)-off < chunkHeader {
		return tileChunk{}, 0, fault.At(fault.Corrupt, "chunk header", int64(off), "%d bytes left, %d needed",
			len(src)-off, chunkHeader)
	}
	header := src[off:]
	orig, stored, meta := binary.LittleEndian.Uint32(header), binary.LittleEndian.Uint32(header[4:]),
		binary.LittleEndian.Uint32(header[8:])
	rest := header[chunkHeader:]
	if uint64(stored)+uint64(meta) > uint64(len(rest)) {
		return tileChunk{}, 0, fault.At(fault.Corrupt, "chunk header", int64(off),
			"%d bytes of metadata and %d of data, %d are left", meta, stored, len(rest))
	}
	c := tileChunk{off: off, orig: int(orig), meta: rest[:meta:meta], data: rest[meta:][:stored:stored]}
	return c, off + chunkHeader + int(meta) + int(stored), nil
}

// Size returns the decoded size of a tile and the number of its chunks, from the headers of the
// chunks only. src must be exactly the stored bytes of the tile.
func Size(src []byte) (size int64, chunks int, err error) {
	count, err := chunkCount(src)
	if err != nil {
		return 0, 0, err
	}
	off := 8
	for range count {
		var read tileChunk
		if read, off, err = nextChunk(src, off); err != nil {
			return 0, 0, err
		}
		size += int64(read.orig)
	}
	if off != len(src) {
		return 0, 0, fault.At(fault.Corrupt, "tile", int64(off), "%d bytes behind its last chunk", len(src)-off)
	}
	return size, count, nil
}

func chunkCount(src []byte) (int, error) {
	if len(src) < 8 {
		return 0, fault.At(fault.Corrupt, "tile", 0, "%d bytes, at least 8 needed", len(src))
	}
	count := binary.LittleEndian.Uint64(src)
	if count > uint64(len(src)-8)/chunkHeader {
		return 0, fault.At(fault.Corrupt, "number of chunks", 0, "%d chunks in %d bytes", count, len(src)-8)
	}
	return int(count), nil
}

// Tile fills dst[lo:hi] from the stored bytes src of a tile of len(dst) bytes. The rest of dst and
// Spare bytes of its capacity past it may be overwritten. Chunks outside lo and hi are not decoded.
// Part and offset of an error belong to the chunk; offsets count from the start of src.
func (d *Decoder) Tile(dst, src []byte, p Pipeline, e Elem, lo, hi int) error {
	size, chunks, err := Size(src)
	if err != nil {
		return err
	}
	if size != int64(len(dst)) {
		return fault.At(fault.Corrupt, "tile", 0, "its chunks hold %d bytes, %d needed", size, len(dst))
	}
	d.plan(p, e)
	off, pos := 8, 0
	for i := range chunks {
		var current tileChunk
		if current, off, err = nextChunk(src, off); err != nil {
			return err
		}
		if pos < hi && pos+current.orig > lo {
			if err := d.chunk(dst[pos:pos+current.orig], current); err != nil {
				return fault.WithPart(err, "chunk "+strconv.Itoa(i), int64(current.off))
			}
		}
		pos += current.orig
	}
	return nil
}

// plan lists the filters of a pipeline that change tiles of e.
func (d *Decoder) plan(p Pipeline, e Elem) {
	d.steps = d.steps[:0]
	for _, filter := range p.Filters {
		if filter.acts(e) {
			d.steps = append(d.steps, step{filter, e})
		}
		e = filter.after(e)
	}
}

// chunk fills dst from one chunk. dst keeps the capacity of the tile.
func (d *Decoder) chunk(dst []byte, c tileChunk) error {
	meta, data := c.meta, c.data
	for i := len(d.steps) - 1; i >= 0; i-- {
		out := dst
		if i > 0 {
			out = nil
		}
		var err error
		if meta, data, err = d.undo(d.steps[i], out, meta, data, len(dst)); err != nil {
			return err
		}
	}
	if len(meta) > 0 {
		return corrupt("chunk metadata", "%d bytes are left over", len(meta))
	}
	if len(data) != len(dst) {
		return corrupt("chunk data", "%d bytes, %d needed", len(data), len(dst))
	}
	if len(d.steps) == 0 {
		copy(dst, data)
	}
	return nil
}

// room returns n bytes to decode into: dst, if it is not nil, otherwise scratch memory.
func (d *Decoder) room(dst []byte, n int64, final int) ([]byte, error) {
	if dst != nil {
		if n != int64(len(dst)) {
			return nil, corrupt("", "%d bytes come out, %d needed", n, len(dst))
		}
		return dst, nil
	}
	if n > maxData(final) {
		return nil, fault.New(fault.Limit, "", "%d bytes come out on the way to %d", n, final)
	}
	d.turn ^= 1
	d.data[d.turn] = slices.Grow(d.data[d.turn][:0], int(n)+Spare)[:n]
	return d.data[d.turn], nil
}

// undo undoes one filter: see filterKind.undo.
func (d *Decoder) undo(f step, dst, meta, data []byte, final int) (m, out []byte, err error) {
	switch kind := &kinds[f.ID]; {
	case kind.expand != nil:
		m, out, err = d.decompress(f, dst, meta, data, final)
	case kind.undo != nil:
		m, out, err = kind.undo(d, f, dst, meta, data, final)
	default:
		err = fault.New(fault.Unsupported, "", "it is not the first filter of strings of variable length")
	}
	if err != nil {
		return nil, nil, fault.WithPart(err, f.ID.String(), fault.NoOffset)
	}
	return m, out, nil
}

func (d *Decoder) unshuffle(f step, dst, meta, data []byte, final int) (m, out []byte, err error) {
	size := f.e.Size
	sizes, err := partSizes(&meta, data)
	if err != nil {
		return nil, nil, err
	}
	if out, err = d.room(dst, int64(len(data)), final); err != nil {
		return nil, nil, err
	}
	target := out
	for ; len(sizes) > 0; sizes = sizes[4:] {
		length := binary.LittleEndian.Uint32(sizes)
		part, _ := take(&data, length)
		switch {
		case f.ID == ByteShuffle:
			planes.Join(target[:length], part, size)
		case len(part)%size != 0 || len(part)%8 != 0:
			copy(target, part)
		default:
			unbitshuffle(target[:length], part, size)
		}
		target = target[length:]
	}
	return meta, out, nil
}

func (d *Decoder) widen(f step, dst, meta, data []byte, final int) (m, out []byte, err error) {
	elem := f.e
	total, _ := u32(&meta)
	windows, ok := u32(&meta)
	header := uint64(elem.Size) + 5
	if !ok || uint64(windows)*header > uint64(len(meta)) {
		return nil, nil, corrupt("metadata", "%d windows in %d bytes", windows, len(meta))
	}
	if out, err = d.room(dst, int64(total), final); err != nil {
		return nil, nil, err
	}
	target := out
	for i := range windows {
		h, _ := take(&meta, uint32(header))
		off, width, length := cast.Uint(h, elem.Size), int(h[elem.Size]), binary.LittleEndian.Uint32(h[elem.Size+1:])
		if width != 8 && width != 16 && width != 32 && width != 64 {
			return nil, nil, corrupt("metadata", "window %d of %d bits", i, width)
		}
		if uint64(length) > uint64(len(target)) {
			return nil, nil, corrupt("metadata", "window %d of %d bytes, %d are left", i, length, len(target))
		}
		plain := width >= 8*elem.Size || int(length)%elem.Size != 0
		stored := length
		if !plain {
			stored = length / uint32(elem.Size) * uint32(width/8)
		}
		window, ok := take(&data, stored)
		switch {
		case !ok:
			return nil, nil, corrupt("", "window %d takes %d bytes, %d are left", i, stored, len(data))
		case plain:
			copy(target, window)
		default:
			widen(target[:length], window, elem.Size, width, elem.Kind == Signed, off)
		}
		target = target[length:]
	}
	if len(target) > 0 || len(data) > 0 {
		return nil, nil, corrupt("", "%d bytes are in no window, %d of the data", len(target), len(data))
	}
	return meta, out, nil
}

func (d *Decoder) undelta(f step, dst, meta, data []byte, final int) (m, out []byte, err error) {
	size := f.e.Size
	windows, ok := u32(&meta)
	header := uint64(size) + 4
	if !ok || uint64(windows)*header > uint64(len(meta)) {
		return nil, nil, corrupt("metadata", "%d windows in %d bytes", windows, len(meta))
	}
	if out, err = d.room(dst, int64(len(data)), final); err != nil {
		return nil, nil, err
	}
	copy(out, data)
	target := out
	for i := range windows {
		h, _ := take(&meta, uint32(header))
		off, length := cast.Uint(h, size), binary.LittleEndian.Uint32(h[size:])
		window, ok := take(&target, length)
		if !ok {
			return nil, nil, corrupt("metadata", "window %d of %d bytes, %d are left", i, length, len(target))
		}
		if len(window)%size == 0 && len(window) > 0 {
			cast.PutUint(window, size, cast.Uint(window, size)+off)
			kernel.UndoHorizontal(window, len(window), size, 1)
		}
	}
	if len(target) > 0 {
		return nil, nil, corrupt("", "%d bytes are in no window", len(target))
	}
	return meta, out, nil
}

// metaParts is the metadata of filters that consume the metadata and data before them part by part:
// compressors and encryption.
type metaParts struct {
	header            int // bytes a part
	list              []byte
	nmeta, n          int
	metaSize, outSize int64
}

// readParts parses it. It adds the sizes up to check them against the data.
func readParts(meta []byte, header int) (p metaParts, err error) {
	nmeta, _ := u32(&meta)
	ndata, ok := u32(&meta)
	count := uint64(nmeta) + uint64(ndata)
	if !ok || count*uint64(header) != uint64(len(meta)) {
		return p, corrupt("metadata", "%d and %d parts in %d bytes", nmeta, ndata, len(meta))
	}
	p = metaParts{header: header, list: meta, nmeta: int(nmeta), n: int(count)}
	for i := range p.n {
		orig, _ := p.sizes(i)
		if i < p.nmeta {
			p.metaSize += int64(orig)
		} else {
			p.outSize += int64(orig)
		}
	}
	return p, nil
}

// at returns the header of part i.
func (p *metaParts) at(i int) []byte { return p.list[i*p.header : (i+1)*p.header] }

// sizes returns the size of part i before and after the filter.
func (p *metaParts) sizes(i int) (orig, stored uint32) {
	h := p.at(i)
	return binary.LittleEndian.Uint32(h), binary.LittleEndian.Uint32(h[4:])
}

// each allocates room for the metadata and data of p, and calls f for each part with its destination.
func (d *Decoder) each(p *metaParts, dst, data []byte, final int, f func(i int, dst, src []byte) error) (m, out []byte,
	err error) {
	if p.metaSize > maxMeta(final) {
		return nil, nil, fault.New(fault.Limit, "metadata", "%d bytes come out for %d of data", p.metaSize, final)
	}
	if out, err = d.room(dst, p.outSize, final); err != nil {
		return nil, nil, err
	}
	// The two buffers alternate, since filters between this one and the writer of p.list passed the other one on.
	d.metaTurn ^= 1
	d.meta[d.metaTurn] = slices.Grow(d.meta[d.metaTurn][:0], int(p.metaSize)+Spare)[:p.metaSize]
	m = d.meta[d.metaTurn]
	target := m
	for i := range p.n {
		if i == p.nmeta {
			target = out
		}
		orig, stored := p.sizes(i)
		src, ok := take(&data, stored)
		if !ok {
			return nil, nil, corrupt("", "part %d has %d bytes, %d are left", i, stored, len(data))
		}
		if err := f(i, target[:orig], src); err != nil {
			return nil, nil, err
		}
		target = target[orig:]
	}
	if len(data) > 0 {
		return nil, nil, corrupt("", "%d bytes are in no part", len(data))
	}
	return m, out, nil
}

func (d *Decoder) decrypt(_ step, dst, meta, data []byte, final int) (m, out []byte, err error) {
	if d.key == nil {
		return nil, nil, fault.New(fault.Unsupported, "", "the tile is encrypted and there is no key")
	}
	const iv, tag = 12, 16
	parts, err := readParts(meta, 8+iv+tag)
	if err != nil {
		return nil, nil, err
	}
	return d.each(&parts, dst, data, final, func(i int, dst, src []byte) error {
		if len(src) != len(dst) {
			return corrupt("", "part %d has %d bytes, encrypted %d", i, len(dst), len(src))
		}
		header := parts.at(i)[8:]
		d.wet = append(append(d.wet[:0], src...), header[iv:]...)
		plain, err := d.key.Open(d.wet[:0], header[:iv], d.wet, nil)
		if err != nil {
			return corrupt("", "part %d is damaged, or the key is another", i)
		}
		copy(dst, plain)
		return nil
	})
}
