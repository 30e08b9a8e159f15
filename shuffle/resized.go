package shuffle

import (
	"cmp"
	"fmt"
	"math"
	"math/bits"

	"github.com/chaski-eo/chaski/internal/splitmix"
)

// Resized is the sampler of windows of random area and aspect, which a reader resamples to H by W
// pixels (the random resized crop of Szegedy et al., Going deeper with convolutions, 2015). The area
// is uniform in [Lo, Hi] times the area of the reference. The aspect, relative to H:W, is log-uniform in
// [1/Ratio, Ratio], in steps of 2^-16 of its logarithm. A window that does not fit is shrunk; it keeps
// its aspect.
type Resized struct {
	H, W   int
	Lo, Hi float64
	Ratio  float64 // at least 1
	// OfAsset makes the asset the reference; otherwise it is H by W pixels, so the scale of
	// pixels does not depend on the asset.
	OfAsset        bool
	AlignY, AlignX int // sizes and corners are multiples of these
}

// Wrong returns which number is out of its bounds, "scale" for Lo and Hi or "ratio", and the rule that it breaks. It
// returns "" if none is.
func (r *Resized) Wrong() (number, rule string) {
	switch {
	case !(r.Lo > 0) || !(r.Hi >= r.Lo) || !(r.Hi <= 1e6):
		return "scale", "it must be [least, greatest], above 0 and at most 1000000"
	case r.OfAsset && r.Hi > 1:
		return "scale", "relative to the raster, it must be at most 1"
	case !(r.Ratio >= 1) || !(r.Ratio <= 1e6):
		return "ratio", "it must be from 1 to 1000000"
	}
	return "", ""
}

func (r *Resized) check() error {
	if !sides(r.H, r.W, r.AlignY, r.AlignX) {
		return fmt.Errorf("resized windows of %d by %d pixels, aligned to %d by %d", r.H, r.W, r.AlignY, r.AlignX)
	}
	switch number, rule := r.Wrong(); number {
	case "scale":
		return fmt.Errorf("scale is [%v, %v]: %s", r.Lo, r.Hi, rule)
	case "ratio":
		return fmt.Errorf("ratio is %v: %s", r.Ratio, rule)
	}
	return nil
}

// Window returns the window of a draw in an asset of height by width pixels. Every float64 operation is rounded by
// itself (IEEE 754, nearest even, none fused), so the result is the same anywhere.
func (r *Resized) Window(d *Draw, height, width int) Box {
	h, w := r.size(splitmix.Hash(d.Seed, domainResized, d.Epoch, uint64(d.Position)), height, width)
	return Window(Crop{
		Seed: d.Seed, Epoch: d.Epoch, Position: d.Position,
		Height: height, Width: width, H: h, W: w, AlignY: r.AlignY, AlignX: r.AlignX,
	})
}

func (r *Resized) size(hash uint64, height, width int) (h, w int) {
	area := float64(r.H) * float64(r.W)
	if r.OfAsset {
		area = float64(height) * float64(width)
	}
	share := float64(splitmix.Further(hash, 0)>>11) * 0x1p-53
	share = r.Lo + float64(float64(r.Hi-r.Lo)*share)
	area = float64(area * share)
	squeeze := aspect(splitmix.Further(hash, 1), r.Ratio)
	tall, wide := float64(r.H)/float64(r.W), float64(r.W)/float64(r.H)
	h = roundTo(math.Sqrt(float64(float64(area*tall)*squeeze)), r.AlignY)
	w = roundTo(math.Sqrt(float64(float64(area*wide)/squeeze)), r.AlignX)
	if tallest := r.AlignY * max(height/r.AlignY, 1); h > tallest {
		h, w = tallest, shrink(w, tallest, h, r.AlignX)
	}
	if widest := r.AlignX * max(width/r.AlignX, 1); w > widest {
		h, w = shrink(h, widest, w, r.AlignY), widest
	}
	return h, w
}

// aspect returns ratio^u, with u in (-1, 1) in steps of 2^-16. It takes square roots and products only,
// because every machine rounds these alike, which is not so for pow.
func aspect(hash uint64, ratio float64) float64 {
	power := 1.0
	for i := 63; i >= 48; i-- {
		ratio = math.Sqrt(ratio)
		if hash>>i&1 == 1 {
			power = float64(power * ratio)
		}
	}
	if hash&1 == 1 {
		power = 1 / power
	}
	return power
}

// roundTo returns the multiple of align nearest to v, at least align.
func roundTo(v float64, align int) int {
	return align * int(max(math.Floor(float64(v/float64(align))+0.5), 1))
}

// shrink returns floor(v*num/den), rounded down to a multiple of align but at least align.
func shrink(v, num, den, align int) int {
	hi, lo := bits.Mul64(uint64(v), uint64(num))
	quotient, _ := bits.Div64(hi, lo, uint64(den)) // num < den, so the quotient is below v
	return align * max(int(quotient)/align, 1)
}

func (r *Resized) compile(lf *leafDataset) (height, width int, err error) {
	return r.H, r.W, cmp.Or(r.check(), lf.each(lf.Sampler.PerItem))
}

func (r *Resized) window(_ *leafDataset, d Draw, height, width int, _ *Weights) (Box, bool) {
	sized := *r
	sized.H, sized.W = cmp.Or(d.Side, r.H), cmp.Or(d.Side, r.W)
	return sized.Window(&d, height, width), false
}
