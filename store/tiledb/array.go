package tiledb

import (
	"crypto/cipher"
	"slices"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/digest"
	"github.com/chaski-eo/chaski/internal/keylock"
	"github.com/chaski-eo/chaski/source"
)

// Array is an open array: its state when it was opened. It is safe for concurrent use.
type Array struct {
	Schema *Schema
	// Fragments are the fragments that count, in the order in which later ones win.
	Fragments []*Fragment
	// Hidden are the fragments that a consolidated fragment replaces.
	Hidden []*Fragment

	uri         string
	store       source.Opener
	schemas     map[string]*Schema      // by the name of their files
	schemaLock  keylock.Locks[struct{}] // held while a schema is read
	o           Options
	key         cipher.AEAD
	axes        []int  // 0, 1, …: the dimensions in their own order
	shadowed    []bool // by fragment: it is sparse and lies under a later dense one
	anyShadowed bool   // any fragment is shadowed
}

// URI returns the path or URI of the array.
func (a *Array) URI() string { return a.uri }

// Format returns the latest format version of the array's schema and fragments.
func (a *Array) Format() int {
	version := a.Schema.version()
	for _, f := range a.Fragments {
		version = max(version, f.Version)
	}
	return int(version)
}

// NonEmpty returns the bounds of the cells that were written, inside the domain, or nil if no cell was written.
func (a *Array) NonEmpty() Box {
	if len(a.Fragments) == 0 {
		return nil
	}
	boxes := make([]Box, len(a.Fragments))
	for i, fragment := range a.Fragments {
		boxes[i] = fragment.NonEmpty
	}
	return union(boxes).cut(a.Schema.Domain()) // the tiles of a dense fragment may reach past the domain: see denseGrid
}

// maxCovers limits the pieces that Covers looks at, because the number of pieces grows
// exponentially with the number of overlapping fragments.
const maxCovers = 256

// Covers reports whether dense fragments hold every cell of a box. It may report false for a box
// that more than 256 pieces of fragments cover together.
func (a *Array) Covers(b Box) bool {
	left := maxCovers
	return a.covers(b, len(a.Fragments), &left)
}

// covers is Covers for the first n fragments. left counts the pieces that may still be looked at.
func (a *Array) covers(b Box, n int, left *int) bool {
	if *left--; *left < 0 {
		return false
	}
	for n--; n >= 0; n-- {
		fragment := a.Fragments[n]
		if !fragment.Dense || !fragment.NonEmpty.intersects(b) {
			continue
		}
		// The fragment holds the middle of the box: the parts that stick out on each side must be
		// covered by earlier fragments.
		rest := slices.Clone(b)
		for d, held := range fragment.NonEmpty {
			below, above := slices.Clone(rest), slices.Clone(rest)
			below[d].Hi, above[d].Lo = held.Lo-1, held.Hi+1
			if rest[d].Lo < held.Lo && !a.covers(below, n, left) || rest[d].Hi > held.Hi && !a.covers(above, n, left) {
				return false
			}
			rest[d] = Interval{max(rest[d].Lo, held.Lo), min(rest[d].Hi, held.Hi)}
		}
		return true
	}
	return false
}

// Fingerprint returns 32 hexadecimal digits that identify the content of the array: its schema, and the names, sizes
// and bounds of the fragments that count. It does not depend on the path of the array. It is the XXH3-128 of
//
//	"chaski array 1\n", the length of the schema's content and the content, the number of fragments,
//	and for each fragment its name, preceded by its length, its bounds, and the size of each of its files
//
// where numbers are 8 bytes, little-endian, and coordinates have their own type. Content is decrypted, and a schema
// does not list the filter that encrypts, so a decrypted copy has the same fingerprint.
func (a *Array) Fingerprint() string {
	hash := digest.New()
	_, _ = hash.WriteString("chaski array 1\n")
	hash.Record(a.Schema.content)
	hash.Number(uint64(len(a.Fragments)))
	for _, fragment := range a.Fragments {
		hash.Record([]byte(fragment.Name))
		_, _ = hash.Write(a.Schema.appendBox(nil, fragment.NonEmpty))
		for _, n := range slices.Concat(fragment.foot.sizes[:]...) {
			hash.Number(n)
		}
	}
	return hash.Hex()
}

// appendBox appends the bounds of a box, as files have them.
func (s *Schema) appendBox(b []byte, box Box) []byte {
	for d, i := range box {
		typ := s.Type(d)
		b = typ.store(typ.store(b, i.Lo), i.Hi)
	}
	return b
}

// Shape returns the number of cells of a box of a dense array along each dimension, and in total. A
// box with more cells than Options.MaxResult is fault.Limit.
func (a *Array) Shape(b Box) (shape []int, cells int, err error) {
	if !a.Schema.Dense {
		return nil, 0, fault.New(fault.Unsupported, "sub-array", "a sparse array has no shape")
	}
	if err := a.Schema.check(b); err != nil {
		return nil, 0, err
	}
	shape, count := b.shape(a.o.MaxResult)
	if count == 0 {
		return nil, 0, fault.New(fault.Limit, "sub-array", "more than %d cells", a.o.MaxResult)
	}
	return shape, int(count), nil
}
