package tiledb

import (
	"crypto/cipher"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/zeebo/xxh3"

	"github.com/chaski-eo/chaski/fault"
)

// Array is an open array: what it held when it was opened. It is safe for concurrent use.
type Array struct {
	Schema *Schema
	// Fragments are those that count, in the order in which later ones win.
	Fragments []*Fragment
	// Hidden are those that a consolidated fragment replaces.
	Hidden []*Fragment

	uri   string
	store Store
	o     Options
	key   cipher.AEAD
	axes  []int  // 0, 1, …: the dimensions in their order
	under []bool // sparse fragments that lie under later dense ones
	mixed bool   // there are such
}

// URI returns where the array lies.
func (a *Array) URI() string { return a.uri }

// NonEmpty returns the bounds of the cells that were written, inside of the domain; nil where there are none.
func (a *Array) NonEmpty() Box {
	var b Box
	for _, f := range a.Fragments {
		if b == nil {
			b = append(b, f.NonEmpty...)
		}
		for d, i := range f.NonEmpty {
			b[d] = Interval{min(b[d].Lo, i.Lo), max(b[d].Hi, i.Hi)}
		}
	}
	if b == nil {
		return nil
	}
	return b.cut(a.Schema.Domain()) // a dense fragment may reach past it: see denseGrid
}

// maxCovers bounds the pieces that Covers looks at.
const maxCovers = 256

// Covers reports whether every cell of a box was written, as far as dense fragments say so: it may miss it where
// the box is pieced together of very many.
func (a *Array) Covers(b Box) bool {
	left := maxCovers
	return a.covers(b, len(a.Fragments), &left)
}

// covers is Covers for the first n fragments.
func (a *Array) covers(b Box, n int, left *int) bool {
	if *left--; *left < 0 {
		return false
	}
	for n--; n >= 0; n-- {
		f := a.Fragments[n]
		if !f.Dense || !f.NonEmpty.intersects(b) {
			continue
		}
		// What sticks out on each side is for the others.
		rest := append(Box{}, b...)
		for d, i := range f.NonEmpty {
			if rest[d].Lo < i.Lo {
				out := append(Box{}, rest...)
				out[d].Hi = i.Lo - 1
				if !a.covers(out, n, left) {
					return false
				}
				rest[d].Lo = i.Lo
			}
			if rest[d].Hi > i.Hi {
				out := append(Box{}, rest...)
				out[d].Lo = i.Hi + 1
				if !a.covers(out, n, left) {
					return false
				}
				rest[d].Hi = i.Hi
			}
		}
		return true
	}
	return false
}

// Fingerprint returns 32 hexadecimal digits that depend on the schema, and on the names and sizes of the fragments
// that count and what they cover; not on where the array lies. It is the XXH3-128 of
//
//	"chaski array 1\n", the length of the schema's content and the content, the number of fragments,
//	and for each its name, with its length in front, the bounds of what it covers, and the bytes of each of
//	its files
//
// where numbers are 8 bytes, little-endian, and coordinates in their own type. What an encrypted array adds to
// pipelines is left out.
func (a *Array) Fingerprint() string {
	b := []byte("chaski array 1\n")
	number := func(n uint64) { b = binary.LittleEndian.AppendUint64(b, n) }
	s := a.Schema.append(nil)
	number(uint64(len(s)))
	b = append(b, s...)
	number(uint64(len(a.Fragments)))
	for _, f := range a.Fragments {
		number(uint64(len(f.Name)))
		b = append(b, f.Name...)
		for _, i := range f.NonEmpty {
			b = a.Schema.DimType.store(a.Schema.DimType.store(b, i.Lo), i.Hi)
		}
		for _, n := range slices.Concat(f.foot.sizes, f.foot.varSizes) {
			number(n)
		}
	}
	h := xxh3.Hash128(b)
	return fmt.Sprintf("%016x%016x", h.Hi, h.Lo)
}

// Shape returns the number of cells of a box along each dimension of a dense array, and of all of them.
// The result of reading it may be too large; then it is fault.Limit.
func (a *Array) Shape(b Box) (shape []int, cells int, err error) {
	if !a.Schema.Dense {
		return nil, 0, fault.New(fault.Unsupported, "sub-array", fault.NoOffset, "a sparse array has no shape")
	}
	if err := a.Schema.check(b); err != nil {
		return nil, 0, err
	}
	shape, n := b.shape(a.o.MaxResult)
	if n == 0 {
		return nil, 0, fault.New(fault.Limit, "sub-array", fault.NoOffset, "more than %d cells", a.o.MaxResult)
	}
	return shape, int(n), nil
}
