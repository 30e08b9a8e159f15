package report

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
	plot := newPlot("sizes of assets", 130, 22, 8, 36, float64(largest), min(3, int(largest)))
	step := (plot.x(1) - plot.x(0)) / float64(len(n))
	gap := min(step*0.15, 2)
	for i, n := range n {
		if n > 0 {
			y := plot.y(float64(n))
			plot.path("area", rect(plot.x(0)+float64(i)*step+gap/2, y, step-gap, plot.y(0)-y))
		}
	}
	plot.line("axis", plot.x(0), plot.y(0), plot.x(1), plot.y(0))
	marks := min(len(n), 4)
	for k := range marks + 1 {
		i := k * len(n) / marks
		plot.mark(plot.x(0)+float64(i)*step, bytesText(int64(sizeEdge((first+i)*each))))
	}
	plot.text("tick", "middle", plot.x(0.5), plot.Height-6, "size of an asset")
	return plot.drawing
}
