package dryrun

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/chaski-eo/chaski/loader/pixels"
)

// TestTiles: the chunks that a worker decodes are those that a list of the last ones with room for so many does not
// hold, and reads join neighbours among them only.
func TestTiles(t *testing.T) {
	const bytes, room = 100, 5
	tiles := NewTiles(room * bytes)
	r := rand.New(rand.NewPCG(3, 5))
	type place struct {
		row   int64
		chunk int
	}
	var held []place // the last used one first
	evicted := int64(0)
	for range 2000 {
		row, first := int64(r.IntN(3)), r.IntN(6)
		asset := &Asset{}
		for k := first; k < first+1+r.IntN(3); k++ {
			// Chunks lie end to end, 10 bytes each.
			asset.Chunks = append(asset.Chunks, Chunk{Chunk: k, Off: int64(10 * k), Len: 10, Decoded: bytes})
		}
		var want []int
		requests, last := int64(0), -2
		var used []place
		for _, one := range asset.Chunks {
			p := place{row, one.Chunk}
			used = append(used, p)
			if i := slices.Index(held, p); i >= 0 {
				held = slices.Delete(held, i, i+1)
				continue
			}
			want = append(want, one.Chunk)
			if last != one.Chunk-1 {
				requests++
			}
			last = one.Chunk
			if len(held)+len(used) > room {
				held, evicted = held[:len(held)-1], evicted+1
			}
		}
		for _, p := range used {
			held = slices.Insert(held, 0, p)
		}
		var work Work
		var got []int
		for _, one := range tiles.Asset(asset, pixels.TileKey{Row: row}, &work) {
			got = append(got, one.Chunk)
		}
		if !slices.Equal(got, want) || work.Requests != requests || work.Bytes != int64(10*len(want)) ||
			work.Chunks != int64(len(want)) || work.Decoded != int64(bytes*len(want)) || tiles.Evicted() != evicted {
			t.Fatalf("chunks %v of row %d: %v by %+v, %d evicted; want %v in %d reads, %d evicted", asset.Chunks, row,
				got, work, tiles.Evicted(), want, requests, evicted)
		}
	}
}
