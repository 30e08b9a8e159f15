package dryrun

import (
	"github.com/chaski-eo/chaski/chunk"
	"github.com/chaski-eo/chaski/loader/pixels"
)

// Tiles shares the tiles of a run with one worker, in a cache that only counts them.
type Tiles struct{ cache *pixels.TileCache }

// NewTiles returns an empty cache of at most bound bytes.
func NewTiles(bound int64) *Tiles { return &Tiles{pixels.NewTileCounter(bound)} }

// Evicted returns how many tiles made room for others, or had no room.
func (c *Tiles) Evicted() int64 { return c.cache.Evicted }

// Asset counts the reads of an asset, and then of its mask, by a pixels.Reader that shares tiles.
// It returns the chunks that are decoded. It leaves out the reads of chunks that are decoded in pieces, which
// are not shared.
func (c *Tiles) Asset(a *Asset, key pixels.TileKey, w *Work) (mine []Chunk) {
	start := 0
	for start < len(a.Chunks) {
		end := start
		for end < len(a.Chunks) && a.Chunks[end].Mask == a.Chunks[start].Mask {
			end++
		}
		key.Mask = a.Chunks[start].Mask
		mine = append(mine, c.plane(a.Chunks[start:end], key, a.gap, w)...)
		start = end
	}
	return mine
}

// plane counts the reads of the chunks of an asset or of its mask, and returns the chunks that are
// decoded.
func (c *Tiles) plane(chunks []Chunk, key pixels.TileKey, gap int64, w *Work) []Chunk {
	var mine []Chunk
	var puts []func() // in the order of the chunks, which decides what is evicted
	for _, one := range chunks {
		if one.sparse || one.held > 0 { // no tile; Range.Count counts the reads
			w.Chunks++
			w.Decoded += int64(one.Decoded)
			continue
		}
		key.Chunk = one.Chunk
		t, own := c.cache.Get(key, one.Decoded)
		if t == nil || own {
			mine = append(mine, one)
			w.Chunks++
			w.Decoded += int64(one.Decoded)
		}
		if own {
			c.cache.Finish(t, false)
		}
		if t != nil {
			puts = append(puts, func() { c.cache.Put(t) })
		}
	}
	for _, put := range puts {
		put()
	}
	for i := 0; i < len(mine); {
		if mine[i].Len == 0 { // a chunk of an array, whose reads Arrays.Blocks counts
			i++
			continue
		}
		join := chunk.Join{Span: mine[i].place(), MaxGap: gap, MaxLen: pixels.MaxRun}
		for i++; i < len(mine) && join.Take(mine[i].place()); {
			i++
		}
		w.Requests++
		w.Bytes += join.Span.Len
	}
	return mine
}
