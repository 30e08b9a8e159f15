package zarr

import (
	"cmp"
	"context"
	"slices"

	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/internal/ahead"
)

// Limits of reading ahead in shards.
const (
	maxHeldRuns  = 8 << 20 // bytes of runs that a reader holds
	maxAheadTile = 1 << 16 // chunks of one window that are looked up ahead
	maxAheadRank = 8       // dimensions of an array that is read ahead in
)

// cellKey is the coordinates of a chunk, of a fixed size to be a key.
type cellKey [maxAheadRank]int64

// Ahead announces the boxes that are read next. It reads the indexes of shards that are not in memory, and joins the
// ranges of neighbours. Without shards it does nothing.
func (r *Reader) Ahead(ctx context.Context, boxes []Box) error {
	r.forget()
	if len(r.a.shards) == 0 && r.a.foreign == nil || len(r.a.Shape) > maxAheadRank || r.a.ready() != nil {
		return nil
	}
	if r.places == nil {
		r.places = map[cellKey]chunkPlace{}
	}
	for _, b := range boxes {
		if err := r.want(ctx, b); err != nil {
			return err
		}
		if len(r.places) > maxAheadTile {
			r.forget()
			return nil
		}
	}
	return r.announce(ctx)
}

// forget forgets the boxes, but keeps the memory of their bytes.
func (r *Reader) forget() {
	clear(r.places)
	r.ranges.Forget()
}

// want finds the chunks of a box, until they are too many.
func (r *Reader) want(ctx context.Context, b Box) error {
	return eachIn(r.a.chunksOf(b.Lo, b.Hi), func(at []int64) error {
		var key cellKey
		copy(key[:], at)
		if _, ok := r.places[key]; ok || len(r.places) > maxAheadTile {
			return ctx.Err()
		}
		place, err := r.a.find(ctx, at)
		if err == nil { // with an error, the place says that the chunk was not written
			r.places[key] = place
		}
		return err
	})
}

// announce announces the ranges of the chunks, object by object.
func (r *Reader) announce(ctx context.Context) error {
	objects := map[string][]chunkPlace{}
	for _, p := range r.places {
		if !p.Absent && p.Inline == nil {
			objects[p.uri] = append(objects[p.uri], p)
		}
	}
	for uri, places := range objects {
		file, err := source.OpenKnown(ctx, r.a.open, uri, places[0].object)
		if err != nil {
			return err
		}
		gap, limit := source.Gap(file), int64(ahead.MaxLocalRun)
		if err := file.Close(); err != nil {
			return err
		}
		if source.IsRemote(uri) {
			limit = ahead.MaxRun
		}
		slices.SortFunc(places, func(a, b chunkPlace) int { return cmp.Compare(a.At.Off, b.At.Off) })
		for _, p := range places {
			r.ranges.File(uri).Expect(p.At, gap, limit)
		}
	}
	return nil
}

// placeOf returns where a chunk is: as Ahead found it, or as it is found now.
func (r *Reader) placeOf(ctx context.Context, at []int64) (chunkPlace, error) {
	if len(r.places) > 0 {
		var key cellKey
		copy(key[:], at)
		if p, ok := r.places[key]; ok {
			return p, nil
		}
	}
	return r.a.find(ctx, at)
}
