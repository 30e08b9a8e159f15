package shuffle

import (
	"math"
	"math/big"
	"testing"

	"pgregory.net/rapid"

	"github.com/chaski-eo/chaski/internal/splitmix"
)

// TestGridCoversTheAsset: windows begin inside of the asset, every pixel is in one if strides are
// no larger than windows, and only padded windows pass the edge.
func TestGridCoversTheAsset(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := Grid{H: rapid.IntRange(1, 9).Draw(t, "h"), W: rapid.IntRange(1, 9).Draw(t, "w"), AlignY: 1, AlignX: 1}
		g.StrideY, g.StrideX = rapid.IntRange(1, 12).Draw(t, "sy"), rapid.IntRange(1, 12).Draw(t, "sx")
		g.Pad = rapid.Bool().Draw(t, "pad")
		height, width := rapid.IntRange(1, 30).Draw(t, "height"), rapid.IntRange(1, 30).Draw(t, "width")
		covered, corners := make([]bool, height*width), map[[2]int]bool{}
		for j := range g.Count(height, width) {
			b := g.At(j, height, width)
			if b.Y < 0 || b.X < 0 || b.Y >= height || b.X >= width || corners[[2]int{b.Y, b.X}] {
				t.Fatalf("window %d is %+v, outside or twice", j, b)
			}
			corners[[2]int{b.Y, b.X}] = true
			if !g.Pad && (b.Y+b.H > max(height, b.H) || b.X+b.W > max(width, b.W)) {
				t.Fatalf("window %d is %+v, over the edge", j, b)
			}
			for y := b.Y; y < min(b.Y+b.H, height); y++ {
				for x := b.X; x < min(b.X+b.W, width); x++ {
					covered[y*width+x] = true
				}
			}
		}
		for i, ok := range covered {
			if !ok && g.StrideY <= g.H && g.StrideX <= g.W {
				t.Fatalf("pixel (%d, %d) is in no window", i/width, i%width)
			}
		}
	})
}

// TestResizedWindows: areas are uniform, aspect ratios log-uniform, and windows lie inside of the
// asset.
func TestResizedWindows(t *testing.T) {
	r := Resized{H: 100, W: 100, Lo: 0.25, Hi: 4, Ratio: 3, AlignY: 1, AlignX: 1}
	const n = 40_000
	areas, aspects := make([]int, 10), make([]int, 10)
	for p := range int64(n) {
		b := r.Window(&Draw{Seed: 1, Epoch: 2, Position: p}, 2000, 2000)
		area := float64(b.H*b.W) / 1e4
		aspect := math.Log(float64(b.H)/float64(b.W))/math.Log(3)*0.5 + 0.5
		areas[min(max(int((area-0.25)/3.75*10), 0), 9)]++
		aspects[min(max(int(aspect*10), 0), 9)]++
		if area < 0.22 || area > 4.1 || aspect < -0.02 || aspect > 1.02 {
			t.Fatalf("position %d: %+v", p, b)
		}
	}
	// Sizes are whole pixels, so bins are slightly uneven.
	if a, b := chiSquare(areas, n/10, 9), chiSquare(aspects, n/10, 9); a > 4 || b > 4 {
		t.Errorf("chi-square of areas %.1f and aspects %.1f a degree of freedom: %v %v", a, b, areas, aspects)
	}
	rapid.Check(t, func(t *rapid.T) {
		r := Resized{
			Lo:    rapid.Float64Range(0.01, 1).Draw(t, "lo"),
			Ratio: rapid.Float64Range(1, 1e6).Draw(t, "ratio"), OfAsset: rapid.Bool().Draw(t, "of"),
		}
		r.Hi = r.Lo
		r.H, r.W = rapid.IntRange(1, maxSide).Draw(t, "h"), rapid.IntRange(1, maxSide).Draw(t, "w")
		r.AlignY, r.AlignX = rapid.IntRange(1, 8).Draw(t, "ay"), rapid.IntRange(1, 8).Draw(t, "ax")
		height, width := rapid.IntRange(8, math.MaxInt32).Draw(t,
			"height"), rapid.IntRange(8, math.MaxInt32).Draw(t, "width")
		b := r.Window(&Draw{Seed: rapid.Uint64().Draw(t, "seed")}, height, width)
		if b.H < 1 || b.W < 1 || b.Y < 0 || b.X < 0 || b.Y+b.H > height || b.X+b.W > width ||
			b.H%r.AlignY+b.Y%r.AlignY+b.W%r.AlignX+b.X%r.AlignX != 0 {
			t.Fatalf("%+v in %d by %d", b, height, width)
		}
	})
}

// TestWeightedWindowsFollowTheWeights: the pixel around which a window is drawn lies in a cell as
// often as the cell's weight says, and is uniform within the cell.
func TestWeightedWindowsFollowTheWeights(t *testing.T) {
	weights := []uint32{0, 3, 1, 0, 0, 8}
	w, err := NewWeights(weights, 10, 10, 17, 25, nil)
	if err != nil {
		t.Fatal(err)
	}
	const n = 60_000
	pixels := make([]int, 17*25)
	for p := range int64(n) {
		box, weighted := w.Window(Crop{
			Seed: 1, Epoch: 1, Position: p,
			Height: 17, Width: 25, H: 1, W: 1, AlignY: 1, AlignX: 1,
		})
		y, x := box.Y, box.X
		if !weighted {
			t.Fatal("not weighted")
		}
		pixels[y*25+x]++
	}
	sum, freedom := 0.0, -1
	for i, c := range pixels {
		y, x := i/25, i%25
		cell := y/10*3 + x/10
		area := float64(min(10, 17-y/10*10) * min(10, 25-x/10*10))
		want := n * float64(weights[cell]) / 12 / area
		switch {
		case want > 0:
			sum += (float64(c) - want) * (float64(c) - want) / want
			freedom++
		case c > 0:
			t.Fatalf("pixel (%d, %d) has no weight, and was drawn", y, x)
		}
	}
	if sum/float64(freedom) > 1.5 {
		t.Errorf("chi-square %.2f a degree of freedom", sum/float64(freedom))
	}
	for p := range int64(1000) {
		box, _ := w.Window(Crop{
			Seed: 1, Epoch: 1, Position: p,
			Height: 17, Width: 25, H: 8, W: 6, AlignY: 2, AlignX: 4,
		})
		y, x := box.Y, box.X
		if y < 0 || y > 9 || y%2 != 0 || x < 0 || x > 19 || x%4 != 0 {
			t.Fatalf("corner (%d, %d)", y, x)
		}
	}
}

func TestWeightsRefuse(t *testing.T) {
	for _, c := range []struct{ n, cellH, cellW, height, width int }{
		{5, 10, 10, 17, 25},
		{7, 10, 10, 17, 25},
		{12, 10, 10, 17, 25},
		{0, 10, 10, 17, 25},
		{6, 0, 10, 17, 25},
		{6, 10, 0, 17, 25},
		{3, 10, 10, 0, 25}, // as many weights as divisions that round towards 0 would give cells
		{2, 10, 10, 17, 0},
	} {
		if _, err := NewWeights(make([]uint32, c.n), c.cellH, c.cellW, c.height, c.width, nil); err == nil {
			t.Errorf("%+v was accepted", c)
		}
	}
}

func TestPoolWithin(t *testing.T) {
	v := Visits{H: 256, W: 512, TileH: 512, TileW: 256, PerVisit: 1, Pool: 1, AlignY: 1, AlignX: 1}
	// A window whose corner lies in one tile touches 2 tiles down, and 3 across because it is two
	// tiles wide.
	if down, across := v.Chunks(); down != 2 || across != 3 {
		t.Errorf("%d by %d tiles", down, across)
	}
	for quota, want := range map[int64]int{0: 1, 5999: 1, 6000: 1, 12_000: 2, 600_000: 100, math.MaxInt64: maxSide} {
		if n := v.PoolWithin(quota, 1000); n != want {
			t.Errorf("%d visits in %d bytes, not %d", n, quota, want)
		}
	}
}

// TestVisitsAreUniform: over the windows of an item every corner is as likely as with the random
// sampler, a tile is visited its share of times, rounded up or down, and the windows of a visit lie
// in its chunks.
func TestVisitsAreUniform(t *testing.T) {
	const height, width, visits, epochs = 30, 41, 7, 20_000
	v := Visits{H: 9, W: 12, TileH: 10, TileW: 16, PerVisit: 2, Pool: 1, AlignY: 1, AlignX: 2}
	cy, cx := corners(height, v.H, 1), corners(width, v.W, 2)
	counts := make([]int, cy*cx)
	down, across := v.Chunks()
	for epoch := range uint64(epochs) {
		times := map[[2]int]int{}
		for visit := range int64(visits) {
			ty, tx := v.Tile(5, epoch, 3, visit, visits, height, width)
			times[[2]int{ty, tx}]++
			for k := range int64(2) {
				b := v.At(5, epoch, (21+visit)*2+k, ty, tx, height, width)
				if b.Y/10 != ty || b.X/16 != tx || b.X%2 != 0 || b.Y+9 > height || b.X+12 > width ||
					(b.Y+8)/10 >= ty+down || (b.X+11)/16 >= tx+across {
					t.Fatalf("%+v in tile (%d, %d)", b, ty, tx)
				}
				counts[b.Y*cx+b.X/2]++
			}
		}
		for ty := range 3 {
			for tx := range 2 {
				share := float64(min(10, cy-ty*10)*min(8, cx-tx*8)) / float64(cy*cx) * visits
				if n := float64(times[[2]int{ty, tx}]); n < math.Floor(share) || n > math.Ceil(share) {
					t.Fatalf("tile (%d, %d) was visited %v times, and its share is %.2f", ty, tx, n, share)
				}
			}
		}
	}
	// Windows of one visit are neighbours, so counts of neighbours vary together, and more.
	if c := chiSquare(counts, visits*2*epochs/float64(cy*cx), int64(cy*cx-1)); c > 1.5 {
		t.Errorf("chi-square of corners is %.2f a degree of freedom", c)
	}
	if n := v.Count(height, width); n != 6 {
		t.Errorf("%d tiles", n)
	}
}

// slowTile is Tile by docs/order.md, in integers of any size.
func slowTile(v Visits, seed uint64, visit, visits int64, height, width int) (ty, tx int) {
	n := func(i int) *big.Int { return big.NewInt(int64(i)) }
	cy, cx := n(max(height-v.H, 0)/v.AlignY+1), n(max(width-v.W, 0)/v.AlignX+1)
	total := new(big.Int).Mul(cy, cx)
	start := new(big.Int).SetUint64(splitmix.Hash(seed, 10, 0, 0))
	start.Rsh(start.Mul(start, total), 64)
	c := new(big.Int).Mul(big.NewInt(visit), total)
	c.Div(c.Add(c, start), big.NewInt(visits))
	row, rest := new(big.Int).DivMod(c, new(big.Int).Mul(n(v.TileH/v.AlignY), cx), new(big.Int))
	rows := n(min(v.TileH/v.AlignY, int(cy.Int64())-int(row.Int64())*(v.TileH/v.AlignY)))
	return int(row.Int64()), int(rest.Div(rest, rows.Mul(rows, n(v.TileW/v.AlignX))).Int64())
}

// TestVisitsOfAnySize: the largest sizes do not overflow.
func TestVisitsOfAnySize(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := Visits{
			PerVisit: 1, Pool: 1, AlignY: rapid.IntRange(1, 8).Draw(t, "ay"),
			AlignX: rapid.IntRange(1, 8).Draw(t, "ax"),
		}
		v.H, v.W = rapid.IntRange(1, maxSide).Draw(t, "h"), rapid.IntRange(1, maxSide).Draw(t, "w")
		v.TileH, v.TileW = v.AlignY*rapid.IntRange(1, 1<<20).Draw(t,
			"th"), v.AlignX*rapid.IntRange(1, 1<<20).Draw(t, "tw")
		height, width := rapid.IntRange(1, math.MaxInt32).Draw(t,
			"height"), rapid.IntRange(1, math.MaxInt32).Draw(t, "width")
		visits := rapid.Int64Range(1, math.MaxInt64).Draw(t, "visits")
		visit := rapid.Int64Range(0, visits-1).Draw(t, "visit")
		seed := rapid.Uint64().Draw(t, "seed")
		ty, tx := v.Tile(seed, 0, 0, visit, visits, height, width)
		if y, x := slowTile(v, seed, visit, visits, height, width); y != ty || x != tx {
			t.Fatalf("tile (%d, %d), not (%d, %d)", ty, tx, y, x)
		}
		b := v.At(seed, 0, 0, ty, tx, height, width)
		if b.Y < 0 || b.X < 0 || b.Y > max(height-v.H, 0) || b.X > max(width-v.W, 0) || b.Y/v.TileH != ty ||
			b.X/v.TileW != tx {
			t.Fatalf("tile (%d, %d), %+v of %d by %d", ty, tx, b, height, width)
		}
	})
	v := Visits{H: 1, W: 1, TileH: 1, TileW: 1, PerVisit: 1, Pool: 1, AlignY: 1, AlignX: 1}
	for i := range uint64(200) {
		visit := int64(splitmix.Mix(i) >> 1)
		ty, tx := v.Tile(uint64(visit), 0, 0, visit, math.MaxInt64, math.MaxInt32, math.MaxInt32)
		if y, x := slowTile(v, uint64(visit), visit, math.MaxInt64, math.MaxInt32, math.MaxInt32); y != ty || x != tx {
			t.Fatalf("visit %d: tile (%d, %d), not (%d, %d)", visit, ty, tx, y, x)
		}
	}
}
