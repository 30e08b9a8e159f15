package pixels

import (
	"context"

	"github.com/zeebo/xxh3"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/catalog"
	"github.com/chaski-eo/chaski/store/taco"
)

// freshness remembers which files were found to have their index although their time has changed: copies
// of a dataset. A file whose place another takes is looked at again.
type freshness struct {
	seen []uint64 // hashes of URI and time
}

// freshPlaces is a power of two. The places are taken with the first file that needs one: 512 KiB.
const freshPlaces = 1 << 16

// check refuses a file that was rewritten since its index was made. One with the size and the time of
// then is not; of one with another time the directory is read again.
func (s *freshness) check(ctx context.Context, a *catalog.Asset, f source.Reader, maxChunk int) error {
	if a.Size > 0 && a.Size != f.Size() {
		return fault.New(fault.Corrupt, "file", fault.NoOffset, "%d bytes; its index was made of one of %d bytes", f.Size(), a.Size)
	}
	t, ok := f.(source.Timed)
	if !ok || a.MTime.IsZero() || t.ModTime().Equal(a.MTime) {
		return nil
	}
	if s.seen == nil {
		s.seen = make([]uint64, freshPlaces)
	}
	key := xxh3.HashStringSeed(a.URI, uint64(t.ModTime().UnixNano())^uint64(a.Offset)) ^ uint64(a.MTime.UnixNano())
	place := &s.seen[key%freshPlaces]
	if *place == key {
		return nil
	}
	same, err := sameIndex(ctx, a, f, maxChunk)
	if err != nil {
		return err
	}
	if !same {
		return fault.New(fault.Corrupt, "file", fault.NoOffset, "rewritten since its index was made")
	}
	*place = key
	return nil
}

// sameIndex reads the directory of an asset again and reports whether its index is still that.
func sameIndex(ctx context.Context, a *catalog.Asset, f source.Reader, maxChunk int) (bool, error) {
	if a.Member == "" {
		return catalog.SameIndex(ctx, f, a.Index, maxChunk)
	}
	part, err := taco.SectionOf(f, a.Offset, a.Length)
	if err != nil {
		return false, err
	}
	return catalog.SameIndex(ctx, part, a.Index.Shift(-a.Offset), maxChunk)
}
