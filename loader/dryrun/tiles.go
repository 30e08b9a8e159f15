package dryrun

import (
	"container/list"

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
	for _, chunk := range chunks {
		if chunk.sparse || chunk.held > 0 { // no tile; Range.Count counts the reads
			w.Chunks++
			w.Decoded += int64(chunk.Decoded)
			continue
		}
		key.Chunk = chunk.Chunk
		t, found := c.get(key, int64(chunk.Decoded))
		if t != nil {
			got = append(got, t)
		}
		if !found {
			mine = append(mine, chunk)
			w.Chunks++
			w.Decoded += int64(chunk.Decoded)
		}
	}
	for _, t := range got {
		if t.holders--; t.holders == 0 {
			t.place = c.used.PushFront(t)
		}
	}
	// This loop must join chunks as nextRun of package pixels does, otherwise the forecast would
	// not be exact.
	for i := 0; i < len(mine); {
		if mine[i].Len == 0 { // a chunk of an array, whose reads Arrays.Blocks counts
			i++
			continue
		}
		off, end := mine[i].Off, mine[i].Off+mine[i].Len
		for i++; i < len(mine); i++ {
			last := max(end, mine[i].Off+mine[i].Len)
			if mine[i].Off < off || mine[i].Off-end > gap || last-off > pixels.MaxRun {
				break
			}
			end = last
		}
		w.Requests++
		w.Bytes += end - off
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
