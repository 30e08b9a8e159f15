package report

import (
	"math"

	"github.com/chaski-eo/chaski/draw"
)

// maxSizeBars is the largest number of bars in a drawing of sizes.
const maxSizeBars = 32

// draw draws the distribution of file sizes. It returns nil if all sizes are nearly equal.
func (s *Sizes) draw() *drawing {
	first, last := sizeBin(s.Min), sizeBin(s.Max)
	if first == last {
		return nil
	}
	// Bins in a bar: a power of two, so that each edge is a sixteenth of an octave or whole octaves.
	each := 1
	for (last/each - first/each + 1) > maxSizeBars {
		each *= 2
	}
	first, last = first/each, last/each
	n := make([]int64, last-first+1)
	largest := int64(1)
	for i, c := range s.bins {
		if k := i/each - first; c > 0 && k >= 0 && k < len(n) {
			n[k] += c
			largest = max(largest, n[k])
		}
	}
	const w, height, left, right, top, bottom = 340.0, 130.0, 46.0, 22.0, 8.0, 36.0
	d := &drawing{Width: w, Height: height, Class: "hist", Label: "sizes of assets"}
	step := (w - left - right) / float64(len(n))
	y := func(n float64) float64 { return height - bottom - n/float64(largest)*(height-top-bottom) }
	for _, v := range draw.Ticks(0, float64(largest), 3) {
		if v == math.Trunc(v) {
			d.line("grid", left, y(v), w-right, y(v))
			d.text("tick", "end", left-5, y(v)+3, draw.Number(v))
		}
	}
	gap := min(step*0.15, 2)
	for i, n := range n {
		if n > 0 {
			d.path("area", rect(left+float64(i)*step+gap/2, y(float64(n)), step-gap, y(0)-y(float64(n))))
		}
	}
	d.line("axis", left, y(0), w-right, y(0))
	marks := min(len(n), 4)
	for k := range marks + 1 {
		i := k * len(n) / marks
		x := left + float64(i)*step
		d.line("axis", x, y(0), x, y(0)+3)
		d.text("tick", "middle", x, y(0)+14, bytesText(int64(sizeEdge((first+i)*each))))
	}
	d.text("tick", "middle", (left+w-right)/2, height-6, "size of an asset")
	return d
}
