package hdf5

import "math"

const (
	dataspacePart = "dataspace"
	// maxRank is the largest number of dimensions, which HDF5 itself has.
	maxRank = 32
	// Unlimited is the largest size of a dimension that may grow without end.
	Unlimited = math.MaxInt64
)

// Dataspace is the shape of a dataset or an attribute.
type Dataspace struct {
	Null  bool    // there are no elements
	Shape []int64 // nil for one element
	// Max are the sizes up to which the dimensions may grow: the shape itself, or Unlimited.
	Max []int64
}

// dataspace reads a dataspace.
func (w *walk) dataspace(b *block) (*Dataspace, error) {
	version, err := b.version(1, 2)
	if err != nil {
		return nil, err
	}
	rank, flags, kind := int(b.u8()), b.u8(), b.u8()
	if version == 1 {
		b.take(4)
	}
	if rank > maxRank {
		return nil, b.fail("%d dimensions, at most %d", rank, maxRank)
	}
	space := &Dataspace{Null: version == 2 && kind == 2}
	for range rank {
		n := b.length()
		if n > math.MaxInt64/2 {
			return nil, b.fail("%d elements along a dimension", n)
		}
		space.Shape = append(space.Shape, int64(n))
	}
	space.Max = space.Shape
	if flags&1 != 0 {
		space.Max = nil
		for d := range rank {
			n := b.length()
			if n == undefined>>(64-8*b.lengthSize) {
				n = Unlimited
			}
			if b.err == nil && n < uint64(space.Shape[d]) {
				return nil, b.fail("%d elements along a dimension of at most %d", space.Shape[d], n)
			}
			space.Max = append(space.Max, int64(min(n, Unlimited)))
		}
	}
	return space, b.err
}

// count returns the number of elements, or -1 if they are more than limit.
func (s *Dataspace) count(limit int64) int64 {
	if s.Null {
		return 0
	}
	return product(s.Shape, limit)
}

// product multiplies sizes. It returns -1 if that is more than limit.
func product(sizes []int64, limit int64) int64 {
	n := int64(1)
	for _, size := range sizes {
		if size == 0 {
			return 0
		}
	}
	for _, size := range sizes {
		if size > limit/n {
			return -1
		}
		n *= size
	}
	return n
}
