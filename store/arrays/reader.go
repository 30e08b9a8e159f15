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

// reader reads chunks of an array for one worker: of labels and coordinates, and to check them.
type reader struct {
	a      *Array
	dec    chunkDecoder
	stored []byte // of the last chunk that is an object
	tile   []byte // the last chunk, decoded
}

// Read fills dst with the cells from lo up to hi of each dimension, in C order. The box must lie in the array.
func (a *Array) Read(ctx context.Context, dst []byte, lo, hi []int64) error {
	if err := a.ready(); err != nil {
		return err
	}
	stride, size := make([]int64, len(lo)), int64(a.DType.Size())
	for d := len(lo) - 1; d >= 0; d-- {
		stride[d], size = size, size*(hi[d]-lo[d])
	}
	r := &reader{a: a}
	begin, end := a.chunksOf(lo, hi)
	return eachIn(begin, end, func(at []int64) error {
		src, strides, err := r.chunk(ctx, at)
		if err != nil {
			return err
		}
		to, from := int64(0), int64(0)
		part := make([]span, len(at)) // of the chunk that lies in the box
		for d := range at {
			start := at[d] * a.Chunks[d]
			first, end := max(lo[d], start), min(hi[d], start+a.Chunks[d])
			to += (first - lo[d]) * stride[d]
			from += (first - start) * strides[d]
			part[d] = span{end - first, stride[d], strides[d]}
		}
		copyBox(dst[to:], src[from:], part, a.DType.Size())
		return nil
	})
}

// span is one dimension of a box: its cells, and the bytes from one to the next in two memories.
type span struct{ n, to, from int64 }

// copyBox copies a box of samples of size bytes.
func copyBox(dst, src []byte, dims []span, size int) {
	if len(dims) == 0 {
		copy(dst[:size], src)
		return
	}
	switch outer := dims[0]; {
	case len(dims) > 1:
		for i := range outer.n {
			copyBox(dst[i*outer.to:], src[i*outer.from:], dims[1:], size)
		}
	case outer.to == int64(size) && outer.from == int64(size):
		copy(dst[:outer.n*outer.to], src)
	default:
		kernel.CopyStrided(dst, src, int(outer.n), int(outer.to), int(outer.from), size)
	}
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

// chunk returns the decoded chunk at some coordinates, valid until the next call, and its strides. All cells of one
// that was not written are the fill value.
func (r *reader) chunk(ctx context.Context, at []int64) (samples []byte, strides []int64, err error) {
	if err := ctx.Err(); err != nil {
		return nil, nil, err
	}
	place, err := r.a.Find(ctx, at)
	var data []byte
	found := false
	if err == nil && !place.Absent {
		data, found, err = r.fetch(ctx, &place)
	}
	switch {
	case err != nil:
		return nil, nil, err
	case !found:
		strides = make([]int64, len(at))
		if size := r.a.DType.Size(); len(at) > 0 && len(r.a.Fill) > size { // it is a text, along the last dimension
			strides[len(at)-1] = int64(size)
		}
		return r.a.Fill, strides, nil
	}
	return r.tile, r.a.strides(), r.a.fault(r.unpack(data, place.Skip), at, fault.NoOffset)
}

// unpack decodes the bytes of a chunk into tile, which is bounded by Options.MaxChunk.
func (r *reader) unpack(b []byte, skip uint32) error {
	stored := r.a.bytes
	steps, err := r.a.stepsWithout(skip)
	switch {
	case err != nil:
		return err
	case len(steps) > 0 && steps[0].sum != nil: // the checksum says so itself
		stored = -1
	case len(steps) > 0:
		stored = steps[0].stored()
	}
	if stored >= 0 && stored != len(b) {
		return badSize("bytes", len(b), stored)
	}
	// The tile is allocated only after its bytes have arrived, so metadata alone takes no memory.
	r.tile = slices.Grow(r.tile[:0], r.a.bytes+zstd.Spare)[:r.a.bytes]
	return r.a.decode(&r.dec, r.tile, b, skip)
}

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

// fault adds the chunk, its object and its place there to an error.
func (a *Array) fault(err error, at []int64, off int64) error {
	if err == nil {
		return nil
	}
	uri, name := a.URI, cmp.Or(strings.Trim(strings.ReplaceAll(fmt.Sprint(at), " ", "."), "[]"), "0")
	if a.objects != nil {
		uri, name = a.objects.Object(at), a.objects.Name(at)
	}
	return fault.WithFile(fault.WithPart(err, "chunk "+name, off), uri)
}

// fetch returns the stored bytes of a chunk, valid until the next call, or false if it was not written.
func (r *reader) fetch(ctx context.Context, p *chunk.Stored) (b []byte, ok bool, err error) {
	if p.Inline != nil {
		return p.Inline, true, nil
	}
	if r.stored, ok, err = r.a.read(ctx, r.stored, p); ok && p.Pad > 0 {
		r.stored = append(r.stored, make([]byte, p.Pad)...)
	}
	return r.stored, ok, err
}
