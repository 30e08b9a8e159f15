package openzl

import "math/bits"

// candidate is a graph that auto and best may choose. costs are times to decode samples of 1, 2, 4 and 8 bytes, as
// multiples of those of delta>zstd.
type candidate struct {
	graph graphSpec
	costs [4]float64
}

// candidates have the costs that TestSpeedsOfGraphs measured: processor time on an Intel Xeon (Sapphire Rapids), 18
// tiles of 256 by 256 of a Sentinel-2 scene, as bytes, uint16, float32 and float64. Costs depend on the samples:
// these order the graphs, and do not forecast.
var candidates = []candidate{
	{graphSpec{end: "zstd"}, [4]float64{0.9, 0.93, 1.04, 0.9}},
	{graphSpec{predict: predictDelta, end: "zstd"}, [4]float64{1, 1, 1, 1}},
	{graphSpec{transpose: true, end: "zstd"}, [4]float64{0.93, 0.6, 0.58, 0.88}},
	{graphSpec{predict: predictDelta, transpose: true, end: "zstd"}, [4]float64{0.97, 0.74, 0.95, 1.08}},
	{graphSpec{predict: predictDelta, zigzag: true, transpose: true, end: "zstd"}, [4]float64{1, 0.61, 0.79, 1.17}},
	{graphSpec{transpose: true, end: "entropy"}, [4]float64{0.66, 0.52, 0.83, 0.86}},
	{graphSpec{predict: predictDelta, transpose: true, end: "entropy"}, [4]float64{0.65, 0.77, 1.02, 1.19}},
	{
		graphSpec{predict: predictDelta, zigzag: true, transpose: true, end: "entropy"},
		[4]float64{0.67, 0.72, 1.28, 1.24},
	},
	{graphSpec{end: "bitpack"}, [4]float64{0.28, 0.44, 0.73, 1.74}},
	{graphSpec{predict: predictPlanar, zigzag: true, end: "zstd"}, [4]float64{1.01, 1.07, 1.18, 1.03}},
	{graphSpec{predict: predictPlanar, zigzag: true, transpose: true, end: "zstd"}, [4]float64{1.02, 0.71, 0.82, 1.13}},
	{
		graphSpec{predict: predictPlanar, zigzag: true, transpose: true, end: "entropy"},
		[4]float64{0.65, 0.86, 1.45, 1.72},
	},
	{graphSpec{end: "pfor"}, [4]float64{0.17, 0.19, 0.19, 0.26}},
	{graphSpec{predict: predictPlanar, zigzag: true, end: "pfor"}, [4]float64{0.38, 0.28, 0.27, 0.36}},
	{graphSpec{transpose: true, end: "pivco"}, [4]float64{0.3, 0.31, 0.49, 0.54}},
	{graphSpec{predict: predictPlanar, zigzag: true, end: "pivco"}, [4]float64{0.32, 0.54, 0.73, 0.75}},
	{
		graphSpec{predict: predictPlanar, zigzag: true, transpose: true, end: "pivco"},
		[4]float64{0.35, 0.57, 0.91, 1.3},
	},
}

// tried is how many samples auto tries graphs on: half a tile of 256 by 256.
const tried = 1 << 15

// choose sets e.graph: constant if all samples are equal, otherwise the candidate that makes the middle
// rows of the raster smallest.
func (e *Encoder) choose(samples []byte, width, h, w int) {
	if len(samples) > 0 && allEqual(samples, width) {
		e.graph = graphSpec{end: "constant"}
		return
	}
	best := graphSpec{end: "store"}
	rows := h
	if h*w > tried {
		rows = max(1, tried/w)
	}
	part := samples[(h-rows)/2*w*width:][:rows*w*width]
	size := len(part) + storeOverhead
	for _, c := range candidates {
		cost := c.costs[bits.TrailingZeros(uint(width))]
		if c.graph.geozl() > e.opt.Geozl || e.opt.MaxCost > 0 && cost > e.opt.MaxCost {
			continue
		}
		e.graph = c.graph
		var err error
		if e.trial, err = e.encode(e.trial[:0], part, width, w); err == nil && len(e.trial) < size {
			best, size = c.graph, len(e.trial)
		}
	}
	e.graph = best
}

func allEqual(samples []byte, width int) bool {
	for i := width; i < len(samples); i++ {
		if samples[i] != samples[i-width] {
			return false
		}
	}
	return true
}
