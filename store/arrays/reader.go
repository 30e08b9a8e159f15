package arrays

import (
	"cmp"
	"context"
	"encoding/binary"
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
		dstOff, srcOff := int64(0), int64(0)
		part := make([]span, len(at)) // of the chunk that lies in the box
		for d := range at {
			start := at[d] * a.Chunks[d]
			first, end := max(lo[d], start), min(hi[d], start+a.Chunks[d])
			dstOff += (first - lo[d]) * stride[d]
			srcOff += (first - start) * strides[d]
			part[d] = span{end - first, stride[d], strides[d]}
		}
		copyBox(dst[dstOff:], src[srcOff:], part, a.DType.Size())
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

const (
	// maxStrings bounds the bytes of the strings of an array, which are in memory.
	maxStrings = 64 << 20
	// stringCost is the memory of a string beside its bytes.
	stringCost = 16
)

// Chunks of strings of any length have no known size: numcodecs (vlen-utf8) writes their number and, for each, its
// bytes behind their number, all numbers of 4 bytes.

// readStrings reads the strings of an array (n) of strings of any length.
func (a *Array) readStrings(ctx context.Context) ([]string, error) {
	if len(a.Shape) != 1 {
		return nil, fault.New(fault.Unsupported, "strings", "strings of the shape %v: labels are (n) strings", a.Shape)
	}
	n := a.Shape[0]
	if n > maxStrings/stringCost {
		return nil, fault.New(fault.Limit, "strings", "%d strings, at most %d", n, maxStrings/stringCost)
	}
	if err := a.options.memory.take(ctx, n*stringCost); err != nil {
		return nil, err
	}
	texts := make([]string, n)
	r, left := &reader{a: a}, maxStrings
	for coords := []int64{0}; coords[0]*a.Chunks[0] < n; coords[0]++ {
		place, err := a.chunks.Find(ctx, coords)
		if err != nil || place.Absent {
			if err != nil {
				return nil, err
			}
			continue
		}
		var data []byte
		var ok bool
		if r.stored, ok, err = r.readAll(ctx, &place); err != nil || !ok {
			if err != nil {
				return nil, err
			}
			continue
		}
		data = r.stored
		for i := range a.steps {
			if data, err = r.dec.opened(&a.steps[i], data, left); err != nil {
				err = fault.WithPart(err, "codec "+a.steps[i].name, fault.NoOffset)
				return nil, a.fault(err, coords, fault.NoOffset)
			}
		}
		first := coords[0] * a.Chunks[0]
		if err := splitStrings(texts[first:min(first+a.Chunks[0], n)], data); err != nil {
			return nil, a.fault(err, coords, fault.NoOffset)
		}
		if left -= len(data); left < 0 {
			return nil, fault.New(fault.Limit, "strings", "more than %d bytes of labels", maxStrings)
		}
		if err := a.options.memory.take(ctx, int64(len(data))); err != nil {
			return nil, err
		}
	}
	return texts, nil
}

// splitStrings splits the content of a chunk of strings. The last strings may lie behind the end of the array.
func splitStrings(to []string, data []byte) error {
	if len(data) < 4 || int64(binary.LittleEndian.Uint32(data)) < int64(len(to)) {
		return broken("codec vlen-utf8", "%d bytes, for %d strings", len(data), len(to))
	}
	data = data[4:]
	for i := range to {
		if len(data) < 4 || int64(binary.LittleEndian.Uint32(data)) > int64(len(data)-4) {
			return broken("codec vlen-utf8", "string %d reaches past the end", i)
		}
		size := binary.LittleEndian.Uint32(data)
		to[i], data = string(data[4:4+size]), data[4+size:]
	}
	return nil
}

// readAll reads the bytes of a chunk of no known size.
func (r *reader) readAll(ctx context.Context, p *chunk.Stored) ([]byte, bool, error) {
	whole := *r.a
	whole.bytes = maxStrings / 2
	return whole.read(ctx, r.stored, p)
}
