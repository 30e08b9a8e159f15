package arrays

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/internal/kernel"
	"github.com/chaski-eo/chaski/internal/zstd"
)

// Reader reads boxes of an array: labels, coordinates, and chunks to check. It keeps the last chunk that it read. It is
// not safe for concurrent use.
type Reader struct {
	a      *Array
	dec    chunkDecoder
	stored []byte // of the last chunk that is an object
	tile   []byte // the last chunk, decoded
	at     []int64
	valid  bool // tile holds the chunk at
	absent bool // which was not written
}

// NewReader returns a reader for one worker.
func (a *Array) NewReader() *Reader { return &Reader{a: a} }

// ReadInto fills dst with the cells from lo up to hi of each dimension. stride has the bytes from one cell to the next
// in dst along each dimension. The box must lie in the array.
func (r *Reader) ReadInto(ctx context.Context, dst []byte, lo, hi, stride []int64) error {
	array := r.a
	if err := array.ready(); err != nil {
		return err
	}
	return eachIn(array.chunksOf(lo, hi), func(at []int64) error { return r.chunk(ctx, dst, at, lo, hi, stride) })
}

// chunk puts the part of one chunk that lies in the box into dst.
func (r *Reader) chunk(ctx context.Context, dst []byte, at, lo, hi, stride []int64) error {
	array := r.a
	part := copier{size: array.DType.Size()}
	off, begin := int64(0), int64(0)
	whole := true
	strides := array.strides()
	for d := range at {
		start := at[d] * array.Chunks[d]
		first, end := max(lo[d], start), min(hi[d], start+array.Chunks[d])
		off += (first - lo[d]) * stride[d]
		begin += (first - start) * strides[d]
		full, asStored := first == start && end-first == array.Chunks[d], end-first == 1 || stride[d] == strides[d]
		whole = whole && full && asStored
		part.add(end-first, stride[d], strides[d])
	}
	// The chunk is as the box, so it needs no copy: it is decoded where it goes.
	if whole {
		done, err := r.straight(ctx, dst[off:off+int64(array.bytes)], at)
		if done || err != nil {
			return err
		}
	}
	if err := r.load(ctx, at); err != nil {
		return err
	}
	if r.absent {
		n := part.run(false)
		fillDims(dst[off:], array.Fill, part.dims, n)
		return nil
	}
	part.copy(dst[off:], r.tile[begin:])
	return nil
}

// strides returns the bytes from one cell to the next in a decoded chunk along each dimension.
func (a *Array) strides() []int64 {
	out := make([]int64, len(a.Chunks))
	stride := int64(a.DType.Size())
	for _, d := range slices.Backward(a.Order) {
		out[d] = stride
		stride *= a.Chunks[d]
	}
	return out
}

// straight decodes a chunk into dst. It reports false if the chunk is loaded already.
func (r *Reader) straight(ctx context.Context, dst []byte, at []int64) (bool, error) {
	if r.valid && slices.Equal(r.at, at) {
		return false, nil
	}
	data, skip, ok, err := r.bytes(ctx, at)
	if err != nil {
		return true, err
	}
	if !ok {
		kernel.Fill(dst, r.a.Fill)
		return true, nil
	}
	return true, r.fault(r.decode(slices.Clip(dst), data, skip), at, fault.NoOffset)
}

// load decodes the chunk at into tile, unless tile holds it already.
func (r *Reader) load(ctx context.Context, at []int64) error {
	if r.valid && slices.Equal(r.at, at) {
		return nil
	}
	r.valid = false
	data, skip, ok, err := r.bytes(ctx, at)
	if err != nil {
		return err
	}
	if r.absent = !ok; ok {
		if err := r.unpack(data, skip); err != nil {
			return r.fault(err, at, fault.NoOffset)
		}
	}
	r.at, r.valid = append(r.at[:0], at...), true
	return nil
}

// unpack decodes the bytes of a chunk into tile, which is bounded by Options.MaxChunk.
func (r *Reader) unpack(b []byte, skip uint32) error {
	stored := r.a.bytes
	if steps, err := r.a.stepsWithout(skip); err == nil && len(steps) > 0 {
		stored = steps[0].stored()
	}
	if stored >= 0 && stored != len(b) {
		return badSize("bytes", len(b), stored)
	}
	// The tile is allocated only after its bytes have arrived, so metadata alone takes no memory.
	r.tile = slices.Grow(r.tile[:0], r.a.bytes+zstd.Spare)[:r.a.bytes]
	return r.decode(r.tile, b, skip)
}

// decode decodes the bytes of a chunk.
func (r *Reader) decode(dst, b []byte, skip uint32) error { return r.a.decode(&r.dec, dst, b, skip) }

// decode decodes the stored bytes of a chunk into dst.
func (a *Array) decode(d *chunkDecoder, dst, stored []byte, skip uint32) error {
	steps, err := a.stepsWithout(skip)
	if err == nil {
		err = d.chunk(dst, stored, steps)
	}
	if err == nil && a.Bool {
		booleans(dst)
	}
	return err
}

// booleans makes 1 of every byte that is not 0, as numpy reads them.
func booleans(b []byte) {
	for i, v := range b {
		if v > 1 {
			b[i] = 1
		}
	}
}

// fault is Array.fault of the reader's array.
func (r *Reader) fault(err error, at []int64, off int64) error { return r.a.fault(err, at, off) }

// fault adds the chunk, its object and its place there to an error.
func (a *Array) fault(err error, at []int64, off int64) error {
	if err == nil {
		return nil
	}
	uri, name := a.URI, cmp.Or(strings.Trim(strings.ReplaceAll(fmt.Sprint(at), " ", "."), "[]"), "0")
	if a.objects != nil {
		uri, name = a.objects.Object(at)
	}
	return fault.WithFile(fault.WithPart(err, "chunk "+name, off), uri)
}

// bytes returns the stored bytes of a chunk, valid until the next call, or false if it was not written. skip is as in
// place.
func (r *Reader) bytes(ctx context.Context, at []int64) (b []byte, skip uint32, ok bool, err error) {
	if err := ctx.Err(); err != nil {
		return nil, 0, false, err
	}
	place, err := r.a.Find(ctx, at)
	if err != nil || place.Absent {
		return nil, 0, false, err
	}
	b, ok, err = r.fetch(ctx, &place)
	return b, place.Skip, ok, err
}

// fetch is bytes for a chunk whose place is known.
func (r *Reader) fetch(ctx context.Context, p *chunk.Stored) (b []byte, ok bool, err error) {
	if p.Inline != nil {
		return p.Inline, true, nil
	}
	if r.stored, ok, err = r.a.read(ctx, r.stored, p); ok && p.Pad > 0 {
		r.stored = append(r.stored, make([]byte, p.Pad)...)
	}
	return r.stored, ok, err
}
