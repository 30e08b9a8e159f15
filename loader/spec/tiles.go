package spec

import (
	"cmp"
	"fmt"

	"github.com/chaski-eo/chaski/shuffle"
)

// TileWindows are the members of a Sampler of kind "tile_window": random windows in an order in which a tile is decoded
// once for many of them. A visit of a tile takes windows whose corners lie in it; the windows of a pool of visits are
// shuffled together.
type TileWindows struct {
	// Visits is PerAsset of "tile_window", in place of it.
	Visits int `json:"visits,omitempty"`
	// Tile is the height and width of the tiles of "tile_window" in pixels. Default: the chunks of the first asset. It
	// is TileHeight and TileWidth in one.
	Tile *Pair `json:"tile,omitempty"`
	// TileHeight and TileWidth are the sides of the tiles of "tile_window" in pixels of the first
	// raster field. Default: the chunks of its first asset.
	TileHeight int `json:"tile_height,omitempty"`
	TileWidth  int `json:"tile_width,omitempty"`
	// PerVisit is the number of windows that a visit of "tile_window" takes from its tile. Default
	// 16.
	PerVisit int `json:"per_visit,omitempty"`
	// Pool is the number of visits whose windows are shuffled together. Default: as many as fit
	// into PoolBytes.
	Pool int `json:"pool,omitempty"`
	// PoolBytes is the memory for the decoded tiles of a pool, in bytes. Default 64 MiB.
	PoolBytes int64 `json:"pool_bytes,omitempty" hash:"pool"`
}

// TileWindow is the kind of samplers of windows that are drawn tile by tile.
const TileWindow = "tile_window"

// DefaultPoolBytes is the default of Sampler.PoolBytes: 64 MiB.
const DefaultPoolBytes = 64 << 20

var tiles = samplerKind{
	name: TileWindow, members: func(s *Sampler) any { return &s.TileWindows }, counts: true,
	defaults: (*Sampler).fillTiles, check: (*Sampler).checkTiles, plan: (*Sampler).planTiles,
	SamplerTraits: SamplerTraits{Corners: true, Tiles: true},
}

func (s *Sampler) fillTiles() {
	sides(&s.Tile, &s.TileHeight, &s.TileWidth)
	if s.PerAsset == 0 && s.Visits > 0 && s.Visits <= maxPerAsset {
		s.PerAsset, s.Visits = s.Visits, 0
	}
	s.PerVisit = cmp.Or(s.PerVisit, 16)
	// A given Pool decides the order alone, so a spec with one needs no default for PoolBytes.
	if s.Pool == 0 {
		s.PoolBytes = cmp.Or(s.PoolBytes, DefaultPoolBytes)
	}
}

func (s *Sampler) checkTiles() error {
	switch {
	case s.Visits != 0 && s.PerAsset == 0:
		return wrong("visits", s.Visits, "it must be from 1 to %d", maxPerAsset)
	case s.Visits != 0:
		return fmt.Errorf("visits is %d, and per_asset, for which it stands, is %d", s.Visits, s.PerAsset)
	case s.PoolBytes < 0:
		return wrong("pool_bytes", s.PoolBytes, "it must be at least 0")
	}
	return checkPair("tile", s.Tile)
}

func (s *Sampler) planTiles(alignY, alignX int) shuffle.Kind {
	return &shuffle.Visits{H: s.Height, W: s.Width, TileH: s.TileHeight, TileW: s.TileWidth, PerVisit: s.PerVisit,
		Pool: s.Pool, AlignY: alignY, AlignX: alignX}
}
