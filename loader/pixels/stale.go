package pixels

import (
	"cmp"
	"context"
	"time"

	"github.com/zeebo/xxh3"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/catalog"
)

// freshness remembers the files whose index still holds although their modification time has changed,
// as in a copied dataset, so each such file is checked once and not for every window. It is a hash
// table of fixed size: a file that another one overwrites is checked again.
type freshness struct {
	slots []uint64 // hashes of URI and times, at the hash modulo freshPlaces; 0 is an empty slot
}

// freshPlaces is the number of slots of freshness.
const freshPlaces = 1 << 16 // of 8 bytes: 512 KiB a worker, allocated with the first file that needs a slot

// check refuses file f if it was rewritten since the index of asset a was made, with a fault of kind
// corrupt. It accepts a file with the recorded size and modification time. If only the time differs,
// it reads the file's directory again and compares the indexes, because copies have other times.
func (s *freshness) check(ctx context.Context, a *catalog.Asset, f source.Reader, maxChunk int) error {
	now, err := otherTime(a, f)
	if err != nil || now.IsZero() {
		return err
	}
	if s.slots == nil {
		s.slots = make([]uint64, freshPlaces)
	}
	// Offset is part of the key, since all assets of a container share the URI and time of its file.
	// The recorded time is too, because another catalog may hold another index of the same file.
	key := xxh3.HashStringSeed(a.URI, uint64(now.UnixNano())^uint64(a.Offset)) ^ uint64(a.MTime.UnixNano())
	place := &s.slots[key%freshPlaces]
	if *place == key {
		return nil
	}
	if err := hasIndex(ctx, a, f, maxChunk); err != nil {
		return err
	}
	*place = key // only now: a check that failed must be repeated
	return nil
}

// otherTime returns the modification time of a file if it is not the recorded one, else zero. It fails if the file has
// another size.
func otherTime(a *catalog.Asset, f source.Reader) (now time.Time, _ error) {
	if a.Size > 0 && a.Size != f.Size() {
		return now, fault.New(fault.Corrupt, "file",
			"%d bytes; its index was made of one of %d bytes", f.Size(), a.Size)
	}
	if now = source.ModTime(f); a.MTime.IsZero() || now.Equal(a.MTime) {
		return time.Time{}, nil
	}
	return now, nil
}

// hasIndex reads the directory of an asset again, and refuses a file that has another index.
func hasIndex(ctx context.Context, a *catalog.Asset, f source.Reader, maxChunk int) error {
	index, part := cmp.Or(a.Raster, a.Index), f
	// The offsets of a's index count from the start of the container, offsets of the directory from the
	// start of the asset, so the index must be shifted before the two are compared.
	if a.Member != "" {
		section, err := source.SectionOf(f, a.Offset, a.Length)
		if err != nil {
			return err
		}
		index, part = index.Shift(-a.Offset), section
	}
	same, err := catalog.SameIndex(ctx, part, index, a.Beside, a.Axes, maxChunk)
	if err == nil && !same {
		return fault.New(fault.Corrupt, "file", "rewritten since its index was made")
	}
	return err
}
