package pixels

import (
	"github.com/chaski-eo/chaski/einops"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/shuffle"
)

// planar implements planarSink, if all columns of the chunk lie in the window.
func (r *Row) planar(x *chunk.Index, i int) (planar einops.Planar, rows int) {
	box := x.Box(i)
	_, _, columns := x.DecodedShape(i)
	picked := r.picked()
	whole := box.X1-box.X0 == columns && r.Win.X <= box.X0 && box.X1 <= r.Win.X+r.Win.W && r.probe == nil
	places := picked.at[box.B0]
	if !whole || box.B1-box.B0 != 1 || box.Y0 < r.Win.Y || len(places) != 1 || r.Transform&^shuffle.FlipY != 0 {
		return planar, 0
	}
	bottom := min(box.Y1, r.Win.Y+r.Win.H)
	target := r.turnBox(nil, einops.Box{N: r.N, T: r.step(places[0] / picked.bands()), B0: places[0] % picked.bands(),
		Y0: box.Y0 - r.Win.Y, Y1: bottom - r.Win.Y, X0: box.X0 - r.Win.X, X1: box.X1 - r.Win.X})
	target.B1 = target.B0 + 1
	planar, ok := r.Plan.Planar(r.Dst, r.Cv, target, r.Transform == shuffle.FlipY)
	if !ok {
		return planar, 0
	}
	return planar, bottom - box.Y0
}
