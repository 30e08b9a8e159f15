package diskcache

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"iter"
	"slices"

	"github.com/zeebo/xxh3"

	"github.com/chaski-eo/chaski/source"
)

// Object names a version of a remote object. URIs are not in the folder, because some have secrets: only their hash is.
type Object struct {
	uri     [16]byte // the begin of the SHA-256 of the URI and of who may read it
	version [8]byte  // the XXH3 hash of its size and tag
}

// NameObject returns the name of a version of an object. reader says which rights it is read with: ranges that were
// read with others are not its own.
func NameObject(uri, reader, tag string, size int64) (o Object) {
	hash := sha256.Sum256(append(append(append(make([]byte, 0, 256), uri...), 0), reader...))
	copy(o.uri[:], hash[:])
	binary.BigEndian.PutUint64(o.version[:], xxh3.HashStringSeed(tag, uint64(size)))
	return o
}

// Span is a range of bytes of an object, from From up to End.
type Span struct{ From, End int64 }

// spanOf returns a range as a span. One whose end overflows ends before it begins: see isRange.
func spanOf(r source.Range) Span { return Span{r.Off, r.Off + r.Len} }

func (s Span) len() int64 { return s.End - s.From }

// within returns the part of a span that lies within another.
func (s Span) within(t Span) Span { return Span{max(s.From, t.From), min(s.End, t.End)} }

// bucketBytes is the size of the stretches by which an index finds ranges: about as much as a loader reads at a time.
// Smaller ones would put a range into many of them.
const bucketBytes = 1 << 20

// longest is the longest range that an index looks for: it stands in 4096 buckets. No loader reads so much at a time.
const longest = 4096 * bucketBytes

// isRange reports whether a span may be one that is read. Others come from headers that lie.
func (s Span) isRange() bool { return 0 <= s.From && s.From <= s.End && s.len() <= longest }

type spanBucket struct {
	uri    [16]byte
	number int64
}

// stored is a range of a version of an object.
type stored struct {
	Object
	Span
}

// index knows which ranges there are. A range stands in every bucket that it touches.
type index map[spanBucket][]stored

// bucketsOf yields the buckets that a range touches.
func bucketsOf(o Object, s Span) iter.Seq[spanBucket] {
	return func(yield func(spanBucket) bool) {
		for k := s.From / bucketBytes; k <= (s.End-1)/bucketBytes; k++ {
			if !yield(spanBucket{o.uri, k}) {
				return
			}
		}
	}
}

func (x index) add(o Object, s Span) {
	for b := range bucketsOf(o, s) {
		if !slices.Contains(x[b], stored{o, s}) {
			x[b] = append(x[b], stored{o, s})
		}
	}
}

func (x index) remove(o Object, s Span) {
	for b := range bucketsOf(o, s) {
		x[b] = slices.DeleteFunc(x[b], func(other stored) bool { return other == stored{o, s} })
		if len(x[b]) == 0 {
			delete(x, b)
		}
	}
}

// touching returns the ranges that have bytes of a span, by their begin.
func (x index) touching(o Object, s Span) []Span {
	var out []Span
	for bucket := range bucketsOf(o, s) {
		for _, other := range x[bucket] {
			overlaps := other.version == o.version && other.From < s.End && other.End > s.From
			// Of the buckets that it stands in, the first one that the span touches counts.
			if overlaps && max(other.From, s.From)/bucketBytes == bucket.number {
				out = append(out, other.Span)
			}
		}
	}
	slices.SortFunc(out, func(a, b Span) int { return cmp.Compare(a.From, b.From) })
	return out
}

// otherVersions returns ranges of other versions of an object: those in its first bucket, where nearly all have one.
func (x index) otherVersions(o Object) []stored {
	var out []stored
	for _, s := range x[spanBucket{o.uri, 0}] {
		if s.version != o.version {
			out = append(out, s)
		}
	}
	return out
}

// cover returns the ranges that hold what can be had of a span, without ranges that others hold already.
func cover(ranges []Span, s Span) []Span {
	var out []Span
	end := s.From
	for _, r := range ranges {
		if r.End > end {
			out = append(out, r)
			end = r.End
		}
	}
	return out
}

// gapsOf returns the parts of a span that no range has.
func gapsOf(ranges []Span, s Span) []Span {
	var out []Span
	end := s.From
	for _, held := range ranges {
		if held.From > end {
			out = append(out, Span{end, held.From})
		}
		end = max(end, held.End)
	}
	if end < s.End {
		out = append(out, Span{end, s.End})
	}
	return out
}
