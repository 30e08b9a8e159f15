package shuffle

import (
	"fmt"
	"math/bits"

	"github.com/chaski-eo/chaski/internal/splitmix"
)

// Visits is the tile-aware sampler: an item is visited several times, and every visit reads PerVisit
// windows of H by W pixels whose corners are in one tile of TileH by TileW pixels. A window no larger
// than a tile then touches two tiles per side at most, and all windows of a visit the same four; see
// Chunks for windows of any size.
//
// The visits of an item are spread evenly over its tiles (systematic sampling in proportion to the
// corners of a tile). So over an epoch every corner is exactly as likely as with RandomWindow; the
// only difference is that windows of one visit are neighbours.
type Visits struct {
	H, W           int
	TileH, TileW   int // multiples of the alignment
	PerVisit       int // windows of a visit
	Pool           int // visits that are shuffled together
	AlignY, AlignX int
}

func (v *Visits) check() error {
	if !sides(v.H, v.W, v.AlignY, v.AlignX, v.TileH, v.TileW, v.PerVisit, v.Pool) ||
		v.TileH%v.AlignY != 0 || v.TileW%v.AlignX != 0 {
		return fmt.Errorf("visits of %d windows of %d by %d pixels in tiles of %d by %d, "+
			"aligned to %d by %d, in pools of %d",
			v.PerVisit, v.H, v.W, v.TileH, v.TileW, v.AlignY, v.AlignX, v.Pool)
	}
	return nil
}

// Chunks returns the largest number of rows and of columns of tiles that the windows of a visit touch.
func (v *Visits) Chunks() (down, across int) {
	return (v.TileH-v.AlignY+v.H-1)/v.TileH + 1, (v.TileW-v.AlignX+v.W-1)/v.TileW + 1
}

// PoolWithin returns the largest pool, at least 1, whose decoded tiles fit in a quota of bytes, if a
// tile of all fields takes tileBytes. Callers allow for two pools in memory at a time: one that ends
// and one that begins.
func (v *Visits) PoolWithin(quota, tileBytes int64) int {
	down, across := v.Chunks()
	return int(min(max(quota/max(tileBytes, 1)/int64(down)/int64(across), 1), maxSide))
}

// Count returns in how many tiles of an asset of height by width pixels a corner may lie. That many
// visits read about every tile once per epoch.
func (v *Visits) Count(height, width int) int64 {
	down := (corners(height, v.H, v.AlignY)-1)/(v.TileH/v.AlignY) + 1
	across := (corners(width, v.W, v.AlignX)-1)/(v.TileW/v.AlignX) + 1
	return int64(down) * int64(across)
}

// Tile returns the row and column of the tile that one visit of an item reads. visit is its number
// among the visits of the item, an asset of height by width pixels.
func (v *Visits) Tile(seed, epoch uint64, item, visit, visits int64, height, width int) (ty, tx int) {
	down, across := int64(corners(height, v.H, v.AlignY)), int64(corners(width, v.W, v.AlignX)) // of the asset
	tileRows, tileColumns := int64(v.TileH/v.AlignY), int64(v.TileW/v.AlignX)                   // corners of a tile
	total := down * across
	start := splitmix.Below64(splitmix.Hash(seed, domainVisit, epoch, uint64(item)), total)
	// floor((visit*total + start) / visits), which is below total. The product needs 128 bits, because
	// total alone may have 62.
	hi, lo := bits.Mul64(uint64(visit), uint64(total))
	lo, carry := bits.Add64(lo, uint64(start), 0)
	pos, _ := bits.Div64(hi+carry, lo, uint64(visits))
	// Tiles are laid end to end, each as long as the number of its corners, so a tile cut by the
	// edge is drawn less often. All rows of tiles but the last are tileRows high.
	row := int64(pos) / (tileRows * across)
	inRow := int64(pos) - row*tileRows*across
	return int(row), int(inRow / (min(tileRows, down-row*tileRows) * tileColumns))
}

// At returns the window of a sample of an epoch, in the tile of its visit.
func (v *Visits) At(seed, epoch uint64, sample int64, ty, tx, height, width int) Box {
	hash := splitmix.Hash(seed, domainCorner, epoch, uint64(sample))
	return Box{
		Y: corner(splitmix.Further(hash, 0), ty, v.TileH, height, v.H, v.AlignY),
		X: corner(splitmix.Further(hash, 1), tx, v.TileW, width, v.W, v.AlignX),
		H: v.H, W: v.W,
	}
}

// corner returns a corner in tile t on a side of size pixels, each equally likely. A window that is too large to begin
// in the tile, such as a view larger than the first window, has the last corner.
func corner(hash uint64, t, tile, size, h, align int) int {
	count := corners(size, h, align)
	first := min(t*(tile/align), count-1)
	return align * (first + splitmix.Below(hash, min(tile/align, count-first)))
}

func (v *Visits) compile(lf *leafDataset) (height, width int, err error) {
	lf.runs = lf.Sampler.Runs
	if err = v.check(); err == nil && lf.runs.Len() > MaxSamples/int64(v.PerVisit) {
		err = fmt.Errorf("%d visits of %d windows are more than %d samples", lf.runs.Len(), v.PerVisit,
			int64(MaxSamples))
	}
	lf.n = lf.runs.Len() * int64(v.PerVisit)
	lf.Blocks = &Blocks{Samples: int64(v.PerVisit), Pool: v.Pool}
	return v.H, v.W, err
}

func (v *Visits) window(lf *leafDataset, d Draw, height, width int, _ *Weights) (Box, bool) {
	ty, tx := lf.tile(&d, height, width)
	return v.At(d.Seed, d.Epoch, d.Sample, ty, tx, height, width), false
}

// tile returns the row and column of the tile of a draw of a dataset with the sampler Visits.
func (lf *leafDataset) tile(d *Draw, height, width int) (ty, tx int) {
	visits := lf.Sampler.Kind.(*Visits)
	return visits.Tile(d.Seed, d.Epoch, d.Item, d.Sub, lf.runs.Count(d.Item), height, width)
}
