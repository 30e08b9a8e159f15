package arrays

import (
	"cmp"
	"slices"

	"github.com/chaski-eo/chaski/internal/kernel"
)

// copier copies boxes between two memories with strides.
type copier struct {
	size int // bytes of a sample
	dims []dimSpan
}

// dimSpan is one dimension: cells, and the bytes between two of them at both ends.
type dimSpan struct{ n, to, from int64 }

// add adds a dimension, unless it has one cell.
func (c *copier) add(n, to, from int64) {
	if n > 1 {
		c.dims = append(c.dims, dimSpan{n, to, from})
	}
}

// run returns the bytes that are next to each other at both ends, and takes their dimensions away.
func (c *copier) run(from bool) int64 {
	bytes := int64(c.size)
	for {
		joined := -1
		for i, d := range c.dims {
			if d.to == bytes && (!from || d.from == bytes) {
				joined = i
			}
		}
		if joined < 0 {
			return bytes
		}
		bytes *= c.dims[joined].n
		c.dims = slices.Delete(c.dims, joined, joined+1)
	}
}

// copy copies the box from the beginning of src to the beginning of dst.
func (c *copier) copy(dst, src []byte) {
	bytes := c.run(true)
	// The dimension with the smallest step at the source goes inside, so memory is read in order.
	slices.SortFunc(c.dims, func(a, b dimSpan) int { return cmp.Compare(b.from, a.from) })
	copyDims(dst, src, c.dims, bytes)
}

func copyDims(dst, src []byte, dims []dimSpan, n int64) {
	if len(dims) == 0 {
		copy(dst[:n], src[:n])
		return
	}
	outer := dims[0]
	if len(dims) == 1 {
		kernel.CopyStrided(dst, src, int(outer.n), int(outer.to), int(outer.from), int(n))
		return
	}
	for i := range outer.n {
		copyDims(dst[i*outer.to:], src[i*outer.from:], dims[1:], n)
	}
}

// fillDims puts a sample into every cell of a box.
func fillDims(dst, sample []byte, dims []dimSpan, n int64) {
	if len(dims) == 0 {
		kernel.Fill(dst[:n], sample)
		return
	}
	for i := range dims[0].n {
		fillDims(dst[i*dims[0].to:], sample, dims[1:], n)
	}
}
