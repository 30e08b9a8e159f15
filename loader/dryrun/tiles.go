package dryrun

import (
	"container/list"

	"github.com/chaski-eo/chaski/chunk"
	"github.com/chaski-eo/chaski/loader/pixels"
)

// Tiles does what pixels.TileCache does for one worker, without the tiles.
type Tiles struct {
	// Evicted counts the tiles that made room for others, and those for which there was no room.
	Evicted     int64
	bound, held int64 // bytes
	by          map[pixels.TileKey]*plannedTile
	used        list.List // of *plannedTile
}

// plannedTile is a tile that a run would hold.
type plannedTile struct {
	key     pixels.TileKey
	bytes   int64
	holders int
	place   *list.Element
}

// NewTiles returns an empty cache of at most bound bytes.
func NewTiles(bound int64) *Tiles {
	return &Tiles{bound: bound, by: map[pixels.TileKey]*plannedTile{}}
}

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
	var got []*plannedTile
	var mine []Chunk
	for _, one := range chunks {
		if one.sparse || one.held > 0 { // no tile; Range.Count counts the reads
			w.Chunks++
			w.Decoded += int64(one.Decoded)
			continue
		}
		key.Chunk = one.Chunk
		t, found := c.get(key, int64(one.Decoded))
		if t != nil {
			got = append(got, t)
		}
		if !found {
			mine = append(mine, one)
			w.Chunks++
			w.Decoded += int64(one.Decoded)
		}
	}
	for _, t := range got {
		if t.holders--; t.holders == 0 {
			t.place = c.used.PushFront(t)
		}
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

// get is TileCache's get: it returns nil if there is no room.
func (c *Tiles) get(key pixels.TileKey, n int64) (t *plannedTile, there bool) {
	if t = c.by[key]; t != nil {
		if t.holders++; t.place != nil {
			c.used.Remove(t.place)
			t.place = nil
		}
		return t, true
	}
	for c.held+n > c.bound {
		last := c.used.Back()
		if last == nil {
			c.Evicted++
			return nil, false
		}
		old := c.used.Remove(last).(*plannedTile)
		delete(c.by, old.key)
		c.held -= old.bytes
		c.Evicted++
	}
	t = &plannedTile{key: key, bytes: n, holders: 1}
	c.by[key] = t
	c.held += n
	return t, false
}
